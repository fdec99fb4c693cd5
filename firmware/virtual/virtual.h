/*
 * What the virtual board (main.c) and its application (one of app_*.c) say to each other. The application is what a user would write
 * for a real board; the world around it is simulated.
 */
#ifndef VIRTUAL_H
#define VIRTUAL_H

#include <stdint.h>

#define VIRTUAL_TICK_MS 100

/* --- What an application provides ------------------------------------------------------------------------------------ */

/* Power on or reset: everything as it leaves the factory. */
void app_start(void);

/* VIRTUAL_TICK_MS have passed. */
void app_tick(void);

/* Something happened to the board in the physical world: a press, heat, a blockage. */
void app_physical_event(void);

/* --- What the board provides ----------------------------------------------------------------------------------------- */

/* Milliseconds since power on or reset. */
uint64_t virtual_uptime_ms(void);

/* Evenly distributed from 0 to bound - 1; --seed says where the series begins. */
uint32_t virtual_random(uint32_t bound);

/* What --label said, empty if nothing. */
const char *virtual_label(void);

#endif
