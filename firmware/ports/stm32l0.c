/*
 * STM32L0 (Nucleo-L053R8, Cortex-M0+): HSI at 16 MHz, USART2 on PA2 and PA3 (the ST-LINK's serial port), SysTick, the independent watchdog
 * at 3.5 s, sleep by WFI. Startup and vectors are here, because a build without a framework has none.
 */
#include "cortex_m0.h"
#include "mcpax.h"
#include "port.h"
#define RING_SIZE 8 /* enough to check a frame by; one that comes in while an answer goes out is lost and sent again: RAM is what counts here */
#include "ring.h"

#define CLOCK_HZ 16000000u

#define RCC 0x40021000u
#define RCC_CR REGISTER(RCC + 0x00)
#define RCC_CR_HSI16ON (1u << 0)
#define RCC_CFGR REGISTER(RCC + 0x0C)
#define RCC_CFGR_SW_HSI16 1u
#define RCC_APB1ENR REGISTER(RCC + 0x38)
#define RCC_APB1ENR_USART2EN (1u << 17)
#define RCC_IOPENR REGISTER(RCC + 0x2C)

#define FLASH_ACR REGISTER(0x40022000)
#define FLASH_ACR_LATENCY 1u

#define GPIOA 0x50000000u
#define GPIOA_MODER REGISTER(GPIOA + 0x00)
#define GPIOA_AFRL REGISTER(GPIOA + 0x20)

#define USART2 0x40004400u
#define USART_CR1 REGISTER(USART2 + 0x00)
#define USART_CR1_ON 0x2Du /* RXNEIE, TE, RE, UE */
#define USART_BRR REGISTER(USART2 + 0x0C)
#define USART_ISR REGISTER(USART2 + 0x1C)
#define USART_ISR_TXE (1u << 7)
#define USART_ICR REGISTER(USART2 + 0x20)
#define USART_ICR_ORECF (1u << 3)
#define USART_RDR REGISTER(USART2 + 0x24)
#define USART_TDR REGISTER(USART2 + 0x28)
#define USART2_INTERRUPT 28

#define IWDG 0x40003000u
#define IWDG_KR REGISTER(IWDG + 0x00)
#define IWDG_KR_UNLOCK 0x5555u
#define IWDG_KR_FEED 0xAAAAu
#define IWDG_KR_START 0xCCCCu
#define IWDG_PR REGISTER(IWDG + 0x04)
#define IWDG_PR_32 3u /* 37 kHz / 32, and 4096 of those */

IN_GAP static void received(void)
{
    ring_put((uint8_t)USART_RDR);
    USART_ICR = USART_ICR_ORECF; /* else a byte that came too late would interrupt for ever */
}

static void ticked(void)
{
    /* It wakes; that it was here is remembered by SysTick itself. */
}

IN_GAP __attribute__((naked)) static void reset(void)
{
    STARTUP();
}

CORE_VECTORS = {
    [0] = (vector *)stack_top,
    [1] = reset,
    [15] = ticked,
};

INTERRUPT_VECTORS = {received}; /* number 28; where those before it would be is the gap */

void port_start(void)
{
    IWDG_KR = IWDG_KR_START;
    IWDG_KR = IWDG_KR_UNLOCK;
    IWDG_PR = IWDG_PR_32;
    FLASH_ACR = FLASH_ACR_LATENCY; /* at the voltage range after reset, flash takes a wait state above 8 MHz */
    RCC_CR |= RCC_CR_HSI16ON;
    RCC_CFGR = RCC_CFGR_SW_HSI16; /* the switch itself waits until HSI16 is stable */
    RCC_IOPENR = 0x7;             /* A to C: UART, LED, button */
    RCC_APB1ENR = RCC_APB1ENR_USART2EN;
    GPIOA_MODER = (GPIOA_MODER & ~0xF0u) | 0xA0u; /* PA2, PA3: alternate function */
    GPIOA_AFRL = 0x4400u;                         /* 4: USART2 */
    USART_BRR = (CLOCK_HZ + MCPAX_BAUD / 2) / MCPAX_BAUD;
    USART_CR1 = USART_CR1_ON;
    NVIC_ISER = 1u << USART2_INTERRUPT;
    SYST_RVR = CLOCK_HZ / 1000 * APP_TICK_MS - 1;
    SYST_CVR = 0;
    SYST_CSR = SYST_CSR_ON;
}

int16_t port_get(void)
{
    return ring_get();
}

bool port_ticked(void)
{
    return (SYST_CSR & SYST_CSR_COUNTFLAG) != 0;
}

void port_sleep(void)
{
    IWDG_KR = IWDG_KR_FEED;
    __asm volatile("cpsid i" ::: "memory");
    if (ring_is_empty()) { /* a byte that comes from here on is pending, and wakes at once; a tick just before is seen with the next */
        __asm volatile("wfi");
    }
    __asm volatile("cpsie i" ::: "memory");
}

void mcpax_port_put(uint8_t byte)
{
    while ((USART_ISR & USART_ISR_TXE) == 0) {
    }
    USART_TDR = byte;
}
