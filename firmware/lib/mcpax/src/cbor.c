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

uint8_t mcpax_cbor_read_byte(void)
{
    if (left == 0 || failed) {
        failed = true;
        return 0;
    }
    left--;
    return *next++;
}

void mcpax_cbor_expect(uint8_t byte)
{
    if (mcpax_cbor_read_byte() != byte) {
        failed = true;
    }
}

uint8_t mcpax_cbor_read_u8(void)
{
    uint8_t byte = mcpax_cbor_read_byte();
    if (byte == INFO_1_BYTE) {
        byte = mcpax_cbor_read_byte();
    } else if (byte > INFO_1_BYTE) {
        failed = true;
    }
    return byte;
}

uint32_t mcpax_cbor_read_number(uint8_t initial)
{
    const uint8_t info = initial & INFO_MASK;
    uint32_t number = info;

    if (info > INFO_4_BYTES) { /* 64 bits, reserved or indefinite */
        failed = true;
    } else if (info >= INFO_1_BYTE) {
        uint8_t width = (uint8_t)(1u << (info - INFO_1_BYTE));
        number = 0;
        while (width-- > 0) {
            number = (number << 8) | mcpax_cbor_read_byte();
        }
    }
    return number;
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
        return;
    }
    const uint8_t width = number <= UINT8_MAX ? 1 : number <= UINT16_MAX ? 2 : 4;
    mcpax_out_byte((uint8_t)(major | (INFO_1_BYTE + width / 2)));
    mcpax_out_big_endian(number, width);
}

#endif
