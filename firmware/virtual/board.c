/*
 * The virtual board itself, from boot to reset: the firmware library and an example on a pseudo terminal, with a UART's timing if asked for.
 * What runs here is the same code as on a chip; this file is its port and its main loop. Knows nothing of names, links or resets.
 */
#define _GNU_SOURCE
#include "board.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "mcpax.h"
#include "pins.h"

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define TICK_NS (APP_TICK_MS * NS_PER_MS)
#define SILENCE_BYTES 20 /* docs/wire-format.md §1.1 */
#define SILENCE_MIN_NS (20 * NS_PER_MS)
#define RECEIVE_QUEUE 512
#define TRANSMIT_QUEUE 4096
#define TRANSMIT_FIFO 16 /* bytes that reach the host at once, as from the FIFO of its UART */
#define NEVER INT64_MAX

static board_setup board;

static struct {
    uint8_t byte[RECEIVE_QUEUE];
    int64_t arrives_ns[RECEIVE_QUEUE];
    size_t first;
    size_t count;
    int64_t last_arrival_ns; /* when the line becomes free */
    int64_t silent_at_ns;    /* when the stub is to be told of silence */
} received = {.silent_at_ns = NEVER};

static struct {
    uint8_t byte[TRANSMIT_QUEUE];
    size_t count;
    size_t chunk;    /* bytes of it that are on the line */
    int64_t sent_ns; /* when they are through */
    bool host_full;  /* the host does not read: wait until it does */
} transmit;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- What the application sees of the board ------------------------------------------------------------------------------ */

uint16_t board_number(void)
{
    return board.number;
}

uint32_t board_random(uint32_t bound)
{
    /* xorshift32: small and reproducible; nothing here needs more. */
    board.seed ^= board.seed << 13;
    board.seed ^= board.seed >> 17;
    board.seed ^= board.seed << 5;
    return board.seed % bound;
}

/* --- The line from the host ----------------------------------------------------------------------------------------------- */

/* Take what the host has written, as far as there is room, and note when each byte will have arrived. */
static void take_from_host(void)
{
    uint8_t bytes[RECEIVE_QUEUE];
    const ssize_t got = read(board.terminal, bytes, RECEIVE_QUEUE - received.count);
    const int64_t now = now_ns();

    for (ssize_t i = 0; i < got; i++) {
        const size_t slot = (received.first + received.count++) % RECEIVE_QUEUE;
        received.last_arrival_ns = later(received.last_arrival_ns, now) + board.byte_ns;
        received.byte[slot] = bytes[i];
        received.arrives_ns[slot] = received.last_arrival_ns;
    }
}

static int64_t next_arrival_ns(void)
{
    return received.count > 0 ? received.arrives_ns[received.first] : NEVER;
}

/* Give the stub the bytes that have arrived by now. */
static void deliver_to_stub(void)
{
    while (next_arrival_ns() <= now_ns()) {
        const uint8_t byte = received.byte[received.first];
        const int64_t arrived_ns = received.arrives_ns[received.first];
        received.first = (received.first + 1) % RECEIVE_QUEUE;
        received.count--;
        received.silent_at_ns = arrived_ns + later(SILENCE_BYTES * board.byte_ns, SILENCE_MIN_NS);
        mcpax_receive(byte);
    }
    if (received.silent_at_ns <= now_ns() && received.count == 0) {
        received.silent_at_ns = NEVER;
        mcpax_silence();
    }
}

/* --- The line to the host --------------------------------------------------------------------------------------------------- */

/* The stub never waits: when nobody reads for long, bytes are lost, as on a real line. */
void mcpax_port_put(uint8_t byte)
{
    if (transmit.count < TRANSMIT_QUEUE) {
        transmit.byte[transmit.count++] = byte;
    }
}

/* Put the next bytes on the line if it is free. */
static void start_transmission(void)
{
    if (transmit.chunk == 0 && transmit.count > 0) {
        transmit.chunk = transmit.count;
        if (board.byte_ns > 0 && transmit.chunk > TRANSMIT_FIFO) {
            transmit.chunk = TRANSMIT_FIFO;
        }
        transmit.sent_ns = later(transmit.sent_ns, now_ns()) + (int64_t)transmit.chunk * board.byte_ns;
    }
}

static int64_t next_sent_ns(void)
{
    return transmit.chunk > 0 && !transmit.host_full ? transmit.sent_ns : NEVER;
}

/* Hand the bytes that are through to the host. */
static void deliver_to_host(void)
{
    start_transmission();
    while (next_sent_ns() <= now_ns()) {
        const ssize_t written = write(board.terminal, transmit.byte, transmit.chunk);
        if (written > 0) {
            transmit.count -= (size_t)written;
            transmit.chunk -= (size_t)written;
            memmove(transmit.byte, transmit.byte + written, transmit.count);
        }
        transmit.host_full = transmit.chunk > 0;
        start_transmission();
    }
}

/* --- Main loop ---------------------------------------------------------------------------------------------------------------- */

/* Heed the signals that have come: gives the one that ends this boot, or 0. */
static uint32_t handle_signals(void)
{
    struct signalfd_siginfo signal;
    while (read(board.signals, &signal, sizeof signal) == sizeof signal) {
        if (signal.ssi_signo != SIGUSR2) {
            return signal.ssi_signo;
        }
        app_physical_event();
    }
    return 0;
}

uint32_t board_run(const board_setup *setup)
{
    enum { TERMINAL, SIGNALS, POLLED };
    struct pollfd polled[POLLED] = {[TERMINAL] = {.fd = setup->terminal}, [SIGNALS] = {.fd = setup->signals, .events = POLLIN}};
    int64_t tick_ns = now_ns() + TICK_NS;

    board = *setup;
    pins_start();
    mcpax_start(board.boot_id);
    for (;;) {
        deliver_to_host();

        const int64_t due_ns = earlier(earlier(next_arrival_ns(), next_sent_ns()), earlier(received.silent_at_ns, tick_ns));
        const int64_t wait_ns = later(due_ns - now_ns(), 0);
        const struct timespec wait = {.tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S};
        polled[TERMINAL].events = (short)((received.count < RECEIVE_QUEUE ? POLLIN : 0) | (transmit.host_full ? POLLOUT : 0));
        if (ppoll(polled, POLLED, &wait, NULL) < 0 && errno != EINTR) {
            err(EXIT_FAILURE, "ppoll");
        }
        const uint32_t end = handle_signals(); /* first: what the host sends after a reset is for the next boot */
        if (end != 0) {
            return end;
        }
        if (polled[TERMINAL].revents & POLLIN) {
            take_from_host();
        }
        if (polled[TERMINAL].revents & POLLOUT) {
            transmit.host_full = false;
        }
        deliver_to_stub();
        if (tick_ns <= now_ns()) {
            tick_ns += TICK_NS;
            app_tick();
        }
    }
}
