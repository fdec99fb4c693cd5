/* Profile A messages: TYPE TOOL_ID SEQ PAYLOAD (docs/wire-format.md §2.1, §4). */
#include "internal.h"

#if MCPAX_PROFILE_A

#define HEADER_BYTES 3u
#define TLV_HEADER_BYTES 2u
#define HEARTBEAT_PAYLOAD_BYTES 2u

/* The payload of the call at hand, as far as it is not yet read. */
static const uint8_t *payload;
static mcpax_size payload_left;

static bool is_string(uint8_t type)
{
    return type >= MCPAX_TEXT;
}

/* Bytes of a number. */
static uint8_t width_of(uint8_t type)
{
    switch (type) {
    case MCPAX_BOOL:
    case MCPAX_U8:
    case MCPAX_I8:
        return 1;
    case MCPAX_U16:
    case MCPAX_I16:
        return 2;
    default:
        return 4;
    }
}

/* --- Reading arguments -------------------------------------------------------------------------------------------------- */

static uint32_t number(const uint8_t *data, uint8_t type)
{
    const uint8_t width = width_of(type);
    uint32_t bits = 0;

    for (uint8_t i = 0; i < width; i++) {
        bits = (bits << 8) | data[MCPAX_BIG_ENDIAN ? i : width - 1 - i];
    }
    if (type == MCPAX_I8) {
        bits = (uint32_t)(int32_t)(int8_t)bits;
    } else if (type == MCPAX_I16) {
        bits = (uint32_t)(int32_t)(int16_t)bits;
    }
    return bits;
}

/* The text in a field of fixed width: up to the zeros that pad it. False if something follows them. */
static bool unpad(mcpax_value *text)
{
    mcpax_size length = 0;
    while (length < text->string.length && text->string.data[length] != 0) {
        length++;
    }
    for (mcpax_size i = length; i < text->string.length; i++) {
        if (text->string.data[i] != 0) {
            return false;
        }
    }
    text->string.length = length;
    return true;
}

/* Take the next `length` bytes of the payload as the value of this argument. */
static uint8_t read_value(const mcpax_argument *argument, mcpax_size length, mcpax_value *value)
{
    const uint8_t *data = payload;

    if (length > payload_left) {
        return MCPAX_BAD_ARGUMENTS;
    }
    payload += length;
    payload_left = (mcpax_size)(payload_left - length);

    if (is_string(argument->type)) {
        value->string.data = data;
        value->string.length = length;
        return length <= argument->span ? MCPAX_OK : MCPAX_BAD_ARGUMENTS;
    }
    if (length != width_of(argument->type)) {
        return MCPAX_BAD_ARGUMENTS;
    }
    value->u = number(data, argument->type);
    return mcpax_within(argument, value->u) ? MCPAX_OK : MCPAX_OUT_OF_RANGE;
}

/* One field after the other at fixed width; or the one field of a raw payload, which is all of it. */
static uint8_t read_in_order(const mcpax_tool *tool, mcpax_value *args)
{
    mcpax_argument argument;

    for (uint8_t i = 0; i < tool->argument_count; i++) {
        mcpax_rom_read(&argument, &mcpax_arguments[tool->first_argument + i], sizeof argument);

        mcpax_size length = width_of(argument.type);
        if (tool->encoding == MCPAX_RAW) {
            length = payload_left;
        } else if (is_string(argument.type)) {
            length = (mcpax_size)argument.span;
        }
        uint8_t status = read_value(&argument, length, &args[i]);
        if (status != MCPAX_OK) {
            return status;
        }
        if (tool->encoding == MCPAX_STRUCT && argument.type == MCPAX_TEXT && !unpad(&args[i])) {
            return MCPAX_BAD_ARGUMENTS;
        }
    }
    return payload_left == 0 ? MCPAX_OK : MCPAX_BAD_ARGUMENTS;
}

/* TAG LEN VALUE per field, in any order, each exactly once. */
static uint8_t read_tagged(const mcpax_tool *tool, mcpax_value *args)
{
    const uint8_t all = (uint8_t)((1u << tool->argument_count) - 1u); /* a map has at most 8 arguments per tool */
    uint8_t present = 0;
    mcpax_argument argument;

    while (payload_left >= TLV_HEADER_BYTES) {
        const uint8_t field = (uint8_t)(payload[0] - 1);
        const uint8_t length = payload[1];
        payload += TLV_HEADER_BYTES;
        payload_left = (mcpax_size)(payload_left - TLV_HEADER_BYTES);
        if (field >= tool->argument_count || (present & (1u << field)) != 0) {
            return MCPAX_BAD_ARGUMENTS;
        }
        present = (uint8_t)(present | (1u << field));
        mcpax_rom_read(&argument, &mcpax_arguments[tool->first_argument + field], sizeof argument);
        uint8_t status = read_value(&argument, length, &args[field]);
        if (status != MCPAX_OK) {
            return status;
        }
    }
    return payload_left == 0 && present == all ? MCPAX_OK : MCPAX_BAD_ARGUMENTS;
}

uint8_t mcpax_read_arguments(const mcpax_tool *tool, mcpax_value *args)
{
    return tool->encoding == MCPAX_TLV ? read_tagged(tool, args) : read_in_order(tool, args);
}

/* --- Messages in -------------------------------------------------------------------------------------------------------- */

void mcpax_message_received(const uint8_t *message, mcpax_size length)
{
    const uint8_t type = message[0];
    const uint8_t tool_id = message[1];
    const uint8_t sequence = message[2];

    payload = message + HEADER_BYTES;
    payload_left = (mcpax_size)(length - HEADER_BYTES);
    if (type == MCPAX_TYPE_CALL) {
        mcpax_handle_call(tool_id, sequence);
    } else if (type == MCPAX_TYPE_HEARTBEAT && tool_id == 0 && payload_left == HEARTBEAT_PAYLOAD_BYTES) {
        mcpax_handle_heartbeat(sequence, (uint16_t)((payload[0] << 8) | payload[1]));
    }
}

/* --- Messages out ------------------------------------------------------------------------------------------------------- */

static void write_header(uint8_t type, uint8_t id, uint8_t sequence)
{
    mcpax_out_byte(type);
    mcpax_out_byte(id);
    mcpax_out_byte(sequence);
}

static void write_number(uint32_t bits, uint8_t width)
{
    if (MCPAX_BIG_ENDIAN) {
        mcpax_out_big_endian(bits, width);
    } else {
        while (width-- > 0) {
            mcpax_out_byte((uint8_t)bits);
            bits >>= 8;
        }
    }
}

static void write_fields(uint8_t encoding, uint8_t first, uint8_t count, const mcpax_value *values)
{
    mcpax_output output;

    for (uint8_t i = 0; i < count; i++) {
        const mcpax_value *value = &values[i];
        mcpax_rom_read(&output, &mcpax_outputs[first + i], sizeof output);
        mcpax_size length = is_string(output.type) ? value->string.length : width_of(output.type);

        if (encoding == MCPAX_TLV) {
            mcpax_out_byte((uint8_t)(i + 1));
            mcpax_out_byte((uint8_t)length);
        }
        if (!is_string(output.type)) {
            write_number(value->u, (uint8_t)length);
            continue;
        }
        if (length > output.max_length) {
            mcpax_out_fail();
            return;
        }
        mcpax_out_bytes(value->string.data, length);
        while (encoding == MCPAX_STRUCT && length++ < output.max_length) {
            mcpax_out_byte(0);
        }
    }
}

void mcpax_write_error(uint8_t tool_id, uint8_t sequence, uint8_t status)
{
    write_header(MCPAX_TYPE_RESPONSE, tool_id, sequence);
    mcpax_out_byte(status);
}

void mcpax_write_result(const mcpax_tool *tool, uint8_t sequence, const mcpax_value *results)
{
    mcpax_write_error(tool->id, sequence, MCPAX_OK);
    write_fields(tool->encoding, tool->first_result, tool->result_count, results);
}

void mcpax_write_heartbeat(uint8_t highest, uint16_t boot_id, uint8_t flags)
{
    write_header(MCPAX_TYPE_HEARTBEAT, 0, highest);
    mcpax_out_big_endian(boot_id, 2);
    mcpax_out_byte(flags);
    mcpax_out_byte(MCPAX_WINDOW);
    mcpax_out_big_endian(MCPAX_MAP_HASH, 4);
}

#if MCPAX_EVENT_COUNT > 0
void mcpax_write_event(const mcpax_event *event, uint8_t count, const mcpax_value *fields)
{
    write_header(MCPAX_TYPE_EVENT, event->id, count);
    write_fields(event->encoding, event->first_field, event->field_count, fields);
}
#endif

#endif
