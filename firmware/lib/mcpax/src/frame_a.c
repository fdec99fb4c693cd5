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
#define crc_add(crc, byte) mcpax_crc16(crc, &(byte), &(byte) + 1)
#endif

/* --- Receiving ---------------------------------------------------------------------------------------------------------- */

static void drop(mcpax_size count)
{
    mcpax.filled = (mcpax_size)(mcpax.filled - count);
    for (mcpax_size i = 0; i < mcpax.filled; i++) {
        mcpax.received[i] = mcpax.received[i + count];
    }
}

/* Give up the byte at the front and move the next A5 there. */
static void skip_to_next_start(void)
{
    mcpax_size next = 1;
    while (next < mcpax.filled && mcpax.received[next] != START_OF_FRAME) {
        next++;
    }
    drop(next);
}

/* The remainder is zero over a message followed by its own CRC. */
static bool crc_is_right(mcpax_size end)
{
#if MCPAX_CRC_BITS == 16
    return mcpax_crc16(CRC_START, mcpax.received + START_BYTES, mcpax.received + end) == 0;
#else
    checksum crc = CRC_START;
    for (mcpax_size i = START_BYTES; i < end; i++) {
        crc = crc_add(crc, mcpax.received[i]);
    }
    return crc == 0;
#endif
}

enum finding { WAIT, NO_FRAME, FRAME };

/* What stands at the front of the buffer. For a whole frame, *start and *length tell where its message is. */
static enum finding look(mcpax_size MCPAX_IN_RAM *start, mcpax_size MCPAX_IN_RAM *length)
{
    uint16_t claimed;

    if (mcpax.received[0] != START_OF_FRAME) {
        return NO_FRAME;
    }
    if (mcpax.filled < 2) {
        return WAIT;
    }
    *start = 2;
    claimed = mcpax.received[1];
    if (claimed >= TWO_BYTE_LENGTH) {
        if (LENGTH_BYTES == 1) {
            return NO_FRAME; /* longer than anything taken here */
        }
        if (mcpax.filled < 3) {
            return WAIT;
        }
        *start = 3;
        claimed = (uint16_t)(((claimed - TWO_BYTE_LENGTH) << 8) | mcpax.received[2]);
        if (claimed < TWO_BYTE_LENGTH) {
            return NO_FRAME; /* the shorter form must be used where it fits */
        }
    }
    if (claimed < MESSAGE_MIN || claimed > MCPAX_REQUEST_MAX) {
        return NO_FRAME;
    }
    *length = (mcpax_size)claimed;

    mcpax_size end = (mcpax_size)(*start + claimed + CRC_BYTES);
    if (mcpax.filled < end) {
        return WAIT;
    }
    return crc_is_right(end) ? FRAME : NO_FRAME;
}

static void deliver_frames(void)
{
    mcpax_size start;
    mcpax_size length;

    while (mcpax.filled > 0) {
        switch (look(&start, &length)) {
        case FRAME:
            mcpax.in = &mcpax.received[start];
            mcpax.in_end = mcpax.in + length;
            mcpax_message_received();
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
    mcpax.received[mcpax.filled++] = byte; /* there is room: a frame that fills the buffer has been delivered or given up */
    deliver_frames();
}

void mcpax_silence(void)
{
    while (mcpax.filled > 0) {
        skip_to_next_start();
        deliver_frames();
    }
}

/* --- Sending ------------------------------------------------------------------------------------------------------------ */

static checksum put(checksum crc, uint8_t byte)
{
    mcpax_port_put(byte);
    return crc_add(crc, byte);
}

/* Everything in front of the message. */
static checksum put_head(mcpax_size length)
{
    checksum crc = CRC_START;

    mcpax_port_put(START_OF_FRAME);
    if (length >= TWO_BYTE_LENGTH) {
        crc = put(crc, (uint8_t)(TWO_BYTE_LENGTH | (uint8_t)(length >> 8)));
    }
    return put(crc, (uint8_t)length);
}

static void put_crc(checksum crc)
{
#if MCPAX_CRC_BITS == 16
    mcpax_port_put((uint8_t)(crc >> 8));
#endif
    mcpax_port_put((uint8_t)crc);
}

#if MCPAX_KEPT > 0

void mcpax_out_begin(uint8_t MCPAX_IN_RAM *buffer, mcpax_size length_max)
{
    mcpax.frame = buffer;
    mcpax.out = buffer + sizeof(mcpax_size); /* behind the length */
    mcpax.out_end = mcpax.out + length_max;
    mcpax.failed = false;
}

void mcpax_out_byte(uint8_t byte)
{
    if (mcpax.out == mcpax.out_end) {
        mcpax.failed = true;
    } else {
        *mcpax.out++ = byte;
    }
}

void mcpax_out_end(void)
{
    const size_t length = (size_t)(mcpax.out - mcpax.frame) - sizeof(mcpax_size);

    for (uint8_t i = 0; i < sizeof(mcpax_size); i++) { /* NOLINT(bugprone-too-small-loop-variable): 1 or 2 */
        mcpax.frame[i] = (uint8_t)(length >> (8 * i));
    }
    mcpax_frame_send(mcpax.frame);
}

void mcpax_frame_send(const uint8_t MCPAX_IN_RAM *buffer)
{
    mcpax_size length = 0;

    for (uint8_t i = 0; i < sizeof length; i++) { /* NOLINT(bugprone-too-small-loop-variable): 1 or 2 */
        length = (mcpax_size)(length | (mcpax_size)*buffer++ << (8 * i));
    }
    checksum crc = put_head(length);
    while (length-- > 0) {
        crc = put(crc, *buffer++);
    }
    put_crc(crc);
}

#else /* Nothing is kept, so nothing needs a buffer: a message is written twice, first to count its bytes, then to send them. */

/* NOLINTNEXTLINE(readability-non-const-parameter): with responses kept it is written to */
void mcpax_out_begin(uint8_t MCPAX_IN_RAM *buffer, mcpax_size length_max)
{
    (void)buffer;
    (void)length_max; /* numbers take the room they have in the map, and strings are held against it when they are written */
    mcpax.out_length = 0;
    mcpax.out_counting = true;
    mcpax.failed = false;
}

void mcpax_out_byte(uint8_t byte)
{
    if (mcpax.out_counting) {
        mcpax.out_length++;
    } else {
        mcpax.out_crc = put((checksum)mcpax.out_crc, byte);
    }
}

bool mcpax_out_again(void)
{
    const bool again = mcpax.out_counting && !mcpax.failed;
    if (again) {
        mcpax.out_counting = false;
        mcpax.out_crc = put_head(mcpax.out_length);
    }
    return again;
}

void mcpax_out_end(void)
{
    put_crc((checksum)mcpax.out_crc);
}

#endif

#endif
