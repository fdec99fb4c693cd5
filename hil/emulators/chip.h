/*
 * What a chip is to the board it sits on: some state that the board may read, and what can be done to it. The board knows time, power,
 * the port and the person at the controls; the chip knows cycles, registers and its program.
 */
#ifndef CHIP_H
#define CHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uart.h"

#define FAULT_MAX 160

enum boot_answer {
    BOOT_LISTENING, /* no whole command yet, or nonsense */
    BOOT_SERVED,    /* a command was answered: listen on for as long again */
    BOOT_LEAVE,     /* the host is done: start the program */
};

/* A program of its own in the chip, which takes a new image over the port. Not every board has one. */
struct bootloader {
    void (*start)(void);
    enum boot_answer (*receive)(uint8_t byte, void (*send)(uint8_t byte));
};

/* How deep the stack has been, in bytes below the top of RAM. */
struct stack {
    uint32_t max;
    uint32_t program_max;    /* while no interrupt was being handled */
    uint32_t interrupt_max;  /* that interrupts have added to it */
    uint32_t interrupted_at; /* how deep it was then */
    bool interrupted;
};

struct chip {
    const char *name;
    uint32_t data_size;      /* addresses below can be looked at */
    uint32_t data_alias;     /* what a linker adds to data addresses; 0 if nothing */

    /* Kept by the chip, read by the board. */
    uint64_t cycle;          /* never goes back */
    uint64_t busy_cycles;    /* of these, not asleep */
    uint32_t hertz;          /* may change while the program runs; then stop is set */
    bool programmed;         /* there is something in flash to run */
    bool asleep;
    struct stack stack;
    unsigned resets;
    unsigned watchdog_resets;
    char fault[FAULT_MAX];   /* empty: none */
    struct uart uart;

    /* Set by anyone who wants run to return after the current instruction. */
    bool stop;

    void (*power_on)(uint32_t (*noise)(void)); /* RAM holds noise, the chip starts */
    void (*reset)(void);                       /* by its pin: RAM keeps its contents */
    void (*press)(bool down);                  /* the board's button, whatever the program makes of it */
    bool (*load)(const char *path, char *reason, size_t reason_size);
    void (*run)(uint64_t until);               /* until that cycle or stop */
    uint64_t (*next_timer)(void);              /* cycle at which something other than the UART may wake it, or NEVER */
    void (*peek)(uint32_t address, uint8_t *bytes, size_t size);
    const struct bootloader *bootloader;       /* or NULL */
};

/* The program did something that no program may: note it, say it, and stop. */
__attribute__((format(printf, 2, 3))) void chip_fail(struct chip *chip, const char *format, ...);

/* Note how deep the stack is now, after an instruction or the entry into an interrupt; of that, how deep it was before, too. */
void chip_note_stack(struct chip *chip, uint32_t depth);
void chip_note_interrupt(struct chip *chip, uint32_t depth_before);

/* How deep it would have been, had the deepest interrupt come when the program was deepest. */
uint32_t chip_stack_worst(const struct chip *chip);

/* Look for the deepest anew. */
void chip_forget_stack(struct chip *chip);

#endif
