/*
 * micro:bit (first version). Outputs 0 to 2 light the three rows of the LED matrix (P0.13 to P0.15), output 3 is pin 16 at the edge (P0.16).
 * LED: column 9 (P0.12) is left dark, as it needs a row. Button: A (P0.17), to ground.
 */
#ifndef PINS_H
#define PINS_H

#include <stdbool.h>

#include "number.h"

#define PINS_REGISTER(address) (*(volatile uint32_t *)(address))
#define PINS_OUT PINS_REGISTER(0x50000504)
#define PINS_OUTSET PINS_REGISTER(0x50000508)
#define PINS_OUTCLR PINS_REGISTER(0x5000050C)
#define PINS_IN PINS_REGISTER(0x50000510)
#define PINS_DIRSET PINS_REGISTER(0x50000518)
#define PINS_CNF_17 PINS_REGISTER(0x50000744)

static inline void pins_start(void)
{
    PINS_DIRSET = 0x1FFF0u; /* columns P0.04 to P0.12 at low level, rows P0.13 to P0.15, P0.16 */
    PINS_CNF_17 = 0;        /* input, connected; the board has a pull-up */
}

static inline void pins_write(uint8_t outputs)
{
    PINS_OUT = (PINS_OUT & ~0x1E000u) | (uint32_t)outputs << 13;
}

static inline void pins_led(bool on)
{
    if (on) {
        PINS_OUTSET = 1u << 12;
    } else {
        PINS_OUTCLR = 1u << 12;
    }
}

static inline bool pins_pressed(void)
{
    return (PINS_IN & (1u << 17)) == 0;
}

#endif
