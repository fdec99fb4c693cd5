/*
 * A chip's peer: the same library, map and application on this machine, under the sanitizers. A test gives it what it gives the chip, and
 * both must send the same bytes. One process is one boot. Usage: peer BOOT_ID, then on stdin a line for each thing that happens:
 *
 *     receive HEX     bytes from the gateway, then a tick
 *     silence
 *     press
 *     tick COUNT
 *
 * Each, and the boot, is answered by a line: what was sent in hexadecimal or "-", how many received bytes wait for more, and 1 if a pin
 * was switched on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "internal.h"
#include "pins.h"

#define LINE_MAX_CHARS 8192

bool pins_moved;
static bool has_sent;

void mcpax_port_put(uint8_t byte)
{
    printf("%02x", byte);
    has_sent = true;
}

static void tell(void)
{
    printf("%s %u %d\n", has_sent ? "" : "-", (unsigned)mcpax.filled, pins_moved);
    fflush(stdout);
    has_sent = false;
    pins_moved = false;
}

static void receive(const char *hex)
{
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
        mcpax_receive((uint8_t)byte);
    }
    app_tick();
}

static void tick(unsigned long count)
{
    while (count-- > 0) {
        app_tick();
    }
}

static void happen(char *what)
{
    char *const detail = what + strcspn(what, " ");

    if (strncmp(what, "receive ", strlen("receive ")) == 0) {
        receive(detail + 1);
    } else if (strncmp(what, "tick ", strlen("tick ")) == 0) {
        tick(strtoul(detail, NULL, 10));
    } else if (strcmp(what, "silence") == 0) {
        mcpax_silence();
    } else if (strcmp(what, "press") == 0) {
        app_physical_event();
    } else {
        fprintf(stderr, "peer: '%s' is nothing that can happen; see the top of peer.c\n", what);
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv)
{
    static char line[LINE_MAX_CHARS];

    if (argc != 2) {
        fprintf(stderr, "usage: peer BOOT_ID\n");
        return EXIT_FAILURE;
    }
    mcpax_start((uint16_t)strtoul(argv[1], NULL, 10));
    tell();
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        happen(line);
        tell();
    }
    return EXIT_SUCCESS;
}
