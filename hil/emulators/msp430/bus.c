#include "bus.h"

#include <string.h>

#include "peripherals.h"

#define BOOT_ROM_START 0x0C00
#define INFO_START 0x1000
#define INFO_END 0x1100
#define ERASED 0xFF

static struct chip *chip;
static const struct cpu *cpu;
static uint8_t memory[0x10000]; /* all but the peripherals */

static bool is_peripheral(uint16_t address)
{
    return address < RAM_START;
}

static bool is_ram(uint16_t address)
{
    return address >= RAM_START && address < RAM_END;
}

static bool is_readable(uint16_t address)
{
    return is_ram(address) || (address >= BOOT_ROM_START && address < INFO_END) || address >= FLASH_START;
}

static void fail(const char *what, uint16_t address)
{
    chip_fail(chip, "%s 0x%04x, by the instruction at 0x%04x", what, address, cpu->instruction);
}

/* The chip would ignore the lowest bit; a program that counts on it is wrong. */
static void check_even(uint16_t address)
{
    if (address & 1) {
        fail("access to a word at the odd address", address);
    }
}

static void check_readable(uint16_t address)
{
    if (!is_readable(address)) {
        fail("read where there is no memory, at", address);
    }
}

static void check_writable(uint16_t address)
{
    if (!is_ram(address)) {
        fail(is_readable(address) ? "write to flash at" : "write where there is no memory, at", address);
    }
}

static uint16_t word_at(uint16_t address)
{
    return (uint16_t)(memory[address & 0xFFFE] | memory[address | 1] << 8);
}

uint16_t bus_fetch(uint16_t address)
{
    if (is_peripheral(address)) {
        fail("execution of registers at", address);
        return 0;
    }
    check_readable(address);
    return word_at(address);
}

uint8_t bus_read_byte(uint16_t address)
{
    if (is_peripheral(address)) {
        return peripherals_read_byte(address);
    }
    check_readable(address);
    return memory[address];
}

uint16_t bus_read_word(uint16_t address)
{
    check_even(address);
    if (is_peripheral(address)) {
        return peripherals_read_word(address & 0xFFFE);
    }
    check_readable(address);
    return word_at(address);
}

void bus_write_byte(uint16_t address, uint8_t value)
{
    if (is_peripheral(address)) {
        peripherals_write_byte(address, value);
        return;
    }
    check_writable(address);
    if (is_ram(address)) {
        memory[address] = value;
    }
}

void bus_write_word(uint16_t address, uint16_t value)
{
    check_even(address);
    if (is_peripheral(address)) {
        peripherals_write_word(address & 0xFFFE, value);
        return;
    }
    check_writable(address);
    if (is_ram(address)) {
        memory[address & 0xFFFE] = (uint8_t)value;
        memory[address | 1] = (uint8_t)(value >> 8);
    }
}

uint8_t *bus_ram(void)
{
    return memory + RAM_START;
}

uint8_t *bus_flash(void)
{
    return memory + FLASH_START;
}

void bus_attach(struct chip *carrier, const struct cpu *reader)
{
    chip = carrier;
    cpu = reader;
    memset(memory, ERASED, sizeof memory);
    for (size_t i = 0; i < CALIBRATIONS; i++) {
        memory[calibrations[i].address] = calibrations[i].dcoctl;
        memory[calibrations[i].address + 1] = calibrations[i].bcsctl1;
    }
}
