/* What a chip does for the probe program: probe_avr.c and probe_msp430.c. */
#ifndef PROBE_H
#define PROBE_H

#include <stdint.h>

void chip_start(void);                  /* UART at 115200 baud with receive interrupt, tick of 1 ms, interrupts on */
void chip_put(uint8_t byte);
void chip_sleep_unless(volatile uint8_t *wanted); /* until an interrupt, unless that is set already */
void chip_hang_under_watchdog(void);
void chip_go_deaf(void);                /* interrupts off for the time of some 20 bytes */
void chip_fault(void);
void chip_light(void);                  /* the LED on the board */
void chip_stop_tick(void);
uint8_t chip_reset_cause(void);

/* From the chip's interrupts. */
void probe_received(uint8_t byte);
void probe_tick(void);

#endif
