/*
 * The subset of CBOR (RFC 8949) that a stub needs, and no more: integers up to 32 bits, booleans, binary32, definite strings, maps.
 *
 * Reading looks at no limits: code reads in a straight line and asks at the end whether everything was as expected (mcpax.wrong) and
 * just used up (mcpax.in). What stands behind a message that is too short may be read by that, but nothing behind the buffer: it has room
 * for every item in its widest form.
 */
#ifndef MCPAX_CBOR_H
#define MCPAX_CBOR_H

#include "internal.h"

/* Major types, in the place they have in the initial byte. */
#define CBOR_UNSIGNED 0x00u
#define CBOR_NEGATIVE 0x20u
#define CBOR_BYTES 0x40u
#define CBOR_TEXT 0x60u
#define CBOR_MAP 0xA0u
#define CBOR_MAJOR_MASK 0xE0u

/* Low five bits of an initial byte: a number below 24 itself, else how many bytes it has. */
#define CBOR_INFO_MASK 0x1Fu
#define CBOR_INFO_1_BYTE 24u
#define CBOR_INFO_2_BYTES 25u
#define CBOR_INFO_4_BYTES 26u

/* Whole initial bytes. */
#define CBOR_FALSE 0xF4u
#define CBOR_TRUE 0xF5u
#define CBOR_BINARY32 0xFAu

/* The next byte can only be this one: keys, map heads and what else is below 24 have but one form. */
void mcpax_cbor_expect(uint8_t byte);

/* Read the head of an item: the number that its initial byte, then mcpax.initial, holds or announces. */
mcpax_unsigned mcpax_cbor_read_head(void);

/* Write a head in its shortest form. */
void mcpax_cbor_write_head(uint8_t major, mcpax_unsigned number);

#endif
