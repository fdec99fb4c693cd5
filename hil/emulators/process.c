#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "board.h"
#include "board_clock.h"
#include "controls.h"

#define REASON_MAX 4608 /* a path and a sentence */

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static int block_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void wait_until(int64_t due_ns, struct pollfd *polled, nfds_t count)
{
    const int64_t wait_ns = due_ns - real_ns();
    const struct timespec wait = {.tv_sec = wait_ns > 0 ? wait_ns / NS_PER_S : 0, .tv_nsec = wait_ns > 0 ? wait_ns % NS_PER_S : 0};
    if (ppoll(polled, count, due_ns == NEVER_NS ? NULL : &wait, NULL) < 0 && errno != EINTR) {
        fail("ppoll");
    }
}

static void run(int signals)
{
    enum { CONTROLS, SIGNALS, TERMINAL, OPENINGS, POLLED };
    struct pollfd polled[POLLED] = {[CONTROLS] = {.fd = STDIN_FILENO, .events = POLLIN}, [SIGNALS] = {.fd = signals, .events = POLLIN}};
    const struct port *const port = board_port();

    while (polled[SIGNALS].revents == 0) {
        polled[TERMINAL] = (struct pollfd){.fd = board_full() ? -1 : port->terminal, .events = POLLIN};
        polled[OPENINGS] = (struct pollfd){.fd = port->events, .events = POLLIN};
        wait_until(board_due_ns(), polled, POLLED);
        board_run(); /* up to now, so that what comes from outside comes now */

        if (board_powered() && polled[OPENINGS].revents != 0) {
            board_port_event();
        }
        if (board_powered() && polled[TERMINAL].revents != 0) {
            board_receive();
        }
        if (polled[CONTROLS].revents != 0 && !controls_read()) {
            return;
        }
    }
}

static void usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [--image FILE] --link PATH [--seed N] [--unpaced]\n"
            "  --image FILE  the ELF image in flash; without it the chip is empty and waits for one\n"
            "  --link PATH   make PATH a symbolic link to the board's port while it has power\n"
            "  --seed N      begin the noise in RAM elsewhere\n"
            "  --unpaced     let emulated time run ahead of real time\n",
            program);
    exit(2);
}

int process_main(int argc, char **argv, struct chip *chip)
{
    static const struct option options[] = {
        {"image", required_argument, NULL, 'i'}, {"link", required_argument, NULL, 'l'}, {"seed", required_argument, NULL, 's'},
        {"unpaced", no_argument, NULL, 'u'},     {NULL, 0, NULL, 0},
    };
    const char *image = NULL;
    const char *link = NULL;
    uint64_t seed = 1;
    bool unpaced = false;
    char reason[REASON_MAX];

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'i') {
            image = optarg;
        } else if (option == 'l') {
            link = optarg;
        } else if (option == 'u') {
            unpaced = true;
        } else if (option != 's' || !controls_number(optarg, UINT32_MAX, &seed)) {
            usage(argv[0]);
        }
    }
    if (optind != argc || link == NULL) {
        usage(argv[0]);
    }
    board_assemble(chip, link, (uint32_t)seed, unpaced);
    controls_attach(chip);
    if (image != NULL && !chip->load(image, reason, sizeof reason)) {
        fprintf(stderr, "%s: %s\n", chip->name, reason);
        return EXIT_FAILURE;
    }

    prctl(PR_SET_TIMERSLACK, 1L, 0L, 0L, 0L); /* ns; the usual 50 µs is half a byte at 115200 baud */
    const int signals = block_signals();
    if (!board_power_on()) {
        fail(link);
    }
    printf("{\"ready\": true, \"port\": \"%s\"}\n", board_port()->path);
    fflush(stdout);

    run(signals);

    board_power_off();
    return EXIT_SUCCESS;
}
