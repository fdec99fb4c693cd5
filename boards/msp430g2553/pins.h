/* MSP-EXP430G2 LaunchPad with MSP430G2553. Outputs 0 to 3: P2.0 to P2.3. LED: LED1 (P1.0). Button: S2 (P1.3), to ground. */
#ifndef PINS_H
#define PINS_H

#include <stdbool.h>

#include "number.h"

#define PINS_REGISTER(address) (*(volatile uint8_t *)(address))
#define PINS_P1IN PINS_REGISTER(0x20)
#define PINS_P1OUT PINS_REGISTER(0x21)
#define PINS_P1DIR PINS_REGISTER(0x22)
#define PINS_P1REN PINS_REGISTER(0x27)
#define PINS_P2OUT PINS_REGISTER(0x29)
#define PINS_P2DIR PINS_REGISTER(0x2A)

static inline void pins_start(void)
{
    PINS_P1DIR = 1u << 0;
    PINS_P1OUT = 1u << 3; /* its resistor pulls up */
    PINS_P1REN = 1u << 3;
    PINS_P2DIR = 0x0F;
}

static inline void pins_write(uint8_t outputs)
{
    PINS_P2OUT = outputs;
}

static inline void pins_led(bool on)
{
    if (on) {
        PINS_P1OUT |= 1u << 0;
    } else {
        PINS_P1OUT &= (uint8_t)~(1u << 0);
    }
}

static inline bool pins_pressed(void)
{
    return (PINS_P1IN & (1u << 3)) == 0;
}

#endif
