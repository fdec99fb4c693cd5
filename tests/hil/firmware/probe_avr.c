#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <avr/wdt.h>
#include <util/delay.h>

#include "probe.h"

#define DOUBLE_SPEED_DIVIDER 16 /* 16 MHz / 8 / 17: 117647 baud, what an Uno takes for 115200 */
#define DEAF_MS 2
#define BEYOND_RAM 0x1000

static uint8_t cause;

void chip_start(void)
{
    cause = MCUSR;
    MCUSR = 0;
    wdt_disable();
    UCSR0A = _BV(U2X0);
    UBRR0 = DOUBLE_SPEED_DIVIDER;
    UCSR0B = _BV(RXCIE0) | _BV(RXEN0) | _BV(TXEN0);
    TCCR1B = _BV(WGM12) | _BV(CS11); /* clear on compare, 2 MHz */
    OCR1A = 1999;
    TIMSK1 = _BV(OCIE1A);
    set_sleep_mode(SLEEP_MODE_IDLE);
    sei();
}

ISR(USART_RX_vect)
{
    probe_received(UDR0);
}

ISR(TIMER1_COMPA_vect)
{
    probe_tick();
}

void chip_put(uint8_t byte)
{
    while (!(UCSR0A & _BV(UDRE0))) {
    }
    UDR0 = byte;
}

void chip_sleep_unless(volatile uint8_t *wanted)
{
    cli();
    sleep_enable();
    while (!*wanted) {
        sei();
        sleep_cpu(); /* nothing comes between these two */
        cli();
    }
    sei();
}

void chip_hang_under_watchdog(void)
{
    wdt_enable(WDTO_15MS);
    for (;;) {
        __asm volatile("");
    }
}

void chip_go_deaf(void)
{
    cli();
    _delay_ms(DEAF_MS);
    sei();
}

void chip_fault(void)
{
    *(volatile uint8_t *)BEYOND_RAM = 1;
}

void chip_light(void)
{
    DDRB |= _BV(5);
    PORTB |= _BV(5);
}

void chip_stop_tick(void)
{
    TIMSK1 = 0;
    TCCR1B = 0;
}

uint8_t chip_reset_cause(void)
{
    return cause;
}
