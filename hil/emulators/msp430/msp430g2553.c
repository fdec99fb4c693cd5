/*
 * An MSP430G2553, as on a LaunchPad. Any sleep is taken for LPM0: SMCLK goes on.
 */
#include <string.h>

#include "../image.h"
#include "../process.h"
#include "bus.h"
#include "peripherals.h"

#define EM_MSP430 105

static const struct image_target target = {
    .name = "MSP430G2553", .machine = EM_MSP430, .flash_start = FLASH_START, .flash_size = FLASH_SIZE};

static struct chip chip;
static struct cpu cpu;

/* --- Reset ------------------------------------------------------------------------------------------------------------------ */

static void reset(enum reset_cause cause)
{
    peripherals_reset(cause);
    cpu_reset(&cpu, bus_read_word(RESET_VECTOR));
    cpu.r[SP] = 0; /* until the program sets it, nothing is on the stack */
    chip.asleep = false;
}

static void press_reset(void)
{
    reset(RESET_PIN);
}

static void power_on(uint32_t (*noise)(void))
{
    for (size_t i = 0; i < RAM_END - RAM_START; i++) {
        bus_ram()[i] = (uint8_t)noise();
    }
    for (size_t i = CG + 1; i < CPU_REGISTERS; i++) {
        cpu.r[i] = (uint16_t)noise();
    }
    reset(RESET_POWER);
}

/* --- Running ---------------------------------------------------------------------------------------------------------------- */

static uint32_t stack_depth(void)
{
    return cpu.r[SP] > 0 && cpu.r[SP] <= RAM_END ? (uint32_t)(RAM_END - cpu.r[SP]) : 0;
}

static void spend(unsigned cycles)
{
    chip.cycle += cycles;
    chip.busy_cycles += cycles;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool asleep(void)
{
    return (cpu.r[SR] & CPUOFF) != 0;
}

/* The instruction that sets GIE is followed by one more before an interrupt is entered (SLAU144, EINT), unless it goes to sleep. */
static void enter_interrupt(bool enabled_before)
{
    if (cpu.r[SR] & GIE && (enabled_before || asleep())) {
        const uint16_t vector = peripherals_interrupt();
        if (vector != 0) {
            chip_note_interrupt(&chip, stack_depth());
            spend(cpu_interrupt(&cpu, vector));
            chip_note_stack(&chip, stack_depth());
        }
    }
}

static void step(uint64_t until)
{
    const bool enabled_before = (cpu.r[SR] & GIE) != 0;
    if (asleep()) {
        const uint64_t wakes = earlier(until, earlier(peripherals_next_timer(), uart_next(&chip.uart)));
        chip.cycle = wakes > chip.cycle ? wakes : chip.cycle;
    } else {
        spend(cpu_step(&cpu));
        chip_note_stack(&chip, stack_depth());
        if (cpu.illegal) {
            chip_fail(&chip, "no instruction at 0x%04x", cpu.instruction);
        }
    }
    peripherals_run();
    if (peripherals_reset_due()) {
        reset(RESET_WATCHDOG);
        chip.resets++;
        chip.watchdog_resets++;
    } else {
        enter_interrupt(enabled_before);
    }
}

static void run(uint64_t until)
{
    while (chip.cycle < until && !chip.stop) {
        step(until);
    }
    chip.asleep = asleep();
}

/* --- Flash and data --------------------------------------------------------------------------------------------------------- */

static bool load(const char *path, char *reason, size_t reason_size)
{
    const bool good = image_read(path, &target, bus_flash(), reason, reason_size);
    chip.programmed = chip.programmed || good;
    return good;
}

static void peek(uint32_t address, uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const uint16_t at = (uint16_t)(address + i);
        bytes[i] = at < RAM_START ? peripherals_peek(at) : bus_ram()[at - RAM_START];
    }
}

static struct chip chip = {
    .name = "MSP430G2553",
    .data_size = RAM_END,
    .power_on = power_on,
    .reset = press_reset,
    .press = peripherals_press,
    .load = load,
    .run = run,
    .next_timer = peripherals_next_timer,
    .peek = peek,
};

int main(int argc, char **argv)
{
    peripherals_attach(&chip);
    bus_attach(&chip, &cpu);
    return process_main(argc, argv, &chip);
}
