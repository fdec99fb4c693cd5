/*
 * Emulated time against real time: how many cycles a chip may have run by now. Emulated time never runs ahead; when the machine was busy
 * for long, emulated time falls behind for good instead of racing after it. Cycles are the chip's, which may change their length.
 */
#ifndef BOARD_CLOCK_H
#define BOARD_CLOCK_H

#include <stdint.h>

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define NEVER_NS INT64_MAX
#define LAG_MAX_NS (100 * NS_PER_MS) /* a longer lag is not made up for */

struct board_clock {
    uint64_t cycle; /* at this cycle it was this time */
    int64_t ns;
    uint32_t hertz; /* and since then a second has had so many cycles */
};

int64_t real_ns(void);

/* From this cycle, now, at this rate. */
void clock_start(struct board_clock *clock, uint64_t cycle, uint32_t hertz);

/* Bring the base close, so that the arithmetic stays small, and note a new rate. */
void clock_advance(struct board_clock *clock, uint64_t cycle, uint32_t hertz);

/* The cycle that may be reached by now, if the chip has reached `cycle`. */
uint64_t clock_allowed(struct board_clock *clock, uint64_t cycle);

/* When a cycle, soon to come, is due. NEVER_NS for NEVER. */
int64_t clock_due(const struct board_clock *clock, uint64_t cycle);

#endif
