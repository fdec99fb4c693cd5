/*
 * What main.c asks of a chip, and all that a new chip needs: a UART with interrupt receive, a tick, a watchdog, sleep between bytes.
 * Besides, mcpax_port_put of mcpax.h. Pins belong to boards (boards/NAME/pins.h), not to chips.
 */
#ifndef PORT_H
#define PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "app.h"
#include "mcpax.h"

/* Clocks, UART at MCPAX_BAUD, a tick every APP_TICK_MS, the watchdog; interrupts are on when it returns. */
APART void port_start(void);

/* The oldest received byte that is not yet taken, or -1. */
int16_t port_get(void);

/* True once for each tick. */
bool port_ticked(void);

/* Feed the watchdog, and sleep until something is received or ticks, unless it already has. */
void port_sleep(void);

/*
 * First byte of RAM that no variable occupies; from here up to the stack nothing was written since power on. Our linker scripts define it,
 * those of others have their own name for it.
 */
#if defined(__AVR__)
#define port_free_ram __heap_start
#elif defined(__MSP430__) && !defined(__clang__)
#define port_free_ram _end
#elif defined(__SDCC_mcs51)
#define port_free_ram _start__stack
#endif
extern MCPAX_IN_RAM uint8_t port_free_ram[];

#if defined(__SDCC_mcs51) /* makes the vectors where main is, from the prototypes that it sees there */
void port_tick(void) __interrupt(1);
void port_serial(void) __interrupt(4);
#endif

#endif
