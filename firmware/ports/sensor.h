/*
 * The sensors of the environment sensor example, on chips: fixed values, so that the example runs on a bare board. Put your drivers here.
 * (The virtual boards have a room of their own, virtual/sensor.h.)
 */
#ifndef SENSOR_H
#define SENSOR_H

#include <stdint.h>

/* 0.01 °C */
static inline int16_t sensor_temperature(void)
{
    return 2150;
}

/* Someone holds a hot air gun at it. */
static inline int16_t sensor_heat(void)
{
    return 9000;
}

/* 0.1 % */
static inline uint16_t sensor_humidity(void)
{
    return 450;
}

/* lx */
static inline uint16_t sensor_light(void)
{
    return 300;
}

#endif
