/* A board with an 8052. Outputs 0 to 3: P1.0 to P1.3. LED: P1.7. Button: P3.2, to ground. Outputs and LED are on when low. */
#ifndef PINS_H
#define PINS_H

#include <8052.h>
#include <stdbool.h>

#include "number.h"

/* After reset all pins are high, through weak pull-ups: outputs off, button readable. */
static inline void pins_start(void)
{
}

static inline void pins_write(uint8_t outputs)
{
    P1 = (P1 | 0x0F) & (uint8_t)~outputs;
}

static inline void pins_led(bool on)
{
    P1_7 = !on;
}

static inline bool pins_pressed(void)
{
    return !P3_2;
}

#endif
