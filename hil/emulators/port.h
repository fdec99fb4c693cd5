/*
 * The board's serial port as the host sees it: a pseudo terminal under a name that comes and goes with the board's power. It knows who
 * has it open, because bytes for nobody are lost, and because opening it resets some boards.
 */
#ifndef PORT_H
#define PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORT_PATH_MAX 64

struct port {
    const char *link;          /* the name, or NULL */
    int terminal;              /* the board's side, -1 when unplugged */
    int events;                /* readable when the host has opened or closed it, -1 when unplugged */
    char path[PORT_PATH_MAX];
    int kept_open;             /* the host's side, kept open so that the host may close and come again */
    unsigned openings;         /* by the host, still open */
};

/* False and errno if that fails. */
bool port_plug(struct port *port);

/* The name goes first, then, once the host has read what it got, the terminal hangs up. */
void port_unplug(struct port *port);

/* Take note of openings and closings; true if the port was closed and is open now. */
bool port_opened(struct port *port);

/* Never wait: less may be read or written than asked for. */
size_t port_read(struct port *port, uint8_t *bytes, size_t size);
void port_write(struct port *port, uint8_t byte);

#endif
