#include "echo.h"

#ifndef KEEPSAKE
#define KEEPSAKE __attribute__((section(".noinit")))
#endif

KEEPSAKE volatile uint8_t keepsake; /* survives a reset, not a loss of power */

static volatile uint8_t ring[RING];
static volatile uint8_t ring_end;
static volatile uint8_t ring_first;
static volatile uint8_t ticks_left;
static volatile uint8_t counted;

void echo_received(uint8_t byte)
{
    ring[ring_end % RING] = byte;
    ring_end++;
}

void echo_ticked(void)
{
    if (ticks_left > 0) {
        ticks_left--;
        counted = ticks_left == 0;
    }
}

uint8_t echo_busy(void)
{
    return ring_first != ring_end || counted;
}

static void obey(uint8_t byte)
{
    switch (byte) {
    case MARK:
        keepsake = KEPT;
        chip_put(byte);
        break;
    case TELL:
        chip_put(keepsake);
        break;
    case DEAF:
        chip_deaf();
        chip_put(byte);
        break;
    case HANG:
        chip_hang();
        break;
    case FAULT:
        chip_fault();
        break;
    case COUNT_TICKS:
        ticks_left = TICKS_TO_COUNT;
        break;
    case CAUSE:
        chip_put(chip_cause());
        break;
    case RESTART:
        chip_restart();
        break;
    default:
        chip_put(byte);
    }
}

int main(void)
{
    ring_first = ring_end = 0; /* not every startup code clears them */
    ticks_left = 0;
    counted = 0;
    chip_start();
    for (;;) {
        chip_sleep_unless_busy();
        while (ring_first != ring_end) {
            const uint8_t byte = ring[ring_first % RING];
            ring_first++;
            obey(byte);
        }
        if (counted) {
            counted = 0;
            chip_put(COUNT_TICKS);
        }
    }
}
