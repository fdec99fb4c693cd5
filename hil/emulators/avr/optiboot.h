/*
 * What the bootloader of an Arduino Uno does, seen from the port: it speaks STK500 version 1 as Optiboot does, enough for `avrdude -c arduino`
 * to write and verify flash. No code of it runs on the emulated CPU.
 */
#ifndef OPTIBOOT_H
#define OPTIBOOT_H

#include "../chip.h"

/* flash: of the chip, with pages of FLASH_PAGE bytes; programmed is told whenever a page was written. */
void optiboot_attach(uint8_t *flash, void (*programmed)(void));

extern const struct bootloader optiboot;

#endif
