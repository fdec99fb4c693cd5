/*
 * Uses a known amount of stack: 100 bytes and four registers in the program, then, while it sleeps at 20 bytes deep and not aligned to
 * eight, an interrupt's frame and two registers: 116 bytes are the most, then 20 + 4 + 32 + 8 = 64 are not.
 */
    .syntax unified
    .cpu cortex-m0plus
    .thumb

    .section .vectors, "a"
    .word stack_top
    .word reset + 1
    .zero 13 * 4
    .word ticked + 1

    .text
    .thumb_func
reset:
    sub sp, #100
    push {r0-r3}
    pop {r0-r3}
    add sp, #100
    ldr r0, =0xE000E010
    ldr r1, =999
    str r1, [r0, #4]
    movs r1, #7
    str r1, [r0]
    sub sp, #20
asleep:
    wfi
    b asleep

    .thumb_func
ticked:
    push {r4, lr}
    pop {r4, pc}
