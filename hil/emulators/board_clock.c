#define _GNU_SOURCE
#include "board_clock.h"

#include <time.h>

#include "uart.h"

#define FAR_S 60 /* what is due later than this needs no exact time */

int64_t real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

void clock_start(struct board_clock *clock, uint64_t cycle, uint32_t hertz)
{
    clock->cycle = cycle;
    clock->ns = real_ns();
    clock->hertz = hertz;
}

static int64_t time_of(const struct board_clock *clock, uint64_t cycle)
{
    return clock->ns + (int64_t)(cycle - clock->cycle) * NS_PER_S / clock->hertz;
}

void clock_advance(struct board_clock *clock, uint64_t cycle, uint32_t hertz)
{
    if (hertz != clock->hertz) {
        clock->ns = time_of(clock, cycle);
        clock->cycle = cycle;
        clock->hertz = hertz;
    }
    while (cycle - clock->cycle >= clock->hertz) { /* whole seconds, so that nothing is lost to rounding */
        clock->cycle += clock->hertz;
        clock->ns += NS_PER_S;
    }
}

uint64_t clock_allowed(struct board_clock *clock, uint64_t cycle)
{
    const int64_t now = real_ns();
    const int64_t reached = time_of(clock, cycle);

    if (now - reached > LAG_MAX_NS) {
        clock->ns += now - reached - LAG_MAX_NS;
    }
    return now > clock->ns ? clock->cycle + (uint64_t)((now - clock->ns) * clock->hertz / NS_PER_S) : clock->cycle;
}

int64_t clock_due(const struct board_clock *clock, uint64_t cycle)
{
    if (cycle == NEVER) {
        return NEVER_NS;
    }
    const uint64_t far = clock->cycle + FAR_S * (uint64_t)clock->hertz;
    return time_of(clock, cycle < far ? cycle : far);
}
