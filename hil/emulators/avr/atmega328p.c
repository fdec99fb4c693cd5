/*
 * An ATmega328P at 16 MHz, as on an Arduino Uno. CPU, timers, watchdog and pins are simavr's; its pace, its USART, its reset flags and what
 * is told of it are ours.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <simavr/avr_ioport.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_core.h>
#include <simavr/sim_cycle_timers.h>
#include <simavr/sim_interrupts.h>

#include "../image.h"
#include "../process.h"
#include "optiboot.h"
#include "usart0.h"

#define HERTZ 16000000
#define EM_AVR 83
#define FLASH_SIZE 32768
#define EEPROM_AND_FUSES 0x810000 /* where avr-gcc's images put what is not flash */
#define DATA_ALIAS 0x800000       /* what avr-gcc's symbols of data carry */
#define REGISTERS 32              /* r0 to r31, at the start of data space */
#define RAM_START 0x100
#define RAM_END 0x8FF
#define MCUSR 0x54
#define PORTD 0x2B
#define BUTTON_PORT 'D' /* PD2, which is pin 2 of the Uno, to ground */
#define BUTTON_PIN 2
#define PORF 0x01
#define EXTRF 0x02
#define INTERRUPT_CYCLES 4        /* data sheet, interrupt response time; simavr counts none */
#define ONE_MORE_INSTRUCTION (-1) /* after SEI and RETI, says the data sheet; simavr waits for two, and `sei; sleep; cli` never wakes */
#define OPCODE_MASK_OUT 0xFE0F
#define OPCODE_OUT_SPH 0xBE0E     /* `out SPH, rN` */

static const struct image_target target = {
    .name = "ATmega328P", .machine = EM_AVR, .flash_start = 0, .flash_size = FLASH_SIZE, .elsewhere = EEPROM_AND_FUSES};

static struct chip chip;
static avr_t *avr;
static uint64_t run_until;

/* --- Reset ------------------------------------------------------------------------------------------------------------------ */

static avr_irq_t *button(void)
{
    return avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ(BUTTON_PORT), BUTTON_PIN);
}

/*
 * simavr clears the flags in MCUSR at a reset; on the chip they stay until the program clears them. And it clears PIND, but would not set it
 * again by a level that the pin has had before: so that is forgotten.
 */
static void reset_core(uint8_t cause)
{
    const uint8_t causes = avr->data[MCUSR] | cause;
    avr_reset(avr);
    avr->data[MCUSR] |= causes;
    button()->flags |= IRQ_FLAG_INIT;
    chip.asleep = false;
}

static void press_reset(void)
{
    reset_core(EXTRF);
}

static void power_on(uint32_t (*noise)(void))
{
    for (size_t i = 0; i < REGISTERS; i++) {
        avr->data[i] = (uint8_t)noise();
    }
    for (size_t i = RAM_START; i <= RAM_END; i++) {
        avr->data[i] = (uint8_t)noise();
    }
    avr->data[MCUSR] = 0;
    reset_core(PORF);
}

/* Pressed, it is stronger than the chip's own pull-up, whenever the program switches that on. */
static void press(bool down)
{
    avr_ioport_external_t held = {.name = BUTTON_PORT, .mask = down ? 1 << BUTTON_PIN : 0, .value = 0};
    const unsigned pulled_up = avr->data[PORTD] >> BUTTON_PIN & 1;

    avr_ioctl(avr, AVR_IOCTL_IOPORT_SET_EXTERNAL(BUTTON_PORT), &held);
    avr_raise_irq(button(), down ? 0 : pulled_up);
}

/* --- Running ---------------------------------------------------------------------------------------------------------------- */

/* avr-gcc moves the stack pointer a byte at a time, the high one first: half moved it may point far below. */
static bool stack_pointer_whole(avr_flashaddr_t executed)
{
    if (executed >= FLASH_SIZE) {
        return false;
    }
    const unsigned opcode = avr->flash[executed] | (unsigned)avr->flash[executed + 1] << 8;
    return (opcode & OPCODE_MASK_OUT) != OPCODE_OUT_SPH;
}

/* A pointer outside of RAM is none yet. */
static uint32_t stack_depth(void)
{
    const uint32_t pointer = avr->data[R_SPL] | (uint32_t)avr->data[R_SPH] << 8;
    return pointer <= RAM_END ? RAM_END - pointer : 0;
}

static uint64_t next_timer(void)
{
    return avr->cycle_timers.timer != NULL ? avr->cycle_timers.timer->when : NEVER;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void sleep_on(void)
{
    const uint64_t wakes = earlier(run_until, earlier(next_timer(), uart_next(&chip.uart)));
    avr->cycle = wakes > avr->cycle ? wakes : avr->cycle + 1;
}

/* One instruction, or the sleep until something may happen. simavr calls it, so that its watchdog can put a reset in its place. */
static void step(avr_t *core)
{
    avr_flashaddr_t next = core->pc;
    const uint64_t began = core->cycle;

    if (core->state == cpu_Running) {
        next = avr_run_one(core);
        if (core->interrupt_state < ONE_MORE_INSTRUCTION) {
            core->interrupt_state = ONE_MORE_INSTRUCTION;
        }
        if (stack_pointer_whole(core->pc)) {
            chip_note_stack(&chip, stack_depth());
        }
        chip.busy_cycles += core->cycle - began;
    } else {
        sleep_on();
    }
    core->pc = next;
    avr_cycle_timer_process(core);
    usart0_run();
    if (core->interrupt_state != 0 && core->state == cpu_Running) {
        const uint32_t depth = stack_depth();
        avr_service_interrupts(core);
        if (core->pc != next) {
            chip_note_interrupt(&chip, depth);
            chip_note_stack(&chip, stack_depth());
            core->cycle += INTERRUPT_CYCLES;
            chip.busy_cycles += INTERRUPT_CYCLES;
        }
    }
}

static void watchdog_reset(void)
{
    const uint8_t causes = avr->data[MCUSR];
    avr_run(avr); /* resets, sets WDRF, and puts step back */
    avr->data[MCUSR] |= causes;
    chip.resets++;
    chip.watchdog_resets++;
}

static void run(uint64_t until)
{
    run_until = until;
    while (avr->cycle < until && !chip.stop) {
        avr_run(avr);
        if (avr->run != step) {
            watchdog_reset();
        }
        if (avr->state == cpu_Crashed) {
            chip_fail(&chip, "the program ran out of flash, to 0x%04lx", (unsigned long)avr->pc);
        }
        chip.cycle = avr->cycle;
    }
    chip.asleep = avr->state == cpu_Sleeping;
}

/* --- Flash and data --------------------------------------------------------------------------------------------------------- */

static bool load(const char *path, char *reason, size_t reason_size)
{
    const bool good = image_read(path, &target, avr->flash, reason, reason_size);
    chip.programmed = chip.programmed || good;
    return good;
}

static void page_written(void)
{
    chip.programmed = true;
    chip_forget_stack(&chip);
}

static void peek(uint32_t address, uint8_t *bytes, size_t size)
{
    memcpy(bytes, avr->data + address, size);
}

/* --- Faults ----------------------------------------------------------------------------------------------------------------- */

/* simavr tells of a fault only in its log, in colour. */
static void on_log(avr_t *core, const int level, const char *format, va_list arguments)
{
    static const char from_core[] = "CORE: *** ";
    char text[256], plain[sizeof text];
    size_t length = 0;

    (void)core;
    if (level > LOG_ERROR) {
        return;
    }
    vsnprintf(text, sizeof text, format, arguments);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\033') {
            c = strchr(c, 'm'); /* the end of a colour */
            if (c == NULL) {
                break;
            }
        } else if (*c != '\n') {
            plain[length++] = *c;
        }
    }
    plain[length] = '\0';
    if (strncmp(plain, from_core, sizeof from_core - 1) == 0) {
        chip_fail(&chip, "%s", plain + sizeof from_core - 1);
    }
}

static struct chip chip = {
    .name = "ATmega328P",
    .data_size = RAM_END + 1,
    .data_alias = DATA_ALIAS,
    .hertz = HERTZ,
    .power_on = power_on,
    .reset = press_reset,
    .press = press,
    .load = load,
    .run = run,
    .next_timer = next_timer,
    .peek = peek,
    .bootloader = &optiboot,
};

int main(int argc, char **argv)
{
    avr_global_logger_set(on_log);
    avr = avr_make_mcu_by_name("atmega328p");
    if (avr == NULL || avr_init(avr) != 0) {
        fprintf(stderr, "%s: simavr does not know it; install libsimavr\n", chip.name);
        return 1;
    }
    avr->frequency = HERTZ;
    avr->run = step;
    usart0_attach(avr, &chip.uart);
    optiboot_attach(avr->flash, page_written);
    return process_main(argc, argv, &chip);
}
