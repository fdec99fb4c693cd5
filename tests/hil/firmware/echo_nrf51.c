#include "cortex_m0.h"
#include "echo.h"

#define UART_STARTRX REGISTER(0x40002000u)
#define UART_STARTTX REGISTER(0x40002008u)
#define UART_RXDRDY REGISTER(0x40002108u)
#define UART_TXDRDY REGISTER(0x4000211Cu)
#define UART_INTENSET REGISTER(0x40002304u)
#define UART_INTEN_RXDRDY (1u << 2)
#define UART_ENABLE REGISTER(0x40002500u)
#define UART_ENABLED 4u
#define UART_RXD REGISTER(0x40002518u)
#define UART_TXD REGISTER(0x4000251Cu)
#define UART_BAUDRATE REGISTER(0x40002524u)
#define UART_115200 0x01D7E000u
#define UART_INTERRUPT 2
#define TIMER_START REGISTER(0x40008000u)
#define TIMER_CAPTURE1 REGISTER(0x40008044u)
#define TIMER_COMPARE0 REGISTER(0x40008140u)
#define TIMER_SHORTS REGISTER(0x40008200u)
#define TIMER_SHORT_COMPARE0_CLEAR 1u
#define TIMER_INTENSET REGISTER(0x40008304u)
#define TIMER_INTEN_COMPARE0 (1u << 16)
#define TIMER_BITMODE REGISTER(0x40008508u)
#define TIMER_PRESCALER REGISTER(0x40008510u)
#define TIMER_CC0 REGISTER(0x40008540u)
#define TIMER_CC1 REGISTER(0x40008544u)
#define TIMER_INTERRUPT 8
#define TICK_US 10000u
#define DEAF_TURNS 5u
#define DEAF_TURN_US 9000u

static void received(void)
{
    while (UART_RXDRDY) {
        UART_RXDRDY = 0;
        echo_received((uint8_t)UART_RXD);
    }
}

static void ticked(void)
{
    TIMER_COMPARE0 = 0;
    echo_ticked();
}

static void reset(void)
{
    startup();
}

__attribute__((section(".vectors"), used)) static handler *const vectors[16 + TIMER_INTERRUPT + 1] = {
    [0] = (handler *)stack_top,
    [1] = reset,
    [16 + UART_INTERRUPT] = received,
    [16 + TIMER_INTERRUPT] = ticked,
};

void chip_start(void)
{
    UART_ENABLE = UART_ENABLED; /* first, because QEMU's takes nothing while it is off */
    UART_BAUDRATE = UART_115200;
    UART_INTENSET = UART_INTEN_RXDRDY;
    UART_STARTTX = 1;
    UART_STARTRX = 1;
    TIMER_BITMODE = 0;   /* 16 bits */
    TIMER_PRESCALER = 4; /* 1 MHz */
    TIMER_CC0 = TICK_US;
    TIMER_SHORTS = TIMER_SHORT_COMPARE0_CLEAR;
    TIMER_INTENSET = TIMER_INTEN_COMPARE0;
    TIMER_START = 1;
    NVIC_ISER = 1u << UART_INTERRUPT | 1u << TIMER_INTERRUPT;
}

void chip_put(uint8_t byte)
{
    UART_TXDRDY = 0;
    UART_TXD = byte;
    while (!UART_TXDRDY) {
    }
}

void chip_sleep_unless_busy(void)
{
    interrupts_off();
    if (!echo_busy()) {
        wait_for_interrupt();
    }
    interrupts_on();
}

static uint32_t now_us(void)
{
    TIMER_CAPTURE1 = 1;
    return TIMER_CC1;
}

void chip_deaf(void)
{
    interrupts_off();
    for (uint32_t turn = 0; turn < DEAF_TURNS; turn++) {
        const uint32_t began = now_us();
        while ((now_us() + TICK_US - began) % TICK_US < DEAF_TURN_US) {
        }
    }
    interrupts_on();
}

void chip_hang(void)
{
    for (;;) {
        __asm volatile("");
    }
}

void chip_fault(void)
{
    __asm volatile("udf #0");
}

void chip_restart(void)
{
    AIRCR = AIRCR_RESET;
}

uint8_t chip_cause(void)
{
    return 0;
}
