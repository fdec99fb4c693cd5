/*
 * mcpax: the functions of this board as tools, over one byte stream (docs/wire-format.md).
 *
 * An application is a device map and one C file. From the map, `mcpax map header MAP.toml -o mcpax_map.h` makes the header that
 * this one includes: tables, limits, buffer sizes, and a prototype for each tool, which the C file then implements:
 *
 *     uint8_t mcpax_tool_set_relay(const mcpax_value *args, mcpax_value *results)
 *     {
 *         results[RESULT_SET_RELAY_PREVIOUS].u = relay_swap(args[ARG_SET_RELAY_RELAY].u, args[ARG_SET_RELAY_STATE].u);
 *         return MCPAX_OK;
 *     }
 *
 * When a handler runs, its arguments are complete and within the limits of the map, and this call has not run before.
 *
 * There is one stub per image, its state is in one static variable, and nothing here may be called from an interrupt, nor
 * mcpax_receive from a handler: the port queues received bytes and hands them over from the main loop.
 */
#ifndef MCPAX_H
#define MCPAX_H

#include "mcpax_map.h"

/* --- What the application calls ------------------------------------------------------------------------------------- */

/*
 * Begin, and say that this board is here. To be called once after each reset, when startup has cleared RAM: the library's state
 * begins as zeros. boot_id is 1 to 65535 and differs from one boot to the
 * next with great probability: a counter in non-volatile memory, noise of an ADC, uninitialised RAM.
 */
void mcpax_start(uint16_t boot_id);

/* Take one received byte. Runs the handler and sends the answer when the byte ends a call. */
void mcpax_receive(uint8_t byte);

/*
 * Tell that nothing was received for 20 byte times and at least 20 ms, so that a frame that lost bytes does not swallow the
 * start of the next one. Profile B needs no such call, and then it does nothing.
 */
void mcpax_silence(void);

#if MCPAX_EVENT_COUNT > 0
/*
 * Send an event, with its fields in the order of the map: mcpax_notify(EVENT_…, fields). May be called from a handler.
 * EVENT_… of the generated header stands for all of these but the last.
 */
void mcpax_notify(uint8_t event_id, uint8_t field_count, mcpax_kinds kinds,
#if MCPAX_PROFILE_A
                  uint8_t encoding,
#endif
                  const mcpax_value *fields);
#endif

/* True if the gateway was heard since the last time this was asked: what a dead man's switch needs. */
bool mcpax_heard(void);

/* Take more bytes into the checksum of the frames, CRC-16/CCITT-FALSE. Good for other checks, too, and for distilling noise into a boot id. */
uint16_t mcpax_crc16(uint16_t crc, const uint8_t MCPAX_IN_RAM *data, const uint8_t MCPAX_IN_RAM *end);

/* --- What the port provides ----------------------------------------------------------------------------------------- */

/* Send one byte. May wait for the transmitter, and may drop the byte if nobody listens. */
void mcpax_port_put(uint8_t byte);

#endif
