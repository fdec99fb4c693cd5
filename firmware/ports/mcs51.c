/*
 * 8052 at 11.0592 MHz: serial port timed by timer 1, timer 0 as tick, idle mode between bytes. No watchdog, as the chip has none: a board
 * that needs one has it outside, and feeds it in port_sleep.
 */
#include <8052.h>

#ifndef RING_SIZE
#define RING_SIZE 32 /* while it answers one frame, slowly, two more may come in */
#endif

#include "mcpax.h"
#include "port.h"
#include "ring.h"

#define CYCLES_PER_SECOND (11059200u / 12)
#define CYCLES_PER_BIT (CYCLES_PER_SECOND / MCPAX_BAUD)
#define TIMER_1_PERIOD (CYCLES_PER_BIT / 16) /* at double baud rate */
#if TIMER_1_PERIOD * 16 * MCPAX_BAUD != CYCLES_PER_SECOND || TIMER_1_PERIOD > 256
#error "timer 1 cannot make this baud rate exactly: use 57600, 28800, 19200, 14400, 11520 or 9600"
#endif

#define TIMER_0_START (0x10000 - CYCLES_PER_SECOND / 1000 * APP_TICK_MS - CYCLES_PER_SECOND % 1000 * APP_TICK_MS / 1000)
#if TIMER_0_START <= 0 || TIMER_0_START % 0x100 != 0
#error "the tick sets the high byte of timer 0 only, so that no cycle is lost: APP_TICK_MS must be 25 or 50"
#endif

#define TIMER_1_RELOADS 0x20
#define TIMER_0_16_BITS 0x01
#define SERIAL_8_BITS 0x40
#define SERIAL_RECEIVES 0x10

static volatile __bit sending;
static volatile __bit has_ticked;

/*
 * Parts of startup, in place of the compiler's own, which clear all RAM and see to external RAM. These leave the RAM behind all variables as it
 * is, where the boot id comes from.
 */
void port_clear_ram(void) __naked
{
    __asm__("	.area GSINIT4 (CODE)\n"
            "__mcs51_genXINIT::\n"
            "__mcs51_genXRAMCLEAR::\n"
            "__mcs51_genRAMCLEAR::\n"
            "	clr	a\n"
            "	mov	r0,#__start__stack - 1\n"
            "00001$:	mov	@r0,a\n"
            "	djnz	r0,00001$\n"
            "	.area CSEG (CODE)\n");
}

void port_serial(void) __interrupt(SI0_VECTOR)
{
    if (RI) {
        RI = 0;
        ring_put(SBUF);
    }
    if (TI) {
        TI = 0;
        sending = 0;
    }
}

void port_tick(void) __interrupt(TF0_VECTOR)
{
    TH0 = TIMER_0_START / 0x100;
    has_ticked = 1;
}

void port_start(void)
{
    TMOD = TIMER_1_RELOADS | TIMER_0_16_BITS;
    TH1 = TL1 = (uint8_t)-TIMER_1_PERIOD;
    TR1 = 1;
    PCON = SMOD;
    SCON = SERIAL_8_BITS | SERIAL_RECEIVES;
    TH0 = TIMER_0_START / 0x100;
    TR0 = 1;
    ET0 = 1;
    ES = 1;
    EA = 1;
}

int16_t port_get(void)
{
    return ring_get();
}

bool port_ticked(void)
{
    if (!has_ticked) {
        return false; /* and clear nothing: one that comes right now must not be lost */
    }
    has_ticked = 0;
    return true;
}

void port_sleep(void)
{
    EA = 0;
    if (ring_is_empty() && !has_ticked) {
        EA = 1; /* takes effect after the next instruction, so nothing can come in between */
        PCON |= IDL;
    }
    EA = 1;
}

void mcpax_port_put(uint8_t byte)
{
    while (sending) {
    }
    sending = 1;
    SBUF = byte;
}
