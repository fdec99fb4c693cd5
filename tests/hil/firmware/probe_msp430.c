/* Built with clang and lld alone: startup and vectors stand here too. */
#include "probe.h"

#define REGISTER8(address) (*(volatile uint8_t *)(address))
#define REGISTER16(address) (*(volatile uint16_t *)(address))

#define IE2 REGISTER8(0x01)
#define IFG1 REGISTER8(0x02)
#define IFG2 REGISTER8(0x03)
#define P1OUT REGISTER8(0x21)
#define P1DIR REGISTER8(0x22)
#define P1SEL REGISTER8(0x26)
#define P1SEL2 REGISTER8(0x41)
#define BCSCTL3 REGISTER8(0x53)
#define DCOCTL REGISTER8(0x56)
#define BCSCTL1 REGISTER8(0x57)
#define UCA0CTL1 REGISTER8(0x61)
#define UCA0BR0 REGISTER8(0x62)
#define UCA0BR1 REGISTER8(0x63)
#define UCA0MCTL REGISTER8(0x64)
#define UCA0TXBUF REGISTER8(0x67)
#define WDTCTL REGISTER16(0x120)
#define TA0CTL REGISTER16(0x160)
#define TA0CCTL0 REGISTER16(0x162)
#define TA0CCR0 REGISTER16(0x172)
#ifdef AT_1_MHZ /* and 9600 baud */
#define CALDCO REGISTER8(0x10FE)
#define CALBC1 REGISTER8(0x10FF)
#define BAUD_DIVIDER 104
#define BAUD_MODULATION 0x02 /* and 1/8 */
#define TICKS_PER_MS 125
#else /* at 16 MHz and 115200 baud */
#define CALDCO REGISTER8(0x10F8)
#define CALBC1 REGISTER8(0x10F9)
#define BAUD_DIVIDER 138
#define BAUD_MODULATION 0x0E /* and 7/8 */
#define TICKS_PER_MS 2000
#endif
#define FLASH REGISTER8(0xC000)

#define WDTPW 0x5A00
#define WDTHOLD 0x80
#define WDTCNTCL 0x08
#define WDTSSEL_ACLK 0x04
#define WDTIS_64 0x03       /* of the VLO's 12 kHz: 5 ms */
#define LFXT1S_VLO 0x20
#define RESET_FLAGS 0x0D    /* WDTIFG, PORIFG, RSTIFG in IFG1 */
#define UCSSEL_SMCLK 0x80
#define UCSWRST 0x01
#define RXIFG 0x01          /* and RXIE */
#define TXIFG 0x02
#define TICK_CONTROL 0x02D0 /* SMCLK, divided by 8, up mode */
#define CCIE 0x10
#define DEAF_TURNS 8000     /* of four cycles at least: 2 ms */

extern uint8_t bss_start[], bss_end[];
int main(void);

static uint8_t cause;

__attribute__((naked, section(".start"), used)) void _start(void)
{
    __asm__ volatile("mov #stack_top, r1\n\tbr #start_c");
}

__attribute__((used, noreturn)) void start_c(void)
{
    WDTCTL = WDTPW | WDTHOLD;
    for (volatile uint8_t *at = bss_start; at != bss_end; at++) {
        *at = 0;
    }
    main();
    for (;;) {
        __asm volatile("");
    }
}

/* An interrupt ends the sleep for good: it clears CPUOFF in the SR that it returns to. That takes assembler. */
#define ISR(name, body)                                                                                                             \
    __attribute__((naked, used)) static void name(void)                                                                             \
    {                                                                                                                               \
        __asm__ volatile("push r11\n\tpush r12\n\tpush r13\n\tpush r14\n\tpush r15\n\t" body                                        \
                         "\n\tpop r15\n\tpop r14\n\tpop r13\n\tpop r12\n\tpop r11\n\tbic #0x10, 0(r1)\n\treti");                   \
    }

ISR(on_received, "mov.b &0x66, r12\n\tcall #probe_received") /* UCA0RXBUF */
ISR(on_tick, "call #probe_tick")

static void on_unexpected(void)
{
    for (;;) {
        __asm volatile("");
    }
}

__attribute__((section(".vectors"), used)) void (*const vectors[16])(void) = {
    on_unexpected, on_unexpected, on_unexpected, on_unexpected, on_unexpected, on_unexpected, on_unexpected, on_received,
    on_unexpected, on_tick,       on_unexpected, on_unexpected, on_unexpected, on_unexpected, on_unexpected, _start,
};

void chip_start(void)
{
    cause = IFG1 & RESET_FLAGS;
    IFG1 = 0;
    DCOCTL = 0;
    BCSCTL1 = CALBC1;
    DCOCTL = CALDCO;
    BCSCTL3 = LFXT1S_VLO;
    P1SEL = P1SEL2 = 0x06;
    P1OUT = 0;
    UCA0CTL1 = UCSSEL_SMCLK | UCSWRST;
    UCA0BR0 = BAUD_DIVIDER;
    UCA0BR1 = 0;
    UCA0MCTL = BAUD_MODULATION;
    UCA0CTL1 = UCSSEL_SMCLK;
    IE2 = RXIFG;
    TA0CCR0 = TICKS_PER_MS - 1;
    TA0CCTL0 = CCIE;
    TA0CTL = TICK_CONTROL;
    __asm__ volatile("eint\n\tnop");
}

void chip_put(uint8_t byte)
{
    while (!(IFG2 & TXIFG)) {
    }
    UCA0TXBUF = byte;
}

void chip_sleep_unless(volatile uint8_t *wanted)
{
    __asm__ volatile("dint\n\tnop");
    while (!*wanted) {
        __asm__ volatile("bis #0x18, r2\n\tnop" ::: "memory"); /* CPUOFF and GIE */
        __asm__ volatile("dint\n\tnop");
    }
    __asm__ volatile("eint\n\tnop");
}

void chip_hang_under_watchdog(void)
{
#ifdef WRONG_KEY
    WDTCTL = WDTHOLD;
#endif
    WDTCTL = WDTPW | WDTCNTCL | WDTSSEL_ACLK | WDTIS_64;
    for (;;) {
        __asm volatile("");
    }
}

void chip_go_deaf(void)
{
    __asm__ volatile("dint\n\tnop");
    for (volatile uint16_t turns = DEAF_TURNS; turns > 0; turns--) {
    }
    __asm__ volatile("eint\n\tnop");
}

void chip_fault(void)
{
    FLASH = 1;
}

void chip_light(void)
{
    P1DIR |= 0x01;
    P1OUT |= 0x01;
}

void chip_stop_tick(void)
{
    TA0CTL = 0;
    TA0CCTL0 = 0;
}

uint8_t chip_reset_cause(void)
{
    return cause;
}
