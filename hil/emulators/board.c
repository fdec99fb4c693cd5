#define _GNU_SOURCE
#include "board.h"

#include "board_clock.h"

#define AWAKE_SLICE_NS (NS_PER_MS / 10) /* a running program is looked after this often: about a byte at 115200 baud */
#define TIMER_SLACK_NS (5 * NS_PER_MS)  /* a sleeper's timer may be this late while its line is silent, so that idling costs nothing */
#define UNPACED_SLICE_NS NS_PER_MS      /* of emulated time, between two looks at the world */
#define BOOT_LISTEN_NS NS_PER_S         /* as long as the Uno's; avrdude is silent for the first half of it */

static struct chip *chip;
static struct board_clock board_clock;
static struct port port = {.terminal = -1, .events = -1};
static uint32_t noise_state = 1;
static bool unpaced;

static bool powered;
static bool cut_armed;
static uint64_t cut_bytes;      /* that may still leave the chip */
static bool bootloader_on;
static bool booting;            /* the bootloader listens, the program waits */
static int64_t boot_ends_ns;

/* --- Power and reset -------------------------------------------------------------------------------------------------------- */

static uint32_t noise(void)
{
    /* xorshift32, as in the virtual boards */
    noise_state ^= noise_state << 13;
    noise_state ^= noise_state >> 17;
    noise_state ^= noise_state << 5;
    return noise_state;
}

static bool running(void)
{
    return powered && !booting && chip->programmed && chip->fault[0] == '\0';
}

/* From here on the program runs from its start. */
static void begin(void)
{
    chip->fault[0] = '\0';
    uart_clear_line(&chip->uart);
    clock_start(&board_clock, chip->cycle, chip->hertz);
}

bool board_powered(void)
{
    return powered;
}

bool board_power_on(void)
{
    if (!port_plug(&port)) {
        return false;
    }
    powered = true;
    chip->power_on(noise);
    begin();
    return true;
}

void board_power_off(void)
{
    booting = false;
    cut_armed = false;
    if (powered) {
        powered = false;
        port_unplug(&port);
    }
}

void board_cut_after(uint64_t bytes)
{
    cut_armed = true;
    cut_bytes = bytes;
}

void board_reset(void)
{
    booting = false;
    chip->reset();
    chip->resets++;
    begin();
}

static void start_bootloader(void)
{
    booting = true;
    boot_ends_ns = real_ns() + BOOT_LISTEN_NS;
    chip->bootloader->start();
}

void board_set_bootloader(bool on)
{
    bootloader_on = on;
    if (!on && booting) {
        board_reset();
    }
}

/* --- The line --------------------------------------------------------------------------------------------------------------- */

static void send_to_host(uint8_t byte)
{
    port_write(&port, byte);
}

static void byte_left_chip(uint8_t byte)
{
    send_to_host(byte);
    if (cut_armed && --cut_bytes == 0) {
        board_power_off();
        chip->stop = true;
    }
}

static void boot(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count && booting; i++) {
        const enum boot_answer answer = chip->bootloader->receive(bytes[i], send_to_host);
        if (answer == BOOT_LEAVE) {
            board_reset();
        } else if (answer == BOOT_SERVED) {
            boot_ends_ns = real_ns() + BOOT_LISTEN_NS;
        }
    }
}

void board_receive(void)
{
    uint8_t bytes[UART_LINE];
    const size_t count = port_read(&port, bytes, uart_room(&chip->uart));

    if (booting) {
        boot(bytes, count);
    } else if (running()) {
        for (size_t i = 0; i < count; i++) {
            uart_send(&chip->uart, bytes[i], chip->cycle);
        }
    } /* else nobody is there to hear it */
}

struct port *board_port(void)
{
    return &port;
}

bool board_full(void)
{
    return uart_room(&chip->uart) == 0;
}

void board_port_event(void)
{
    if (port_opened(&port) && bootloader_on) {
        start_bootloader();
    }
}

/* --- Time ------------------------------------------------------------------------------------------------------------------- */

/* Asleep until someone sends something. */
static bool dormant(void)
{
    return chip->asleep && chip->next_timer() == NEVER && uart_next(&chip->uart) == NEVER;
}

static void run_program(void)
{
    while (running() && !(unpaced && dormant())) {
        const uint64_t until = unpaced ? chip->cycle + (uint64_t)(UNPACED_SLICE_NS * chip->hertz / NS_PER_S)
                                       : clock_allowed(&board_clock, chip->cycle);
        if (until <= chip->cycle) {
            return;
        }
        chip->stop = false;
        chip->run(until);
        clock_advance(&board_clock, chip->cycle, chip->hertz);
        if (!chip->stop) {
            return;
        }
    }
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t board_due_ns(void)
{
    if (booting && powered) {
        return chip->programmed ? boot_ends_ns : NEVER_NS;
    }
    if (!running() || (unpaced && dormant())) {
        return NEVER_NS;
    }
    if (unpaced) {
        return 0;
    }
    const int64_t line_ns = clock_due(&board_clock, uart_next(&chip->uart));
    const int64_t awake_ns = clock_due(&board_clock, chip->asleep ? chip->next_timer() : chip->cycle);
    const int64_t slack_ns = chip->asleep ? TIMER_SLACK_NS : AWAKE_SLICE_NS;
    const int64_t lag_ns = real_ns() + LAG_MAX_NS / 2; /* even a sleeper's time passes */
    return earlier(lag_ns, awake_ns == NEVER_NS ? line_ns : earlier(line_ns, awake_ns + slack_ns));
}

void board_run(void)
{
    if (booting && chip->programmed && real_ns() >= boot_ends_ns) {
        board_reset();
    }
    run_program();
}

/* --- Assembly --------------------------------------------------------------------------------------------------------------- */

void board_assemble(struct chip *carried, const char *link, uint32_t seed, bool run_ahead)
{
    chip = carried;
    chip->uart.transmitted = byte_left_chip;
    port.link = link;
    noise_state = seed != 0 ? seed : UINT32_MAX; /* xorshift never leaves zero */
    unpaced = run_ahead;
}
