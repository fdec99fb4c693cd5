/*
 * The subset of CBOR (RFC 8949) that a stub needs, and no more: integers up to 32 bits, booleans, binary32, definite strings, maps.
 *
 * There is one reader and it remembers a failure: after one, every read gives 0 until the next mcpax_cbor_open. So code reads in a
 * straight line and asks once.
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

/* Whole initial bytes. */
#define CBOR_FALSE 0xF4u
#define CBOR_TRUE 0xF5u
#define CBOR_BINARY32 0xFAu

void mcpax_cbor_open(const uint8_t *data, mcpax_size length);
bool mcpax_cbor_failed(void);
bool mcpax_cbor_at_end(void);

uint8_t mcpax_cbor_read_byte(void);

/* The next byte can only be this one: keys, map heads and what else is below 24 have but one form. */
void mcpax_cbor_expect(uint8_t byte);

/* Read an unsigned number up to 255. */
uint8_t mcpax_cbor_read_u8(void);

/* The number that an initial byte holds or announces, read from behind it. */
uint32_t mcpax_cbor_read_number(uint8_t initial);

/* Skip the bytes of a string whose head was read; gives where they are. */
const uint8_t *mcpax_cbor_read_string(uint32_t length);

/* Write a head in its shortest form. */
void mcpax_cbor_write_head(uint8_t major, uint32_t number);

#endif
