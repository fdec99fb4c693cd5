/* Arduino Uno. Outputs 0 to 3: A0 to A3 (PC0 to PC3). LED: D13 (PB5). Button: D2 (PD2) to ground. */
#ifndef PINS_H
#define PINS_H

#include <avr/io.h>
#include <stdbool.h>

#include "number.h"

static inline void pins_start(void)
{
    DDRB = _BV(5);
    DDRC = 0x0F;
    PORTD = _BV(2); /* pull-up */
}

static inline void pins_write(uint8_t outputs)
{
    PORTC = outputs;
}

static inline void pins_led(bool on)
{
    if (on) {
        PORTB |= _BV(5);
    } else {
        PORTB &= (uint8_t)~_BV(5);
    }
}

static inline bool pins_pressed(void)
{
    return bit_is_clear(PIND, 2);
}

#endif
