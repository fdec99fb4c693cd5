/*
 * ATmega328P (Arduino Uno): USART0, TIMER1 as tick, the watchdog at 2 s, idle sleep.
 *
 * Startup, vectors and the receive interrupt are in assembly: avr-libc's have vectors to the end of the table, a way back from main and more
 * registers saved than used, some 80 bytes in all.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <avr/wdt.h>

#include "mcpax.h"
#include "port.h"
#include "ring.h"

#define BAUD_DIVISOR ((F_CPU / 4 / MCPAX_BAUD - 1) / 2) /* at double speed, rounded */
#define TIMER_PRESCALER 64
#define TICKED 0 /* bit of GPIOR0, which the tick sets in one instruction and without a register */

/*
 * The reset vector and those up to the last one used, number 18; the others are never enabled. At reset the hardware itself points the stack
 * at the end of RAM. libgcc clears .bss and copies .data in between (.init4), if there is any.
 */
__asm__(".section .vectors,\"ax\",@progbits\n"
        ".global __vectors\n"
        "__vectors:\n"
        "    jmp startup\n"
        "    .rept 10\n"
        "    jmp __vectors\n"
        "    .endr\n"
        "    jmp tick\n"
        "    .rept 6\n"
        "    jmp __vectors\n"
        "    .endr\n"
        "    jmp received\n"
        ".section .init2,\"ax\",@progbits\n"
        "startup:\n"
        "    clr __zero_reg__\n"
        ".section .init9,\"ax\",@progbits\n"
        "    rjmp main\n"
        ".text\n");

/* ring_put(UDR0) */
__attribute__((naked, used, externally_visible)) void received(void)
{
    __asm__ volatile("push r24\n"
                     "in r24, %[status]\n"
                     "push r24\n"
                     "push r30\n"
                     "push r31\n"
                     "lds r30, %[put]\n"
                     "mov r24, r30\n"
                     "inc r24\n"
                     "andi r24, %[mask]\n"
                     "sts %[put], r24\n"
                     "clr r31\n"
                     "subi r30, lo8(-(%[bytes]))\n"
                     "sbci r31, hi8(-(%[bytes]))\n"
                     "lds r24, %[data]\n"
                     "st Z, r24\n"
                     "pop r31\n"
                     "pop r30\n"
                     "pop r24\n"
                     "out %[status], r24\n"
                     "pop r24\n"
                     "reti" ::[status] "I"(_SFR_IO_ADDR(SREG)),
                     [put] "i"(&ring.put), [bytes] "i"(&ring.bytes), [mask] "M"(RING_SIZE - 1), [data] "n"(_SFR_MEM_ADDR(UDR0)));
}

__attribute__((naked, used, externally_visible)) void tick(void)
{
    __asm__ volatile("sbi %0, %1\n"
                     "reti" ::"I"(_SFR_IO_ADDR(GPIOR0)), "I"(TICKED));
}

void port_start(void)
{
    WDTCSR = _BV(WDCE) | _BV(WDE); /* interrupts are still off, so the next line comes within its four cycles */
    WDTCSR = _BV(WDE) | WDTO_2S;   /* after a reset by the watchdog it is on at its shortest time */
    UCSR0A = _BV(U2X0);
    UBRR0L = (uint8_t)BAUD_DIVISOR;
#if BAUD_DIVISOR > 255
    UBRR0H = (uint8_t)(BAUD_DIVISOR >> 8);
#endif
    UCSR0B = _BV(RXCIE0) | _BV(RXEN0) | _BV(TXEN0);
    OCR1A = F_CPU / TIMER_PRESCALER * APP_TICK_MS / 1000 - 1;
    TCCR1B = _BV(WGM12) | _BV(CS11) | _BV(CS10);
    TIMSK1 = _BV(OCIE1A);
    SMCR = _BV(SE);
    sei();
}

int16_t port_get(void)
{
    return ring_get();
}

bool port_ticked(void)
{
    if (bit_is_clear(GPIOR0, TICKED)) {
        return false; /* and clear nothing: one that comes right now must not be lost */
    }
    GPIOR0 &= (uint8_t)~_BV(TICKED);
    return true;
}

void port_sleep(void)
{
    wdt_reset();
    cli();
    if (ring_is_empty() && bit_is_clear(GPIOR0, TICKED)) {
        sei(); /* takes effect after the next instruction, so nothing can come in between */
        sleep_cpu();
    }
    sei();
}

__attribute__((noinline)) void mcpax_port_put(uint8_t byte)
{
    loop_until_bit_is_set(UCSR0A, UDRE0);
    UDR0 = byte;
}
