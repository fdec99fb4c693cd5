/* What main.c, which starts a virtual board, and the board itself (board.c) say to each other. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

typedef struct {
    int terminal;     /* the line to the host: the controlling side of a pseudo terminal, non-blocking */
    int signals;      /* the board's hardware, see main.c: a signalfd, non-blocking */
    int64_t byte_ns;  /* time of a byte on the line, 0 if unpaced */
    uint16_t boot_id; /* differs from that of the boot before */
    uint16_t number;  /* of the board */
    uint32_t seed;    /* of the simulated world's noise, not 0 */
} board_setup;

/* From boot to the signal that ends it, which is what it gives. Once in a process: it counts on RAM that is clear. */
uint32_t board_run(const board_setup *setup);

#endif
