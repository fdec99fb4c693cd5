/* RAM of a debug build: how much the firmware takes, and how deep its stack has been. The tool read_memory tells it. */
#ifndef MEMORY_H
#define MEMORY_H

/* Call once, before the stack has been deep: from here on its traces are kept. Overwrites all RAM that nothing has used yet. */
void memory_watch(void);

#endif
