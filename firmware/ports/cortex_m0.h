/*
 * What all Cortex-M0 and M0+ chips share: startup, the system's exceptions, the tick, sleep. Included by the port of a chip, which
 * gives its interrupts and the clock.
 */
#ifndef CORTEX_M0_H
#define CORTEX_M0_H

#include <stdbool.h>
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define NVIC_ISER REGISTER(0xE000E100)
#define SYST_CSR REGISTER(0xE000E010)
#define SYST_RVR REGISTER(0xE000E014)
#define SYST_CVR REGISTER(0xE000E018)
#define SYST_CSR_ON 7u                   /* core clock, interrupt, running */
#define SYST_CSR_COUNTFLAG (1u << 16)    /* ticked since it was last read */

extern uint32_t stack_top[]; /* from the linker script */

/*
 * The vectors, from the first of the core to that of the last interrupt in use. Where interrupts before the first one in use would have theirs,
 * the linker script puts what is IN_GAP, so that a high interrupt number costs no flash.
 */
typedef void vector(void);
#define CORE_VECTORS __attribute__((section(".vectors.core"), used)) static vector *const core_vectors[16]
#define INTERRUPT_VECTORS __attribute__((section(".vectors.interrupts"), used)) static vector *const interrupt_vectors[]
#define IN_GAP __attribute__((section(".gap"), used))

/* In assembly, because it needs no stack: what it would save there is of no use to anyone. .bss follows .data. */
#define STARTUP()                                                                                                                          \
    __asm__ volatile("    ldr r0, =data_start\n"                                                                                           \
                     "    ldr r1, =data_end\n"                                                                                             \
                     "    ldr r2, =data_load\n"                                                                                            \
                     "    b 2f\n"                                                                                                          \
                     "1:  ldmia r2!, {r3}\n"                                                                                               \
                     "    stmia r0!, {r3}\n"                                                                                               \
                     "2:  cmp r0, r1\n"                                                                                                    \
                     "    bne 1b\n"                                                                                                        \
                     "    ldr r1, =bss_end\n"                                                                                              \
                     "    movs r3, #0\n"                                                                                                   \
                     "    b 4f\n"                                                                                                          \
                     "3:  stmia r0!, {r3}\n"                                                                                               \
                     "4:  cmp r0, r1\n"                                                                                                    \
                     "    bne 3b\n"                                                                                                        \
                     "    bl main\n"                                                                                                       \
                     "    .ltorg")

#endif
