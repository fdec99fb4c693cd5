/*
 * Profile B messages: one CBOR map each (docs/wire-format.md §2.2, §4). Keys come in ascending order and arguments in the order of the
 * map, so everything is read and written in a straight line.
 */
#include "cbor.h"

#if MCPAX_PROFILE_B

#define JSONRPC_VERSION 2

enum key {
    KEY_JSONRPC = 0,
    KEY_METHOD = 1,
    KEY_ID = 2,
    KEY_TOOL = 3,
    KEY_ARGUMENTS = 4,
    KEY_RESULT = 5,
    KEY_ERROR = 6,
    KEY_MAP_HASH = 7,
    KEY_BOOT_ID = 8,
    KEY_FLAGS = 9,
    KEY_WINDOW = 12,
    KEY_COUNT = 13
};

enum { /* first byte of a message: a map of so many pairs */
    HEAD_CALL = CBOR_MAP | 5,
    HEAD_ANNOUNCE = CBOR_MAP | 2,
    HEAD_HEARTBEAT_IN = CBOR_MAP | 4,
    HEAD_RESPONSE = CBOR_MAP | 3,
    HEAD_HEARTBEAT_OUT = CBOR_MAP | 7,
    HEAD_EVENT = CBOR_MAP | 5
};

/* --- Reading arguments -------------------------------------------------------------------------------------------------- */

/* Read one value. What kind of CBOR item it is must agree with the type, and its value with the limits. */
static uint8_t read_value(const mcpax_argument *argument, mcpax_value *value)
{
    const uint8_t initial = mcpax_cbor_read_byte();
    uint32_t number = mcpax_cbor_read_number(initial);
    const uint8_t major = initial & CBOR_MAJOR_MASK;
    bool right_kind;

    if (MCPAX_USES_STRINGS && argument->type >= MCPAX_TEXT) {
        right_kind = major == (argument->type == MCPAX_TEXT ? CBOR_TEXT : CBOR_BYTES) && number <= argument->span;
        value->string.data = mcpax_cbor_read_string(number);
        value->string.length = (mcpax_size)number;
        return right_kind ? MCPAX_OK : MCPAX_BAD_ARGUMENTS;
    }
    if (MCPAX_USES_BOOL && argument->type == MCPAX_BOOL) {
        right_kind = initial == CBOR_FALSE || initial == CBOR_TRUE;
        number = initial & 1u;
    } else if (MCPAX_USES_F32 && argument->type == MCPAX_F32) {
        right_kind = initial == CBOR_BINARY32;
    } else {
        const bool is_signed = argument->type >= MCPAX_I8;
        right_kind = major <= CBOR_NEGATIVE;
        /* CBOR numbers have 33 bits, sign included. One that does not survive in 32 must not pass for another. */
        if (right_kind && (is_signed ? number >> 31 != 0 : major == CBOR_NEGATIVE)) {
            return MCPAX_OUT_OF_RANGE;
        }
        if (major == CBOR_NEGATIVE) {
            number = ~number; /* it stands for -1 - number */
        }
    }
    if (!right_kind) {
        return MCPAX_BAD_ARGUMENTS;
    }
    value->u = number;
    return mcpax_within(argument, number) ? MCPAX_OK : MCPAX_OUT_OF_RANGE;
}

uint8_t mcpax_read_arguments(const mcpax_tool *tool, mcpax_value *args)
{
    uint8_t status = MCPAX_OK;
    mcpax_argument argument;

    mcpax_cbor_expect((uint8_t)(CBOR_MAP | tool->argument_count));
    for (uint8_t i = 0; i < tool->argument_count && status == MCPAX_OK; i++) {
        mcpax_rom_read(&argument, &mcpax_arguments[tool->first_argument + i], sizeof argument);
        mcpax_cbor_expect(i);
        status = read_value(&argument, &args[i]);
    }
    if (mcpax_cbor_failed() || (status == MCPAX_OK && !mcpax_cbor_at_end())) {
        return MCPAX_BAD_ARGUMENTS;
    }
    return status;
}

/* --- Messages in -------------------------------------------------------------------------------------------------------- */

static void heartbeat_received(uint8_t sequence)
{
    mcpax_cbor_expect(KEY_BOOT_ID);
    const uint8_t initial = mcpax_cbor_read_byte();
    const uint32_t believed_boot_id = mcpax_cbor_read_number(initial);
    if (mcpax_cbor_at_end() && (initial & CBOR_MAJOR_MASK) == CBOR_UNSIGNED && believed_boot_id <= UINT16_MAX) {
        mcpax_handle_heartbeat(sequence, (uint16_t)believed_boot_id);
    }
}

static void call_received(uint8_t sequence)
{
    mcpax_cbor_expect(KEY_TOOL);
    const uint8_t tool_id = mcpax_cbor_read_u8();
    mcpax_cbor_expect(KEY_ARGUMENTS);
    if (!mcpax_cbor_failed()) {
        mcpax_handle_call(tool_id, sequence); /* which reads the arguments, if it comes to that */
    }
}

void mcpax_message_received(const uint8_t *message, mcpax_size length)
{
    mcpax_cbor_open(message, length);
    const uint8_t head = mcpax_cbor_read_byte();
    mcpax_cbor_expect(KEY_JSONRPC);
    mcpax_cbor_expect(JSONRPC_VERSION);
    mcpax_cbor_expect(KEY_METHOD);
    const uint8_t method = mcpax_cbor_read_byte();
    if (method == MCPAX_TYPE_REGISTRATION && head == HEAD_ANNOUNCE && mcpax_cbor_at_end()) {
        mcpax_handle_announce();
        return;
    }
    mcpax_cbor_expect(KEY_ID);
    const uint8_t sequence = mcpax_cbor_read_u8();
    if (method == MCPAX_TYPE_HEARTBEAT && head == HEAD_HEARTBEAT_IN) {
        heartbeat_received(sequence);
    } else if (method == MCPAX_TYPE_CALL && head == HEAD_CALL) {
        call_received(sequence);
    }
}

/* --- Messages out ------------------------------------------------------------------------------------------------------- */

static void write_number(uint8_t key, uint32_t number)
{
    mcpax_out_byte(key);
    mcpax_cbor_write_head(CBOR_UNSIGNED, number);
}

static void write_pair(uint8_t key, uint8_t number)
{
    write_number(key, number);
}

static void write_message_head(uint8_t head)
{
    mcpax_out_byte(head);
    write_pair(KEY_JSONRPC, JSONRPC_VERSION);
}

static void write_value(const mcpax_output *output, const mcpax_value *value)
{
    const uint8_t type = output->type;

    if (MCPAX_USES_STRINGS && type >= MCPAX_TEXT) {
        if (value->string.length > output->max_length) {
            mcpax_out_fail();
            return;
        }
        mcpax_cbor_write_head(type == MCPAX_TEXT ? CBOR_TEXT : CBOR_BYTES, value->string.length);
        mcpax_out_bytes(value->string.data, value->string.length);
    } else if (MCPAX_USES_BOOL && type == MCPAX_BOOL) {
        mcpax_out_byte(value->u != 0 ? CBOR_TRUE : CBOR_FALSE);
    } else if (MCPAX_USES_F32 && type == MCPAX_F32) {
        mcpax_out_byte(CBOR_BINARY32);
        mcpax_out_big_endian(value->u, 4);
    } else if (type >= MCPAX_I8 && value->i < 0) {
        mcpax_cbor_write_head(CBOR_NEGATIVE, ~value->u);
    } else {
        mcpax_cbor_write_head(CBOR_UNSIGNED, value->u);
    }
}

static void write_fields(uint8_t first, uint8_t count, const mcpax_value *values)
{
    mcpax_output output;

    mcpax_out_byte(KEY_RESULT);
    mcpax_out_byte((uint8_t)(CBOR_MAP | count));
    for (uint8_t i = 0; i < count; i++) {
        mcpax_rom_read(&output, &mcpax_outputs[first + i], sizeof output);
        mcpax_out_byte(i);
        write_value(&output, &values[i]);
    }
}

void mcpax_write_error(uint8_t tool_id, uint8_t sequence, uint8_t status)
{
    (void)tool_id; /* the sequence is enough here */
    write_message_head(HEAD_RESPONSE);
    write_pair(KEY_ID, sequence);
    write_pair(KEY_ERROR, status);
}

void mcpax_write_result(const mcpax_tool *tool, uint8_t sequence, const mcpax_value *results)
{
    write_message_head(HEAD_RESPONSE);
    write_pair(KEY_ID, sequence);
    write_fields(tool->first_result, tool->result_count, results);
}

void mcpax_write_heartbeat(uint8_t highest, uint16_t boot_id, uint8_t flags)
{
    write_message_head(HEAD_HEARTBEAT_OUT);
    write_pair(KEY_METHOD, MCPAX_TYPE_HEARTBEAT);
    write_pair(KEY_ID, highest);
    write_number(KEY_MAP_HASH, MCPAX_MAP_HASH);
    write_number(KEY_BOOT_ID, boot_id);
    write_pair(KEY_FLAGS, flags);
    write_pair(KEY_WINDOW, MCPAX_WINDOW);
}

#if MCPAX_EVENT_COUNT > 0
void mcpax_write_event(const mcpax_event *event, uint8_t count, const mcpax_value *fields)
{
    write_message_head(HEAD_EVENT);
    write_pair(KEY_METHOD, MCPAX_TYPE_EVENT);
    write_pair(KEY_TOOL, event->id);
    write_fields(event->first_field, event->field_count, fields);
    write_pair(KEY_COUNT, count);
}
#endif

#endif
