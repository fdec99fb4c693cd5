/* Fuzzing with a map whose receive buffer is made for what may be read, not for what may be received (maps/tight.toml). */
#include "fuzz_app.h"

uint8_t mcpax_tool_set_flags(const mcpax_value *args, mcpax_value *results)
{
    (void)results;
    fuzz_handler_ran();
    for (uint8_t i = ARG_SET_FLAGS_F0; i <= ARG_SET_FLAGS_F7; i++) {
        MUST(args[i].u <= 1);
    }
    return MCPAX_OK;
}

void fuzz_app_start(void)
{
}

void fuzz_app_happen(uint8_t kind, const uint8_t *data, size_t length)
{
    (void)kind;
    (void)data;
    (void)length;
}
