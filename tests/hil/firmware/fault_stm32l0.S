/* One mistake, WHICH, as the first thing a program does. */
    .syntax unified
    .cpu cortex-m0plus
    .thumb

    .section .vectors, "a"
    .word stack_top
    .word reset + 1

    .text
    .thumb_func
reset:
    ldr r0, =0x20000001
    ldr r1, =0x08000100
    ldr r2, =0x40013800
    ldr r3, =0x60000000
    WHICH
    b reset
