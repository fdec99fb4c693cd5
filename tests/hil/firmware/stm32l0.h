/* The registers of the STM32L053 that the test programs use, and USART2 at 115200 baud from HSI16. */
#ifndef STM32L0_H
#define STM32L0_H

#include "cortex_m0.h"

#define CLOCK_HZ 16000000u
#define BAUD 115200u
#define RCC_CR REGISTER(0x40021000u)
#define RCC_CFGR REGISTER(0x4002100Cu)
#define RCC_IOPENR REGISTER(0x4002102Cu)
#define RCC_APB1ENR REGISTER(0x40021038u)
#define RCC_CSR REGISTER(0x40021050u)
#define RCC_CSR_CAUSE_BIT 24
#define RCC_CSR_FORGET (1u << 23)
#define GPIOA_MODER REGISTER(0x50000000u)
#define GPIOA_AFRL REGISTER(0x50000020u)
#define USART_CR1 REGISTER(0x40004400u)
#define USART_CR1_ON 0x0Du /* TE, RE, UE */
#define USART_CR1_RXNEIE 0x20u
#define USART_BRR REGISTER(0x4000440Cu)
#define USART_ISR REGISTER(0x4000441Cu)
#define USART_ISR_RXNE 0x20u
#define USART_ISR_TXE 0x80u
#define USART_ICR REGISTER(0x40004420u)
#define USART_ICR_ORECF 0x08u
#define USART_RDR REGISTER(0x40004424u)
#define USART_TDR REGISTER(0x40004428u)
#define USART2_INTERRUPT 28
#define IWDG_KR REGISTER(0x40003000u)
#define IWDG_PR REGISTER(0x40003004u)
#define IWDG_RLR REGISTER(0x40003008u)

static inline void usart_start(uint32_t interrupt_enable)
{
    RCC_CR |= 1;
    while ((RCC_CR & 4) == 0) {
    }
    RCC_CFGR = 1;
    RCC_IOPENR = 1;
    RCC_APB1ENR = 1u << 17;
    GPIOA_MODER = (GPIOA_MODER & ~0xF0u) | 0xA0u;
    GPIOA_AFRL = 0x4400u;
    USART_BRR = (CLOCK_HZ + BAUD / 2) / BAUD;
    USART_CR1 = USART_CR1_ON | interrupt_enable;
}

static inline void usart_put(uint8_t byte)
{
    while ((USART_ISR & USART_ISR_TXE) == 0) {
    }
    USART_TDR = byte;
}

#endif
