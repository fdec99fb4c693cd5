/* See cbor.h. */
#include "cbor.h"

#if MCPAX_PROFILE_B

void mcpax_cbor_expect(uint8_t byte)
{
    mcpax.wrong |= (uint8_t)(*mcpax.in++ ^ byte);
}

mcpax_unsigned mcpax_cbor_read_head(void)
{
    const uint8_t *in = mcpax.in;
    const uint8_t initial = *in++;
    uint8_t info = initial & CBOR_INFO_MASK;
    mcpax_unsigned number = info;

    mcpax.initial = initial;
    if (info >= CBOR_INFO_1_BYTE) {
        number = 0;
        if (info >= CBOR_INFO_4_BYTES) {
            mcpax.wrong |= (uint8_t)(info - CBOR_INFO_4_BYTES); /* 64 bits, reserved or indefinite */
            info = CBOR_INFO_4_BYTES + 1;                       /* so that it counts the bytes: 1, 2 or 4 */
        }
        do {
            if (MCPAX_VALUE_BITS < 32 && number > UINT8_MAX) {
                mcpax.status = MCPAX_OUT_OF_RANGE; /* of everything that the map has */
            }
            number = (mcpax_unsigned)(number << 8) | *in++;
        } while (--info >= CBOR_INFO_1_BYTE);
    }
    mcpax.in = in;
    return number;
}

void mcpax_cbor_write_head(uint8_t major, mcpax_unsigned number)
{
    if (number >= CBOR_INFO_1_BYTE) {
        uint8_t info = CBOR_INFO_1_BYTE;
#if MCPAX_VALUE_BITS > 16
        if (number > UINT16_MAX) {
            mcpax_out_byte((uint8_t)(major | CBOR_INFO_4_BYTES));
            mcpax_out_byte((uint8_t)(number >> 24));
            info = (uint8_t)(number >> 16);
            major = 0;
        } else
#endif
            if (number > UINT8_MAX) {
            info = CBOR_INFO_2_BYTES;
        }
        mcpax_out_byte((uint8_t)(major | info));
        if (number > UINT8_MAX) {
            mcpax_out_byte((uint8_t)(number >> 8));
        }
        major = 0;
    }
    mcpax_out_byte((uint8_t)(major | number));
}

#endif
