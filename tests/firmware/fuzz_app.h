/* What the fuzzing harness (fuzz_stub.c) and the application under it (fuzz_vectors.c, fuzz_example.c) say to each other. */
#ifndef FUZZ_APP_H
#define FUZZ_APP_H

#include <stdio.h>
#include <stdlib.h>

#include "mcpax.h"

#define MUST(condition)                                                                                                                    \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "invariant broken, %s line %d: %s\n", __FILE__, __LINE__, #condition);                                         \
            abort();                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

/* --- What an application provides -------------------------------------------------------------------------------------- */

/* The board boots. */
void fuzz_app_start(void);

/* Something happens: of that kind, with that data. */
void fuzz_app_happen(uint8_t kind, const uint8_t *data, size_t length);

/* --- What the harness provides ------------------------------------------------------------------------------------------ */

/* A handler has run; checks that it might. */
void fuzz_handler_ran(void);

#endif
