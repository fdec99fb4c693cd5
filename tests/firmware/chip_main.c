/*
 * The chips' own main program, as it ships, for images of the test maps. Only the boot id is not drawn from noise but told over the line,
 * because the byte vectors name it.
 */
#include "app.h"

static void start_as_told(uint16_t drawn_boot_id);

#define mcpax_start start_as_told
#include "../../firmware/ports/main.c"
#undef mcpax_start

volatile uint8_t wants_boot_id; /* by which the test sees that it listens */

static uint8_t next_byte(void)
{
    int16_t byte;
    while ((byte = port_get()) < 0) {
        port_sleep();
    }
    return (uint8_t)byte;
}

static void start_as_told(uint16_t drawn_boot_id)
{
    (void)drawn_boot_id;
    wants_boot_id = 1;
    const uint8_t high = next_byte();
    const uint8_t low = next_byte();
    wants_boot_id = 0; /* before a reset can come */
    mcpax_start((uint16_t)(high << 8 | low));
}
