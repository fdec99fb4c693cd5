/*
 * A virtual board's start and end: gives it a pseudo terminal and a name, and lets it boot. The board itself is board.c.
 *
 * Firmware counts on RAM that startup has cleared. So a reset is this program executed anew by the same process, which keeps the terminal.
 *
 * Signals are the board's hardware: SIGUSR1 the reset button, SIGUSR2 something physical happening, SIGTERM and SIGINT power off.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "board.h"

#define NS_PER_S INT64_C(1000000000)
#define BITS_PER_BYTE 10 /* start, eight data, stop */
#define KEPT "MCPAX_VIRTUAL_KEPT" /* environment variable with what outlives a reset: descriptor of the terminal, boot id */

static const char *link_path;
static char terminal_path[64];
static board_setup board = {.number = 1, .seed = 1};

/* --- The terminal and its name --------------------------------------------------------------------------------------------- */

static void open_terminal(void)
{
    int slave; /* stays open: the host may close its side and come again */
    struct termios raw;

    if (openpty(&board.terminal, &slave, terminal_path, NULL, NULL) != 0 || tcgetattr(slave, &raw) != 0) {
        err(EXIT_FAILURE, "pty");
    }
    cfmakeraw(&raw);
    if (tcsetattr(slave, TCSANOW, &raw) != 0 || fcntl(board.terminal, F_SETFL, O_NONBLOCK) != 0) {
        err(EXIT_FAILURE, "pty");
    }
}

static void make_link(void)
{
    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%s.%ld", link_path, (long)getpid());
    if (symlink(terminal_path, temporary) != 0 || rename(temporary, link_path) != 0) {
        err(EXIT_FAILURE, "%s", link_path);
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

/* --- Boots -------------------------------------------------------------------------------------------------------------------- */

/* From noise and not from the seed: it tells one boot from another, above all when the same program is started again. */
static uint16_t boot_id_after(uint16_t before)
{
    uint16_t id;
    do {
        if (getrandom(&id, sizeof id, 0) != sizeof id) {
            err(EXIT_FAILURE, "getrandom");
        }
    } while (id == 0 || id == before);
    return id;
}

/* Take over what the boot before has left. False: there was none. */
static bool take_over(void)
{
    const char *kept = getenv(KEPT);
    /* NOLINTNEXTLINE(cert-err34-c): the numbers are our own */
    return kept != NULL && sscanf(kept, "%d %" SCNu16, &board.terminal, &board.boot_id) == 2 &&
           ptsname_r(board.terminal, terminal_path, sizeof terminal_path) == 0;
}

/* Signals that come meanwhile stay blocked and pending. */
static void reset(char **argv)
{
    char kept[32];
    snprintf(kept, sizeof kept, "%d %u", board.terminal, (unsigned)board.boot_id);
    setenv(KEPT, kept, true);
    execv("/proc/self/exe", argv);
    err(EXIT_FAILURE, "reset");
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

/* --- Start --------------------------------------------------------------------------------------------------------------------- */

static void usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [--link PATH] [--baud N] [--seed N] [--number N]\n"
            "  --link PATH   make PATH a symbolic link to the board's terminal, remove it at the end\n"
            "  --baud N      take as long over every byte as a line at N baud; 0, the default: no time at all\n"
            "  --seed N      begin the noise of the simulated world elsewhere\n"
            "  --number N    the number that the board has been given, 1 by default, at most %u\n",
            program, (unsigned)UINT16_MAX);
    exit(2);
}

static uint32_t number(const char *text, uint32_t max, const char *program)
{
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value > max) {
        usage(program);
    }
    return (uint32_t)value;
}

static void parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"link", required_argument, NULL, 'l'}, {"baud", required_argument, NULL, 'b'},
        {"seed", required_argument, NULL, 's'}, {"number", required_argument, NULL, 'n'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'l') {
            link_path = optarg;
        } else if (option == 'b') {
            const uint32_t baud = number(optarg, UINT32_MAX, argv[0]);
            board.byte_ns = baud > 0 ? BITS_PER_BYTE * NS_PER_S / baud : 0;
        } else if (option == 's') {
            board.seed = number(optarg, UINT32_MAX, argv[0]) | 1u; /* xorshift never leaves zero */
        } else if (option == 'n') {
            board.number = (uint16_t)number(optarg, UINT16_MAX, argv[0]);
        } else {
            usage(argv[0]);
        }
    }
    if (optind != argc) {
        usage(argv[0]);
    }
}

/* Make the board known to the world. */
static void appear(void)
{
    open_terminal();
    if (link_path != NULL) {
        make_link();
    }
    printf("%s\n", terminal_path);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    prctl(PR_SET_NAME, program_invocation_short_name, 0L, 0L, 0L); /* after a reset it is called exe */
    prctl(PR_SET_TIMERSLACK, 1L, 0L, 0L, 0L);                      /* ns; the usual 50 µs is half a byte at 115200 baud */
    board.signals = block_signals();
    if (!take_over()) {
        appear();
    }
    board.boot_id = boot_id_after(board.boot_id);

    if (board_run(&board) == SIGUSR1) {
        reset(argv);
    }
    if (link_path != NULL) {
        remove_link();
    }
    return EXIT_SUCCESS;
}
