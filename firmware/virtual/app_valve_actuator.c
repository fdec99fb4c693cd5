/* Valve actuator: a valve that takes its time, flow that follows its position, and a dosing pump that counts. */
#include "mcpax.h"
#include "virtual.h"

#define MS_PER_PERCENT 50u    /* the valve runs from closed to open in five seconds */
#define FLOW_PER_PERCENT 12u /* raw 0.01 l/min: 12 l/min when open */

/* Own error code of move_valve: the motor was blocked. `stop` acknowledges that. */
#define ERROR_BLOCKED MCPAX_HANDLER_ERROR

static uint8_t origin; /* position when the current movement began, % */
static uint8_t target;
static uint64_t began_ms;
static bool blocked;
static uint32_t doses; /* every run of dose, so a call that ran twice would show */
static uint32_t dosed_ml;

static void rest_at(uint8_t position)
{
    origin = position;
    target = position;
}

void app_start(void)
{
    rest_at(0);
    began_ms = 0;
    blocked = false;
    doses = 0;
    dosed_ml = 0;
}

static uint8_t position(void)
{
    const uint64_t travelled = (virtual_uptime_ms() - began_ms) / MS_PER_PERCENT;
    const uint8_t distance = (uint8_t)(target > origin ? target - origin : origin - target);

    if (travelled >= distance) {
        return target;
    }
    return (uint8_t)(target > origin ? origin + travelled : origin - travelled);
}

void app_tick(void)
{
    /* The position follows from the time. */
}

/* Something got into the valve: the motor stalls where it is, and its protection switches it off. */
void app_physical_event(void)
{
    rest_at(position());
    blocked = true;
    const mcpax_value fields[] = {[FIELD_STALLED_POSITION] = {.u = target}};
    mcpax_notify(EVENT_STALLED, fields);
}

uint8_t mcpax_tool_read_valve(const mcpax_value *args, mcpax_value *results)
{
    const uint8_t now = position();
    (void)args;
    results[RESULT_READ_VALVE_POSITION].u = now;
    results[RESULT_READ_VALVE_FLOW].u = now * FLOW_PER_PERCENT;
    results[RESULT_READ_VALVE_DOSED].u = dosed_ml;
    return MCPAX_OK;
}

uint8_t mcpax_tool_move_valve(const mcpax_value *args, mcpax_value *results)
{
    if (blocked) {
        return ERROR_BLOCKED;
    }
    rest_at(position());
    results[RESULT_MOVE_VALVE_PREVIOUS].u = origin;
    target = (uint8_t)args[ARG_MOVE_VALVE_POSITION].u;
    began_ms = virtual_uptime_ms();
    return MCPAX_OK;
}

uint8_t mcpax_tool_dose(const mcpax_value *args, mcpax_value *results)
{
    dosed_ml += args[ARG_DOSE_AMOUNT].u;
    results[RESULT_DOSE_DOSES].u = ++doses;
    results[RESULT_DOSE_DOSED].u = dosed_ml;
    return MCPAX_OK;
}

uint8_t mcpax_tool_stop(const mcpax_value *args, mcpax_value *results)
{
    (void)args;
    (void)results;
    rest_at(position());
    blocked = false;
    return MCPAX_OK;
}
