#define _GNU_SOURCE
#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* For the host to read the last bytes, as hanging up discards them. The kernel needs a moment to show what is unread. */
#define LINGER_MIN_MS 10
#define LINGER_MAX_MS 100

static bool make_link(const struct port *port)
{
    char temporary[PATH_MAX];
    const int length = snprintf(temporary, sizeof temporary, "%s.%ld", port->link, (long)getpid());
    if (length >= (int)sizeof temporary) {
        errno = ENAMETOOLONG;
        return false;
    }
    unlink(temporary); /* left by a process of the same number that was killed just here */
    return symlink(port->path, temporary) == 0 && rename(temporary, port->link) == 0;
}

/* Unless another board has taken the name over. */
static void remove_link(const struct port *port)
{
    char target[PORT_PATH_MAX];
    const ssize_t length = readlink(port->link, target, sizeof target);
    if (length == (ssize_t)strlen(port->path) && memcmp(target, port->path, (size_t)length) == 0) {
        unlink(port->link);
    }
}

bool port_plug(struct port *port)
{
    struct termios raw;

    port->openings = 0;
    if (openpty(&port->terminal, &port->kept_open, port->path, NULL, NULL) != 0 || tcgetattr(port->kept_open, &raw) != 0) {
        return false;
    }
    cfmakeraw(&raw);
    port->events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    return tcsetattr(port->kept_open, TCSANOW, &raw) == 0 && fcntl(port->terminal, F_SETFL, O_NONBLOCK) == 0 && port->events >= 0 &&
           inotify_add_watch(port->events, port->path, IN_OPEN | IN_CLOSE) >= 0 && (port->link == NULL || make_link(port));
}

static int unread(const struct port *port)
{
    int count = 0;
    return ioctl(port->kept_open, FIONREAD, &count) == 0 ? count : 0;
}

void port_unplug(struct port *port)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};

    if (port->link != NULL) {
        remove_link(port);
    }
    port_opened(port);
    for (int waited = 0; port->openings > 0 && waited < (unread(port) > 0 ? LINGER_MAX_MS : LINGER_MIN_MS); waited++) {
        nanosleep(&millisecond, NULL);
    }
    close(port->kept_open);
    close(port->terminal);
    close(port->events);
    port->terminal = -1;
    port->events = -1;
}

bool port_opened(struct port *port)
{
    union { /* aligned for the events in it; one watch on a file itself carries no names */
        struct inotify_event first;
        /* cppcheck-suppress unusedStructMember ; it makes room */
        char bytes[64 * sizeof(struct inotify_event)];
    } buffer;
    bool opened = false;

    for (ssize_t length; (length = read(port->events, &buffer, sizeof buffer)) > 0;) {
        const struct inotify_event *const events = &buffer.first;
        for (size_t i = 0; i < (size_t)length / sizeof *events; i++) {
            if (events[i].mask & IN_OPEN) {
                opened = opened || port->openings == 0;
                port->openings++;
            } else if (port->openings > 0 && --port->openings == 0) {
                tcflush(port->kept_open, TCIFLUSH); /* what nobody has read is not for whoever comes next */
            }
        }
    }
    return opened && port->openings > 0;
}

size_t port_read(struct port *port, uint8_t *bytes, size_t size)
{
    const ssize_t got = read(port->terminal, bytes, size);
    return got > 0 ? (size_t)got : 0;
}

void port_write(struct port *port, uint8_t byte)
{
    if (port->openings > 0 && write(port->terminal, &byte, 1) != 1) {
        return; /* the host does not read: lost, as on a real line */
    }
}
