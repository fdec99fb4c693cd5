/* Relay board: four relays that keep their state, a counter of pulses, an LED and a button. */
#include "mcpax.h"
#include "virtual.h"

#define RELAYS 4

static bool closed[RELAYS];
static uint64_t pulse_ends_ms[RELAYS]; /* 0: no pulse going on */
static uint32_t pulses;                /* every run of pulse_relay, so a call that ran twice would show */
static uint16_t presses;
static struct {
    uint8_t colour;
    uint8_t half_percent;
} led;

void app_start(void)
{
    for (uint8_t i = 0; i < RELAYS; i++) {
        closed[i] = false;
        pulse_ends_ms[i] = 0;
    }
    pulses = 0;
    presses = 0;
    led.colour = VALUE_SET_LED_COLOUR_GREEN;
    led.half_percent = 0;
}

static void end_pulses(void)
{
    for (uint8_t i = 0; i < RELAYS; i++) {
        if (pulse_ends_ms[i] != 0 && virtual_uptime_ms() >= pulse_ends_ms[i]) {
            pulse_ends_ms[i] = 0;
            closed[i] = false;
        }
    }
}

void app_tick(void)
{
    end_pulses();
}

void app_physical_event(void)
{
    presses++;
    const mcpax_value fields[] = {[FIELD_BUTTON_PRESSES] = {.u = presses}};
    mcpax_notify(EVENT_BUTTON, fields);
}

uint8_t mcpax_tool_set_relay(const mcpax_value *args, mcpax_value *results)
{
    const uint32_t relay = args[ARG_SET_RELAY_RELAY].u - 1;
    end_pulses();
    results[RESULT_SET_RELAY_PREVIOUS].u = closed[relay] ? VALUE_SET_RELAY_PREVIOUS_ON : VALUE_SET_RELAY_PREVIOUS_OFF;
    closed[relay] = args[ARG_SET_RELAY_STATE].u == VALUE_SET_RELAY_STATE_ON;
    pulse_ends_ms[relay] = 0;
    return MCPAX_OK;
}

uint8_t mcpax_tool_pulse_relay(const mcpax_value *args, mcpax_value *results)
{
    const uint32_t relay = args[ARG_PULSE_RELAY_RELAY].u - 1;
    closed[relay] = true;
    pulse_ends_ms[relay] = virtual_uptime_ms() + args[ARG_PULSE_RELAY_DURATION].u;
    results[RESULT_PULSE_RELAY_PULSES].u = ++pulses;
    return MCPAX_OK;
}

uint8_t mcpax_tool_read_relays(const mcpax_value *args, mcpax_value *results)
{
    (void)args;
    end_pulses();
    for (uint8_t i = 0; i < RELAYS; i++) {
        results[RESULT_READ_RELAYS_MASK].u |= (uint32_t)closed[i] << i;
    }
    results[RESULT_READ_RELAYS_PULSES].u = pulses;
    return MCPAX_OK;
}

uint8_t mcpax_tool_set_led(const mcpax_value *args, mcpax_value *results)
{
    (void)results;
    led.colour = (uint8_t)args[ARG_SET_LED_COLOUR].u;
    led.half_percent = (uint8_t)args[ARG_SET_LED_BRIGHTNESS].u;
    return MCPAX_OK;
}

uint8_t mcpax_tool_echo(const mcpax_value *args, mcpax_value *results)
{
    results[RESULT_ECHO_DATA] = args[ARG_ECHO_DATA];
    return MCPAX_OK;
}
