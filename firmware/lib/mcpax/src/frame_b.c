/*
 * Profile B framing: COBS( message ‖ CRC-16 ) 00 (docs/wire-format.md §1.2).
 *
 * COBS cuts the bytes into blocks, each led by a code: one more than the number of its bytes. Between two blocks stood a zero, unless
 * the first was of the full length. Both ways it is done in place, once the frame or the message is complete.
 */
#include "internal.h"

#if MCPAX_PROFILE_B

#define FULL_BLOCK 0xFFu /* code of a block that no zero follows */
#define CRC_BYTES 2
#define MAY_HAVE_FULL_BLOCKS (MCPAX_SIZE_BITS > 8) /* a message that 8 bits can count is shorter than a full block */
#define FRAME_MIN (1 + 1 + CRC_BYTES) /* without its final zero */
#define FRAME_MAX (MCPAX_FRAME_ROOM(MCPAX_REQUEST_MAX) - 1)

/* --- Receiving ---------------------------------------------------------------------------------------------------------- */

/* Decode what was received. 0: it was a frame, and its message is mcpax.in to mcpax.in_end. */
static uint16_t decode(void)
{
    const uint8_t *from = mcpax.received;
    uint8_t *to = mcpax.received;
    uint8_t code = *from++;
    uint8_t left = code; /* bytes to the next code */

    for (mcpax_size i = mcpax.filled; --i != 0;) {
        uint8_t byte = *from++;
        if (--left == 0) {
            const bool was_full = MAY_HAVE_FULL_BLOCKS && code == FULL_BLOCK;
            code = byte; /* NOLINT(clang-analyzer-deadcode.DeadStores): for full blocks, where there may be any */
            left = byte;
            if (was_full) {
                continue;
            }
            byte = 0;
        }
        *to++ = byte;
    }
    mcpax.in = mcpax.received;
    mcpax.in_end = to - CRC_BYTES;
    if (MAY_HAVE_FULL_BLOCKS && mcpax.in_end - mcpax.in > MCPAX_REQUEST_MAX) {
        return 1;
    }
    /* The remainder is zero over a message followed by its own CRC, and the last block ends with it. */
    return (uint16_t)(mcpax_crc16(MCPAX_CRC16_START, mcpax.received, to) | (left ^ 1u));
}

MCPAX_NOINLINE void mcpax_receive(uint8_t byte)
{
    if (byte == 0) {
        if ((mcpax_size)(mcpax.filled - FRAME_MIN) <= FRAME_MAX - FRAME_MIN && decode() == 0) {
            mcpax_message_received();
        }
        mcpax.filled = 0;
    } else if (mcpax.filled <= FRAME_MAX) { /* one more than that marks a frame that is too long */
        mcpax.received[mcpax.filled++] = byte;
    }
}

void mcpax_silence(void)
{
    /* The next zero ends a damaged frame, whenever it comes. */
}

/* --- Sending ------------------------------------------------------------------------------------------------------------ */

void mcpax_out_begin(uint8_t *buffer, mcpax_size length_max)
{
    mcpax.frame = buffer;
    mcpax.out = buffer + 1; /* behind the first code */
#if MCPAX_USES_STRINGS
    mcpax.out_end = mcpax.out + length_max;
    mcpax.failed = false;
#else
    (void)length_max; /* whatever the values are, the map has counted on it */
#endif
}

MCPAX_NOINLINE void mcpax_out_byte(uint8_t byte)
{
#if MCPAX_USES_STRINGS
    if (mcpax.out == mcpax.out_end) {
        mcpax.failed = true;
        return;
    }
#endif
    *mcpax.out++ = byte;
}

void mcpax_frame_send(const uint8_t *buffer)
{
    uint8_t byte;
    do {
        byte = *buffer++;
        mcpax_port_put(byte);
    } while (byte != 0);
}

#if MAY_HAVE_FULL_BLOCKS

static void stuff(uint8_t *frame, uint8_t *end)
{
    uint8_t *code = frame;

    while (++frame != end) {
        if (frame - code == FULL_BLOCK) {
            for (uint8_t *byte = end++; byte != frame; byte--) { /* make room for a code that stands for no zero */
                *byte = byte[-1];
            }
            *frame = 0;
        }
        if (*frame == 0) {
            *code = (uint8_t)(frame - code);
            code = frame;
        }
    }
    *code = (uint8_t)(end - code);
    *end = 0;
}

#else

/* From the end, which takes one pointer and one count. */
static void stuff(const uint8_t *frame, uint8_t *end)
{
    uint8_t code = 1;

    *end = 0;
    while (--end != frame) {
        if (*end == 0) {
            *end = code;
            code = 0;
        }
        code++;
    }
    *end = code;
}

#endif

void mcpax_out_end(void)
{
    uint8_t *const frame = mcpax.frame;
    uint8_t *end = mcpax.out;
    const uint16_t crc = mcpax_crc16(MCPAX_CRC16_START, frame + 1, end);

    *end++ = (uint8_t)(crc >> 8);
    *end++ = (uint8_t)crc;
    stuff(frame, end);
    mcpax_frame_send(frame);
}

#endif
