/* The application of the test maps, and what the tests see of it. */
#ifndef APP_H
#define APP_H

#include "mcpax.h"

extern unsigned long handler_runs;

/* Called at the end of every handler, with the arguments it ran with. */
extern void (*handler_watch)(uint8_t tool_id, const mcpax_value *args);

void app_start(void);

#endif
