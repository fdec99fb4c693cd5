/*
 * Profile A framing: A5 | LEN | message | CRC (docs/wire-format.md §1.1).
 *
 * Received bytes wait in a buffer that holds one frame of the largest size. Whatever is wrong with the frame that seems to start
 * there costs its A5 alone: the search goes on at the byte behind it, so a good frame that has already come in is found.
 */
#include "internal.h"

#if MCPAX_PROFILE_A

#define START_OF_FRAME 0xA5u
#define MESSAGE_MIN 3        /* TYPE, TOOL_ID, SEQ */
#define TWO_BYTE_LENGTH 0x80 /* from this length on; and the bit that marks such a LEN */
#define START_BYTES 1
#define LENGTH_BYTES (MCPAX_REQUEST_MAX < TWO_BYTE_LENGTH ? 1 : 2)
#define CRC_BYTES (MCPAX_CRC_BITS / 8)

#if MCPAX_CRC_BITS == 8
typedef uint8_t checksum;
#define CRC_START MCPAX_CRC8_START
#define crc_add mcpax_crc8
#else
typedef uint16_t checksum;
#define CRC_START MCPAX_CRC16_START
#define crc_add mcpax_crc16
#endif

static uint8_t buffer[START_BYTES + LENGTH_BYTES + MCPAX_REQUEST_MAX + CRC_BYTES];
static mcpax_size filled;

/* --- Receiving ---------------------------------------------------------------------------------------------------------- */

static void drop(mcpax_size count)
{
    filled = (mcpax_size)(filled - count);
    for (mcpax_size i = 0; i < filled; i++) {
        buffer[i] = buffer[i + count];
    }
}

/* Give up the byte at the front and move the next A5 there. */
static void skip_to_next_start(void)
{
    mcpax_size next = 1;
    while (next < filled && buffer[next] != START_OF_FRAME) {
        next++;
    }
    drop(next);
}

/* The remainder is zero over a message followed by its own CRC. */
static bool crc_is_right(mcpax_size end)
{
    checksum crc = CRC_START;
    for (mcpax_size i = START_BYTES; i < end; i++) {
        crc = crc_add(crc, buffer[i]);
    }
    return crc == 0;
}

enum finding { WAIT, NO_FRAME, FRAME };

/* What stands at the front of the buffer. For a whole frame, *start and *length tell where its message is. */
static enum finding look(mcpax_size *start, mcpax_size *length)
{
    uint16_t claimed;

    if (buffer[0] != START_OF_FRAME) {
        return NO_FRAME;
    }
    if (filled < 2) {
        return WAIT;
    }
    *start = 2;
    claimed = buffer[1];
    if (claimed >= TWO_BYTE_LENGTH) {
        if (LENGTH_BYTES == 1) {
            return NO_FRAME; /* longer than anything taken here */
        }
        if (filled < 3) {
            return WAIT;
        }
        *start = 3;
        claimed = (uint16_t)(((claimed - TWO_BYTE_LENGTH) << 8) | buffer[2]);
        if (claimed < TWO_BYTE_LENGTH) {
            return NO_FRAME; /* the shorter form must be used where it fits */
        }
    }
    if (claimed < MESSAGE_MIN || claimed > MCPAX_REQUEST_MAX) {
        return NO_FRAME;
    }
    *length = (mcpax_size)claimed;

    mcpax_size end = (mcpax_size)(*start + claimed + CRC_BYTES);
    if (filled < end) {
        return WAIT;
    }
    return crc_is_right(end) ? FRAME : NO_FRAME;
}

static void deliver_frames(void)
{
    mcpax_size start;
    mcpax_size length;

    while (filled > 0) {
        switch (look(&start, &length)) {
        case FRAME:
            mcpax_message_received(&buffer[start], length);
            drop((mcpax_size)(start + length + CRC_BYTES));
            break;
        case NO_FRAME:
            skip_to_next_start();
            break;
        default:
            return;
        }
    }
}

void mcpax_receive(uint8_t byte)
{
    buffer[filled++] = byte; /* there is room: a frame that fills the buffer has been delivered or given up */
    deliver_frames();
}

void mcpax_silence(void)
{
    while (filled > 0) {
        skip_to_next_start();
        deliver_frames();
    }
}

void mcpax_frame_reset(void)
{
    filled = 0;
}

/* --- Sending ------------------------------------------------------------------------------------------------------------ */

static checksum put(checksum crc, uint8_t byte)
{
    mcpax_port_put(byte);
    return crc_add(crc, byte);
}

void mcpax_frame_send(uint8_t *message, mcpax_size length)
{
    checksum crc = CRC_START;

    mcpax_port_put(START_OF_FRAME);
    if (length >= TWO_BYTE_LENGTH) {
        crc = put(crc, (uint8_t)(TWO_BYTE_LENGTH | (uint8_t)(length >> 8)));
    }
    crc = put(crc, (uint8_t)length);
    while (length-- > 0) {
        crc = put(crc, *message++);
    }
#if MCPAX_CRC_BITS == 16
    mcpax_port_put((uint8_t)(crc >> 8));
#endif
    mcpax_port_put((uint8_t)crc);
}

#endif
