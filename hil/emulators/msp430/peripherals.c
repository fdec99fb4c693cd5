#include "peripherals.h"

#include <string.h>

/* Registers, SLAS735 */
enum {
    IE1 = 0x00,
    IE2 = 0x01,
    IFG1 = 0x02,
    IFG2 = 0x03,
    P1IN = 0x20,
    P1OUT = 0x21,
    P1DIR = 0x22,
    P2OUT = 0x29,
    BCSCTL3 = 0x53,
    DCOCTL = 0x56,
    BCSCTL1 = 0x57,
    UCA0CTL1 = 0x61,
    UCA0BR0 = 0x62,
    UCA0BR1 = 0x63,
    UCA0MCTL = 0x64,
    UCA0STAT = 0x65,
    UCA0RXBUF = 0x66,
    UCA0TXBUF = 0x67,
    WORDS = 0x100, /* from here on registers have 16 bits */
    WDTCTL = 0x120,
    TA0CTL = 0x160,
    TA0CCTL0 = 0x162,
    TA0R = 0x170,
    TA0CCR0 = 0x172,
    REGISTERS_END = 0x200,
};

/* Their bits, SLAU144 */
enum {
    WDTIFG = 0x01, /* IFG1; IE1 has WDTIE in the same place */
    OFIFG = 0x02,
    PORIFG = 0x04,
    RSTIFG = 0x08,
    UCA0RXIFG = 0x01, /* IFG2; IE2 has the enables in the same places */
    UCA0TXIFG = 0x02,
    UCB0TXIFG = 0x08,
    RSEL = 0x0F,           /* BCSCTL1 */
    LFXT1S = 0x30,         /* BCSCTL3 */
    LFXT1S_VLO = 0x20,
    UCSWRST = 0x01,        /* UCA0CTL1 */
    UCOS16 = 0x01,         /* UCA0MCTL */
    UCOE = 0x20,           /* UCA0STAT */
    UCBUSY = 0x01,
    WDTPW = 0x5A00,        /* WDTCTL */
    WDTREADS = 0x6900,
    WDTHOLD = 0x80,
    WDTTMSEL = 0x10,
    WDTCNTCL = 0x08,
    WDTSSEL = 0x04,
    WDTIS = 0x03,
    TASSEL = 0x0300,       /* TA0CTL */
    TASSEL_ACLK = 0x0100,
    MC = 0x0030,
    MC_UP = 0x0010,
    TACLR = 0x0004,
    CCIE = 0x0010,         /* TA0CCTL0 */
    CCIFG = 0x0001,
};

enum { VECTOR_WDT = 0xFFF4, VECTOR_TIMER0_A0 = 0xFFF2, VECTOR_USCI_RX = 0xFFEE, VECTOR_USCI_TX = 0xFFEC };

#define DCO_RESET_HERTZ 1100000 /* also for any other setting that is not one of the calibrated */
#define VLO_HERTZ 12000
#define DCOCTL_RESET 0x60
#define BCSCTL1_RESET 0x87
#define BUTTON_S2 0x08          /* P1.3 */
#define RECEIVE_DEPTH 1         /* UCA0RXBUF; the shift register overwrites it */

const struct calibration calibrations[CALIBRATIONS] = {
    {0x10F8, 0x90, 0x8F, 16000000}, {0x10FA, 0x8E, 0x8E, 12000000}, {0x10FC, 0x8D, 0x8D, 8000000}, {0x10FE, 0xA0, 0x86, 1000000}};

static struct chip *chip;
static uint8_t registers[REGISTERS_END];
static uint8_t inputs_p1 = 0xFF; /* nothing is connected: inputs are high, as by a pull-up */

static uint16_t word_at(uint16_t address)
{
    return (uint16_t)(registers[address] | registers[address + 1] << 8);
}

static void set_word(uint16_t address, uint16_t value)
{
    registers[address] = (uint8_t)value;
    registers[address + 1] = (uint8_t)(value >> 8);
}

/* Cycles of a tick of ACLK. There is no crystal on the board: without the VLO, what wants ACLK is given MCLK (SLAU144, WDT+ clock fail-safe). */
static uint64_t aclk_cycles(void)
{
    return (registers[BCSCTL3] & LFXT1S) == LFXT1S_VLO ? chip->hertz / VLO_HERTZ : 1;
}

/* --- Watchdog --------------------------------------------------------------------------------------------------------------- */

static struct {
    uint64_t began;   /* cycle at which its counter was zero */
    uint64_t elapsed; /* of it, while on hold */
    uint64_t due;
    bool reset_due;
} watchdog;

static void schedule_watchdog(void)
{
    static const uint32_t intervals[] = {32768, 8192, 512, 64};
    const uint8_t control = registers[WDTCTL];
    const uint64_t tick = control & WDTSSEL ? aclk_cycles() : 1;
    watchdog.due = control & WDTHOLD ? NEVER : watchdog.began + intervals[control & WDTIS] * tick;
}

static void write_watchdog(uint16_t value)
{
    if ((value & 0xFF00) != WDTPW) {
        registers[IFG1] |= WDTIFG;
        watchdog.reset_due = true;
        return;
    }
    if (!(registers[WDTCTL] & WDTHOLD)) {
        watchdog.elapsed = chip->cycle - watchdog.began;
    }
    if (value & WDTCNTCL) {
        watchdog.elapsed = 0;
    }
    watchdog.began = chip->cycle - watchdog.elapsed;
    set_word(WDTCTL, (uint16_t)(WDTREADS | (value & 0xFF & ~WDTCNTCL)));
    schedule_watchdog();
}

static void run_watchdog(void)
{
    while (watchdog.due <= chip->cycle) {
        registers[IFG1] |= WDTIFG;
        watchdog.began = watchdog.due;
        schedule_watchdog();
        if (!(registers[WDTCTL] & WDTTMSEL)) {
            watchdog.reset_due = true;
            return;
        }
    }
}

bool peripherals_reset_due(void)
{
    const bool due = watchdog.reset_due;
    watchdog.reset_due = false;
    return due;
}

/* --- Timer0_A, channel 0: counting up to TA0CCR0, or on and on ---------------------------------------------------------------- */

static struct {
    uint64_t zero;  /* cycle at which it last was, or would have been, zero */
    uint16_t count; /* while it stands still */
    uint64_t match; /* cycle at which it next reaches TA0CCR0 */
} timer;

static bool timer_counts(void)
{
    const uint16_t mode = word_at(TA0CTL) & MC;
    return mode != 0 && !(mode == MC_UP && word_at(TA0CCR0) == 0);
}

static uint64_t timer_tick(void)
{
    const uint16_t control = word_at(TA0CTL);
    return ((control & TASSEL) == TASSEL_ACLK ? aclk_cycles() : 1) << (control >> 6 & 3);
}

static uint64_t timer_period(void)
{
    return (word_at(TA0CTL) & MC) == MC_UP ? word_at(TA0CCR0) + UINT64_C(1) : 0x10000;
}

static uint16_t timer_count(void)
{
    return timer_counts() ? (uint16_t)((chip->cycle - timer.zero) / timer_tick() % timer_period()) : timer.count;
}

/* Go on from that count with the registers as they are now. */
static void schedule_timer(uint16_t count)
{
    timer.count = count;
    timer.match = NEVER;
    if (timer_counts()) {
        const uint64_t from = count < timer_period() ? count : 0;
        const uint64_t compare = word_at(TA0CCR0);
        const uint64_t ahead = compare > from ? compare - from : compare + timer_period() - from;
        timer.zero = chip->cycle - from * timer_tick();
        timer.match = chip->cycle + ahead * timer_tick();
    }
}

static void write_timer(uint16_t address, uint16_t value)
{
    uint16_t count = timer_count();
    if (address == TA0R) {
        count = value;
    }
    if (address == TA0CTL && (value & TACLR)) {
        value = (uint16_t)(value & ~TACLR);
        count = 0;
    }
    set_word(address, value);
    schedule_timer(count);
}

static void run_timer(void)
{
    while (timer.match <= chip->cycle) {
        registers[TA0CCTL0] |= CCIFG;
        timer.match += timer_period() * timer_tick();
    }
}

/* --- USCI_A0 as UART ---------------------------------------------------------------------------------------------------------- */

static void set_rate(void)
{
    const uint32_t divider = registers[UCA0BR0] | (uint32_t)registers[UCA0BR1] << 8;
    const uint32_t first = registers[UCA0MCTL] >> 4;      /* UCBRF: sixteenths of a bit, when oversampling */
    const uint32_t second = registers[UCA0MCTL] >> 1 & 7; /* UCBRS: so many of eight bits are a cycle longer */
    const uint32_t bit = registers[UCA0MCTL] & UCOS16 ? 16 * divider + first : divider;
    chip->uart.byte_cycles = UART_BITS_PER_BYTE * (bit > 0 ? bit : 1) + (UART_BITS_PER_BYTE * second + 4) / 8;
}

static void write_uart_control(uint8_t value)
{
    registers[UCA0CTL1] = value;
    if (value & UCSWRST) {
        uart_reset(&chip->uart);
        registers[IFG2] = (uint8_t)((registers[IFG2] & ~UCA0RXIFG) | UCA0TXIFG);
        registers[IE2] &= (uint8_t)~(UCA0RXIFG | UCA0TXIFG);
    }
    chip->uart.receiver_on = !(value & UCSWRST);
}

static uint8_t read_uart_byte(void)
{
    registers[IFG2] &= (uint8_t)~UCA0RXIFG;
    registers[UCA0RXBUF] = uart_read(&chip->uart);
    return registers[UCA0RXBUF];
}

static void write_uart_byte(uint8_t value)
{
    if (registers[UCA0CTL1] & UCSWRST) {
        return;
    }
    uart_write(&chip->uart, value, chip->cycle);
    registers[IFG2] = (uint8_t)((registers[IFG2] & ~UCA0TXIFG) | (chip->uart.buffer_full ? 0 : UCA0TXIFG));
}

static void run_uart(void)
{
    const uint64_t received = chip->uart.counts.received;
    const bool was_full = chip->uart.buffer_full;
    if (!uart_run(&chip->uart, chip->cycle)) {
        return;
    }
    if (chip->uart.counts.received != received) {
        registers[IFG2] |= UCA0RXIFG;
    }
    if (was_full && !chip->uart.buffer_full) {
        registers[IFG2] |= UCA0TXIFG;
    }
}

/* --- Clock -------------------------------------------------------------------------------------------------------------------- */

static uint32_t dco_hertz(void)
{
    for (size_t i = 0; i < CALIBRATIONS; i++) {
        if (registers[DCOCTL] == calibrations[i].dcoctl && (registers[BCSCTL1] & RSEL) == (calibrations[i].bcsctl1 & RSEL)) {
            return calibrations[i].hertz;
        }
    }
    return DCO_RESET_HERTZ;
}

static void set_clock(void)
{
    const uint32_t hertz = dco_hertz();
    if (hertz != chip->hertz) {
        const uint64_t elapsed = chip->cycle - watchdog.began;
        if (registers[WDTCTL] & WDTSSEL && aclk_cycles() > 1) { /* its clock goes on as before, in cycles of another length */
            watchdog.began = chip->cycle - elapsed * hertz / chip->hertz;
        }
        chip->hertz = hertz;
        chip->stop = true;
    }
    schedule_watchdog();
    schedule_timer(timer_count());
}

/* --- Registers ---------------------------------------------------------------------------------------------------------------- */

uint8_t peripherals_peek(uint16_t address)
{
    switch (address) {
    case UCA0STAT:
        return (uint8_t)((chip->uart.overrun ? UCOE : 0) | (chip->uart.shifting ? UCBUSY : 0));
    case P1IN: /* an output reads as what it gives out */
        return (uint8_t)((registers[P1OUT] & registers[P1DIR]) | (inputs_p1 & ~registers[P1DIR]));
    case TA0R:
        return (uint8_t)timer_count();
    case TA0R + 1:
        return (uint8_t)(timer_count() >> 8);
    default:
        return registers[address];
    }
}

uint8_t peripherals_read_byte(uint16_t address)
{
    return address == UCA0RXBUF ? read_uart_byte() : peripherals_peek(address);
}

uint16_t peripherals_read_word(uint16_t address)
{
    return (uint16_t)(peripherals_read_byte(address) | peripherals_read_byte((uint16_t)(address + 1)) << 8);
}

void peripherals_write_byte(uint16_t address, uint8_t value)
{
    switch (address) {
    case UCA0CTL1:
        write_uart_control(value);
        break;
    case UCA0TXBUF:
        write_uart_byte(value);
        break;
    case UCA0BR0:
    case UCA0BR1:
    case UCA0MCTL:
        registers[address] = value;
        set_rate();
        break;
    case DCOCTL:
    case BCSCTL1:
    case BCSCTL3:
        registers[address] = value;
        set_clock();
        break;
    case WDTCTL:
    case WDTCTL + 1:
        write_watchdog(value); /* has no key: only a whole word has */
        break;
    default:
        registers[address] = value;
        break;
    }
}

void peripherals_write_word(uint16_t address, uint16_t value)
{
    switch (address) {
    case WDTCTL:
        write_watchdog(value);
        break;
    case TA0CTL:
    case TA0R:
    case TA0CCR0:
        write_timer(address, value);
        break;
    default:
        peripherals_write_byte(address, (uint8_t)value);
        peripherals_write_byte((uint16_t)(address + 1), (uint8_t)(value >> 8));
        break;
    }
}

void peripherals_press(bool down)
{
    inputs_p1 = down ? (uint8_t)~BUTTON_S2 : 0xFF;
}

/* --- Time, interrupts, reset -------------------------------------------------------------------------------------------------- */

void peripherals_run(void)
{
    run_uart();
    run_timer();
    run_watchdog();
}

uint64_t peripherals_next_timer(void)
{
    return timer.match < watchdog.due ? timer.match : watchdog.due;
}

uint16_t peripherals_interrupt(void)
{
    if (registers[WDTCTL] & WDTTMSEL && registers[IE1] & registers[IFG1] & WDTIFG) {
        registers[IFG1] &= (uint8_t)~WDTIFG;
        return VECTOR_WDT;
    }
    if ((registers[TA0CCTL0] & (CCIE | CCIFG)) == (CCIE | CCIFG)) {
        registers[TA0CCTL0] &= (uint8_t)~CCIFG;
        return VECTOR_TIMER0_A0;
    }
    if (registers[IE2] & registers[IFG2] & UCA0RXIFG) {
        return VECTOR_USCI_RX;
    }
    return registers[IE2] & registers[IFG2] & UCA0TXIFG ? VECTOR_USCI_TX : 0;
}

/* What a reset leaves of IFG1, SLAU144, chapter 2. Without a crystal the oscillator fault is always there. */
static uint8_t causes_after(enum reset_cause cause)
{
    const uint8_t before = registers[IFG1] & (WDTIFG | PORIFG | RSTIFG);
    if (cause == RESET_POWER) {
        return PORIFG | OFIFG;
    }
    if (cause == RESET_PIN) {
        return (uint8_t)((before & ~WDTIFG) | RSTIFG | OFIFG);
    }
    return before | OFIFG;
}

void peripherals_reset(enum reset_cause cause)
{
    const uint8_t causes = causes_after(cause);
    const uint8_t p1out = registers[P1OUT], p2out = registers[P2OUT]; /* what no reset touches */

    memset(registers, 0, sizeof registers);
    registers[IFG1] = causes;
    registers[IFG2] = UCA0TXIFG | UCB0TXIFG;
    registers[P1OUT] = p1out;
    registers[P2OUT] = p2out;
    registers[DCOCTL] = DCOCTL_RESET;
    registers[BCSCTL1] = BCSCTL1_RESET;
    set_word(WDTCTL, WDTREADS); /* it runs from the start */
    watchdog.began = chip->cycle;
    watchdog.reset_due = false;
    chip->hertz = DCO_RESET_HERTZ;
    chip->stop = true;
    write_uart_control(UCSWRST);
    set_rate();
    schedule_watchdog();
    schedule_timer(0);
}

void peripherals_attach(struct chip *carrier)
{
    chip = carrier;
    chip->uart.depth = RECEIVE_DEPTH;
    chip->hertz = DCO_RESET_HERTZ;
}
