/* What a board with a test map does of itself: it counts ticks, and presses of its button bring the map's two events in turn. */
#include "app.h"
#include "port.h"

volatile uint8_t ticks_counted; /* by which a test sees that the main loop has been around */

void app_tick(void)
{
    ticks_counted++;
}

void app_physical_event(void)
{
    static const MCPAX_IN_RAM uint8_t word[] = {'o', 'h'};
    static bool bell_has_rung;
    const mcpax_value bell[] = {[FIELD_BELL_TIMES] = {.u = 513}};
    const mcpax_value said[] = {[FIELD_SAID_WORD] = {.string = {word, sizeof word}}, [FIELD_SAID_MOOD] = {.i = -2}};

    if (bell_has_rung) {
        mcpax_notify(EVENT_SAID, said);
    } else {
        mcpax_notify(EVENT_BELL, bell);
    }
    bell_has_rung = !bell_has_rung;
}
