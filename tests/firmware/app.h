/* The application of the test maps, and what the tests see of it. */
#ifndef TEST_APP_H
#define TEST_APP_H

#include "mcpax.h"

extern volatile unsigned long handler_runs; /* so that an image keeps it, though only the test reads it */

/* Called at the end of every handler, with the arguments it ran with. */
extern void (*handler_watch)(uint8_t tool_id, const mcpax_value *args);

void app_start(void);

#endif
