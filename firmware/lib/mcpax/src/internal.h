/*
 * What the library's files say to each other. A received byte goes up, an answer comes down:
 *
 *     frame_a.c | frame_b.c     bytes     <-> messages             one of the two, as the map's profile says
 *     profile_a.c | profile_b.c messages  <-> calls and values
 *     stub.c                    calls      -> handlers, heartbeats, events
 *     once.c                    which call may run, and the answers of those that did
 *     out.c, crc.c, rom.c, tables.c        tools of the above
 */
#ifndef MCPAX_INTERNAL_H
#define MCPAX_INTERNAL_H

#include "mcpax.h"

/* --- crc.c: one more byte into a checksum (docs/wire-format.md §1.1) -------------------------------------------------- */

#define MCPAX_CRC8_START 0x00u
#define MCPAX_CRC16_START 0xFFFFu

uint8_t mcpax_crc8(uint8_t crc, uint8_t byte);
uint16_t mcpax_crc16(uint16_t crc, uint8_t byte);

/* --- rom.c and tables.c ---------------------------------------------------------------------------------------------- */

void mcpax_rom_read(void *to, const void *rom, uint8_t size);

extern const mcpax_tool mcpax_tools[];
extern const mcpax_argument mcpax_arguments[];
extern const mcpax_output mcpax_outputs[];
#if MCPAX_EVENT_COUNT > 0
extern const mcpax_event mcpax_events[];
#endif
#if MCPAX_PROFILE_B
extern const uint8_t mcpax_registration[]; /* a whole frame, ready to send */
#endif

/* --- frame_a.c or frame_b.c ------------------------------------------------------------------------------------------ */

/* What the framing needs behind a message in its buffer. Profile B puts the CRC there, for COBS to look ahead into. */
#if MCPAX_PROFILE_A
#define MCPAX_FRAME_TAIL 0
#else
#define MCPAX_FRAME_TAIL 2
#endif

void mcpax_frame_reset(void);

/* Frame and send a message that has MCPAX_FRAME_TAIL bytes of room behind it. */
void mcpax_frame_send(uint8_t *message, mcpax_size length);

/* --- profile_a.c or profile_b.c --------------------------------------------------------------------------------------- */

enum { /* TYPE of Profile A, method of Profile B */
    MCPAX_TYPE_CALL = 1,
    MCPAX_TYPE_RESPONSE = 2,
    MCPAX_TYPE_REGISTRATION = 3,
    MCPAX_TYPE_HEARTBEAT = 4,
    MCPAX_TYPE_EVENT = 5
};

enum { /* what the stub itself answers (docs/wire-format.md §2.3); MCPAX_OK and MCPAX_BUSY are public */
    MCPAX_UNKNOWN_TOOL = 1,
    MCPAX_BAD_ARGUMENTS = 2,
    MCPAX_OUT_OF_RANGE = 3,
    MCPAX_UNSYNCHRONISED = 5,
    MCPAX_RESPONSE_LOST = 6,
    MCPAX_RESULT_TOO_LARGE = 7
};

#define MCPAX_FLAG_SYNCHRONISED 0x01u

/* Called by the framing with an intact message, which stays where it is until this returns. */
void mcpax_message_received(const uint8_t *message, mcpax_size length);

/* Take the arguments from the call just received. Anything but MCPAX_OK: the handler must not run. */
uint8_t mcpax_read_arguments(const mcpax_tool *tool, mcpax_value *args);

/* These write one message to the output, see mcpax_out_begin. */
void mcpax_write_error(uint8_t tool_id, uint8_t sequence, uint8_t status);
void mcpax_write_result(const mcpax_tool *tool, uint8_t sequence, const mcpax_value *results);
void mcpax_write_heartbeat(uint8_t highest, uint16_t boot_id, uint8_t flags);
#if MCPAX_EVENT_COUNT > 0
void mcpax_write_event(const mcpax_event *event, uint8_t count, const mcpax_value *fields);
#endif

/* --- stub.c: what the profile found in a message ------------------------------------------------------------------------ */

void mcpax_handle_call(uint8_t tool_id, uint8_t sequence);
void mcpax_handle_heartbeat(uint8_t sequence, uint16_t believed_boot_id);
#if MCPAX_PROFILE_B
void mcpax_handle_announce(void);
#endif

/*
 * Are these 32 bits within the argument's limits? Integers are taken as they are. The bits of a binary32 are first turned into an
 * order number that grows with the float's value; so no floating point arithmetic is needed, and NaN lies outside of everything.
 */
bool mcpax_within(const mcpax_argument *argument, uint32_t bits);

/* --- out.c: the message being written ----------------------------------------------------------------------------------- */

void mcpax_out_begin(uint8_t *buffer, mcpax_size capacity);
void mcpax_out_byte(uint8_t byte);
void mcpax_out_bytes(const uint8_t *data, mcpax_size length);
/* Big endian, the lowest `width` bytes. */
void mcpax_out_big_endian(uint32_t bits, uint8_t width);
/* What was to be written has no room, as if a byte had been written past the capacity. */
void mcpax_out_fail(void);
/* Length of the message, 0 if it did not fit. */
mcpax_size mcpax_out_length(void);

/* --- once.c: at most once (docs/wire-format.md §5) ------------------------------------------------------------------------ */

#ifndef MCPAX_WINDOW
#define MCPAX_WINDOW 1 /* calls that the gateway may have outstanding at a time, 1 to 8 */
#endif
#ifndef MCPAX_KEPT
#define MCPAX_KEPT MCPAX_WINDOW /* responses kept for repetition: 1, 2, 4 or 8. Fewer than the window saves RAM, costs answers */
#endif

typedef struct {
    mcpax_size length;
    uint8_t sequence;
    uint8_t message[MCPAX_RESPONSE_MAX + MCPAX_FRAME_TAIL];
} mcpax_kept;

enum mcpax_verdict {
    MCPAX_IGNORE, /* stale, or from before synchronisation */
    MCPAX_RUN,    /* has not run */
    MCPAX_REPEAT, /* has run, and its response is kept */
    MCPAX_LOST    /* has run, and its response is gone */
};

/* From here on, `highest` and everything before it counts as never seen. */
void mcpax_once_reset(uint8_t highest);

uint8_t mcpax_once_highest(void);

/* What to do with a call of this sequence. */
enum mcpax_verdict mcpax_once_judge(uint8_t sequence);

/* The call of this sequence, judged MCPAX_RUN, has run: where to keep its response. */
mcpax_kept *mcpax_once_keep(uint8_t sequence);

/* The response of a sequence that was judged MCPAX_REPEAT. */
mcpax_kept *mcpax_once_kept(uint8_t sequence);

#endif
