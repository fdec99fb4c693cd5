/* The sensors of the environment sensor example, on virtual boards: a room whose temperature wanders around 21.5 °C, and a hot air gun. */
#ifndef SENSOR_H
#define SENSOR_H

#include "pins.h"

#define SENSOR_STEPS_PER_UNIT 100 /* the room is finer than the 0.01 °C that the sensor shows */
#define SENSOR_REST (2150 * SENSOR_STEPS_PER_UNIT)
#define SENSOR_WARMED (7000 * SENSOR_STEPS_PER_UNIT)
#define SENSOR_DRIFT 150 /* at most this much from one measurement to the next */
#define SENSOR_PULL 256  /* of its distance from rest, one part in this many comes back until the next measurement */
#define SENSOR_GUN 9000
#define SENSOR_DRY_REST 450 /* relative humidity at rest */
#define SENSOR_DRY_PULL 20  /* it falls by 0.1 % for so many 0.01 °C */
#define SENSOR_LIGHT_REST 320
#define SENSOR_LIGHT_NOISE 41

static int32_t sensor_above_rest; /* the room's temperature, 0.0001 °C */

static inline int16_t sensor_shown(void)
{
    return (int16_t)((SENSOR_REST + sensor_above_rest) / SENSOR_STEPS_PER_UNIT);
}

/* 0.01 °C */
static inline int16_t sensor_temperature(void)
{
    sensor_above_rest += (int32_t)board_random(2 * SENSOR_DRIFT + 1) - SENSOR_DRIFT - sensor_above_rest / SENSOR_PULL;
    return sensor_shown();
}

/* Someone holds a hot air gun at it: the sensor gets hotter than the room, which is warmed and cools down from there. */
static inline int16_t sensor_heat(void)
{
    sensor_above_rest = SENSOR_WARMED - SENSOR_REST;
    return SENSOR_GUN;
}

/* 0.1 %: the warmer the air, the lower its relative humidity. */
static inline uint16_t sensor_humidity(void)
{
    return (uint16_t)(SENSOR_DRY_REST - sensor_above_rest / SENSOR_STEPS_PER_UNIT / SENSOR_DRY_PULL);
}

/* lx */
static inline uint16_t sensor_light(void)
{
    return (uint16_t)(SENSOR_LIGHT_REST - SENSOR_LIGHT_NOISE / 2 + board_random(SENSOR_LIGHT_NOISE));
}

#endif
