/*
 * What the library's files say to each other. A received byte goes up, an answer comes down:
 *
 *     frame_a.c | frame_b.c     bytes     <-> messages             one of the two, as the map's profile says
 *     profile_a.c | profile_b.c messages  <-> calls and values
 *     stub.c                    calls      -> handlers, heartbeats, events
 *     once.h | once.c           which call may run, and the answers of those that did
 *     cbor.c, crc.c, tables.c              tools of the above
 */
#ifndef MCPAX_INTERNAL_H
#define MCPAX_INTERNAL_H

#include "mcpax.h"

/* Of its own accord the compiler makes one huge function of them all, with more registers to save and restore than calls saved. */
#if defined(__AVR__) || defined(__MSP430__) || defined(__arm__)
#define MCPAX_NOINLINE __attribute__((noinline))
#else
#define MCPAX_NOINLINE
#endif

/* --- State ------------------------------------------------------------------------------------------------------------- */

#define MCPAX_FLAG_SYNCHRONISED 1u

/* Room that a message of this length takes in a buffer, ready to be sent: with the length in front, or with COBS codes, CRC and final zero. */
#if MCPAX_PROFILE_A
#define MCPAX_FRAME_ROOM(message) (sizeof(mcpax_size) + (message))
#else
#define MCPAX_FRAME_ROOM(message) (1 + (message) + 2 + ((message) + 2) / 254 + 1)
#endif

#ifndef MCPAX_WINDOW
#define MCPAX_WINDOW 1 /* calls that the gateway may have outstanding at a time, 1 to 8 */
#endif
#ifndef MCPAX_KEPT
#define MCPAX_KEPT MCPAX_WINDOW /* responses kept for repetition: 0, 1, 2, 4 or 8. Fewer than the window saves RAM, costs answers */
#endif
#if MCPAX_KEPT == 0 && (MCPAX_PROFILE_B || MCPAX_WINDOW > 1)
#error "to keep no response is for Profile A with a window of one: what it saves is the buffers, and COBS needs one"
#endif

/*
 * All that the library remembers, zero at the beginning. One struct, because a small core reaches its members from one base address;
 * the most used come first, where its short instructions reach.
 */
typedef struct {
    uint16_t boot_id;
    uint16_t believed_boot_id;
    uint8_t sequence; /* of the call or heartbeat at hand */
    uint8_t tool_id;  /* of the call at hand */
    uint8_t status;   /* of the answer at hand */
    uint8_t highest;  /* sequence accepted so far */
    uint8_t flags;
    uint8_t events_sent; /* modulo 256 */
#if MCPAX_WINDOW > 1
    uint8_t seen; /* how many sequences, from the highest downwards, are in the window and after synchronisation */
#endif
    uint8_t ran;     /* bit n: sequence (highest - n) has run */
    bool heard;      /* the gateway, since the application asked */
#if MCPAX_PROFILE_B
    uint8_t wrong;   /* not 0: something in the message at hand is not as expected */
    uint8_t initial; /* first byte of the CBOR item read last */
    bool reading;    /* along a template, or writing */
#endif
#if MCPAX_HAS_STRINGS
    bool failed; /* the message being written does not fit */
#endif
    mcpax_size filled; /* bytes received */
    const uint8_t MCPAX_IN_RAM *in; /* the message being read */
    const uint8_t MCPAX_IN_RAM *in_end;
#if MCPAX_KEPT > 0
    uint8_t MCPAX_IN_RAM *frame; /* where a message is being written */
    uint8_t MCPAX_IN_RAM *out;   /* its next byte */
#if MCPAX_HAS_STRINGS
    uint8_t MCPAX_IN_RAM *out_end;
#endif
#else
    mcpax_size out_length; /* of the message being written, as far as it is counted */
    uint16_t out_crc;      /* as far as it is sent */
    bool out_counting;     /* it is not being sent yet */
#endif
    MCPAX_ROW_OF(mcpax_tool) tool;               /* row of the call at hand */
    const mcpax_argument MCPAX_IN_ROM *argument; /* row of the argument being read */
#if MCPAX_HAS_OUTPUT_ROWS
    MCPAX_ROW_OF(mcpax_output) output; /* row of the value being written */
#endif
    union mcpax_any_value args[MCPAX_ARGUMENTS_MAX];
    union mcpax_any_value results[MCPAX_RESULTS_MAX];
    uint8_t received[MCPAX_RECEIVE_ROOM];
#if MCPAX_KEPT > 0
    /* For messages that need no repetition. Kept responses have their own buffers, which an event must not overwrite. */
    uint8_t passing[MCPAX_FRAME_ROOM(MCPAX_PASSING_MAX)];
    uint8_t kept[MCPAX_KEPT][MCPAX_FRAME_ROOM(MCPAX_RESPONSE_MAX)];
#endif
#if MCPAX_WINDOW > 1
    uint8_t kept_sequence[MCPAX_KEPT];
#endif
} mcpax_state;

#if defined(__AVR__)
/*
 * An access relative to a pointer takes half the code of one by address, but the compiler believes the contrary as long as it knows the
 * address: so it is not told.
 */
extern mcpax_state mcpax_memory;
static inline mcpax_state *mcpax_base(void)
{
    mcpax_state *base;
    __asm__("" : "=b"(base) : "0"(&mcpax_memory));
    return base;
}
#define mcpax (*mcpax_base())
#else
extern MCPAX_IN_RAM mcpax_state mcpax;
#define mcpax_memory mcpax
#endif

/* --- crc.c: checksums (docs/wire-format.md §1.1) -------------------------------------------------- */

#define MCPAX_CRC8_START 0x00u
#define MCPAX_CRC16_START 0xFFFFu

uint8_t mcpax_crc8(uint8_t crc, uint8_t byte);

/* --- tables.c ---------------------------------------------------------------------------------------------------------- */

#if MCPAX_PROFILE_B
/* NOLINTNEXTLINE(readability-redundant-declaration): only where the map's header has just defined it */
extern const uint8_t mcpax_registration[]; /* a whole frame, ready to send; nothing but its end is zero */
#endif

/* --- frame_a.c or frame_b.c ------------------------------------------------------------------------------------------ */

/* Begin to write a message into a buffer that has MCPAX_FRAME_ROOM for one of this length. */
void mcpax_out_begin(uint8_t MCPAX_IN_RAM *buffer, mcpax_size length_max);
void mcpax_out_byte(uint8_t byte);

/* The message is written. True: write it once more. */
#if MCPAX_KEPT > 0
#define mcpax_out_again() false
#else
bool mcpax_out_again(void);
#endif

/* The message is complete: make it a frame and send it. If it did not fit, mcpax.failed says so, and this must not be called. */
void mcpax_out_end(void);

/* Send a frame once more; or, of the functions below, for the first time. */
void mcpax_frame_send(const uint8_t MCPAX_IN_RAM *buffer);

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

/* Called by the framing with an intact message, which is mcpax.in up to mcpax.in_end and stays there until this returns. */
void mcpax_message_received(void);

/* Take mcpax.args from the call just received, as mcpax.tool says. Unless mcpax.status is MCPAX_OK then, the handler must not run. */
void mcpax_read_arguments(void);

/* These write one message, from the state, see mcpax_out_begin. */
void mcpax_write_error(void);
void mcpax_write_result(void);
void mcpax_write_heartbeat(void);
void mcpax_write_event(uint8_t event_id, uint8_t field_count, mcpax_kinds kinds, uint8_t encoding, const mcpax_value *fields);

/* --- stub.c: what the profile found in a message, which is in the state ------------------------------------- */

void mcpax_handle_call(void);
void mcpax_handle_heartbeat(void);
#if MCPAX_PROFILE_B
void mcpax_handle_announce(void);
#endif

/*
 * Are these bits within the limits of mcpax.argument? Integers are taken as they are. The bits of a binary32 are first turned into an
 * order number that grows with the float's value; so no floating point arithmetic is needed, and NaN lies outside of everything.
 */
bool mcpax_within(mcpax_unsigned bits);

#endif
