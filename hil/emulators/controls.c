#define _GNU_SOURCE
#include "controls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "board.h"

#define LINE_MAX_BYTES 4352 /* of an order: a path and a word */
#define PEEK_MAX 2048

static struct chip *chip;

void controls_attach(struct chip *carried)
{
    chip = carried;
}

/* --- Answers ---------------------------------------------------------------------------------------------------------------- */

static void print_json_string(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            printf("\\%c", c);
        } else if (c < 0x20) {
            printf("\\u%04x", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

static void answer_ok(void)
{
    puts("{\"ok\": true}");
}

__attribute__((format(printf, 1, 2))) static void answer_error(const char *format, ...)
{
    char text[2 * LINE_MAX_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs("{\"ok\": false, \"error\": ", stdout);
    print_json_string(text);
    puts("}");
}

/* --- Orders --------------------------------------------------------------------------------------------------------------- */

bool controls_number(const char *text, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == '\0' && *text != '-' && *value <= most;
}

static void control_load(const char *path)
{
    char reason[LINE_MAX_BYTES + 256];
    if (!chip->load(path, reason, sizeof reason)) {
        answer_error("%s", reason);
        return;
    }
    chip_forget_stack(chip);
    if (board_powered()) {
        board_reset();
    }
    answer_ok();
}

static void control_reset(const char *none)
{
    (void)none;
    if (!board_powered()) {
        answer_error("the %s is off; switch it on with: power on", chip->name);
        return;
    }
    board_reset();
    answer_ok();
}

static void control_press(const char *none)
{
    (void)none;
    chip->press(true);
    answer_ok();
}

static void control_release(const char *none)
{
    (void)none;
    chip->press(false);
    answer_ok();
}

static void control_power(const char *state)
{
    const bool on = strcmp(state, "on") == 0;
    if (!on && strcmp(state, "off") != 0) {
        answer_error("power is '%s'; say: power on, or: power off", state);
        return;
    }
    if (!on) {
        board_power_off();
        answer_ok();
        return;
    }
    if (!board_powered()) {
        if (!board_power_on()) {
            answer_error("the port cannot be made: %s; is the folder of the link there?", strerror(errno));
            return;
        }
        chip->resets++;
    }
    printf("{\"ok\": true, \"port\": \"%s\"}\n", board_port()->path);
}

static void control_cut(const char *count)
{
    uint64_t bytes;
    if (!board_powered()) {
        answer_error("the %s is off already; switch it on with: power on", chip->name);
    } else if (!controls_number(count, UINT32_MAX, &bytes) || bytes == 0) {
        answer_error("cut after '%s' bytes; give a number from 1 on", count);
    } else {
        board_cut_after(bytes);
        answer_ok();
    }
}

static void control_bootloader(const char *state)
{
    const bool on = strcmp(state, "on") == 0;
    if (chip->bootloader == NULL) {
        answer_error("the %s has no bootloader; use: load FILE", chip->name);
    } else if (!on && strcmp(state, "off") != 0) {
        answer_error("bootloader is '%s'; say: bootloader on, or: bootloader off", state);
    } else {
        board_set_bootloader(on);
        answer_ok();
    }
}

static void print_stats(void)
{
    const struct uart_counts *const counts = &chip->uart.counts;
    printf("{\"ok\": true, \"cycles\": %" PRIu64 ", \"busy_cycles\": %" PRIu64 ", \"stack_max\": %" PRIu32 ", \"stack_worst\": %" PRIu32, chip->cycle,
           chip->busy_cycles, chip->stack.max, chip_stack_worst(chip));
    printf(", \"rx\": %" PRIu64 ", \"tx\": %" PRIu64 ", \"rx_overruns\": %" PRIu64, counts->received, counts->transmitted, counts->overruns);
    printf(", \"resets\": %u, \"watchdog_resets\": %u", chip->resets, chip->watchdog_resets);
    printf(", \"turnaround_cycles\": %" PRIu64 ", \"turnaround_cycles_max\": %" PRIu64, counts->turnaround, counts->turnaround_max);
    printf(", \"exchange_cycles\": %" PRIu64, counts->exchange);
    fputs(", \"fault\": ", stdout);
    if (chip->fault[0] == '\0') {
        fputs("null", stdout);
    } else {
        print_json_string(chip->fault);
    }
    puts("}");
}

static void control_stats(const char *what)
{
    const bool anew = strcmp(what, "reset") == 0;
    if (!anew && *what != '\0') {
        answer_error("stats of '%s'; say: stats, or: stats reset", what);
        return;
    }
    print_stats();
    if (anew) { /* but cycles never go back: they are the chip's clock */
        memset(&chip->uart.counts, 0, sizeof chip->uart.counts);
        chip_forget_stack(chip);
        chip->resets = 0;
        chip->watchdog_resets = 0;
    }
}

static void control_peek(const char *range)
{
    char first[32], count[32];
    uint64_t address, size;
    uint8_t bytes[PEEK_MAX];

    if (sscanf(range, "%31s %31s", first, count) != 2 || !controls_number(first, UINT32_MAX, &address) || !controls_number(count, PEEK_MAX, &size)) {
        answer_error("peek at '%s'; say: peek ADDRESS LENGTH, with at most %d bytes", range, PEEK_MAX);
        return;
    }
    if (address >= chip->data_alias) {
        address -= chip->data_alias;
    }
    if (address + size > chip->data_size) {
        answer_error("peek at '%s': the data memory of the %s ends at 0x%" PRIx32, range, chip->name, chip->data_size);
        return;
    }
    chip->peek((uint32_t)address, bytes, size);
    fputs("{\"ok\": true, \"hex\": \"", stdout);
    for (size_t i = 0; i < size; i++) {
        printf("%02x", bytes[i]);
    }
    puts("\"}");
}

/* False: the board is to end. */
static bool obey(char *line)
{
    static const struct {
        const char *name;
        void (*handle)(const char *argument);
        bool takes_argument; /* one that must be there */
    } controls[] = {
        {"load", control_load, true},        {"reset", control_reset, false}, {"press", control_press, false},
        {"release", control_release, false}, {"power", control_power, true},  {"cut", control_cut, true},
        {"stats", control_stats, false},     {"peek", control_peek, true},    {"bootloader", control_bootloader, true},
    };
    char *argument = line + strcspn(line, " ");
    if (*argument != '\0') {
        *argument++ = '\0';
    }
    if (strcmp(line, "quit") == 0) {
        answer_ok();
        return false;
    }
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
        if (strcmp(line, controls[i].name) == 0) {
            if (controls[i].takes_argument && *argument == '\0') {
                answer_error("'%s' says not what; add it", line);
            } else {
                controls[i].handle(argument);
            }
            return true;
        }
    }
    answer_error("no such control: '%s'; there are load, reset, press, release, power, cut, stats, peek, bootloader and quit", line);
    return true;
}

bool controls_read(void)
{
    static char line[LINE_MAX_BYTES];
    static size_t length;
    static bool too_long;
    char bytes[LINE_MAX_BYTES];
    const ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);

    bool going_on = got > 0 || (got < 0 && errno == EINTR);
    for (ssize_t i = 0; i < got && going_on; i++) {
        if (bytes[i] != '\n') {
            too_long = length == sizeof line - 1;
            if (!too_long) {
                line[length++] = bytes[i];
            }
            continue;
        }
        line[length] = '\0';
        if (too_long) {
            answer_error("a control of more than %zu bytes; shorten the path", sizeof line - 1);
        } else {
            going_on = obey(line);
        }
        fflush(stdout);
        length = 0;
        too_long = false;
    }
    return going_on;
}
