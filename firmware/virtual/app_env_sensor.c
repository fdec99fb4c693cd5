/* Environment sensor: a room whose temperature wanders around 21.5 °C, with an alarm. */
#include <string.h>

#include "mcpax.h"
#include "virtual.h"

/* Raw units of the map: 0.01 °C, 0.1 %, lx. */
#define TEMPERATURE_REST 2150
#define TEMPERATURE_STEP 3 /* at most this much per tick */
#define TEMPERATURE_PULL 64 /* of its distance from rest, one part in this many comes back per tick */
#define TEMPERATURE_FIRE 7000
#define HUMIDITY_REST 450
#define LIGHT_REST 320
#define LIGHT_NOISE 41
#define ALARM_OFF 8500

static int16_t temperature;
static int16_t threshold;
static bool alarmed;

void app_start(void)
{
    temperature = TEMPERATURE_REST;
    threshold = ALARM_OFF;
    alarmed = false;
}

static void send_overheat(void)
{
    const mcpax_value fields[] = {[FIELD_OVERHEAT_TEMPERATURE] = {.i = temperature}};
    mcpax_notify(EVENT_OVERHEAT, fields);
}

/* One event when the threshold is crossed, not one per tick above it. */
static void watch_alarm(void)
{
    const bool above = temperature > threshold;
    if (above && !alarmed) {
        send_overheat();
    }
    alarmed = above;
}

void app_tick(void)
{
    const int step = (int)virtual_random(2 * TEMPERATURE_STEP + 1) - TEMPERATURE_STEP;
    temperature = (int16_t)(temperature + step + (TEMPERATURE_REST - temperature) / TEMPERATURE_PULL);
    watch_alarm();
}

/* A hot air gun: above any sensible threshold, and it cools down from there. */
void app_physical_event(void)
{
    temperature = TEMPERATURE_FIRE;
    send_overheat();
    alarmed = true;
}

uint8_t mcpax_tool_read_climate(const mcpax_value *args, mcpax_value *results)
{
    (void)args;
    results[RESULT_READ_CLIMATE_TEMPERATURE].i = temperature;
    /* The warmer the air, the lower its relative humidity. */
    results[RESULT_READ_CLIMATE_HUMIDITY].u = (uint32_t)(HUMIDITY_REST - (temperature - TEMPERATURE_REST) / 20);
    return MCPAX_OK;
}

uint8_t mcpax_tool_read_light(const mcpax_value *args, mcpax_value *results)
{
    const uint32_t samples = args[ARG_READ_LIGHT_SAMPLES].u;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < samples; i++) {
        sum += LIGHT_REST - LIGHT_NOISE / 2 + virtual_random(LIGHT_NOISE);
    }
    results[RESULT_READ_LIGHT_LIGHT].u = sum / samples;
    return MCPAX_OK;
}

uint8_t mcpax_tool_set_alarm(const mcpax_value *args, mcpax_value *results)
{
    results[RESULT_SET_ALARM_PREVIOUS].i = threshold;
    threshold = (int16_t)args[ARG_SET_ALARM_THRESHOLD].i;
    alarmed = false; /* a new threshold is a new alarm */
    return MCPAX_OK;
}

uint8_t mcpax_tool_read_info(const mcpax_value *args, mcpax_value *results)
{
    (void)args;
    results[RESULT_READ_INFO_UPTIME].u = (uint32_t)(virtual_uptime_ms() / 1000);
    results[RESULT_READ_INFO_LABEL].string.data = (const uint8_t *)virtual_label();
    results[RESULT_READ_INFO_LABEL].string.length = (mcpax_size)strlen(virtual_label());
    return MCPAX_OK;
}
