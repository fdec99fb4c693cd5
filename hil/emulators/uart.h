/*
 * A UART and its line, counted in cycles of the chip: bytes from the host arrive one byte time apart and wait until the program fetches
 * them, bytes from the program pass a buffer and a shift register. Registers, flags and interrupts are the chip's; this knows none.
 */
#ifndef UART_H
#define UART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER UINT64_MAX      /* as a cycle */
#define UART_LINE 256         /* bytes that may be under way from the host */
#define UART_HELD_MAX 3
#define UART_BITS_PER_BYTE 10 /* start, eight data, stop */

struct uart_counts {
    uint64_t received;
    uint64_t transmitted;
    uint64_t overruns;       /* bytes lost because the program did not fetch them in time */
    uint64_t turnaround;     /* cycles from the last received byte to the first of the answer, in the last exchange */
    uint64_t turnaround_max;
    uint64_t exchange;       /* cycles from the first bit of what was received to the last bit of the answer, in the last exchange */
};

struct uart {
    /* The chip sets these. */
    uint32_t byte_cycles;                /* what a byte takes at the rate of the baud registers */
    uint8_t depth;                       /* received bytes the hardware holds, at most UART_HELD_MAX */
    bool receiver_on;
    void (*transmitted)(uint8_t byte);   /* a byte has left the chip */

    struct uart_counts counts;

    uint8_t line[UART_LINE];
    size_t line_first;
    size_t line_count;
    uint64_t arrives;                    /* when the first byte on the line is complete, or when the last one was */

    uint8_t held[UART_HELD_MAX];
    uint8_t held_count;
    bool overrun;                        /* a byte was lost since the program last fetched one */
    bool answer_due;                     /* received something and sent nothing since */
    uint64_t asked;                      /* when the first byte of what is to be answered began to arrive */
    uint64_t last_received;

    uint8_t buffer;
    bool buffer_full;
    uint8_t shift;
    bool shifting;
    uint64_t shifted;                    /* when the byte in the shift register is through */
};

/* The chip, or this part of it, was reset: whatever it held is lost. What is still on the line arrives nevertheless, unless cleared. */
void uart_reset(struct uart *uart);
void uart_clear_line(struct uart *uart);

/* The host sends a byte; there must be room. */
size_t uart_room(const struct uart *uart);
void uart_send(struct uart *uart, uint8_t byte, uint64_t now);

/* Let arrive and depart what is complete by now; true if anything happened. uart_next: when it will be worth calling. */
bool uart_run(struct uart *uart, uint64_t now);
uint64_t uart_next(const struct uart *uart);

/* The program reads the oldest received byte, or writes a byte if it may. */
uint8_t uart_read(struct uart *uart);
void uart_write(struct uart *uart, uint8_t byte, uint64_t now);

#endif
