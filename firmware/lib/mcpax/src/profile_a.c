/* Profile A messages: TYPE TOOL_ID SEQ PAYLOAD (docs/wire-format.md §2.1, §4). */
#include "internal.h"

#if MCPAX_PROFILE_A

#define HEADER_BYTES 3u
#define TLV_HEADER_BYTES 2u
#define HEARTBEAT_PAYLOAD_BYTES 2u

/* What is left of the payload at hand. */
static mcpax_size payload_left(void)
{
    return (mcpax_size)(mcpax.in_end - mcpax.in);
}

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

static mcpax_unsigned number(const uint8_t MCPAX_IN_RAM *data, uint8_t type)
{
    const uint8_t width = width_of(type);
    mcpax_unsigned bits = 0;

    for (uint8_t i = 0; i < width; i++) {
        bits = (mcpax_unsigned)(bits << 8) | data[MCPAX_BIG_ENDIAN ? i : width - 1 - i];
    }
    if (type == MCPAX_I8) {
        bits = (mcpax_unsigned)(mcpax_signed)(int8_t)bits;
    } else if (type == MCPAX_I16) {
        bits = (mcpax_unsigned)(mcpax_signed)(int16_t)bits;
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

/* Take the next `length` bytes of the payload as the value of mcpax.argument. */
static uint8_t read_value(mcpax_size length, mcpax_value *value)
{
    const uint8_t MCPAX_IN_RAM *data = mcpax.in;
    const uint8_t type = MCPAX_ROM_BYTE(&mcpax.argument->type);

    if (length > payload_left()) {
        return MCPAX_BAD_ARGUMENTS;
    }
    mcpax.in += length;

    if (is_string(type)) {
        value->string.data = data;
        value->string.length = length;
        return length <= (mcpax_unsigned)MCPAX_ROM_NUMBER(&mcpax.argument->span) ? MCPAX_OK : MCPAX_BAD_ARGUMENTS;
    }
    if (length != width_of(type)) {
        return MCPAX_BAD_ARGUMENTS;
    }
    value->u = number(data, type);
    return mcpax_within(value->u) ? MCPAX_OK : MCPAX_OUT_OF_RANGE;
}

/* One field after the other at fixed width; or the one field of a raw payload, which is all of it. */
static uint8_t read_in_order(void)
{
    const uint8_t encoding = MCPAX_ROW(mcpax.tool).encoding;

    for (uint8_t i = 0; i < MCPAX_ROW(mcpax.tool).argument_count; i++) {
        mcpax.argument = &MCPAX_ROW(mcpax.tool).arguments[i];
        const uint8_t type = MCPAX_ROM_BYTE(&mcpax.argument->type);
        mcpax_size length = width_of(type);
        if (encoding == MCPAX_RAW) {
            length = payload_left();
        } else if (is_string(type)) {
            length = (mcpax_size)(mcpax_unsigned)MCPAX_ROM_NUMBER(&mcpax.argument->span);
        }
        const uint8_t status = read_value(length, &mcpax.args[i]);
        if (status != MCPAX_OK) {
            return status;
        }
        if (encoding == MCPAX_STRUCT && type == MCPAX_TEXT && !unpad(&mcpax.args[i])) {
            return MCPAX_BAD_ARGUMENTS;
        }
    }
    return payload_left() == 0 ? MCPAX_OK : MCPAX_BAD_ARGUMENTS;
}

/* TAG LEN VALUE per field, in any order, each exactly once. */
static uint8_t read_tagged(void)
{
    const uint8_t count = MCPAX_ROW(mcpax.tool).argument_count;
    const uint8_t all = (uint8_t)((1u << count) - 1u); /* a map has at most 8 arguments per tool */
    uint8_t present = 0;

    while (payload_left() >= TLV_HEADER_BYTES) {
        const uint8_t field = (uint8_t)(mcpax.in[0] - 1);
        const uint8_t length = mcpax.in[1];
        mcpax.in += TLV_HEADER_BYTES;
        if (field >= count || (present & (1u << field)) != 0) {
            return MCPAX_BAD_ARGUMENTS;
        }
        present = (uint8_t)(present | (1u << field));
        mcpax.argument = &MCPAX_ROW(mcpax.tool).arguments[field];
        const uint8_t status = read_value(length, &mcpax.args[field]);
        if (status != MCPAX_OK) {
            return status;
        }
    }
    return payload_left() == 0 && present == all ? MCPAX_OK : MCPAX_BAD_ARGUMENTS;
}

void mcpax_read_arguments(void)
{
    mcpax.status = MCPAX_ROW(mcpax.tool).encoding == MCPAX_TLV ? read_tagged() : read_in_order();
}

/* --- Messages in -------------------------------------------------------------------------------------------------------- */

void mcpax_message_received(void)
{
    const uint8_t MCPAX_IN_RAM *message = mcpax.in;
    const uint8_t type = message[0];

    mcpax.tool_id = message[1];
    mcpax.sequence = message[2];
    mcpax.in += HEADER_BYTES;
    if (type == MCPAX_TYPE_CALL) {
        mcpax.heard = true;
        mcpax_handle_call();
    } else if (type == MCPAX_TYPE_HEARTBEAT && mcpax.tool_id == 0 && payload_left() == HEARTBEAT_PAYLOAD_BYTES) {
        mcpax.heard = true;
        mcpax.believed_boot_id = (uint16_t)((mcpax.in[0] << 8) | mcpax.in[1]);
        mcpax_handle_heartbeat();
    }
}

/* --- Messages out ------------------------------------------------------------------------------------------------------- */

static void write_header(uint8_t type, uint8_t id, uint8_t sequence)
{
    mcpax_out_byte(type);
    mcpax_out_byte(id);
    mcpax_out_byte(sequence);
}

static void write_number(mcpax_unsigned bits, uint8_t width)
{
#if MCPAX_BIG_ENDIAN
    while (width-- > 0) {
        mcpax_out_byte((uint8_t)(bits >> (8 * width)));
    }
#else
    for (; width > 0; width--) {
        mcpax_out_byte((uint8_t)bits);
        bits >>= 8;
    }
#endif
}

static void write_string(uint8_t encoding, const mcpax_value *value)
{
    const mcpax_size room = MCPAX_ROW(mcpax.output).max_length;
    mcpax_size length = value->string.length;

    if (length > room) {
        mcpax.failed = true;
        return;
    }
    for (mcpax_size i = 0; i < length; i++) {
        mcpax_out_byte(value->string.data[i]);
    }
    while (encoding == MCPAX_STRUCT && length++ < room) {
        mcpax_out_byte(0);
    }
}

static void write_fields(uint8_t encoding, mcpax_kinds row, uint8_t count, const mcpax_value *values)
{
    for (uint8_t i = 0; i < count; i++) {
        const mcpax_value *value = &values[i];
        MCPAX_TAKE_ROW(mcpax.output, row++);
        const uint8_t type = MCPAX_ROW(mcpax.output).type;

        if (encoding == MCPAX_TLV) {
            mcpax_out_byte((uint8_t)(i + 1));
            mcpax_out_byte((uint8_t)(is_string(type) ? value->string.length : width_of(type)));
        }
        if (is_string(type)) {
            write_string(encoding, value);
        } else {
            write_number(value->u, width_of(type));
        }
    }
}

void mcpax_write_error(void)
{
    write_header(MCPAX_TYPE_RESPONSE, mcpax.tool_id, mcpax.sequence);
    mcpax_out_byte(mcpax.status);
}

void mcpax_write_result(void)
{
    mcpax_write_error();
    write_fields(MCPAX_ROW(mcpax.tool).encoding, MCPAX_ROW(mcpax.tool).results, MCPAX_ROW(mcpax.tool).result_count, mcpax.results);
}

void mcpax_write_heartbeat(void)
{
    static const uint8_t window_and_map_hash[] MCPAX_ROM = {MCPAX_WINDOW, MCPAX_MAP_HASH_BYTES};

    write_header(MCPAX_TYPE_HEARTBEAT, 0, mcpax.highest);
    mcpax_out_byte((uint8_t)(mcpax.boot_id >> 8));
    mcpax_out_byte((uint8_t)mcpax.boot_id);
    mcpax_out_byte(mcpax.flags);
    for (uint8_t i = 0; i < sizeof window_and_map_hash; i++) { /* NOLINT(bugprone-too-small-loop-variable): 5 */
        mcpax_out_byte(MCPAX_ROM_BYTE(&window_and_map_hash[i]));
    }
}

#if MCPAX_EVENT_COUNT > 0
void mcpax_write_event(uint8_t event_id, uint8_t field_count, mcpax_kinds kinds, uint8_t encoding, const mcpax_value *fields)
{
    write_header(MCPAX_TYPE_EVENT, event_id, mcpax.events_sent);
    write_fields(encoding, kinds, field_count, fields);
}
#endif

#endif
