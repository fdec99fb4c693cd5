/*
 * The memory of the MSP430G2553: where RAM, flash and the registers of peripherals lie, and what of it no program may touch. It is the bus
 * that cpu.h asks for.
 */
#ifndef BUS_H
#define BUS_H

#include "../chip.h"
#include "cpu.h"

#define RAM_START 0x0200
#define RAM_END 0x0400
#define FLASH_START 0xC000
#define FLASH_SIZE 0x4000
#define RESET_VECTOR 0xFFFE

void bus_attach(struct chip *chip, const struct cpu *cpu);
uint8_t *bus_ram(void);
uint8_t *bus_flash(void);

#endif
