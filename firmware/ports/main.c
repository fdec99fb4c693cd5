/*
 * The main loop on every chip: bytes from the port to the library, ticks and button to the application, sleep in between.
 * Knows no chip (port.h) and no pin (pins.h).
 */
#include "app.h"
#include "mcpax.h"
#if MCPAX_DEBUG
#include "memory.h"
#endif
#include "pins.h"
#include "port.h"

#define SILENCE_BITS (20 * 10) /* docs/wire-format.md §1.1: 20 bytes of 10 bits. A tick without a byte must be at least as long */
#if MCPAX_PROFILE_A && MCPAX_BAUD * APP_TICK_MS / 1000 < SILENCE_BITS
#error "at this baud rate a pause within a frame may be longer than a tick: make APP_TICK_MS longer"
#endif

#if defined(__SDCC_mcs51)
#define NOINIT __idata __at(0xFE) /* the end of RAM, which startup leaves alone */
#else
#define NOINIT __attribute__((section(".noinit"))) /* startup leaves it alone */
#endif

/*
 * Differs from boot to boot: after power on by the noise of RAM that nothing has written yet, after a reset because the id before
 * is still there and goes into the next.
 */
APART static uint16_t next_boot_id(void)
{
    static NOINIT uint16_t before;
#if defined(__SDCC_mcs51) /* its stack grows upward, from the beginning of free RAM */
    MCPAX_IN_RAM uint8_t *const end = (MCPAX_IN_RAM uint8_t *)&before;
#else
    uint8_t here; /* the stack reaches down to about this */
    uint8_t *const end = &here;
#endif

    before = mcpax_crc16(before, port_free_ram, end);
    return before | 1u; /* never 0 */
}

#if defined(__AVR__)
__attribute__((OS_main, externally_visible)) /* it saves nothing, as it never returns; startup names it in assembly */
#elif defined(__arm__)
__attribute__((externally_visible)) /* startup names it in assembly */
#endif
int main(void)
{
    bool was_pressed = true; /* must be seen released first */
    bool silent = false;     /* cppcheck-suppress unreadVariable ; it is, the next time around */

    port_start();
    pins_start();
    const uint16_t boot_id = next_boot_id(); /* needs RAM as power on has left it, so memory_watch comes later */
#if MCPAX_DEBUG
    memory_watch();
#endif
    mcpax_start(boot_id);
    for (;;) {
        const int16_t byte = port_get(); /* one a turn: whoever floods the line must not keep ticks waiting */
        if (byte >= 0) {
            mcpax_receive((uint8_t)byte);
            silent = false;
        }
        if (port_ticked()) {
            if (silent) {
                mcpax_silence();
            }
            silent = true; /* cppcheck-suppress unreadVariable ; it is, the next time around */
            app_tick();
            const bool pressed = pins_pressed();
            if (pressed && !was_pressed) {
                app_physical_event();
            }
            was_pressed = pressed;
        }
        port_sleep();
    }
}
