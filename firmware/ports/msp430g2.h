/* Registers of the MSP430G2553 and what differs between its compilers, as far as the port needs them (TI SLAU144). */
#ifndef MSP430G2_H
#define MSP430G2_H

#include <stdint.h>

#define BYTE_REGISTER(address) (*(volatile uint8_t *)(address))
#define WORD_REGISTER(address) (*(volatile uint16_t *)(address))

#define IE2 BYTE_REGISTER(0x01)
#define UCA0RXIE 0x01u
#define IFG2 BYTE_REGISTER(0x03)
#define UCA0TXIFG 0x02u

#define P1SEL BYTE_REGISTER(0x26)
#define P1SEL2 BYTE_REGISTER(0x41)

#define BCSCTL3 BYTE_REGISTER(0x53)
#define LFXT1S_VLO 0x20u
#define DCOCTL BYTE_REGISTER(0x56)
#define BCSCTL1 BYTE_REGISTER(0x57)
#define CALDCO_16MHZ BYTE_REGISTER(0x10F8)
#define CALBC1_16MHZ BYTE_REGISTER(0x10F9)

#define UCA0CTL1 BYTE_REGISTER(0x61)
#define UCSSEL_SMCLK 0x80u
#define UCSWRST 0x01u
#define UCA0BR0 BYTE_REGISTER(0x62)
#define UCA0BR1 BYTE_REGISTER(0x63)
#define UCA0MCTL BYTE_REGISTER(0x64)
#define UCA0RXBUF BYTE_REGISTER(0x66)
#define UCA0TXBUF BYTE_REGISTER(0x67)

#define WDTCTL WORD_REGISTER(0x120)
#define WDTPW 0x5A00u
#define WDTCNTCL 0x08u
#define WDTSSEL 0x04u

#define TA0CTL WORD_REGISTER(0x160)
#define TASSEL_SMCLK 0x200u
#define ID_8 0xC0u
#define MC_UP 0x10u
#define TA0CCTL0 WORD_REGISTER(0x162)
#define CCIE 0x10u
#define TA0CCR0 WORD_REGISTER(0x172)

/* Interrupts by their number, which is half their distance from the start of the vectors at 0xFFE0. */
#define USCIAB0RX 7
#define TIMER0_A0 9

#define CPUOFF 0x10
#define GIE 0x08

#if defined(__clang__)
#define MSP430_INTERRUPT(number) __attribute__((interrupt(number), used))
#define MSP430_WAKE() ((void)0) /* msp430_crt.c did it before the handler was entered */
#else
#define MSP430_INTERRUPT(number) __attribute__((interrupt(2 * (number)), used))
#define MSP430_WAKE() __bic_status_register_on_exit(CPUOFF)
#endif

#define MSP430_ENABLE_INTERRUPTS() __asm__ volatile("nop\n\teint\n\tnop" ::: "memory")
#define MSP430_DISABLE_INTERRUPTS() __asm__ volatile("dint\n\tnop" ::: "memory")
#define MSP430_SLEEP() __asm__ volatile("bis %0, r2\n\tnop" ::"i"(GIE | CPUOFF) : "memory")

#endif
