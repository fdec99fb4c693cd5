/* Fuzzing with the test maps (app.c): a handler never runs when it must not, nor with arguments outside the limits of the map. */
#include "app.h"
#include "fuzz_app.h"

static void check_arguments(uint8_t tool_id, const mcpax_value *args)
{
    switch (tool_id) {
    case 1:
        MUST(args[ARG_ADD_A].i >= -1000 && args[ARG_ADD_A].i <= 1000);
        MUST(args[ARG_ADD_B].i >= INT16_MIN && args[ARG_ADD_B].i <= INT16_MAX);
        break;
    case 2:
        MUST(args[ARG_BLEND_LEVEL].u <= 200 && args[ARG_BLEND_NAME].string.length <= 8 && args[ARG_BLEND_ON].u <= 1);
        break;
    case 3:
        MUST((size_t)args[ARG_ECHO_DATA].string.length <= (MCPAX_PROFILE_A ? 200 : 300));
        break;
    case 4:
        MUST(args[ARG_FAIL_STATUS].u <= UINT8_MAX);
        break;
    case 6:
        MUST(args[ARG_GREET_NAME].string.length <= 8);
        break;
    case 7:
#if MCPAX_VALUE_BITS == 32
        MUST(args[ARG_MIX_HALF].u <= UINT16_MAX && args[ARG_MIX_WORD].u <= 4000000000u);
        MUST(args[ARG_MIX_PART].f >= 0.0f && args[ARG_MIX_PART].f <= 1.5f); /* false for NaN */
#else
        MUST(args[ARG_MIX_WORD].u <= 40000 && args[ARG_MIX_PART].i >= 0 && args[ARG_MIX_PART].i <= 15);
#endif
        MUST(args[ARG_MIX_TINY].i >= -5 && args[ARG_MIX_TINY].i <= 5);
        MUST(args[ARG_MIX_FLAG].u <= 1 && args[ARG_MIX_BLOB].string.length <= 3);
        break;
    default:
        break;
    }
}

static void watch(uint8_t tool_id, const mcpax_value *args)
{
    fuzz_handler_ran();
    check_arguments(tool_id, args);
}

void fuzz_app_start(void)
{
    handler_watch = watch;
    app_start();
}

/* One event has a string, which may be longer than the map allows. */
void fuzz_app_happen(uint8_t kind, const uint8_t *data, size_t length)
{
    const mcpax_value bell[] = {[FIELD_BELL_TIMES] = {.u = 513}};
    const mcpax_value said[] = {[FIELD_SAID_WORD] = {.string = {data, (mcpax_size)length}}, [FIELD_SAID_MOOD] = {.i = -2}};

    if (kind & 1) {
        mcpax_notify(EVENT_SAID, said);
    } else {
        mcpax_notify(EVENT_BELL, bell);
    }
}
