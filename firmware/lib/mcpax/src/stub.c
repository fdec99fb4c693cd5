/*
 * The stub: runs calls at most once, answers heartbeats, sends events. Knows neither how messages look nor how they travel.
 */
#include "internal.h"

static uint16_t boot_id;
static bool synchronised;
static bool heard;

/* For messages that need no repetition. Kept responses have their own buffers, which an event must not overwrite. */
static uint8_t passing[MCPAX_PASSING_MAX + MCPAX_FRAME_TAIL];

static void send_passing(void)
{
    mcpax_frame_send(passing, mcpax_out_length());
}

static void send_heartbeat(void)
{
    mcpax_out_begin(passing, MCPAX_PASSING_MAX);
    mcpax_write_heartbeat(mcpax_once_highest(), boot_id, synchronised ? MCPAX_FLAG_SYNCHRONISED : 0);
    send_passing();
}

bool mcpax_heard(void)
{
    bool answer = heard;
    heard = false;
    return answer;
}

bool mcpax_within(const mcpax_argument *argument, uint32_t bits)
{
    const uint32_t sign = UINT32_C(1) << 31;
    if (MCPAX_USES_F32 && argument->type == MCPAX_F32) {
        bits = (bits & sign) ? ~bits : bits | sign;
    }
    return bits - argument->low <= argument->span;
}

/* --- Calls -------------------------------------------------------------------------------------------------------------- */

static bool find_tool(uint8_t id, mcpax_tool *tool)
{
    for (const mcpax_tool *row = mcpax_tools; row != mcpax_tools + MCPAX_TOOL_COUNT; row++) {
        mcpax_rom_read(tool, row, sizeof *tool);
        if (tool->id == id) {
            return true;
        }
    }
    return false;
}

static uint8_t run_handler(const mcpax_tool *tool, const mcpax_value *args, mcpax_value *results)
{
    for (uint8_t i = 0; i < MCPAX_RESULTS_MAX; i++) {
        results[i].string.length = 0; /* first: where an address is as wide as a number, .u does not cover the length */
        results[i].u = 0;
    }
    uint8_t status = tool->handler(args, results);
    if (status < MCPAX_HANDLER_ERROR && status != MCPAX_OK && status != MCPAX_BUSY) {
        status = MCPAX_HANDLER_ERROR; /* those codes would claim that it did not run */
    }
    return status;
}

static void respond(mcpax_kept *kept, const mcpax_tool *tool, uint8_t status, const mcpax_value *results)
{
    mcpax_out_begin(kept->message, MCPAX_RESPONSE_MAX);
    if (status == MCPAX_OK) {
        mcpax_write_result(tool, kept->sequence, results);
        if (mcpax_out_length() == 0) {
            status = MCPAX_RESULT_TOO_LARGE;
            mcpax_out_begin(kept->message, MCPAX_RESPONSE_MAX);
        }
    }
    if (status != MCPAX_OK) {
        mcpax_write_error(tool->id, kept->sequence, status);
    }
    kept->length = mcpax_out_length();
}

/* Run the tool unless something is wrong with the call. MCPAX_OK: it ran and its response is kept. */
static uint8_t run(uint8_t tool_id, uint8_t sequence)
{
    mcpax_tool tool;
    mcpax_value args[MCPAX_ARGUMENTS_MAX];
    mcpax_value results[MCPAX_RESULTS_MAX];

    if (!find_tool(tool_id, &tool)) {
        return MCPAX_UNKNOWN_TOOL;
    }
    uint8_t status = mcpax_read_arguments(&tool, args);
    if (status == MCPAX_OK) {
        uint8_t outcome = run_handler(&tool, args, results);
        respond(mcpax_once_keep(sequence), &tool, outcome, results);
    }
    return status;
}

void mcpax_handle_call(uint8_t tool_id, uint8_t sequence)
{
    uint8_t status = MCPAX_UNSYNCHRONISED;

    heard = true;
    if (synchronised) {
        switch (mcpax_once_judge(sequence)) {
        case MCPAX_RUN:
            status = run(tool_id, sequence);
            break;
        case MCPAX_REPEAT:
            status = MCPAX_OK;
            break;
        case MCPAX_LOST:
            status = MCPAX_RESPONSE_LOST;
            break;
        default:
            return;
        }
    }
    if (status == MCPAX_OK) {
        mcpax_kept *kept = mcpax_once_kept(sequence);
        mcpax_frame_send(kept->message, kept->length);
    } else {
        mcpax_out_begin(passing, MCPAX_PASSING_MAX);
        mcpax_write_error(tool_id, sequence, status);
        send_passing();
    }
}

/* --- Presence ------------------------------------------------------------------------------------------------------------- */

void mcpax_handle_heartbeat(uint8_t sequence, uint16_t believed_boot_id)
{
    heard = true;
    if (believed_boot_id == boot_id && !synchronised) {
        mcpax_once_reset(sequence);
        synchronised = true;
    }
    send_heartbeat();
}

#if MCPAX_PROFILE_B
void mcpax_handle_announce(void)
{
    heard = true;
    for (uint16_t i = 0; i < MCPAX_REGISTRATION_LENGTH; i++) {
        mcpax_port_put(MCPAX_ROM_BYTE(&mcpax_registration[i]));
    }
}
#endif

/* --- Events --------------------------------------------------------------------------------------------------------------- */

#if MCPAX_EVENT_COUNT > 0
static uint8_t events_sent; /* modulo 256 */

void mcpax_notify(uint8_t event_id, const mcpax_value *fields)
{
    mcpax_event event;
    for (uint8_t i = 0; i < MCPAX_EVENT_COUNT; i++) {
        mcpax_rom_read(&event, &mcpax_events[i], sizeof event);
        if (event.id == event_id) {
            mcpax_out_begin(passing, MCPAX_PASSING_MAX);
            mcpax_write_event(&event, events_sent, fields);
            if (mcpax_out_length() > 0) {
                events_sent++;
                send_passing();
            }
            return;
        }
    }
}
#endif

/* --- Beginning ------------------------------------------------------------------------------------------------------------ */

void mcpax_start(uint16_t new_boot_id)
{
    boot_id = new_boot_id;
    synchronised = false;
    mcpax_once_reset(0);
    mcpax_frame_reset();
#if MCPAX_EVENT_COUNT > 0
    events_sent = 0;
#endif
#if MCPAX_PROFILE_B
    mcpax_handle_announce();
#else
    send_heartbeat(); /* it cannot describe itself, but it can tell at once that it started anew */
#endif
    heard = false;
}
