/* Virtual board: outputs lead nowhere, and a signal, not a pin, stands for the button. */
#ifndef PINS_H
#define PINS_H

#include <stdbool.h>
#include <stdint.h>

static inline void pins_start(void)
{
}

static inline void pins_write(uint8_t outputs)
{
    (void)outputs;
}

static inline void pins_led(bool on)
{
    (void)on;
}

static inline bool pins_pressed(void)
{
    return false;
}

/* What --number said, in place of ports/number.h. */
uint16_t board_number(void);

/* Evenly distributed from 0 to bound - 1: the noise of what is simulated. --seed says where the series begins. */
uint32_t board_random(uint32_t bound);

#endif
