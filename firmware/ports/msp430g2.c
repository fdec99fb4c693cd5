/*
 * MSP430G2553 (LaunchPad): DCO at 16 MHz, USCI_A0 on P1.1 and P1.2, Timer0_A as tick, the watchdog from VLO at about 2.7 s, sleep in LPM0.
 *
 * For two compilers: mspgcc brings its own startup and fills the vectors by their numbers; clang has neither, and msp430_crt.c serves it.
 */
#include "mcpax.h"
#include "msp430g2.h"
#include "port.h"
#include "ring.h"

#define CLOCK_HZ 16000000u
#define TIMER_DIVIDER 8u
#define TIMER_PERIODS (CLOCK_HZ / TIMER_DIVIDER / 1000 * APP_TICK_MS)
#if TIMER_PERIODS > 65536
#error "Timer0_A has 16 bits: make APP_TICK_MS shorter"
#endif
#define BAUD_EIGHTHS ((8 * CLOCK_HZ + MCPAX_BAUD / 2) / MCPAX_BAUD) /* divisor in steps of 1/8, as its modulation gives them */

static volatile bool has_ticked;

MSP430_INTERRUPT(USCIAB0RX) void port_received(void)
{
    ring_put(UCA0RXBUF);
    MSP430_WAKE();
}

MSP430_INTERRUPT(TIMER0_A0) void port_tick(void)
{
    has_ticked = true;
    MSP430_WAKE();
}

static void feed_watchdog(void)
{
    WDTCTL = WDTPW | WDTCNTCL | WDTSSEL; /* 32768 cycles of ACLK */
}

void port_start(void)
{
    feed_watchdog();
    BCSCTL3 = LFXT1S_VLO;
    BCSCTL1 = CALBC1_16MHZ;
    DCOCTL = CALDCO_16MHZ;
    P1SEL = 0x06;
    P1SEL2 = 0x06;
    UCA0CTL1 = UCSSEL_SMCLK | UCSWRST;
    UCA0BR0 = (uint8_t)(BAUD_EIGHTHS / 8);
    UCA0BR1 = (uint8_t)(BAUD_EIGHTHS / 8 >> 8);
    UCA0MCTL = (uint8_t)(BAUD_EIGHTHS % 8 << 1);
    UCA0CTL1 = UCSSEL_SMCLK;
    IE2 = UCA0RXIE;
    TA0CCR0 = (uint16_t)(TIMER_PERIODS - 1);
    TA0CCTL0 = CCIE;
    TA0CTL = TASSEL_SMCLK | ID_8 | MC_UP;
    MSP430_ENABLE_INTERRUPTS();
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
    has_ticked = false;
    return true;
}

void port_sleep(void)
{
    feed_watchdog();
    MSP430_DISABLE_INTERRUPTS();
    if (ring_is_empty() && !has_ticked) {
        MSP430_SLEEP(); /* enables interrupts at the same instant */
    }
    MSP430_ENABLE_INTERRUPTS();
}

void mcpax_port_put(uint8_t byte)
{
    while ((IFG2 & UCA0TXIFG) == 0) {
    }
    UCA0TXBUF = byte;
}
