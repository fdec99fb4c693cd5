/*
 * A computation under a storm of interrupts: for each byte received, N, it computes a sum while SysTick interrupts every N + 50 cycles
 * (not at all for N = 0), and answers with the sum's four bytes. The handler spoils every register that it may.
 */
#include "stm32l0.h"

#define TURNS 300u
#define LEAST_PERIOD 50u

__attribute__((naked)) static void spoil(void)
{
    __asm volatile(".syntax unified\n movs r0, #0\n mvns r0, r0\n movs r1, r0\n movs r2, r0\n movs r3, r0\n mov r12, r0\n"
                   "adds r0, r0, r0\n"
                   "push {r4, lr}\n movs r4, #9\n subs r4, #9\n pop {r4, pc}\n");
}

static uint32_t sum(void)
{
    uint32_t a = 1, b = 0x12345678, c = 0xDEADBEEF, carry = 0;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        a ^= a << 13;
        a ^= a >> 17;
        a ^= a << 5;
        b += a;
        carry += b < a; /* by the carry flag */
        c = (c >> 3 | c << 29) ^ (b * a);
        if ((int32_t)c < (int32_t)b) {
            b -= turn;
        }
    }
    return a ^ b ^ c ^ carry;
}

static void reset(void)
{
    startup();
}

__attribute__((section(".vectors"), used)) static handler *const vectors[16] = {
    [0] = (handler *)stack_top,
    [1] = reset,
    [15] = spoil,
};

int main(void)
{
    usart_start(0);
    for (;;) {
        while ((USART_ISR & USART_ISR_RXNE) == 0) {
        }
        const uint32_t period = USART_RDR;
        if (period > 0) {
            SYST_RVR = period + LEAST_PERIOD - 1;
            SYST_CVR = 0;
            SYST_CSR = SYST_ON;
        }
        const uint32_t result = sum();
        SYST_CSR = 0;
        for (uint32_t shift = 0; shift < 32; shift += 8) {
            usart_put((uint8_t)(result >> shift));
        }
    }
}
