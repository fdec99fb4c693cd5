#include "echo.h"
#include "stm32l0.h"

#define WATCHDOG_RELOAD 92u /* × 4 / 37 kHz: 10 ms */
#define DEAF_TURNS 4000u    /* × 3 cycles */

static void received(void)
{
    echo_received((uint8_t)USART_RDR);
    USART_ICR = USART_ICR_ORECF;
}

static void reset(void)
{
    startup();
}

__attribute__((section(".vectors"), used)) static handler *const vectors[16 + USART2_INTERRUPT + 1] = {
    [0] = (handler *)stack_top,
    [1] = reset,
    [15] = echo_ticked,
    [16 + USART2_INTERRUPT] = received,
};

void chip_start(void)
{
    usart_start(USART_CR1_RXNEIE);
    NVIC_ISER = 1u << USART2_INTERRUPT;
    SYST_RVR = CLOCK_HZ / 100 - 1;
    SYST_CVR = 0;
    SYST_CSR = SYST_ON;
}

void chip_put(uint8_t byte)
{
    usart_put(byte);
}

void chip_sleep_unless_busy(void)
{
    interrupts_off();
    if (!echo_busy()) {
        wait_for_interrupt();
    }
    interrupts_on();
}

void chip_deaf(void)
{
    interrupts_off();
    for (volatile uint32_t turn = 0; turn < DEAF_TURNS; turn++) {
    }
    interrupts_on();
}

void chip_hang(void)
{
    IWDG_KR = 0xCCCC;
    IWDG_KR = 0x5555;
    IWDG_RLR = WATCHDOG_RELOAD;
    IWDG_KR = 0xAAAA;
    interrupts_off();
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
    const uint8_t cause = (uint8_t)(RCC_CSR >> RCC_CSR_CAUSE_BIT);
    RCC_CSR = RCC_CSR_FORGET;
    return cause;
}
