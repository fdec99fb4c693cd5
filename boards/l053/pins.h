/* Nucleo-L053R8. Outputs 0 to 3: PC0 to PC3 (A5, A4, and on CN7). LED: LD2 (PA5). Button: B1 (PC13), to ground. */
#ifndef PINS_H
#define PINS_H

#include <stdbool.h>

#include "number.h"

#define PINS_REGISTER(address) (*(volatile uint32_t *)(address))
#define PINS_A_MODER PINS_REGISTER(0x50000000)
#define PINS_A_BSRR PINS_REGISTER(0x50000018)
#define PINS_C_MODER PINS_REGISTER(0x50000800)
#define PINS_C_IDR PINS_REGISTER(0x50000810)
#define PINS_C_ODR PINS_REGISTER(0x50000814)

/* The port has switched the clocks of ports A to C on. */
static inline void pins_start(void)
{
    PINS_A_MODER ^= 2u << (2 * 5);  /* after reset analogue, 11: to output, 01 */
    PINS_C_MODER = 0xF3FFFF55u;     /* 0 to 3 output, 13 input (the board has a pull-up), the others analogue */
}

static inline void pins_write(uint8_t outputs)
{
    PINS_C_ODR = outputs;
}

static inline void pins_led(bool on)
{
    PINS_A_BSRR = on ? 1u << 5 : 1u << (16 + 5);
}

static inline bool pins_pressed(void)
{
    return (PINS_C_IDR & (1u << 13)) == 0;
}

#endif
