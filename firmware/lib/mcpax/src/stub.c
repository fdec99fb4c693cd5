/*
 * The stub: runs calls at most once, answers heartbeats, sends events. Knows neither how messages look nor how they travel.
 */
#include "once.h"

MCPAX_IN_RAM mcpax_state mcpax_memory;

#if MCPAX_KEPT > 0
#define PASSING mcpax.passing
#else
#define PASSING NULL
#endif

bool mcpax_heard(void)
{
    const bool was_heard = mcpax.heard;
    mcpax.heard = false;
    return was_heard;
}

bool mcpax_within(mcpax_unsigned bits)
{
    if (MCPAX_ARGUMENTS_HAVE(MCPAX_F32, MCPAX_F32) && MCPAX_ROM_BYTE(&mcpax.argument->type) == MCPAX_F32) {
        const mcpax_unsigned sign = (mcpax_unsigned)-1 / 2 + 1;
        bits = (bits & sign) ? ~bits : bits | sign;
    }
    return (mcpax_unsigned)(bits - (mcpax_unsigned)MCPAX_ROM_NUMBER(&mcpax.argument->low)) <= (mcpax_unsigned)MCPAX_ROM_NUMBER(&mcpax.argument->span);
}

/* --- Calls -------------------------------------------------------------------------------------------------------------- */

#if MCPAX_TOOL_COUNT > 0 /* a board may have events alone */

/* Where a tool stands in the table; MCPAX_TOOL_COUNT or more if there is none of this id. */
static uint8_t find_tool(uint8_t id)
{
#if MCPAX_TOOL_IDS_ARE_PLACES
    return (uint8_t)(id - 1);
#else
    uint8_t index = 0;
    while (index < MCPAX_TOOL_COUNT && MCPAX_ROM_BYTE(&mcpax_tools[index].id) != id) {
        index++;
    }
    return index;
#endif
}

#if defined(__SDCC_mcs51) /* cannot pass more than one argument through a pointer to a function, unless all of it is on the stack */
static uint8_t call_handler(void)
{
#define CALL(id, handler) \
    case id: \
        return handler(mcpax.args, mcpax.results);
    switch (mcpax.tool_id) {
        MCPAX_HANDLERS(CALL)
    default:
        return MCPAX_HANDLER_ERROR; /* never: its row was found */
    }
}
#else
#define call_handler() MCPAX_ROW(mcpax.tool).handler(mcpax.args, mcpax.results)
#endif

static void run_handler(void)
{
    for (uint8_t i = 0; i < MCPAX_RESULTS_MAX; i++) {
#if MCPAX_HAS_STRINGS
        mcpax.results[i].string.length = 0; /* first: where an address is as wide as a number, .u does not cover the length */
#endif
        mcpax.results[i].u = 0;
    }
    uint8_t status = call_handler();
    if (status < MCPAX_HANDLER_ERROR && (status & ~MCPAX_BUSY) != MCPAX_OK) {
        status = MCPAX_HANDLER_ERROR; /* those codes would claim that it did not run */
    }
    mcpax.status = status;
}

#endif

MCPAX_NOINLINE static void begin_passing(void)
{
    mcpax_out_begin(PASSING, MCPAX_PASSING_MAX);
}

static void begin_kept(void)
{
    mcpax_out_begin(mcpax_once_keep(mcpax.sequence), MCPAX_RESPONSE_MAX);
}

/* Answer with the results, or with the status if that is not MCPAX_OK. */
static void answer(void) /* NOLINT(misc-no-recursion): once at most, as a status alone always fits */
{
    do {
        if (mcpax.status == MCPAX_OK) {
            mcpax_write_result();
        } else {
            mcpax_write_error();
        }
    } while (mcpax_out_again());
#if MCPAX_HAS_STRINGS
    if (mcpax.failed) {
        mcpax.status = MCPAX_RESULT_TOO_LARGE;
        begin_kept();
        answer();
        return;
    }
#endif
    mcpax_out_end();
}

/* Run the tool unless something is wrong with the call, which mcpax.status tells then. True: it ran, and was answered. */
static bool run(void)
{
    mcpax.status = MCPAX_UNKNOWN_TOOL;
#if MCPAX_TOOL_COUNT > 0
    const uint8_t index = find_tool(mcpax.tool_id);
    if (index < MCPAX_TOOL_COUNT) {
        MCPAX_TAKE_ROW(mcpax.tool, &mcpax_tools[index]);
        mcpax_read_arguments();
        if (mcpax.status == MCPAX_OK) {
            run_handler();
            begin_kept();
            answer();
#if MCPAX_KEPT == 0
            mcpax.ran = mcpax.status == MCPAX_OK ? MCPAX_RESPONSE_LOST : mcpax.status;
#endif
            return true;
        }
    }
#endif
    return false;
}

void mcpax_handle_call(void)
{
    mcpax.status = MCPAX_UNSYNCHRONISED;
    if (mcpax.flags != 0) {
        switch (mcpax_once_judge(mcpax.sequence)) {
        case MCPAX_RUN:
            if (run()) {
                return;
            }
            break;
#if MCPAX_KEPT > 0
        case MCPAX_REPEAT:
            mcpax_frame_send(mcpax_once_kept(mcpax.sequence));
            return;
#endif
        case MCPAX_LOST:
            mcpax.status = MCPAX_LOST_STATUS;
            break;
        default:
            return;
        }
    }
    begin_passing();
    answer();
}

/* --- Presence ------------------------------------------------------------------------------------------------------------- */

static void send_heartbeat(void)
{
    begin_passing();
    do {
        mcpax_write_heartbeat();
    } while (mcpax_out_again());
    mcpax_out_end();
}

void mcpax_handle_heartbeat(void)
{
    if (mcpax.believed_boot_id == mcpax.boot_id && mcpax.flags == 0) {
        mcpax.highest = mcpax.sequence; /* from here on, it and everything before it counts as never seen */
        mcpax_once_reset();
        mcpax.flags = MCPAX_FLAG_SYNCHRONISED;
    }
    send_heartbeat();
}

#if MCPAX_PROFILE_B
void mcpax_handle_announce(void)
{
#if defined(__AVR__) /* where flash is not memory */
    const uint8_t *next = mcpax_registration;
    uint8_t byte;
    do {
        byte = MCPAX_ROM_BYTE(next++);
        mcpax_port_put(byte);
    } while (byte != 0);
#else
    mcpax_frame_send(mcpax_registration);
#endif
}
#endif

/* --- Events --------------------------------------------------------------------------------------------------------------- */

#if MCPAX_EVENT_COUNT > 0
#if !defined(__arm__)
MCPAX_NOINLINE /* where it is called once, it takes less stack as a part of its caller */
#endif
void mcpax_notify(uint8_t event_id, uint8_t field_count, mcpax_kinds kinds,
#if MCPAX_PROFILE_A
                  uint8_t encoding,
#endif
                  const mcpax_value *fields)
{
#if MCPAX_PROFILE_B
    const uint8_t encoding = 0; /* it has but one */
#endif
    begin_passing();
    do {
        mcpax_write_event(event_id, field_count, kinds, encoding, fields);
    } while (mcpax_out_again());
#if MCPAX_HAS_STRINGS
    if (mcpax.failed) {
        return;
    }
#endif
    mcpax.events_sent++;
    mcpax_out_end();
}
#endif

/* --- Beginning ------------------------------------------------------------------------------------------------------------ */

void mcpax_start(uint16_t boot_id)
{
    mcpax.boot_id = boot_id;
#if MCPAX_PROFILE_B
    mcpax_handle_announce();
#else
    send_heartbeat(); /* it cannot describe itself, but it can tell at once that it started anew */
#endif
}
