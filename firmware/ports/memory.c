/*
 * The tool of debug builds, read_memory. All free RAM is painted at the start; where the paint has gone, the stack has been.
 * A stack that happens to hold the very colour at its lowest end is seen that much shorter.
 */
#include "memory.h"

#include "mcpax.h"
#include "port.h"

#if defined(__AVR__)
#include <avr/io.h>
#define RAM_START RAMSTART
#define RAM_END (RAMEND + 1)
#else
#if defined(__MSP430__) && !defined(__clang__) /* mspgcc has its own linker script */
#define data_start __data_start
#define stack_top __stack
#endif
extern uint32_t data_start[], stack_top[];
#define RAM_START ((uintptr_t)data_start)
#define RAM_END ((uintptr_t)stack_top)
#endif

#define PAINT 0xC5u
#define OWN_STACK 16u /* bytes that the painter itself may use below its variable */

void memory_watch(void)
{
    uint8_t here; /* the stack reaches down to about this */
    const uintptr_t end = (uintptr_t)&here - OWN_STACK;

    for (volatile uint8_t *at = port_free_ram; (uintptr_t)at < end; at++) {
        *at = PAINT;
    }
}

uint8_t mcpax_tool_read_memory(const mcpax_value *args, mcpax_value *results)
{
    volatile const uint8_t *lowest = port_free_ram; /* that the stack has reached; it ends the search, as it lies above */

    (void)args;
    while (*lowest == PAINT) {
        lowest++;
    }
    results[RESULT_READ_MEMORY_STATIC_RAM].u = (uint16_t)((uintptr_t)port_free_ram - RAM_START);
    results[RESULT_READ_MEMORY_STACK_MAX].u = (uint16_t)(RAM_END - (uintptr_t)lowest);
    results[RESULT_READ_MEMORY_RAM_FREE].u = (uint16_t)(lowest - port_free_ram);
    return MCPAX_OK;
}
