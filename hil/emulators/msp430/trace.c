/*
 * The MSP430 core alone on 64 KiB of plain memory, for comparison with another simulator: runs an image step by step from its reset
 * vector and prints, per step, `CYCLES R0 … R15`, and every so many steps, and at the end, `ram HEX`.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cpu.h"

#define RESET_VECTOR 0xFFFE
#define RAM_START 0x200
#define RAM_END 0x400

static uint8_t memory[0x10000];

uint8_t bus_read_byte(uint16_t address)
{
    return memory[address];
}

uint16_t bus_read_word(uint16_t address)
{
    const uint16_t even = address & 0xFFFE;
    return (uint16_t)(memory[even] | memory[even + 1] << 8);
}

uint16_t bus_fetch(uint16_t address)
{
    return bus_read_word(address);
}

void bus_write_byte(uint16_t address, uint8_t value)
{
    memory[address] = value;
}

void bus_write_word(uint16_t address, uint16_t value)
{
    const uint16_t even = address & 0xFFFE;
    memory[even] = (uint8_t)value;
    memory[even + 1] = (uint8_t)(value >> 8);
}

static void print_ram(void)
{
    fputs("ram ", stdout);
    for (size_t i = RAM_START; i < RAM_END; i++) {
        printf("%02x", memory[i]);
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    FILE *const file = argc == 4 ? fopen(argv[1], "rb") : NULL;
    const size_t got = file != NULL ? fread(memory, 1, sizeof memory, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    if (got != sizeof memory) {
        fprintf(stderr, "usage: %s IMAGE STEPS EVERY; the image is 64 KiB of memory, RAM is printed after every so many steps\n", argv[0]);
        return 2;
    }
    const long steps = strtol(argv[2], NULL, 10), every = strtol(argv[3], NULL, 10);

    struct cpu cpu = {.r = {0}};
    cpu_reset(&cpu, bus_read_word(RESET_VECTOR));
    for (long step = 1; step <= steps; step++) {
        const unsigned cycles = cpu_step(&cpu);
        if (cpu.illegal) {
            fprintf(stderr, "no instruction at 0x%04x\n", cpu.instruction);
            return 1;
        }
        printf("%u", cycles);
        for (size_t i = 0; i < CPU_REGISTERS; i++) {
            printf(" %04x", cpu.r[i]);
        }
        putchar('\n');
        if (step % every == 0 || step == steps) {
            print_ram();
        }
    }
    return 0;
}
