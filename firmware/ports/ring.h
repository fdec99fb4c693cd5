/*
 * Received bytes on their way from the interrupt to the main loop. If the main loop is away for longer than it takes to fill the ring, what
 * was in it is lost; frames that lost bytes fail their CRC, and the gateway sends them again.
 */
#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stdint.h>

#include "mcpax.h"

#ifndef RING_SIZE
#define RING_SIZE 16 /* bytes, a power of two: what comes in while a frame is being worked on */
#endif

static MCPAX_IN_RAM struct {
    volatile uint8_t put; /* where the next byte goes; written by the interrupt only */
    volatile uint8_t got; /* where the next one comes from; written by the main loop only */
    volatile uint8_t bytes[RING_SIZE];
} ring;

static inline bool ring_is_empty(void)
{
    return ring.put == ring.got;
}

static inline void ring_put(uint8_t byte)
{
    const uint8_t put = ring.put;
    ring.bytes[put] = byte;
    ring.put = (uint8_t)(put + 1) % RING_SIZE;
}

static inline int16_t ring_get(void)
{
    const uint8_t got = ring.got;
    if (ring.put == got) {
        return -1;
    }
    const uint8_t byte = ring.bytes[got];
    ring.got = (uint8_t)(got + 1) % RING_SIZE;
    return byte;
}

#endif
