/*
 * What the generated header mcpax_map.h and the library share: values, rows of the tables, statuses.
 * Included by mcpax_map.h, which has defined the sizes and the profile by then.
 */
#ifndef MCPAX_TYPES_H
#define MCPAX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tables stay in flash. On AVR that is another address space, so they are read through mcpax_rom_read alone. */
#if defined(__AVR__)
#include <avr/pgmspace.h>
#define MCPAX_ROM PROGMEM
#define MCPAX_ROM_BYTE(address) pgm_read_byte(address)
#else
#define MCPAX_ROM
#define MCPAX_ROM_BYTE(address) (*(const uint8_t *)(address))
#endif

/* Length of a message or a string: 8 bits where the map's largest message allows, as an 8-bit core counts in registers. */
typedef MCPAX_SIZE_TYPE mcpax_size;

/*
 * One argument, result or event field, raw as on the wire: a scaled quantity is the integer number of its steps, an enum its number.
 * Which member counts is fixed by the field's type in the map.
 */
typedef union {
    uint32_t u; /* bool (0 or 1), u8, u16, u32 */
    int32_t i;  /* i8, i16, i32 */
    float f;    /* f32 */
    struct {
        const uint8_t *data; /* argument: valid until the handler returns; result: must stay valid after it */
        mcpax_size length;   /* bytes; there is no terminating zero */
    } string;                /* text, bytes */
} mcpax_value;

/* What a handler may return; besides, its own error codes from MCPAX_HANDLER_ERROR to 255. */
enum {
    MCPAX_OK = 0,
    MCPAX_BUSY = 4,          /* nothing was done, try again later */
    MCPAX_HANDLER_ERROR = 64 /* first own error code: it ran, and this is what went wrong */
};

/* Runs a tool. `results` starts as zeros and empty strings. */
typedef uint8_t mcpax_handler(const mcpax_value *args, mcpax_value *results);

/* Codes of the types, as in the registration (docs/wire-format.md §3). */
enum {
    MCPAX_BOOL,
    MCPAX_U8,
    MCPAX_U16,
    MCPAX_U32,
    MCPAX_I8,
    MCPAX_I16,
    MCPAX_I32,
    MCPAX_F32,
    MCPAX_TEXT,
    MCPAX_BYTES
};

/* How a Profile A payload is laid out (docs/wire-format.md §4). */
enum { MCPAX_STRUCT, MCPAX_TLV, MCPAX_RAW };

/*
 * Row of an argument. The limits are the smallest value and the distance from it to the largest, both as 32-bit patterns, so that
 * one unsigned comparison of (value - low) with span judges signed and unsigned numbers alike.
 * f32: limits of the order number, see mcpax_within. text, bytes: low is 0, span the largest length in bytes.
 */
typedef struct {
    uint32_t low;
    uint32_t span;
    uint8_t type;
} mcpax_argument;

/* Row of a result or an event field. */
typedef struct {
    mcpax_size max_length; /* text, bytes: largest length in bytes */
    uint8_t type;
} mcpax_output;

/* Row of a tool: its arguments and results are runs in the tables of all arguments and all outputs. */
typedef struct {
    mcpax_handler *handler;
    uint8_t id;
    uint8_t first_argument;
    uint8_t argument_count;
    uint8_t first_result;
    uint8_t result_count;
#if MCPAX_PROFILE_A
    uint8_t encoding;
#endif
} mcpax_tool;

/* Row of an event. */
typedef struct {
    uint8_t id;
    uint8_t first_field;
    uint8_t field_count;
#if MCPAX_PROFILE_A
    uint8_t encoding;
#endif
} mcpax_event;

#endif
