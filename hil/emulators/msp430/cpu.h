/*
 * The 16-bit CPU of the MSP430, by the MSP430x2xx Family User's Guide (SLAU144), chapter 3: registers, instructions and the cycles they take.
 * Memory is behind the bus; peripherals, interrupts' causes and clocks are none of its business.
 */
#ifndef CPU_H
#define CPU_H

#include <stdbool.h>
#include <stdint.h>

enum { PC, SP, SR, CG, CPU_REGISTERS = 16 };

/* Bits of SR */
enum { FLAG_C = 0x0001, FLAG_Z = 0x0002, FLAG_N = 0x0004, GIE = 0x0008, CPUOFF = 0x0010, SCG0 = 0x0040, FLAG_V = 0x0100 };

struct cpu {
    uint16_t r[CPU_REGISTERS];
    uint16_t instruction;   /* address of the one that runs or ran last */
    bool illegal;           /* it was no instruction */
};

/* Start at that address. SP and the other registers stay as they are, as on the chip. */
void cpu_reset(struct cpu *cpu, uint16_t start);

/* Execute one instruction; the cycles it took. Sleep is for the caller to heed: CPUOFF in SR. */
unsigned cpu_step(struct cpu *cpu);

/* Enter the interrupt whose vector is at that address; the cycles it took. */
unsigned cpu_interrupt(struct cpu *cpu, uint16_t vector);

/* The bus is whatever the CPU is linked with. */
uint16_t bus_fetch(uint16_t address); /* of the program */
uint8_t bus_read_byte(uint16_t address);
uint16_t bus_read_word(uint16_t address);
void bus_write_byte(uint16_t address, uint8_t value);
void bus_write_word(uint16_t address, uint16_t value);

#endif
