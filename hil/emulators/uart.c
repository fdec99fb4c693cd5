#include "uart.h"

#define RECEIVER_OFF_BYTE_CYCLES 2000 /* 9600 baud at 2 MHz: a chip that has just started is slow, too */

void uart_reset(struct uart *uart)
{
    uart->held_count = 0;
    uart->overrun = false;
    uart->answer_due = false;
    uart->buffer_full = false;
    uart->shifting = false;
    uart->receiver_on = false;
}

void uart_clear_line(struct uart *uart)
{
    uart->line_count = 0;
}

/* --- From the host ---------------------------------------------------------------------------------------------------------- */

size_t uart_room(const struct uart *uart)
{
    return UART_LINE - uart->line_count;
}

/* As long as the receiver is off its rate means nothing: bytes pass by as slowly as any line has them. */
static uint32_t line_byte_cycles(const struct uart *uart)
{
    return uart->receiver_on ? uart->byte_cycles : RECEIVER_OFF_BYTE_CYCLES;
}

void uart_send(struct uart *uart, uint8_t byte, uint64_t now)
{
    if (uart->line_count == 0) {
        uart->arrives = (uart->arrives > now ? uart->arrives : now) + line_byte_cycles(uart);
    }
    uart->line[(uart->line_first + uart->line_count++) % UART_LINE] = byte;
}

/* A byte that finds all places taken replaces the newest: that one still stands in the shift register. */
static void hold(struct uart *uart, uint8_t byte)
{
    if (uart->held_count == uart->depth) {
        uart->held_count--;
        uart->overrun = true;
        uart->counts.overruns++;
    }
    uart->held[uart->held_count++] = byte;
}

static void arrive(struct uart *uart)
{
    const uint8_t byte = uart->line[uart->line_first];
    uart->line_first = (uart->line_first + 1) % UART_LINE;
    uart->line_count--;

    if (uart->receiver_on) {
        hold(uart, byte);
        uart->counts.received++;
        if (!uart->answer_due) {
            uart->asked = uart->arrives - uart->byte_cycles;
        }
        uart->last_received = uart->arrives;
        uart->answer_due = true;
    }
    if (uart->line_count > 0) {
        uart->arrives += line_byte_cycles(uart);
    }
}

uint8_t uart_read(struct uart *uart)
{
    const uint8_t byte = uart->held[0];
    uart->overrun = false;
    if (uart->held_count > 0) {
        uart->held_count--;
        for (size_t i = 0; i < uart->held_count; i++) {
            uart->held[i] = uart->held[i + 1];
        }
    }
    return byte;
}

/* --- To the host ------------------------------------------------------------------------------------------------------------ */

static void begin_shifting(struct uart *uart, uint8_t byte, uint64_t now)
{
    uart->shift = byte;
    uart->shifting = true;
    uart->shifted = now + uart->byte_cycles;
}

void uart_write(struct uart *uart, uint8_t byte, uint64_t now)
{
    if (uart->answer_due) {
        uart->answer_due = false;
        uart->counts.turnaround = now > uart->last_received ? now - uart->last_received : 0;
        if (uart->counts.turnaround > uart->counts.turnaround_max) {
            uart->counts.turnaround_max = uart->counts.turnaround;
        }
    }
    if (!uart->shifting) {
        begin_shifting(uart, byte, now);
    } else if (!uart->buffer_full) {
        uart->buffer = byte;
        uart->buffer_full = true;
    }
}

static void depart(struct uart *uart)
{
    const uint8_t byte = uart->shift;
    uart->counts.exchange = uart->shifted - uart->asked;
    uart->shifting = false;
    if (uart->buffer_full) {
        uart->buffer_full = false;
        begin_shifting(uart, uart->buffer, uart->shifted);
    }
    uart->counts.transmitted++;
    uart->transmitted(byte);
}

/* --- Time ------------------------------------------------------------------------------------------------------------------- */

uint64_t uart_next(const struct uart *uart)
{
    const uint64_t arrives = uart->line_count > 0 ? uart->arrives : NEVER;
    const uint64_t shifted = uart->shifting ? uart->shifted : NEVER;
    return arrives < shifted ? arrives : shifted;
}

bool uart_run(struct uart *uart, uint64_t now)
{
    bool happened = false;
    for (uint64_t next; (next = uart_next(uart)) <= now; happened = true) {
        if (uart->shifting && uart->shifted == next) {
            depart(uart);
        } else {
            arrive(uart);
        }
    }
    return happened;
}
