/*
 * The process around an emulated board: options, signals, and the wait for whatever comes next.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include "chip.h"

/* Run a board with this chip until it is told to end; the result is the process's. */
int process_main(int argc, char **argv, struct chip *chip);

#endif
