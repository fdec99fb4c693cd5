/*
 * A program to try an emulated chip with: it echoes what it receives, but for some bytes, which make it do things. Sleeps in between.
 */
#include "probe.h"

enum {
    MARK = 0x01,         /* write into keepsake, then echo */
    HANG = 0x02,         /* with the watchdog on */
    GO_DEAF = 0x03,
    FAULT = 0x04,
    TELL_CAUSE = 0x05,   /* of the last reset */
    LIGHT = 0x06,
    STOP_TICK = 0x07,
    COUNT_TICKS = 0x08,  /* echo after a thousand ticks */
};
#define RING 32 /* bytes, a power of two */
#define TICKS_TO_COUNT 1000

__attribute__((section(".noinit"))) volatile uint8_t keepsake[8]; /* survives a reset, not a loss of power */
volatile uint16_t ticks;

static volatile uint8_t ring[RING];
static volatile uint8_t ring_end;
static uint8_t ring_first;
static volatile uint8_t something_to_do;
static volatile uint16_t ticks_left;
static volatile uint8_t counted;

void probe_received(uint8_t byte)
{
    ring[ring_end++ % RING] = byte;
    something_to_do = 1;
}

void probe_tick(void)
{
    ticks++;
    if (ticks_left > 0 && --ticks_left == 0) {
        counted = 1;
        something_to_do = 1;
    }
}

static void obey(uint8_t byte)
{
    switch (byte) {
    case MARK:
        for (uint8_t i = 0; i < sizeof keepsake; i++) {
            keepsake[i] = 0x5A;
        }
        chip_put(byte);
        break;
    case HANG:
        chip_hang_under_watchdog();
        break;
    case GO_DEAF:
        chip_go_deaf();
        break;
    case FAULT:
        chip_fault();
        break;
    case TELL_CAUSE:
        chip_put(chip_reset_cause());
        break;
    case LIGHT:
        chip_light();
        chip_put(byte);
        break;
    case STOP_TICK:
        chip_stop_tick();
        chip_put(byte);
        break;
    case COUNT_TICKS:
        ticks_left = TICKS_TO_COUNT;
        break;
    default:
        chip_put(byte);
    }
}

int main(void)
{
    chip_start();
    for (;;) {
        chip_sleep_unless(&something_to_do);
        something_to_do = 0;
        while (ring_first != ring_end) {
            obey(ring[ring_first++ % RING]);
        }
        if (counted) {
            counted = 0;
            chip_put(COUNT_TICKS);
        }
    }
}
