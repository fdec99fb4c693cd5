/*
 * At most once (docs/wire-format.md §5): decides by its sequence number whether a call may run, and keeps responses for those
 * that are asked for again. Knows nothing of what a call is.
 */
#include "internal.h"

#define NEWEST_AHEAD 127u /* a sequence up to this far ahead of the highest is new, any other is old */

#if MCPAX_WINDOW < 1 || MCPAX_WINDOW > 8
#error "MCPAX_WINDOW must be 1 to 8: one bit of `ran` for each sequence"
#endif
#if MCPAX_KEPT < 1 || MCPAX_KEPT > MCPAX_WINDOW || (MCPAX_KEPT & (MCPAX_KEPT - 1)) != 0
#error "MCPAX_KEPT must be a power of two and not above MCPAX_WINDOW"
#endif

static uint8_t highest;
static uint8_t seen; /* how many sequences, from the highest downwards, are in the window and after synchronisation */
static uint8_t ran;  /* bit n: sequence (highest - n) has run */
static mcpax_kept kept[MCPAX_KEPT];

void mcpax_once_reset(uint8_t sequence)
{
    highest = sequence;
    seen = 0;
    ran = 0;
}

uint8_t mcpax_once_highest(void)
{
    return highest;
}

enum mcpax_verdict mcpax_once_judge(uint8_t sequence)
{
    uint8_t ahead = (uint8_t)(sequence - highest);
    uint8_t age = (uint8_t)(highest - sequence);

    if (ahead >= 1 && ahead <= NEWEST_AHEAD) {
        /* Even if the call turns out not to run: else 128 faulty ones in a row would make the next good one look old. */
        highest = sequence;
        ran = (uint8_t)(ahead < MCPAX_WINDOW ? ran << ahead : 0);
        seen = (uint8_t)(ahead < MCPAX_WINDOW - seen ? seen + ahead : MCPAX_WINDOW);
        return MCPAX_RUN;
    }
    if (age >= seen) {
        return MCPAX_IGNORE;
    }
    if ((ran & (1u << age)) == 0) {
        return MCPAX_RUN;
    }
    return mcpax_once_kept(sequence)->sequence == sequence ? MCPAX_REPEAT : MCPAX_LOST;
}

mcpax_kept *mcpax_once_keep(uint8_t sequence)
{
    mcpax_kept *slot = mcpax_once_kept(sequence);
    ran = (uint8_t)(ran | (1u << (uint8_t)(highest - sequence)));
    slot->sequence = sequence;
    return slot;
}

mcpax_kept *mcpax_once_kept(uint8_t sequence)
{
    return &kept[sequence & (MCPAX_KEPT - 1)];
}
