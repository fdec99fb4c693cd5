/*
 * The virtual board: the firmware library on a pseudo terminal, with a UART's timing if asked for. What runs here is the same code as on
 * a chip; this file is its port.
 *
 * Signals are the board's hardware: SIGUSR1 the reset button, SIGUSR2 something physical happening, SIGTERM and SIGINT power off.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "mcpax.h"
#include "virtual.h"

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define BITS_PER_BYTE 10     /* start, eight data, stop */
#define SILENCE_BYTES 20     /* docs/wire-format.md §1.1 */
#define SILENCE_MIN_NS (20 * NS_PER_MS)
#define RECEIVE_QUEUE 512
#define TRANSMIT_QUEUE 4096
#define TRANSMIT_FIFO 16     /* bytes that reach the host at once, as from the FIFO of its UART */
#define LABEL_MAX 16         /* bytes, as in the map of the environment sensor */
#define NEVER INT64_MAX

/* --- Options and state -------------------------------------------------------------------------------------------------- */

static const char *link_path;
static const char *label = "";
static int64_t byte_ns; /* time of a byte on the line, 0 if unpaced */
static uint32_t random_state = 1;

static int terminal = -1;
static char terminal_path[64];
static int64_t started_ns;

static struct {
    uint8_t byte[RECEIVE_QUEUE];
    int64_t arrives_ns[RECEIVE_QUEUE];
    size_t first;
    size_t count;
    int64_t last_arrival_ns; /* when the line becomes free */
    int64_t silent_at_ns;    /* when the stub is to be told of silence */
} received;

static struct {
    uint8_t byte[TRANSMIT_QUEUE];
    size_t count;
    size_t chunk;     /* bytes of it that are on the line */
    int64_t sent_ns;  /* when they are through */
    bool host_full;   /* the host does not read: wait until it does */
} transmit;

static void fail(const char *what)
{
    fprintf(stderr, "virtual board: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

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

uint64_t virtual_uptime_ms(void)
{
    return (uint64_t)((now_ns() - started_ns) / NS_PER_MS);
}

uint32_t virtual_random(uint32_t bound)
{
    /* xorshift32: small and reproducible; nothing here needs more. */
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % bound;
}

const char *virtual_label(void)
{
    return label;
}

/* --- The line from the host ----------------------------------------------------------------------------------------------- */

/* Take what the host has written, as far as there is room, and note when each byte will have arrived. */
static void take_from_host(void)
{
    uint8_t bytes[RECEIVE_QUEUE];
    const ssize_t got = read(terminal, bytes, RECEIVE_QUEUE - received.count);
    const int64_t now = now_ns();

    for (ssize_t i = 0; i < got; i++) {
        const size_t slot = (received.first + received.count++) % RECEIVE_QUEUE;
        received.last_arrival_ns = later(received.last_arrival_ns, now) + byte_ns;
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
        received.silent_at_ns = arrived_ns + later(SILENCE_BYTES * byte_ns, SILENCE_MIN_NS);
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
        if (byte_ns > 0 && transmit.chunk > TRANSMIT_FIFO) {
            transmit.chunk = TRANSMIT_FIFO;
        }
        transmit.sent_ns = later(transmit.sent_ns, now_ns()) + (int64_t)transmit.chunk * byte_ns;
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
        const ssize_t written = write(terminal, transmit.byte, transmit.chunk);
        if (written > 0) {
            transmit.count -= (size_t)written;
            transmit.chunk -= (size_t)written;
            memmove(transmit.byte, transmit.byte + written, transmit.count);
        }
        transmit.host_full = transmit.chunk > 0;
        start_transmission();
    }
}

/* --- Power, reset, end -------------------------------------------------------------------------------------------------------- */

/* From noise and not from the seed: it tells one boot from another, above all when the same program is started again. */
static uint16_t new_boot_id(void)
{
    static uint16_t last;
    uint16_t id;
    do {
        if (getrandom(&id, sizeof id, 0) != sizeof id) {
            fail("getrandom");
        }
    } while (id == 0 || id == last);
    last = id;
    return id;
}

static void reset(void)
{
    memset(&received, 0, sizeof received);
    memset(&transmit, 0, sizeof transmit);
    received.silent_at_ns = NEVER;
    started_ns = now_ns();
    app_start();
    mcpax_start(new_boot_id());
}

static void open_terminal(void)
{
    int slave; /* stays open: the host may close its side and come again */
    struct termios raw;

    if (openpty(&terminal, &slave, terminal_path, NULL, NULL) != 0 || tcgetattr(slave, &raw) != 0) {
        fail("pty");
    }
    cfmakeraw(&raw);
    if (tcsetattr(slave, TCSANOW, &raw) != 0 || fcntl(terminal, F_SETFL, O_NONBLOCK) != 0) {
        fail("pty");
    }
}

static void make_link(void)
{
    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%s.%ld", link_path, (long)getpid());
    if (symlink(terminal_path, temporary) != 0 || rename(temporary, link_path) != 0) {
        fail(link_path);
    }
}

/* Unless another board has taken the name over. */
static void remove_link(void)
{
    char target[sizeof terminal_path];
    const ssize_t length = readlink(link_path, target, sizeof target);
    if (length == (ssize_t)strlen(terminal_path) && memcmp(target, terminal_path, (size_t)length) == 0) {
        unlink(link_path);
    }
}

static int block_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* False: power off. */
static bool handle_signals(int signals)
{
    struct signalfd_siginfo signal;
    while (read(signals, &signal, sizeof signal) == sizeof signal) {
        if (signal.ssi_signo == SIGUSR1) {
            reset();
        } else if (signal.ssi_signo == SIGUSR2) {
            app_physical_event();
        } else {
            return false;
        }
    }
    return true;
}

static void run(int signals)
{
    enum { TERMINAL, SIGNALS, POLLED };
    struct pollfd polled[POLLED] = {[TERMINAL] = {.fd = terminal}, [SIGNALS] = {.fd = signals, .events = POLLIN}};
    int64_t tick_ns = now_ns() + VIRTUAL_TICK_MS * NS_PER_MS;

    for (;;) {
        deliver_to_host();

        const int64_t due_ns = earlier(earlier(next_arrival_ns(), next_sent_ns()), earlier(received.silent_at_ns, tick_ns));
        const int64_t wait_ns = later(due_ns - now_ns(), 0);
        const struct timespec wait = {.tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S};
        polled[TERMINAL].events = (short)((received.count < RECEIVE_QUEUE ? POLLIN : 0) | (transmit.host_full ? POLLOUT : 0));
        if (ppoll(polled, POLLED, &wait, NULL) < 0 && errno != EINTR) {
            fail("ppoll");
        }
        if (polled[TERMINAL].revents & POLLIN) {
            take_from_host();
        }
        if (polled[TERMINAL].revents & POLLOUT) {
            transmit.host_full = false;
        }
        if ((polled[SIGNALS].revents & POLLIN) && !handle_signals(signals)) {
            return;
        }
        deliver_to_stub();
        if (tick_ns <= now_ns()) {
            tick_ns += VIRTUAL_TICK_MS * NS_PER_MS;
            app_tick();
        }
    }
}

/* --- Start --------------------------------------------------------------------------------------------------------------------- */

static void usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [--link PATH] [--baud N] [--seed N] [--label TEXT]\n"
            "  --link PATH   make PATH a symbolic link to the board's terminal, remove it at the end\n"
            "  --baud N      take as long over every byte as a line at N baud; 0, the default: no time at all\n"
            "  --seed N      begin the noise of the simulated world elsewhere\n"
            "  --label TEXT  what the board has been named, at most %d bytes\n",
            program, LABEL_MAX);
    exit(2);
}

static uint32_t number(const char *text, const char *program)
{
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value > UINT32_MAX) {
        usage(program);
    }
    return (uint32_t)value;
}

static void parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"link", required_argument, NULL, 'l'},  {"baud", required_argument, NULL, 'b'},
        {"seed", required_argument, NULL, 's'},  {"label", required_argument, NULL, 'n'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'l') {
            link_path = optarg;
        } else if (option == 'b') {
            const uint32_t baud = number(optarg, argv[0]);
            byte_ns = baud > 0 ? BITS_PER_BYTE * NS_PER_S / baud : 0;
        } else if (option == 's') {
            random_state = number(optarg, argv[0]) | 1u; /* xorshift never leaves zero */
        } else if (option == 'n' && strlen(optarg) <= LABEL_MAX) {
            label = optarg;
        } else {
            usage(argv[0]);
        }
    }
    if (optind != argc) {
        usage(argv[0]);
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    prctl(PR_SET_TIMERSLACK, 1L, 0L, 0L, 0L); /* ns; the usual 50 µs is half a byte at 115200 baud */
    const int signals = block_signals();
    open_terminal();
    reset();
    if (link_path != NULL) {
        make_link();
    }
    printf("%s\n", terminal_path);
    fflush(stdout);

    run(signals);

    if (link_path != NULL) {
        remove_link();
    }
    return EXIT_SUCCESS;
}
