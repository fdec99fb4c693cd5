/*
 * The ATmega328P's USART0. simavr has one too, but it holds 64 received bytes where the chip holds three, has no transmit buffer, and counts
 * eleven bits to a byte; a firmware that loses bytes on the bench must lose them here. This one takes over its registers and interrupts.
 */
#ifndef USART0_H
#define USART0_H

#include <simavr/sim_avr.h>

#include "../uart.h"

void usart0_attach(avr_t *avr, struct uart *uart);

/* After every instruction: let bytes come and go, and keep the interrupts as the flags are. */
void usart0_run(void);

#endif
