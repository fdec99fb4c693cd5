/* The message being written: one at a time, into a buffer that its user names. Never writes past the end. */
#include "internal.h"

static uint8_t *buffer;
static mcpax_size length;
static mcpax_size capacity;
static bool failed;

void mcpax_out_begin(uint8_t *to, mcpax_size size)
{
    buffer = to;
    capacity = size;
    length = 0;
    failed = false;
}

void mcpax_out_byte(uint8_t byte)
{
    if (length < capacity) {
        buffer[length++] = byte;
    } else {
        failed = true;
    }
}

void mcpax_out_bytes(const uint8_t *data, mcpax_size count)
{
    while (count-- > 0) {
        mcpax_out_byte(*data++);
    }
}

void mcpax_out_big_endian(uint32_t bits, uint8_t width)
{
    /* By whole bytes, which an 8-bit core does by renaming registers; a shift by a variable is a loop there. */
    for (uint8_t skipped = width; skipped < sizeof bits; skipped++) {
        bits <<= 8;
    }
    while (width-- > 0) {
        mcpax_out_byte((uint8_t)(bits >> 24));
        bits <<= 8;
    }
}

void mcpax_out_fail(void)
{
    failed = true;
}

mcpax_size mcpax_out_length(void)
{
    return failed ? 0 : length;
}
