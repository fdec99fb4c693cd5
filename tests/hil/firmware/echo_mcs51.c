#include "echo.h"

#include <8052.h>

#define TICK_RELOAD (65536u - 9216u) /* 10 ms of machine cycles at 11.0592 MHz */
#define BAUD_RELOAD 0xFD             /* 9600 baud */
#define DEAF_TURNS 1000u

static volatile uint8_t sent;

void serial(void) __interrupt(SI0_VECTOR)
{
    if (RI) {
        RI = 0;
        echo_received(SBUF);
    }
    if (TI) {
        TI = 0;
        sent = 1;
    }
}

void tick(void) __interrupt(TF0_VECTOR)
{
    TH0 = TICK_RELOAD >> 8;
    TL0 = (uint8_t)TICK_RELOAD;
    echo_ticked();
}

/* Not zero: leave RAM as it is, where the usual startup would clear it. */
unsigned char _sdcc_external_startup(void)
{
    return 1;
}

void chip_start(void)
{
    sent = 1;
    TMOD = 0x21; /* timer 1 with 8 bits, timer 0 with 16 */
    TH1 = TL1 = BAUD_RELOAD;
    SCON = 0x50;
    TR1 = 1;
    TH0 = TICK_RELOAD >> 8;
    TL0 = (uint8_t)TICK_RELOAD;
    TR0 = 1;
    ET0 = 1;
    ES = 1;
    EA = 1;
}

void chip_put(uint8_t byte)
{
    while (!sent) {
    }
    sent = 0;
    SBUF = byte;
}

void chip_sleep_unless_busy(void)
{
    /* An interrupt may come in between; then the tick wakes it, at the latest. */
    if (!echo_busy()) {
        PCON |= IDL;
    }
}

void chip_deaf(void)
{
    EA = 0;
    for (volatile uint16_t turn = 0; turn < DEAF_TURNS; turn++) {
    }
    EA = 1;
}

void chip_hang(void)
{
    for (;;) {
    }
}

void chip_fault(void)
{
    __asm__(".db 0xA5"); /* the one code that is no instruction */
}

void chip_restart(void)
{
    __asm__("ljmp 0");
}

uint8_t chip_cause(void)
{
    return 0;
}
