/*
 * Profile B framing: COBS( message ‖ CRC-16 ) 00 (docs/wire-format.md §1.2).
 *
 * COBS cuts the bytes into blocks, each led by a code: one more than the number of its bytes. Between two blocks stood a zero, unless
 * the first was of the full length. Decoded as it comes in, so a frame takes no more room than its message and CRC.
 */
#include "internal.h"

#if MCPAX_PROFILE_B

#define FULL_BLOCK 0xFFu /* code of a block that no zero follows */
#define CRC_BYTES 2u

static uint8_t buffer[MCPAX_REQUEST_MAX + CRC_BYTES];
static mcpax_size filled;
static uint8_t code;       /* of the block being received */
static uint8_t block_left; /* bytes of it to come */
static bool too_long;

static uint16_t crc_of(const uint8_t *data, mcpax_size length)
{
    uint16_t crc = MCPAX_CRC16_START;
    while (length-- > 0) {
        crc = mcpax_crc16(crc, *data++);
    }
    return crc;
}

/* --- Receiving ---------------------------------------------------------------------------------------------------------- */

void mcpax_frame_reset(void)
{
    filled = 0;
    code = FULL_BLOCK; /* no zero stands in front of the first block */
    block_left = 0;
    too_long = false;
}

static void store(uint8_t byte)
{
    if (filled < sizeof buffer) {
        buffer[filled++] = byte;
    } else {
        too_long = true;
    }
}

void mcpax_receive(uint8_t byte)
{
    if (byte == 0) {
        /* The remainder is zero over a message followed by its own CRC. */
        if (!too_long && block_left == 0 && filled > CRC_BYTES && crc_of(buffer, filled) == 0) {
            mcpax_message_received(buffer, (mcpax_size)(filled - CRC_BYTES));
        }
        mcpax_frame_reset();
    } else if (block_left > 0) {
        block_left--;
        store(byte);
    } else {
        if (code != FULL_BLOCK) {
            store(0);
        }
        code = byte;
        block_left = (uint8_t)(byte - 1);
    }
}

void mcpax_silence(void)
{
    /* The next zero ends a damaged frame, whenever it comes. */
}

/* --- Sending ------------------------------------------------------------------------------------------------------------ */

void mcpax_frame_send(uint8_t *message, mcpax_size length)
{
    const uint16_t crc = crc_of(message, length);
    const uint8_t *end = message + length + CRC_BYTES;

    message[length] = (uint8_t)(crc >> 8);
    message[length + 1] = (uint8_t)crc;
    for (;;) {
        const uint8_t *block = message;
        uint8_t block_code = 1;
        while (message < end && *message != 0 && block_code < FULL_BLOCK) {
            message++;
            block_code++;
        }
        mcpax_port_put(block_code);
        while (block < message) {
            mcpax_port_put(*block++);
        }
        if (message == end) {
            break;
        }
        if (block_code < FULL_BLOCK) {
            message++; /* the zero that the next code stands for */
        }
    }
    mcpax_port_put(0);
}

#endif
