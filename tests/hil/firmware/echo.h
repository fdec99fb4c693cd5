/* A program to try an emulated board with: it echoes, asleep in between, but for some bytes, which make it do things. */
#ifndef ECHO_H
#define ECHO_H

#include <stdint.h>

enum {
    MARK = 0x01,        /* write KEPT into keepsake; echoed */
    TELL = 0x02,        /* answer with keepsake */
    DEAF = 0x03,        /* leave interrupts off for the time of many bytes; echoed afterwards */
    HANG = 0x04,        /* with the watchdog on */
    FAULT = 0x05,
    COUNT_TICKS = 0x06, /* echoed after 100 ticks */
    CAUSE = 0x07,       /* answer with the cause of the last reset */
    RESTART = 0x08      /* by software */
};
#define KEPT 0x5A
#define TICKS_TO_COUNT 100
#ifndef RING
#define RING 128 /* bytes, a power of two */
#endif

/* From the chip. */
void chip_start(void); /* UART with receive interrupt, tick of 10 ms; interrupts on */
void chip_put(uint8_t byte);
void chip_sleep_unless_busy(void); /* until an interrupt, unless echo_busy() */
void chip_deaf(void);
void chip_hang(void);
void chip_fault(void);
void chip_restart(void);
uint8_t chip_cause(void);

#ifdef __SDCC_mcs51 /* wants to see handlers where main is */
#include <8052.h>
void serial(void) __interrupt(SI0_VECTOR);
void tick(void) __interrupt(TF0_VECTOR);
#endif

/* To the chip. */
void echo_received(uint8_t byte);
void echo_ticked(void);
uint8_t echo_busy(void);

#endif
