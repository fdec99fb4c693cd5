/*
 * An emulated board: a chip with power, a reset button, a port, perhaps a bootloader, and the pace of its time. It knows nothing of who
 * operates it.
 */
#ifndef BOARD_H
#define BOARD_H

#include "chip.h"
#include "port.h"

/* Link: the name of its port. Seed: of the noise in RAM. Unpaced: emulated time may run ahead of real time. */
void board_assemble(struct chip *chip, const char *link, uint32_t seed, bool unpaced);

bool board_powered(void);
bool board_power_on(void);               /* false and errno if the port cannot be made */
void board_power_off(void);
void board_reset(void);
void board_cut_after(uint64_t bytes);    /* have left the chip, power goes off */
void board_set_bootloader(bool on);

/* Its port, to be waited on: unplugged, it has no descriptors. Full: what comes must wait. */
struct port *board_port(void);
bool board_full(void);

/* When it must be looked after next if nothing comes from outside; NEVER_NS if then. */
int64_t board_due_ns(void);

/* Let it live up to now; then let in what has come from outside. */
void board_run(void);
void board_port_event(void);             /* someone opened or closed it */
void board_receive(void);                /* bytes have come */

#endif
