#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATOR " | "
#define LINE_MAX_CHARS 16384

static FILE *file;
static char line[LINE_MAX_CHARS];
static unsigned line_number;
static unsigned checks;
static unsigned failures;

void vectors_open(const char *path)
{
    file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

bool vectors_next(vector *next)
{
    while (fgets(line, sizeof line, file) != NULL) {
        line_number++;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0') {
            continue;
        }
        memset(next, 0, sizeof *next);
        next->line = line_number;
        for (char *start = line; start != NULL && next->count < VECTOR_FIELDS_MAX;) {
            char *end = strstr(start, SEPARATOR);
            if (end != NULL) {
                *end = '\0';
                end += strlen(SEPARATOR);
            }
            next->field[next->count++] = start;
            start = end;
        }
        if (next->count >= 2) {
            return true;
        }
    }
    fclose(file);
    return false;
}

bool is(const char *field, const char *text)
{
    return strcmp(field, text) == 0;
}

unsigned long number(const char *field)
{
    return strtoul(field, NULL, 10);
}

void append(bytes *to, uint8_t byte)
{
    if (to->length == BYTES_MAX) {
        fprintf(stderr, "line %u: more than %d bytes\n", line_number, BYTES_MAX);
        exit(EXIT_FAILURE);
    }
    to->byte[to->length++] = byte;
}

void append_hex(bytes *to, const char *hex)
{
    if (is(hex, "-")) {
        return;
    }
    for (; *hex != '\0'; hex += *hex == ' ' ? 1 : 2) {
        if (*hex != ' ') {
            unsigned byte;
            if (sscanf(hex, "%2x", &byte) != 1) {
                fprintf(stderr, "line %u: not hexadecimal: %s\n", line_number, hex);
                exit(EXIT_FAILURE);
            }
            append(to, (uint8_t)byte);
        }
    }
}

static void tell(const vector *where, const char *what)
{
    failures++;
    fprintf(stderr, "FAIL");
    if (where != NULL) {
        fprintf(stderr, " wire.txt:%u", where->line);
        for (unsigned i = 0; i < where->count && i < 4; i++) {
            fprintf(stderr, " | %.60s", where->field[i]);
        }
    }
    fprintf(stderr, "\n  %s\n", what);
}

static void print_hex(const char *title, const bytes *data)
{
    fprintf(stderr, "    %-8s ", title);
    for (size_t i = 0; i < data->length; i++) {
        fprintf(stderr, "%02x", data->byte[i]);
    }
    fprintf(stderr, "%s\n", data->length == 0 ? "nothing" : "");
}

void expect_bytes(const vector *where, const char *what, const bytes *expected, const bytes *got)
{
    checks++;
    if (expected->length != got->length || memcmp(expected->byte, got->byte, got->length) != 0) {
        tell(where, what);
        print_hex("expected", expected);
        print_hex("got", got);
    }
}

void expect_number(const vector *where, const char *what, unsigned long expected, unsigned long got)
{
    checks++;
    if (expected != got) {
        tell(where, what);
        fprintf(stderr, "    expected %lu\n    got      %lu\n", expected, got);
    }
}

int vectors_end(const char *program)
{
    printf("%s: %u checks, %u failed\n", program, checks, failures);
    return checks > 0 && failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
