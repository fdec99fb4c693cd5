/*
 * The board's controls, for a person or a test rig. They say what is wanted; the board does it.
 *
 * Controls are lines on standard input, each answered by one line of JSON on standard output:
 *
 *   load FILE          put an ELF image into flash and reset; a file that is none is refused, and the running image goes on
 *   reset              the reset button: RAM keeps its contents
 *   press, release     the board's other button, which the program reads
 *   power off|on       off: the chip stops at once, the port hangs up and its name is gone; on: RAM is noise, a new port has the name
 *   cut N              power off by itself after N more bytes have left the chip
 *   stats              what happened so far; `stats reset` counts anew afterwards, but for cycles, which are the chip's clock
 *   peek ADDRESS LEN   data memory, registers of peripherals included
 *   bootloader on|off  on: opening the port resets the chip into its bootloader, if it has one, as DTR does on an Arduino. A pseudo
 *                      terminal has no DTR, and only who flashes wants this, so it is off but while someone does.
 *   quit               as the end of the input, and SIGTERM
 */
#ifndef CONTROLS_H
#define CONTROLS_H

#include "chip.h"

void controls_attach(struct chip *chip);

/* Obey what has come on standard input. False: the board is to end. */
bool controls_read(void);

/* A whole number, decimal or 0x…, of at most that much. */
bool controls_number(const char *text, uint64_t most, uint64_t *value);

#endif
