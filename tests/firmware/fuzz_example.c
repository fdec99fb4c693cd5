/*
 * Fuzzing with an example that we ship, and its map. The example does not tell when a handler runs, nor can it be made to forget: what is
 * under test here is that the buffers, which are as small as its map allows, are never left.
 */
#include "fuzz_app.h"
#include "pins.h"
#include "ports/app.h"

uint16_t board_number(void)
{
    return UINT16_MAX; /* the widest there is */
}

uint32_t board_random(uint32_t bound)
{
    return bound - 1;
}

void fuzz_app_start(void)
{
}

void fuzz_app_happen(uint8_t kind, const uint8_t *data, size_t length)
{
    (void)data;
    (void)length;
    if (kind & 1) {
        app_physical_event();
    } else {
        app_tick();
    }
}
