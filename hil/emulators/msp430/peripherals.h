/*
 * What of the MSP430G2553 lies below 0x200: clock system, watchdog WDT+, Timer0_A's channel 0, USCI_A0 as UART, port 1 and the special
 * function registers, by SLAU144 and the data sheet SLAS735. What is not modelled behaves as plain memory. MCLK is SMCLK, undivided.
 */
#ifndef PERIPHERALS_H
#define PERIPHERALS_H

#include "../chip.h"

enum reset_cause { RESET_POWER, RESET_PIN, RESET_WATCHDOG };

/* Calibration in information flash: loaded into these registers, the DCO runs at that frequency. */
struct calibration {
    uint16_t address; /* of the byte for DCOCTL; the next is for BCSCTL1 */
    uint8_t dcoctl;
    uint8_t bcsctl1;
    uint32_t hertz;
};
#define CALIBRATIONS 4
extern const struct calibration calibrations[CALIBRATIONS];

void peripherals_attach(struct chip *chip);
void peripherals_reset(enum reset_cause cause);

/* Let happen what is due by the chip's cycle. */
void peripherals_run(void);

/* Since last asked, the watchdog has run out, or been written with the wrong key. */
bool peripherals_reset_due(void);

/* Cycle at which a timer is due, the UART not counted. */
uint64_t peripherals_next_timer(void);

/* Address of the vector of the most urgent interrupt that asks and may, with its flag cleared if entering clears it; 0 if none. */
uint16_t peripherals_interrupt(void);

uint8_t peripherals_read_byte(uint16_t address);
uint16_t peripherals_read_word(uint16_t address);
void peripherals_write_byte(uint16_t address, uint8_t value);
void peripherals_write_word(uint16_t address, uint16_t value);

/* The LaunchPad's button S2, which connects P1.3 to ground. */
void peripherals_press(bool down);

/* As they are, without the side effects of reading. */
uint8_t peripherals_peek(uint16_t address);

#endif
