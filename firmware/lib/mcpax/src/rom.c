/* Reading the tables. One way on all chips, so that the code does not differ between those with and without separate flash. */
#include "internal.h"

void mcpax_rom_read(void *to, const void *rom, uint8_t size)
{
    uint8_t *target = to;
    const uint8_t *source = rom;
    while (size-- > 0) {
        *target++ = MCPAX_ROM_BYTE(source++);
    }
}
