/*
 * What an example application and the program around it say to each other: main.c of the chips (firmware/ports) and of the virtual boards
 * (firmware/virtual) alike.
 */
#ifndef APP_H
#define APP_H

#define APP_TICK_MS 25

/*
 * For functions that main calls: not to be put into it, because what they need on the stack would be there as long as it runs, which is for
 * ever. On the other cores the compiler does better by itself.
 */
#if defined(__arm__)
#define APART __attribute__((noinline))
#else
#define APART
#endif

/* APP_TICK_MS have passed. */
APART void app_tick(void);

/* Something happened to the board in the physical world: a press, heat, a blockage. On a chip, the board's button stands for it. */
APART void app_physical_event(void);

#endif
