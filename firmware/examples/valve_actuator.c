/*
 * Valve actuator: a valve that takes its time, flow that follows its position, and a dosing pump that counts.
 *
 * It has a dead man's switch: when the gateway has not been heard for MCPAX_DEADMAN_MS, the valve closes. Every call and every heartbeat renews
 * the lease. After a reset it takes the valve for closed, as it has no end switch to drive it against: add one, or let it run towards
 * closed first, where the board may restart while the valve is open. The motor runs while output 0 is on, outwards while output 1 is on too; the button is its overload switch.
 */
#include "app.h"
#include "mcpax.h"
#include "pins.h"

#define FLOW_PER_PERCENT 16u /* raw 0.01 l/min: 16 l/min when open */
#define SAFE_POSITION 0      /* % */
#define LEASE_TICKS (MCPAX_DEADMAN_MS / APP_TICK_MS)
#if LEASE_TICKS < 1 || LEASE_TICKS > 255
#error "valve.lease counts it in 8 bits: change deadman_ms in the map"
#endif

#define OUTPUT_MOTOR 1u
#define OUTPUT_OPENING 2u

/* Own error code of move_valve: the motor was blocked. `stop` acknowledges that. */
#define ERROR_BLOCKED MCPAX_HANDLER_ERROR

static struct {
    uint8_t position; /* %, one more or less each tick: from closed to open in two and a half seconds */
    uint8_t target;   /* % */
    uint8_t lease;    /* ticks; 0: expired, or never had */
    bool blocked;
    uint16_t doses; /* every run of dose, so a call that ran twice would show */
    uint16_t dosed_ml;
} valve;

static void watch_lease(void)
{
    if (mcpax_heard()) {
        valve.lease = LEASE_TICKS;
    } else if (valve.lease != 0 && --valve.lease == 0 && !valve.blocked) {
        valve.target = SAFE_POSITION;
    }
}

static void move(void)
{
    uint8_t outputs = 0;

    if (valve.position < valve.target) {
        valve.position++;
        outputs = OUTPUT_MOTOR | OUTPUT_OPENING;
    } else if (valve.position > valve.target) {
        valve.position--;
        outputs = OUTPUT_MOTOR;
    }
    pins_write(outputs);
}

void app_tick(void)
{
    watch_lease();
    move();
}

/* Something got into the valve: the motor stalls where it is, and its protection switches it off. */
void app_physical_event(void)
{
    const mcpax_value fields[] = {[FIELD_STALLED_POSITION] = {.u = valve.position}};
    valve.target = valve.position;
    valve.blocked = true;
    mcpax_notify(EVENT_STALLED, fields);
}

uint8_t mcpax_tool_read_valve(const mcpax_value *args, mcpax_value *results)
{
    (void)args;
    results[RESULT_READ_VALVE_POSITION].u = valve.position;
    results[RESULT_READ_VALVE_FLOW].u = valve.position * FLOW_PER_PERCENT;
    results[RESULT_READ_VALVE_DOSED].u = valve.dosed_ml;
    return MCPAX_OK;
}

uint8_t mcpax_tool_move_valve(const mcpax_value *args, mcpax_value *results)
{
    if (valve.blocked) {
        return ERROR_BLOCKED;
    }
    results[RESULT_MOVE_VALVE_PREVIOUS].u = valve.position;
    valve.target = (uint8_t)args[ARG_MOVE_VALVE_POSITION].u;
    return MCPAX_OK;
}

uint8_t mcpax_tool_dose(const mcpax_value *args, mcpax_value *results)
{
    valve.dosed_ml = (uint16_t)(valve.dosed_ml + args[ARG_DOSE_AMOUNT].u);
    results[RESULT_DOSE_DOSES].u = ++valve.doses;
    results[RESULT_DOSE_DOSED].u = valve.dosed_ml;
    return MCPAX_OK;
}

uint8_t mcpax_tool_stop(const mcpax_value *args, mcpax_value *results)
{
    (void)args;
    (void)results;
    valve.target = valve.position;
    valve.blocked = false;
    return MCPAX_OK;
}
