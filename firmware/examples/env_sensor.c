/*
 * Environment sensor: temperature, humidity and light of a room, with an alarm. How they are measured is in sensor.h: simulated on the virtual boards,
 * and on chips the place for drivers.
 */
#include "app.h"
#include "mcpax.h"
#include "pins.h"
#include "sensor.h"

/* Raw units of the map: 0.01 °C, 0.1 %, lx. */
#define ALARM_OFF 8500

static struct {
    int16_t threshold; /* temperature above which there is an alarm, as distance from ALARM_OFF, so that it is off at the start */
    uint8_t alarms;    /* modulo 256 */
    bool alarmed;
} room;

static void watch(int16_t temperature)
{
    if (temperature <= ALARM_OFF + room.threshold) {
        room.alarmed = false;
    } else if (!room.alarmed) { /* one event when the threshold is crossed, not one per tick above it */
        const mcpax_value fields[] = {[FIELD_OVERHEAT_TEMPERATURE] = {.i = temperature}};
        room.alarmed = true;
        room.alarms++;
        mcpax_notify(EVENT_OVERHEAT, fields);
    }
}

void app_tick(void)
{
    watch(sensor_temperature());
}

/* A hot air gun: above any sensible threshold, and it cools down from there. */
void app_physical_event(void)
{
    watch(sensor_heat());
}

uint8_t mcpax_tool_read_climate(const mcpax_value *args, mcpax_value *results)
{
    (void)args;
    results[RESULT_READ_CLIMATE_TEMPERATURE].i = sensor_temperature();
    results[RESULT_READ_CLIMATE_HUMIDITY].u = sensor_humidity();
    return MCPAX_OK;
}

uint8_t mcpax_tool_read_light(const mcpax_value *args, mcpax_value *results)
{
    uint16_t light = sensor_light();

    for (uint8_t left = (uint8_t)args[ARG_READ_LIGHT_SAMPLES].u; --left != 0;) {
        light = (uint16_t)((light + sensor_light()) / 2); /* no division by a variable: that would cost more than all of this handler */
    }
    results[RESULT_READ_LIGHT_LIGHT].u = light;
    return MCPAX_OK;
}

uint8_t mcpax_tool_set_alarm(const mcpax_value *args, mcpax_value *results)
{
    results[RESULT_SET_ALARM_PREVIOUS].i = (int16_t)(ALARM_OFF + room.threshold);
    room.threshold = (int16_t)(args[ARG_SET_ALARM_THRESHOLD].i - ALARM_OFF);
    room.alarmed = false; /* a new threshold is a new alarm */
    return MCPAX_OK;
}

uint8_t mcpax_tool_read_info(const mcpax_value *args, mcpax_value *results)
{
    (void)args;
    results[RESULT_READ_INFO_ALARMS].u = room.alarms;
    results[RESULT_READ_INFO_NUMBER].u = board_number();
    return MCPAX_OK;
}
