#include "app.h"

#define GREETING_MAX 16

volatile unsigned long handler_runs;
void (*handler_watch)(uint8_t tool_id, const mcpax_value *args);

static uint32_t runs_since_start;

void app_start(void)
{
    runs_since_start = 0;
}

static uint8_t ran(uint8_t tool_id, const mcpax_value *args, uint8_t status)
{
    handler_runs++;
    runs_since_start++;
#if defined(__SDCC_mcs51) /* cannot pass two arguments through a pointer to a function, and nobody watches there */
    (void)tool_id;
    (void)args;
#else
    if (handler_watch != NULL) {
        handler_watch(tool_id, args);
    }
#endif
    return status;
}

uint8_t mcpax_tool_add(const mcpax_value *args, mcpax_value *results)
{
    results[RESULT_ADD_SUM].i = (mcpax_signed)(args[ARG_ADD_A].i + args[ARG_ADD_B].i);
    return ran(1, args, MCPAX_OK);
}

uint8_t mcpax_tool_blend(const mcpax_value *args, mcpax_value *results)
{
    results[RESULT_BLEND_LEVEL] = args[ARG_BLEND_LEVEL];
    results[RESULT_BLEND_NAME] = args[ARG_BLEND_NAME];
    return ran(2, args, MCPAX_OK);
}

uint8_t mcpax_tool_echo(const mcpax_value *args, mcpax_value *results)
{
    results[RESULT_ECHO_DATA] = args[ARG_ECHO_DATA];
    return ran(3, args, MCPAX_OK);
}

uint8_t mcpax_tool_fail(const mcpax_value *args, mcpax_value *results)
{
    (void)results;
    return ran(4, args, (uint8_t)args[ARG_FAIL_STATUS].u);
}

uint8_t mcpax_tool_count(const mcpax_value *args, mcpax_value *results)
{
    results[RESULT_COUNT_RUNS].u = (mcpax_unsigned)(runs_since_start + 1);
    return ran(5, args, MCPAX_OK);
}

uint8_t mcpax_tool_greet(const mcpax_value *args, mcpax_value *results)
{
    static uint8_t greeting[GREETING_MAX] = {'H', 'i', ' '};
    const mcpax_value *name = &args[ARG_GREET_NAME];

    for (mcpax_size i = 0; i < name->string.length; i++) {
        greeting[3 + i] = name->string.data[i];
    }
    results[RESULT_GREET_GREETING].string.data = greeting;
    results[RESULT_GREET_GREETING].string.length = (mcpax_size)(3 + name->string.length);
    return ran(6, args, MCPAX_OK);
}

uint8_t mcpax_tool_mix(const mcpax_value *args, mcpax_value *results)
{
    for (uint8_t i = 0; i <= ARG_MIX_BLOB; i++) {
        results[i] = args[i];
    }
    return ran(7, args, MCPAX_OK);
}

uint8_t mcpax_tool_ring(const mcpax_value *args, mcpax_value *results)
{
    const mcpax_value fields[] = {[FIELD_BELL_TIMES] = {.u = 513}};
    (void)results;
    mcpax_notify(EVENT_BELL, fields);
    return ran(8, args, MCPAX_OK);
}
