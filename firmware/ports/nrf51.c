/*
 * nRF51822 (micro:bit, Cortex-M0): UART0 on P0.24 and P0.25 (the board's USB serial port), TIMER0 as tick, the watchdog at 2 s, sleep by WFI.
 * Startup and vectors are here, because a build without a framework has none.
 */
#include "cortex_m0.h"
#include "mcpax.h"
#include "port.h"
#define RING_SIZE 64 /* there is RAM enough, and QEMU delivers in bursts what it is late with */
#include "ring.h"

#define CLOCK_HZ 16000000u

#define UART 0x40002000u
#define UART_STARTRX REGISTER(UART + 0x000)
#define UART_STARTTX REGISTER(UART + 0x008)
#define UART_RXDRDY REGISTER(UART + 0x108)
#define UART_TXDRDY REGISTER(UART + 0x11C)
#define UART_INTENSET REGISTER(UART + 0x304)
#define UART_INT_RXDRDY (1u << 2)
#define UART_ENABLE REGISTER(UART + 0x500)
#define UART_PSELTXD REGISTER(UART + 0x50C)
#define UART_PSELRXD REGISTER(UART + 0x514)
#define UART_RXD REGISTER(UART + 0x518)
#define UART_TXD REGISTER(UART + 0x51C)
#define UART_BAUDRATE REGISTER(UART + 0x524)
#define UART_BAUD_STEP 0x1000u /* the lowest bits of the register do not count */
#define UART_INTERRUPT 2
#define PIN_TXD 24
#define PIN_RXD 25

#define TIMER0 0x40008000u
#define TIMER_START REGISTER(TIMER0 + 0x000)
#define TIMER_COMPARE0 REGISTER(TIMER0 + 0x140)
#define TIMER_SHORTS REGISTER(TIMER0 + 0x200)
#define TIMER_SHORT_COMPARE0_CLEAR 1u
#define TIMER_INTENSET REGISTER(TIMER0 + 0x304)
#define TIMER_INT_COMPARE0 (1u << 16)
#define TIMER_BITMODE REGISTER(TIMER0 + 0x508)
#define TIMER_BITMODE_32 3u
#define TIMER_CC0 REGISTER(TIMER0 + 0x540)
#define TIMER_HZ 1000000u /* at the prescaler it has after reset, 2^4 */
#define TIMER_INTERRUPT 8

#define WDT 0x40010000u
#define WDT_START REGISTER(WDT + 0x000)
#define WDT_CRV REGISTER(WDT + 0x504)
#define WDT_CRV_2_S (2u * 32768u)
#define WDT_RR0 REGISTER(WDT + 0x600)
#define WDT_FEED 0x6E524635u

static volatile bool has_ticked;

static void received(void)
{
    UART_RXDRDY = 0;
    ring_put((uint8_t)UART_RXD);
}

static void ticked(void)
{
    TIMER_COMPARE0 = 0;
    has_ticked = true;
}

__attribute__((naked)) static void reset(void)
{
    STARTUP();
}

CORE_VECTORS = {
    [0] = (vector *)stack_top,
    [1] = reset,
};

INTERRUPT_VECTORS = {
    [0] = received, /* number 2, the first that the linker script leaves room for */
    [TIMER_INTERRUPT - UART_INTERRUPT] = ticked,
};

void port_start(void)
{
    WDT_CRV = WDT_CRV_2_S;
    WDT_START = 1;
    UART_PSELTXD = PIN_TXD;
    UART_PSELRXD = PIN_RXD;
    UART_ENABLE = 4; /* before the rate: QEMU takes none while it is off */
    UART_BAUDRATE = (uint32_t)((((uint64_t)MCPAX_BAUD << 32) / CLOCK_HZ + UART_BAUD_STEP / 2) / UART_BAUD_STEP * UART_BAUD_STEP);
    UART_INTENSET = UART_INT_RXDRDY;
    UART_STARTRX = 1;
    UART_STARTTX = 1;
    TIMER_BITMODE = TIMER_BITMODE_32;
    TIMER_CC0 = TIMER_HZ / 1000 * APP_TICK_MS;
    TIMER_SHORTS = TIMER_SHORT_COMPARE0_CLEAR;
    TIMER_INTENSET = TIMER_INT_COMPARE0;
    TIMER_START = 1;
    NVIC_ISER = 1u << UART_INTERRUPT | 1u << TIMER_INTERRUPT;
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
    WDT_RR0 = WDT_FEED;
    __asm volatile("cpsid i" ::: "memory");
    if (ring_is_empty() && !has_ticked) {
        __asm volatile("wfi"); /* an interrupt that comes right before stays pending, and wakes at once */
    }
    __asm volatile("cpsie i" ::: "memory");
}

void mcpax_port_put(uint8_t byte)
{
    UART_TXDRDY = 0;
    UART_TXD = byte;
    while (UART_TXDRDY == 0) {
    }
}
