#include "usart0.h"

#include <simavr/avr_uart.h>
#include <simavr/sim_interrupts.h>

/* ATmega328P data sheet, USART0, register description: addresses in data space, and bits */
#define UCSR0A 0xC0
#define UCSR0B 0xC1
#define UCSR0C 0xC2
#define UBRR0L 0xC4
#define UBRR0H 0xC5
#define UDR0 0xC6

#define RXC0 0x80   /* in UCSR0A */
#define TXC0 0x40
#define UDRE0 0x20
#define DOR0 0x08
#define U2X0 0x02
#define MPCM0 0x01
#define RXEN0 0x10  /* in UCSR0B */
#define TXEN0 0x08
#define UCSZ0 0x06  /* in UCSR0C: eight data bits */

#define HELD 3      /* two in the receive buffer, one in the shift register: see DOR0 */

static avr_t *avr;
static struct uart *uart;
static avr_int_vector_t *received, *complete, *empty;

static void set_rate(void)
{
    const uint32_t divider = (avr->data[UBRR0L] | (uint32_t)(avr->data[UBRR0H] & 0x0F) << 8) + 1;
    uart->byte_cycles = UART_BITS_PER_BYTE * divider * (avr->data[UCSR0A] & U2X0 ? 8 : 16);
}

/* A flag that stands asks for its interrupt again and again. Not while interrupts are off: simavr would pile the requests up. */
static void settle(avr_int_vector_t *vector, bool flag)
{
    const bool wanted = flag && avr_regbit_get(avr, vector->enable);
    if (wanted && !vector->pending && avr->sreg[S_I]) {
        avr_raise_interrupt(avr, vector);
    } else if (!wanted && vector->pending) {
        avr_clear_interrupt(avr, vector);
    }
}

void usart0_run(void)
{
    const bool was_shifting = uart->shifting;
    if (uart_run(uart, avr->cycle) && was_shifting && !uart->shifting) {
        avr_raise_interrupt(avr, complete);
    }
    settle(received, uart->held_count > 0);
    settle(empty, !uart->buffer_full);
}

static uint8_t read_status(avr_t *core, avr_io_addr_t address, void *none)
{
    (void)none;
    const int flags = (uart->held_count > 0 ? RXC0 : 0) | (uart->buffer_full ? 0 : UDRE0) | (uart->overrun ? DOR0 : 0);
    core->data[address] = (uint8_t)((core->data[address] & (TXC0 | U2X0 | MPCM0)) | flags);
    return core->data[address];
}

static void write_status(avr_t *core, avr_io_addr_t address, uint8_t value, void *none)
{
    if (value & TXC0) {
        avr_clear_interrupt(core, complete); /* cleared by writing a one */
    }
    core->data[address] = (uint8_t)((core->data[address] & ~(U2X0 | MPCM0)) | (value & (U2X0 | MPCM0)));
    read_status(core, address, none);
    set_rate();
}

static void write_control(avr_t *core, avr_io_addr_t address, uint8_t value, void *none)
{
    (void)none;
    core->data[address] = value;
    uart->receiver_on = (value & RXEN0) != 0;
    if (!uart->receiver_on) {
        uart->held_count = 0;
        uart->overrun = false;
    }
}

static void write_rate(avr_t *core, avr_io_addr_t address, uint8_t value, void *none)
{
    (void)none;
    core->data[address] = value;
    set_rate();
}

static uint8_t read_data(avr_t *core, avr_io_addr_t address, void *none)
{
    (void)none;
    core->data[address] = uart_read(uart);
    return core->data[address];
}

static void write_data(avr_t *core, avr_io_addr_t address, uint8_t value, void *none)
{
    (void)address;
    (void)none;
    if (core->data[UCSR0B] & TXEN0) {
        uart_write(uart, value, core->cycle);
    }
}

static void reset(avr_io_t *io)
{
    (void)io;
    uart_reset(uart);
    avr->data[UCSR0A] = UDRE0;
    avr->data[UCSR0C] = UCSZ0;
    set_rate();
}

static void take_over(uint16_t address, avr_io_read_t read, avr_io_write_t write)
{
    const uint16_t io = AVR_DATA_TO_IO(address);
    avr->io[io].r.c = read;
    avr->io[io].w.c = write;
}

void usart0_attach(avr_t *core, struct uart *line)
{
    avr_uart_t *const theirs = core->io[AVR_DATA_TO_IO(UDR0)].w.param; /* simavr keeps it nowhere else */

    avr = core;
    uart = line;
    uart->depth = HELD;
    received = &theirs->rxc;
    complete = &theirs->txc;
    empty = &theirs->udrc;
    theirs->io.reset = reset;
    take_over(UCSR0A, read_status, write_status);
    take_over(UCSR0B, NULL, write_control);
    take_over(UBRR0L, NULL, write_rate);
    take_over(UBRR0H, NULL, write_rate);
    take_over(UDR0, read_data, write_data);
    reset(&theirs->io);
}
