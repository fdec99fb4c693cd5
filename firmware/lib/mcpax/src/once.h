/*
 * At most once (docs/wire-format.md §5): decides by its sequence number whether a call may run, and keeps responses for those
 * that are asked for again. Knows nothing of what a call is.
 *
 * With a window of one there is so little to decide that it is decided here; once.c has the general case.
 */
#ifndef MCPAX_ONCE_H
#define MCPAX_ONCE_H

#include "internal.h"

#define MCPAX_NEWEST_AHEAD 127u /* a sequence up to this far ahead of the highest is new, any other is old */

enum mcpax_verdict {
    MCPAX_IGNORE, /* stale, or from before synchronisation */
    MCPAX_RUN,    /* has not run */
    MCPAX_REPEAT, /* has run, and its response is kept */
    MCPAX_LOST    /* has run, and its response is gone */
};

/* What is left to say of a call judged MCPAX_LOST. Where no response is kept, a status other than MCPAX_OK still is, as it takes no room. */
#if MCPAX_KEPT > 0
#define MCPAX_LOST_STATUS MCPAX_RESPONSE_LOST
#else
#define MCPAX_LOST_STATUS mcpax.ran
#endif

#if MCPAX_WINDOW == 1

#if MCPAX_KEPT > 0
#define MCPAX_KEPT_BUFFER mcpax.kept[0]
#else
#define MCPAX_KEPT_BUFFER NULL
#endif

/* Nothing of mcpax.highest and before has been seen. */
#define MCPAX_NEVER_SEEN 2 /* value of mcpax.ran: neither 0 nor 1, nor a status of a call that ran */
static inline void mcpax_once_reset(void)
{
    mcpax.ran = MCPAX_NEVER_SEEN;
}

/* What to do with a call of this sequence. */
static inline enum mcpax_verdict mcpax_once_judge(uint8_t sequence)
{
    const int8_t ahead = (int8_t)(uint8_t)(sequence - mcpax.highest);

    if (ahead > 0) { /* 1 to 127, MCPAX_NEWEST_AHEAD */
        /* Even if the call turns out not to run: else 128 faulty ones in a row would make the next good one look old. */
        mcpax.highest = sequence;
        mcpax.ran = 0;
    } else if (ahead != 0 || mcpax.ran == MCPAX_NEVER_SEEN) {
        return MCPAX_IGNORE;
    }
    return !mcpax.ran ? MCPAX_RUN : MCPAX_KEPT > 0 ? MCPAX_REPEAT : MCPAX_LOST;
}

/* The call of this sequence, judged MCPAX_RUN, has run: where to keep its response. */
static inline uint8_t MCPAX_IN_RAM *mcpax_once_keep(uint8_t sequence)
{
    (void)sequence;
    mcpax.ran = 1;
    return MCPAX_KEPT_BUFFER;
}

/* The response of a sequence that was judged MCPAX_REPEAT. */
static inline uint8_t MCPAX_IN_RAM *mcpax_once_kept(uint8_t sequence)
{
    (void)sequence;
    return MCPAX_KEPT_BUFFER;
}

#else

void mcpax_once_reset(void);
enum mcpax_verdict mcpax_once_judge(uint8_t sequence);
uint8_t *mcpax_once_keep(uint8_t sequence);
uint8_t *mcpax_once_kept(uint8_t sequence);

#endif

#endif
