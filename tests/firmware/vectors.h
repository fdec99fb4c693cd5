/* Reading tests/vectors/wire.txt, and comparing bytes with a clear word when they differ. */
#ifndef VECTORS_H
#define VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_FIELDS_MAX 6
#define BYTES_MAX 4096

typedef struct {
    unsigned line;
    unsigned count;
    char *field[VECTOR_FIELDS_MAX];
} vector;

typedef struct {
    uint8_t byte[BYTES_MAX];
    size_t length;
} bytes;

/* Open the file; ends the program if that fails. */
void vectors_open(const char *path);

/* The next vector that has at least two fields; false at the end. */
bool vectors_next(vector *next);

bool is(const char *field, const char *text);
unsigned long number(const char *field);

/* Append the bytes of a hexadecimal field, blanks ignored; "-" is none. */
void append_hex(bytes *to, const char *hex);
void append(bytes *to, uint8_t byte);

/* Each of these counts one check, and says what is wrong if it fails. */
void expect_bytes(const vector *where, const char *what, const bytes *expected, const bytes *got);
void expect_number(const vector *where, const char *what, unsigned long expected, unsigned long got);

/* The summary; gives the exit status. Nothing checked is a failure. */
int vectors_end(const char *program);

#endif
