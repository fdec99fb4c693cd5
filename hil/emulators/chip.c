#include "chip.h"

#include <stdarg.h>
#include <stdio.h>

void chip_fail(struct chip *chip, const char *format, ...)
{
    va_list arguments;

    chip->stop = true;
    if (chip->fault[0] != '\0') {
        return; /* the first one tells most */
    }
    va_start(arguments, format);
    vsnprintf(chip->fault, sizeof chip->fault, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s\n", chip->name, chip->fault);
}

static void raise_to(uint32_t *most, uint32_t value)
{
    if (value > *most) {
        *most = value;
    }
}

void chip_note_stack(struct chip *chip, uint32_t depth)
{
    struct stack *const stack = &chip->stack;

    if (depth <= stack->interrupted_at) {
        stack->interrupted = false; /* all that the interrupt had put there is gone */
    }
    raise_to(&stack->max, depth);
    if (stack->interrupted) {
        raise_to(&stack->interrupt_max, depth - stack->interrupted_at);
    } else {
        raise_to(&stack->program_max, depth);
    }
}

void chip_note_interrupt(struct chip *chip, uint32_t depth_before)
{
    if (!chip->stack.interrupted) {
        chip->stack.interrupted = true;
        chip->stack.interrupted_at = depth_before;
    }
}

uint32_t chip_stack_worst(const struct chip *chip)
{
    return chip->stack.program_max + chip->stack.interrupt_max;
}

void chip_forget_stack(struct chip *chip)
{
    chip->stack.max = chip->stack.program_max = chip->stack.interrupt_max = 0;
}
