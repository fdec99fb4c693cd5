/*
 * Profile B messages: one CBOR map each (docs/wire-format.md §2.2, §4). Keys come in ascending order and arguments in the order of the
 * map, so everything is read and written in a straight line; up to arguments and results, along templates.
 */
#include "cbor.h"

#if MCPAX_PROFILE_B

/* --- Templates ---------------------------------------------------------------------------------------------------------- */

/*
 * A template is made of steps: how many bytes follow that are always the same, these bytes, then the word that stands behind them in the
 * message as a number, or END.
 */
enum { SEQUENCE, TOOL_ID, STATUS, HIGHEST, SYNCHRONISED, EVENTS_SENT, BYTES, OWN_BOOT_ID = BYTES, BELIEVED_BOOT_ID, END };

/* The first of them stand side by side in the state, in this order; else this does not compile. */
typedef char words_in_order[offsetof(mcpax_state, events_sent) - offsetof(mcpax_state, sequence) == EVENTS_SENT ? 1 : -1];

#define METHOD_AT 4 /* where the method stands in messages that have one */

enum { /* what a message begins with: a map of so many pairs */
    PAIRS_2 = CBOR_MAP | 2,
    PAIRS_3 = CBOR_MAP | 3,
    PAIRS_4 = CBOR_MAP | 4,
    PAIRS_5 = CBOR_MAP | 5,
    PAIRS_7 = CBOR_MAP | 7
};

enum key {
    JSONRPC = 0,
    METHOD = 1,
    ID = 2,
    TOOL = 3,
    ARGUMENTS = 4,
    RESULT = 5,
    ERROR = 6,
    MAP_HASH = 7,
    BOOT_ID = 8,
    FLAGS = 9,
    WINDOW = 12,
    COUNT = 13
};

#define VERSION 2 /* of JSON-RPC */

/* clang-format off */
static const uint8_t announce_in[] MCPAX_ROM = {
    5, PAIRS_2, JSONRPC, VERSION, METHOD, MCPAX_TYPE_REGISTRATION, END};
static const uint8_t heartbeat_in[] MCPAX_ROM = {
    6, PAIRS_4, JSONRPC, VERSION, METHOD, MCPAX_TYPE_HEARTBEAT, ID, SEQUENCE,
    1, BOOT_ID, BELIEVED_BOOT_ID,
    0, END};
static const uint8_t call_in[] MCPAX_ROM = {
    6, PAIRS_5, JSONRPC, VERSION, METHOD, MCPAX_TYPE_CALL, ID, SEQUENCE,
    1, TOOL, TOOL_ID,
    1, ARGUMENTS, END};
static const uint8_t heartbeat_out[] MCPAX_ROM = {
    6, PAIRS_7, JSONRPC, VERSION, METHOD, MCPAX_TYPE_HEARTBEAT, ID, HIGHEST,
    7, MAP_HASH, CBOR_INFO_4_BYTES, MCPAX_MAP_HASH_BYTES, BOOT_ID, OWN_BOOT_ID,
    1, FLAGS, SYNCHRONISED,
    2, WINDOW, MCPAX_WINDOW, END};
static const uint8_t result_out[] MCPAX_ROM = {
    4, PAIRS_3, JSONRPC, VERSION, ID, SEQUENCE,
    1, RESULT, END};
static const uint8_t error_out[] MCPAX_ROM = {
    4, PAIRS_3, JSONRPC, VERSION, ID, SEQUENCE,
    1, ERROR, STATUS,
    0, END};
#if MCPAX_EVENT_COUNT > 0
static const uint8_t event_out[] MCPAX_ROM = {
    6, PAIRS_5, JSONRPC, VERSION, METHOD, MCPAX_TYPE_EVENT, TOOL, TOOL_ID,
    1, RESULT, END};
static const uint8_t count_out[] MCPAX_ROM = {
    1, COUNT, EVENTS_SENT,
    0, END};
#endif
/* clang-format on */

/* Read or write along a template, as mcpax.reading says. Reading: whatever differs from it is wrong, and so is a number in more bytes than it may have. */
static void follow(const uint8_t *step)
{
    for (;;) {
        for (uint8_t left = MCPAX_ROM_BYTE(step++); left > 0; left--) {
            const uint8_t byte = MCPAX_ROM_BYTE(step++);
            if (mcpax.reading) {
                mcpax_cbor_expect(byte);
            } else {
                mcpax_out_byte(byte);
            }
        }
        const uint8_t word = MCPAX_ROM_BYTE(step++);
        if (word == END) {
            return;
        }
        if (!mcpax.reading) {
            /* cppcheck-suppress objectIndex ; see words_in_order */
            mcpax_cbor_write_head(CBOR_UNSIGNED, word < BYTES ? (&mcpax.sequence)[word] : mcpax.boot_id);
            continue;
        }
        const uint16_t number = (uint16_t)mcpax_cbor_read_head();
        uint8_t widest = CBOR_INFO_2_BYTES;
        if (word < BYTES) {
            /* cppcheck-suppress objectIndex ; see words_in_order */
            (&mcpax.sequence)[word] = (uint8_t)number;
            widest = CBOR_INFO_1_BYTE;
        } else {
            mcpax.believed_boot_id = number;
        }
        if (mcpax.initial > widest) {
            mcpax.wrong = 1;
        }
        if (mcpax.wrong) {
            return;
        }
    }
}

/* --- Reading arguments -------------------------------------------------------------------------------------------------- */

#if MCPAX_ARGUMENTS_HAVE(MCPAX_TEXT, MCPAX_BYTES)
static void read_string(mcpax_unsigned length, mcpax_value *value)
{
    const uint8_t right_major = MCPAX_ROM_BYTE(&mcpax.argument->type) == MCPAX_TEXT ? CBOR_TEXT : CBOR_BYTES;

    if ((mcpax.initial & CBOR_MAJOR_MASK) != right_major || length > (mcpax_unsigned)MCPAX_ROM_NUMBER(&mcpax.argument->span)) {
        mcpax.wrong = 1;
        return;
    }
    value->string.data = mcpax.in;
    value->string.length = (mcpax_size)length;
    mcpax.in += length;
}
#endif

/* Read one value. What kind of CBOR item it is must agree with the type in mcpax.argument, and its value with the limits. */
static void read_value(mcpax_value *value)
{
    mcpax_unsigned number = mcpax_cbor_read_head();
    bool fits = true;

#if MCPAX_ARGUMENTS_HAVE(MCPAX_TEXT, MCPAX_BYTES)
    if (MCPAX_ROM_BYTE(&mcpax.argument->type) >= MCPAX_TEXT) {
        read_string(number, value);
        return;
    }
#endif
#if MCPAX_ARGUMENTS_HAVE(MCPAX_BOOL, MCPAX_BOOL)
    if (MCPAX_ROM_BYTE(&mcpax.argument->type) == MCPAX_BOOL) {
        mcpax.wrong |= (uint8_t)((mcpax.initial | 1u) ^ CBOR_TRUE);
        number = mcpax.initial & 1u;
    } else
#endif
#if MCPAX_ARGUMENTS_HAVE(MCPAX_F32, MCPAX_F32)
    if (MCPAX_ROM_BYTE(&mcpax.argument->type) == MCPAX_F32) {
        mcpax.wrong |= (uint8_t)(mcpax.initial ^ CBOR_BINARY32);
    } else
#endif
    { /* CBOR numbers have a bit more than ours, for the sign: one that would change by losing it fits no range */
        const uint8_t major = mcpax.initial & CBOR_MAJOR_MASK;
        mcpax.wrong = (uint8_t)(mcpax.wrong | (major & ~CBOR_NEGATIVE));
#if MCPAX_ARGUMENTS_HAVE(MCPAX_I8, MCPAX_I32)
        if (MCPAX_ROM_BYTE(&mcpax.argument->type) >= MCPAX_I8) {
            fits = number <= (mcpax_unsigned)-1 / 2;
            number = major ? (mcpax_unsigned)~number : number; /* a negative one stands for -1 - number */
        } else
#endif
        {
            fits = major == 0;
        }
    }
    value->u = number;
    if (!fits || !mcpax_within(number)) {
        mcpax.status = MCPAX_OUT_OF_RANGE;
    }
}

void mcpax_read_arguments(void)
{
    mcpax.status = MCPAX_OK;
    mcpax_cbor_expect((uint8_t)(CBOR_MAP | MCPAX_ROW(mcpax.tool).argument_count));
    for (uint8_t i = 0; i < MCPAX_ROW(mcpax.tool).argument_count; i++) {
        mcpax.argument = &MCPAX_ROW(mcpax.tool).arguments[i];
        mcpax_cbor_expect(i);
        read_value(&mcpax.args[i]);
    }
    if (mcpax.wrong || mcpax.in != mcpax.in_end) {
        mcpax.status = MCPAX_BAD_ARGUMENTS;
    }
}

/* --- Messages in -------------------------------------------------------------------------------------------------------- */

void mcpax_message_received(void)
{
    const uint8_t method = mcpax.received[METHOD_AT];

    mcpax.wrong = 0;
    mcpax.reading = true;
    follow(method == MCPAX_TYPE_CALL ? call_in : method == MCPAX_TYPE_HEARTBEAT ? heartbeat_in : announce_in);
    mcpax.reading = false;
    if (mcpax.wrong || (method != MCPAX_TYPE_CALL && mcpax.in != mcpax.in_end)) {
        return;
    }
    mcpax.heard = true;
    if (method == MCPAX_TYPE_CALL) {
        mcpax_handle_call(); /* which reads the arguments, if it comes to that */
    } else if (method == MCPAX_TYPE_HEARTBEAT) {
        mcpax_handle_heartbeat();
    } else {
        mcpax_handle_announce();
    }
}

/* --- Messages out ------------------------------------------------------------------------------------------------------- */

static void write_integer(const mcpax_value *value, bool is_signed)
{
    if (MCPAX_OUTPUTS_HAVE(MCPAX_I8, MCPAX_I32) && is_signed && value->i < 0) {
        mcpax_cbor_write_head(CBOR_NEGATIVE, (mcpax_unsigned)~value->u); /* it stands for -1 - number */
    } else {
        mcpax_cbor_write_head(CBOR_UNSIGNED, value->u);
    }
}

#if MCPAX_HAS_OUTPUT_ROWS

/* Write one value, of the type in mcpax.output. */
static void write_value(const mcpax_value *value)
{
    const uint8_t type = MCPAX_ROW(mcpax.output).type;

#if MCPAX_USES_STRINGS
    if (type >= MCPAX_TEXT) {
        mcpax_cbor_write_head(type == MCPAX_TEXT ? CBOR_TEXT : CBOR_BYTES, value->string.length);
        if (value->string.length > MCPAX_ROW(mcpax.output).max_length) {
            mcpax.failed = true;
            return;
        }
        for (mcpax_size i = 0; i < value->string.length; i++) {
            mcpax_out_byte(value->string.data[i]);
        }
        return;
    }
#endif
    if (type == MCPAX_BOOL) {
        mcpax_out_byte(value->u != 0 ? CBOR_TRUE : CBOR_FALSE);
        return;
    }
#if MCPAX_OUTPUTS_HAVE(MCPAX_F32, MCPAX_F32)
    if (type == MCPAX_F32) {
        mcpax_out_byte(CBOR_BINARY32);
        for (uint8_t shift = 32; shift > 0; shift = (uint8_t)(shift - 8)) {
            mcpax_out_byte((uint8_t)(value->u >> (shift - 8)));
        }
        return;
    }
#endif
    write_integer(value, type >= MCPAX_I8);
}

#endif

static void write_fields(mcpax_kinds kind, uint8_t count, const mcpax_value *values)
{
    mcpax_out_byte((uint8_t)(CBOR_MAP | count));
    for (uint8_t i = 0; i < count; i++) {
        mcpax_out_byte(i);
#if MCPAX_HAS_OUTPUT_ROWS
        MCPAX_TAKE_ROW(mcpax.output, kind++);
        write_value(values++);
#else
        write_integer(&values[i], kind & 1);
        kind >>= 1;
#endif
    }
}

void mcpax_write_error(void)
{
    follow(error_out);
}

void mcpax_write_result(void)
{
    follow(result_out);
    write_fields(MCPAX_ROW(mcpax.tool).results, MCPAX_ROW(mcpax.tool).result_count, mcpax.results);
}

void mcpax_write_heartbeat(void)
{
    follow(heartbeat_out);
}

#if MCPAX_EVENT_COUNT > 0
void mcpax_write_event(uint8_t event_id, uint8_t field_count, mcpax_kinds kinds, uint8_t encoding, const mcpax_value *fields)
{
    (void)encoding;
    mcpax.tool_id = event_id; /* that of a call is not needed any more when its handler runs */
    follow(event_out);
    write_fields(kinds, field_count, fields);
    follow(count_out);
}
#endif

#endif
