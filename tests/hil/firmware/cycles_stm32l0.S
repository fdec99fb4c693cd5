/* Leaves at the start of RAM how many cycles pass, by SysTick, from one reading of it to the next with some instructions between. */
    .syntax unified
    .cpu cortex-m0plus
    .thumb

    .section .vectors, "a"
    .word stack_top
    .word reset + 1

    .text
    .thumb_func
reset:
    ldr r0, =0xE000E010
    ldr r1, =0xFFFFFF
    str r1, [r0, #4]
    movs r1, #5
    str r1, [r0]
    ldr r5, =0x20000000
    ldr r1, [r0, #8]    /* 2 cycles */
    movs r2, #10        /* 1 */
again:
    subs r2, #1         /* 10 × 1 */
    bne again           /* 9 × 2 + 1 */
    bl callee           /* 3 */
    str r2, [r5, #4]    /* 2 */
    ldr r3, [r0, #8]
    subs r1, r1, r3
    str r1, [r5]
asleep:
    wfi
    b asleep

    .thumb_func
callee:
    push {r4, lr}       /* 1 + 2 */
    muls r2, r2, r2     /* 1 */
    mrs r4, primask     /* 3 */
    pop {r4, pc}        /* 3 + 2 */
