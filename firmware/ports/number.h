/* What tells one board from another of its kind: a number, given when it is built, e.g. -DBOARD_NUMBER=7. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdint.h>

#ifndef BOARD_NUMBER
#define BOARD_NUMBER 1
#endif

static inline uint16_t board_number(void)
{
    return BOARD_NUMBER;
}

#endif
