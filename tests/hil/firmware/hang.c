/*
 * An application with a fault in it: one of its tools never returns. Only the watchdog gets a board out of that.
 */
#include "app.h"
#include "mcpax.h"

static uint16_t hangs; /* in RAM that startup clears: never seen above 0 */

void app_tick(void)
{
}

void app_physical_event(void)
{
}

uint8_t mcpax_tool_hang(const mcpax_value *args, mcpax_value *results)
{
    (void)args;
    (void)results;
    hangs++;
    for (;;) {
        __asm__ volatile("");
    }
}

uint8_t mcpax_tool_read_hangs(const mcpax_value *args, mcpax_value *results)
{
    (void)args;
    results[RESULT_READ_HANGS_HANGS].u = hangs;
    return MCPAX_OK;
}
