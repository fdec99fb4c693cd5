/*
 * Relay board: four relays that keep their state, a counter of pulses, an LED and a button. The same for Profile A and Profile B.
 */
#include "app.h"
#include "mcpax.h"
#include "pins.h"

#define RELAYS 4

static struct {
    uint8_t closed;            /* bit n: relay n + 1 */
    uint16_t pulse_ms[RELAYS]; /* left of its pulse; 0: none going on */
    uint16_t pulses;           /* every run of pulse_relay, so a call that ran twice would show */
    uint8_t presses;
} board;

/* Switch a relay, on for a pulse or, with 0, until it is switched again. Gives what it was. */
static bool set(uint8_t relay, bool on, uint16_t pulse_ms)
{
    const uint8_t bit = (uint8_t)(1u << relay);
    const uint8_t before = board.closed;
    uint8_t closed = (uint8_t)(before & ~bit);

    if (on) {
        closed |= bit;
    }
    board.closed = closed;
    board.pulse_ms[relay] = pulse_ms;
    pins_write(closed);
    return (before & bit) != 0;
}

void app_tick(void)
{
    for (uint8_t i = 0; i < RELAYS; i++) {
        if (board.pulse_ms[i] > APP_TICK_MS) {
            board.pulse_ms[i] = (uint16_t)(board.pulse_ms[i] - APP_TICK_MS);
        } else if (board.pulse_ms[i] > 0) {
            set(i, false, 0);
        }
    }
}

void app_physical_event(void)
{
    const mcpax_value fields[] = {[FIELD_BUTTON_PRESSES] = {.u = ++board.presses}};
    mcpax_notify(EVENT_BUTTON, fields);
}

uint8_t mcpax_tool_set_relay(const mcpax_value *args, mcpax_value *results)
{
    const uint8_t relay = (uint8_t)(args[ARG_SET_RELAY_RELAY].u - 1u);
    results[RESULT_SET_RELAY_PREVIOUS].u = set(relay, args[ARG_SET_RELAY_STATE].u & VALUE_SET_RELAY_STATE_ON, 0);
    return MCPAX_OK;
}

uint8_t mcpax_tool_pulse_relay(const mcpax_value *args, mcpax_value *results)
{
    const uint8_t relay = (uint8_t)(args[ARG_PULSE_RELAY_RELAY].u - 1u);
    set(relay, true, (uint16_t)args[ARG_PULSE_RELAY_DURATION].u);
    results[RESULT_PULSE_RELAY_PULSES].u = ++board.pulses;
    return MCPAX_OK;
}

uint8_t mcpax_tool_read_relays(const mcpax_value *args, mcpax_value *results)
{
    (void)args;
    results[RESULT_READ_RELAYS_MASK].u = board.closed;
    results[RESULT_READ_RELAYS_PULSES].u = board.pulses;
    return MCPAX_OK;
}

uint8_t mcpax_tool_set_led(const mcpax_value *args, mcpax_value *results)
{
    (void)results;
    pins_led((uint8_t)args[ARG_SET_LED_BRIGHTNESS].u != 0); /* the boards' own LED has one colour and no dimmer */
    return MCPAX_OK;
}

#if MCPAX_PROFILE_A
uint8_t mcpax_tool_echo(const mcpax_value *args, mcpax_value *results)
{
    results[RESULT_ECHO_DATA] = args[ARG_ECHO_DATA];
    return MCPAX_OK;
}
#endif
