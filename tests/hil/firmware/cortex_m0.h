/* What both Cortex-M0 chips have in common: startup, core registers, sleep. */
#ifndef CORTEX_M0_H
#define CORTEX_M0_H

#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define SYST_CSR REGISTER(0xE000E010u)
#define SYST_RVR REGISTER(0xE000E014u)
#define SYST_CVR REGISTER(0xE000E018u)
#define SYST_ON 7u /* core clock, interrupt, enable */
#define NVIC_ISER REGISTER(0xE000E100u)
#define AIRCR REGISTER(0xE000ED0Cu)
#define AIRCR_RESET 0x05FA0004u

typedef void handler(void);

extern uint32_t stack_top[], bss_start[], bss_end[];

int main(void);

static inline void startup(void)
{
    for (uint32_t *word = bss_start; word < bss_end; word++) {
        *word = 0;
    }
    main();
}

static inline void interrupts_off(void)
{
    __asm volatile("cpsid i" ::: "memory");
}

static inline void interrupts_on(void)
{
    __asm volatile("cpsie i" ::: "memory");
}

static inline void wait_for_interrupt(void)
{
    __asm volatile("wfi" ::: "memory");
}

#endif
