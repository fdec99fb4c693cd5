/* At most once, with more than one call outstanding. See once.h. */
#include "once.h"

#if MCPAX_WINDOW > 1

#if MCPAX_WINDOW > 8
#error "MCPAX_WINDOW must be 1 to 8: one bit of mcpax.ran for each sequence"
#endif
#if MCPAX_KEPT < 1 || MCPAX_KEPT > MCPAX_WINDOW || (MCPAX_KEPT & (MCPAX_KEPT - 1)) != 0
#error "MCPAX_KEPT must be a power of two and not above MCPAX_WINDOW"
#endif

static uint8_t slot_of(uint8_t sequence)
{
    return sequence & (MCPAX_KEPT - 1);
}

void mcpax_once_reset(void)
{
    mcpax.seen = 0;
    mcpax.ran = 0;
}

enum mcpax_verdict mcpax_once_judge(uint8_t sequence)
{
    const uint8_t ahead = (uint8_t)(sequence - mcpax.highest);
    const uint8_t age = (uint8_t)-ahead;

    if (ahead >= 1 && ahead <= MCPAX_NEWEST_AHEAD) {
        /* Even if the call turns out not to run: else 128 faulty ones in a row would make the next good one look old. */
        mcpax.highest = sequence;
        mcpax.ran = (uint8_t)(ahead < MCPAX_WINDOW ? mcpax.ran << ahead : 0);
        mcpax.seen = (uint8_t)(ahead < MCPAX_WINDOW - mcpax.seen ? mcpax.seen + ahead : MCPAX_WINDOW);
        return MCPAX_RUN;
    }
    if (age >= mcpax.seen) {
        return MCPAX_IGNORE;
    }
    if ((mcpax.ran & (1u << age)) == 0) { /* NOLINT(clang-analyzer-core.BitwiseShift): it has no sign, and is below 8 */
        return MCPAX_RUN;
    }
    return mcpax.kept_sequence[slot_of(sequence)] == sequence ? MCPAX_REPEAT : MCPAX_LOST;
}

uint8_t *mcpax_once_keep(uint8_t sequence)
{
    mcpax.ran = (uint8_t)(mcpax.ran | (1u << (uint8_t)(mcpax.highest - sequence)));
    mcpax.kept_sequence[slot_of(sequence)] = sequence;
    return mcpax_once_kept(sequence);
}

uint8_t *mcpax_once_kept(uint8_t sequence)
{
    return mcpax.kept[slot_of(sequence)];
}

#endif
