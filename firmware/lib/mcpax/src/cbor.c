/* See cbor.h. */
#include "cbor.h"

#if MCPAX_PROFILE_B

/* Low five bits of an initial byte: a number below 24 itself, else how many bytes it has. */
#define INFO_MASK 0x1Fu
#define INFO_1_BYTE 24u
#define INFO_2_BYTES 25u
#define INFO_4_BYTES 26u

static const uint8_t *next;
static mcpax_size left;
static bool failed;

void mcpax_cbor_open(const uint8_t *data, mcpax_size length)
{
    next = data;
    left = length;
    failed = false;
}

bool mcpax_cbor_failed(void)
{
    return failed;
}

bool mcpax_cbor_at_end(void)
{
    return left == 0 && !failed;
}

static uint8_t read_byte(void)
{
    if (left == 0 || failed) {
        failed = true;
        return 0;
    }
    left--;
    return *next++;
}

uint8_t mcpax_cbor_read_head(uint32_t *number)
{
    const uint8_t initial = read_byte();
    const uint8_t info = initial & INFO_MASK;

    *number = info;
    if (info > INFO_4_BYTES) { /* 64 bits, reserved or indefinite */
        failed = true;
    } else if (info >= INFO_1_BYTE) {
        uint8_t width = (uint8_t)(1u << (info - INFO_1_BYTE));
        *number = 0;
        while (width-- > 0) {
            *number = (*number << 8) | read_byte();
        }
    }
    return initial;
}

uint8_t mcpax_cbor_read_small(uint8_t major)
{
    uint32_t number;
    const uint8_t initial = mcpax_cbor_read_head(&number);
    if ((initial & CBOR_MAJOR_MASK) != major || number > UINT8_MAX) {
        failed = true;
    }
    return failed ? 0 : (uint8_t)number;
}

void mcpax_cbor_expect(uint8_t number)
{
    if (mcpax_cbor_read_small(CBOR_UNSIGNED) != number) {
        failed = true;
    }
}

const uint8_t *mcpax_cbor_read_string(uint32_t length)
{
    const uint8_t *string = next;
    if (failed || length > left) {
        failed = true;
    } else {
        next += length;
        left = (mcpax_size)(left - length);
    }
    return string;
}

void mcpax_cbor_write_head(uint8_t major, uint32_t number)
{
    if (number < INFO_1_BYTE) {
        mcpax_out_byte((uint8_t)(major | number));
    } else if (number <= UINT8_MAX) {
        mcpax_out_byte(major | INFO_1_BYTE);
        mcpax_out_big_endian(number, 1);
    } else if (number <= UINT16_MAX) {
        mcpax_out_byte(major | INFO_2_BYTES);
        mcpax_out_big_endian(number, 2);
    } else {
        mcpax_out_byte(major | INFO_4_BYTES);
        mcpax_out_big_endian(number, 4);
    }
}

#endif
