/*
 * Startup, vectors and arithmetic for clang, which brings none for the MSP430; mspgcc has its own. To be compiled without -flto: the compiler
 * makes calls to the arithmetic too late for the linker to know.
 */
#if defined(__clang__)

#include <stdint.h>

__asm__(".section .text.start,\"ax\",@progbits\n"
        ".global start\n"
        "start:      mov #stack_top, r1\n"
        "            mov #data_load, r13\n"
        "            mov #data_start, r12\n"
        "copy_data:  cmp #data_end, r12\n"
        "            jeq data_is_there\n"
        "            mov.b @r13+, r14\n"
        "            mov.b r14, 0(r12)\n"
        "            inc r12\n"
        "            jmp copy_data\n"
        "data_is_there:\n"
        "            mov #bss_start, r12\n"
        "clear_bss:  cmp #bss_end, r12\n"
        "            jeq bss_is_clear\n"
        "            clr.b 0(r12)\n"
        "            inc r12\n"
        "            jmp clear_bss\n"
        "bss_is_clear:\n"
        "            br #main\n"
        ".text\n");

/* A handler returns to where the interrupt came, also to sleep; so the saved status is told to be awake before the handler is entered. */
__asm__(".section .text.wake,\"ax\",@progbits\n"
        "wake_received: bic #16, 0(r1)\n"
        "               br #port_received\n"
        "wake_tick:     bic #16, 0(r1)\n"
        "               br #port_tick\n"
        ".section .vectors,\"a\",@progbits\n"
        "               .short 0, 0, 0, 0, 0, 0, 0, wake_received\n"
        "               .short 0, wake_tick, 0, 0, 0, 0, 0, start\n"
        ".text\n");

void *memcpy(void *to, const void *from, uint16_t size);
uint16_t __mspabi_mpyi(uint16_t a, uint16_t b);
uint32_t __mspabi_srll(uint32_t number, uint16_t count);
uint32_t __mspabi_slll(uint32_t number, uint16_t count);
uint16_t __mspabi_srli(uint16_t number, uint16_t count);
uint16_t __mspabi_slli(uint16_t number, uint16_t count);

void *memcpy(void *to, const void *from, uint16_t size)
{
    uint8_t *target = to;
    for (const uint8_t *source = from; size-- > 0;) {
        *target++ = *source++;
    }
    return to;
}

/* The chip has no multiplier. */
uint16_t __mspabi_mpyi(uint16_t a, uint16_t b)
{
    uint16_t product = 0;
    for (; b > 0; b >>= 1) {
        if (b & 1u) {
            product = (uint16_t)(product + a);
        }
        a = (uint16_t)(a << 1);
    }
    return product;
}

/* Shifts by one are instructions, so these do not call themselves. */
uint32_t __mspabi_srll(uint32_t number, uint16_t count)
{
    while (count-- > 0) {
        number >>= 1;
    }
    return number;
}

uint32_t __mspabi_slll(uint32_t number, uint16_t count)
{
    while (count-- > 0) {
        number <<= 1;
    }
    return number;
}

uint16_t __mspabi_srli(uint16_t number, uint16_t count)
{
    while (count-- > 0) {
        number >>= 1;
    }
    return number;
}

uint16_t __mspabi_slli(uint16_t number, uint16_t count)
{
    while (count-- > 0) {
        number = (uint16_t)(number << 1);
    }
    return number;
}

#endif
