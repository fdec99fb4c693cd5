/*
 * What the generated header mcpax_map.h and the library share: values, rows of the tables, statuses.
 * Included by mcpax_map.h, which has defined the sizes, the profile and the types in use by then.
 */
#ifndef MCPAX_TYPES_H
#define MCPAX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Tables stay in flash. Where that is another address space, a row is copied before it is used; elsewhere it is used where it is.
 * MCPAX_ROW_OF declares what MCPAX_TAKE_ROW fills, and MCPAX_ROW is the row then.
 */
#if defined(__AVR__)
#include <avr/pgmspace.h>
#define MCPAX_ROM PROGMEM
#define MCPAX_ROM_BYTE(address) pgm_read_byte(address)
#define MCPAX_ROW_OF(type) type
#define MCPAX_TAKE_ROW(to, address) memcpy_P(&(to), address, sizeof(to))
#define MCPAX_ROW(taken) (taken)
#define MCPAX_ROM_NUMBER(address) (sizeof(*(address)) == 2 ? pgm_read_word(address) : pgm_read_dword(address))
#else
#define MCPAX_ROM
#define MCPAX_ROM_BYTE(address) (*(address))
#define MCPAX_ROW_OF(type) const type MCPAX_IN_ROM *
#define MCPAX_TAKE_ROW(to, address) ((to) = (address))
#define MCPAX_ROW(taken) (*(taken))
#define MCPAX_ROM_NUMBER(address) (*(address))
#endif

/*
 * What a pointer points into, where that matters: on the 8051 an address in RAM has one byte and one in flash two, but a pointer that may be
 * either has three, and each access through it is a function call.
 */
#if defined(__SDCC_mcs51)
#define MCPAX_IN_RAM __idata
#define MCPAX_IN_ROM __code
#else
#define MCPAX_IN_RAM
#define MCPAX_IN_ROM
#endif

/* Codes of the types, as in the registration (docs/wire-format.md §3). */
#define MCPAX_BOOL 0
#define MCPAX_U8 1
#define MCPAX_U16 2
#define MCPAX_U32 3
#define MCPAX_I8 4
#define MCPAX_I16 5
#define MCPAX_I32 6
#define MCPAX_F32 7
#define MCPAX_TEXT 8
#define MCPAX_BYTES 9

/* Is any of these types, from one code to another, among those that the map's arguments, or results and event fields, have? */
#define MCPAX_TYPES(first, last) ((2u << (last)) - (1u << (first)))
#define MCPAX_ARGUMENTS_HAVE(first, last) ((MCPAX_ARGUMENT_TYPES & MCPAX_TYPES(first, last)) != 0)
#define MCPAX_OUTPUTS_HAVE(first, last) ((MCPAX_OUTPUT_TYPES & MCPAX_TYPES(first, last)) != 0)

/* Profile A has so little code that leaving strings out of it is not worth the trouble. */
#define MCPAX_HAS_STRINGS (MCPAX_USES_STRINGS || MCPAX_PROFILE_A)

/* Profile B tells integers of all widths alike: where there is nothing else, it is enough to know which of them are signed. */
#define MCPAX_HAS_OUTPUT_ROWS (MCPAX_PROFILE_A || MCPAX_OUTPUTS_HAVE(MCPAX_F32, MCPAX_BYTES) || MCPAX_OUTPUTS_HAVE(MCPAX_BOOL, MCPAX_BOOL))

/* Length of a message or a string: 8 bits where the map's largest message allows, as an 8-bit core counts in registers. */
typedef MCPAX_SIZE_TYPE mcpax_size;

/* Numbers as wide as the widest field of the map, 16 or 32 bits: what no field needs costs neither code nor RAM. */
typedef MCPAX_UNSIGNED_TYPE mcpax_unsigned;
typedef MCPAX_SIGNED_TYPE mcpax_signed;

/*
 * One argument, result or event field, raw as on the wire: a scaled quantity is the integer number of its steps, an enum its number.
 * Which member counts is fixed by the field's type in the map.
 */
union mcpax_any_value {
    mcpax_unsigned u; /* bool (0 or 1), u8, u16, u32 */
    mcpax_signed i;   /* i8, i16, i32 */
#if MCPAX_USES_F32
    float f; /* f32 */
#endif
#if MCPAX_HAS_STRINGS
    struct {
        const uint8_t MCPAX_IN_RAM *data; /* argument: valid until the handler returns; result: must stay valid after it */
        mcpax_size length;                /* bytes; there is no terminating zero */
    } string;                             /* text, bytes */
#endif
};
typedef MCPAX_IN_RAM union mcpax_any_value mcpax_value;

/* What a handler may return; besides, its own error codes from MCPAX_HANDLER_ERROR to 255. */
enum {
    MCPAX_OK = 0,
    MCPAX_BUSY = 4,          /* nothing was done, try again later */
    MCPAX_HANDLER_ERROR = 64 /* first own error code: it ran, and this is what went wrong */
};

/* Runs a tool. `results` starts as zeros and empty strings. */
typedef uint8_t mcpax_handler(const mcpax_value *args, mcpax_value *results);

/* How a Profile A payload is laid out (docs/wire-format.md §4). */
enum { MCPAX_STRUCT, MCPAX_TLV, MCPAX_RAW };

/*
 * Row of an argument. The limits are the smallest value and the distance from it to the largest, both as bit patterns, so that
 * one unsigned comparison of (value - low) with span judges signed and unsigned numbers alike.
 * f32: limits of the order number, see mcpax_within. text, bytes: low is 0, span the largest length in bytes.
 */
typedef struct {
    mcpax_unsigned low;
    mcpax_unsigned span;
    uint8_t type;
} mcpax_argument;

/* Row of a result or an event field. */
typedef struct {
#if MCPAX_HAS_STRINGS
    mcpax_size max_length; /* text, bytes: largest length in bytes */
#endif
    uint8_t type;
} mcpax_output;

/* How the values of a tool or an event are told: a row for each, or, where they are all integers, a bit for each that is signed. */
#if MCPAX_HAS_OUTPUT_ROWS
typedef const mcpax_output MCPAX_IN_ROM *mcpax_kinds;
extern const mcpax_output mcpax_outputs[];
#else
typedef uint8_t mcpax_kinds;
#endif

/* Row of a tool: where its arguments begin in the table of all arguments, how its results are told, and how many there are. */
typedef struct {
    mcpax_handler *handler;
    const mcpax_argument MCPAX_IN_ROM *arguments;
    mcpax_kinds results;
    uint8_t id;
    uint8_t argument_count;
    uint8_t result_count;
#if MCPAX_PROFILE_A
    uint8_t encoding;
#endif
} mcpax_tool;

/* Declared before the generated header defines them, because SDCC takes no declaration after that. */
extern const mcpax_argument mcpax_arguments[];
extern const mcpax_tool mcpax_tools[];

#endif
