/* The whole stub: dialogues of the vectors, and what they cannot say. Built once per map and window. */
#include <string.h>

#include "app.h"
#include "internal.h"
#include "vectors.h"

static bytes sent;

void mcpax_port_put(uint8_t byte)
{
    append(&sent, byte);
}

static void start(uint16_t boot_id)
{
    app_start();
    sent.length = 0;
    memset(&mcpax, 0, sizeof mcpax); /* as a chip's startup does */
    mcpax_start(boot_id);
}

static void receive(const bytes *stream)
{
    sent.length = 0;
    for (size_t i = 0; i < stream->length; i++) {
        mcpax_receive(stream->byte[i]);
    }
}

static void notify(unsigned long event_id)
{
    static const uint8_t word[] = {'o', 'h'};
    const mcpax_value bell[] = {[FIELD_BELL_TIMES] = {.u = 513}};
    const mcpax_value said[] = {[FIELD_SAID_WORD] = {.string = {word, sizeof word}}, [FIELD_SAID_MOOD] = {.i = -2}};
    if (event_id == 1) {
        mcpax_notify(EVENT_BELL, bell);
    } else {
        mcpax_notify(EVENT_SAID, said);
    }
}

/* --- Vectors ------------------------------------------------------------------------------------------------------------- */

static void test_dialogue(const vector *v)
{
    bytes in = {.length = 0}, out = {.length = 0};
    const unsigned long runs_before = handler_runs;

    sent.length = 0;
    append_hex(&out, v->field[4]);
    if (is(v->field[0], "boot")) {
        start((uint16_t)number(v->field[3]));
        expect_bytes(v, "sent at boot", &out, &sent);
    } else if (is(v->field[0], "event")) {
        notify(number(v->field[3]));
        expect_bytes(v, "event sent", &out, &sent);
    } else if (is(v->field[0], "in")) {
        append_hex(&in, v->field[3]);
        receive(&in);
        expect_bytes(v, "answer", &out, &sent);
        expect_number(v, "handlers run", number(v->field[5]), handler_runs - runs_before);
    }
}

/* --- What needs no bytes, or too many ---------------------------------------------------------------------------------------- */

enum { LONGEST = MCPAX_REQUEST_MAX + 1 }; /* of the messages that are made here */

/* A message from the gateway's side, framed by the library itself. */
static bytes frame_of(const uint8_t *message, size_t length)
{
    static uint8_t buffer[MCPAX_FRAME_ROOM(LONGEST)];
    sent.length = 0;
    mcpax_out_begin(buffer, (mcpax_size)length);
    do {
        for (size_t i = 0; i < length; i++) {
            mcpax_out_byte(message[i]);
        }
    } while (mcpax_out_again());
    mcpax_out_end();
    return sent;
}

/* The message of a call without arguments. */
static bytes call_frame(uint8_t tool_id, uint8_t sequence)
{
#if MCPAX_PROFILE_A
    const uint8_t message[] = {MCPAX_TYPE_CALL, tool_id, sequence};
#else
    const uint8_t message[] = {0xA5, 0, 2, 1, MCPAX_TYPE_CALL, 2, 0x18, sequence, 3, 0x18, tool_id, 4, 0xA0};
#endif
    return frame_of(message, sizeof message);
}

static void call(uint8_t tool_id, uint8_t sequence)
{
    const bytes frame = call_frame(tool_id, sequence);
    receive(&frame);
}

static void heartbeat(uint16_t believed_boot_id)
{
    mcpax.sequence = 0;
    mcpax.believed_boot_id = believed_boot_id;
    mcpax_handle_heartbeat();
}

static void synchronise(uint16_t boot_id)
{
    start(boot_id);
    heartbeat(boot_id);
}

static void test_many_calls_that_do_not_run(void)
{
    synchronise(1);
    const unsigned long before = handler_runs;
    uint8_t sequence = 0;
    for (unsigned i = 0; i < 1000; i++) {
        call(200, ++sequence);
    }
    expect_number(NULL, "no unknown tool has run", before, handler_runs);
    call(5, ++sequence);
    expect_number(NULL, "a good call after a thousand bad ones runs", before + 1, handler_runs);
}

static void test_every_sequence_runs_once(void)
{
    synchronise(1);
    const unsigned long before = handler_runs;
    for (unsigned i = 1; i <= 600; i++) {
        call(5, (uint8_t)i);
        call(5, (uint8_t)i);
        call(5, (uint8_t)(i - MCPAX_WINDOW));
    }
    expect_number(NULL, "600 calls, each sent twice and once too late", 600, handler_runs - before);
}

static void test_heard(void)
{
    start(1);
    expect_number(NULL, "nothing heard after boot", false, mcpax_heard());
    mcpax_receive(0x55);
    mcpax_receive(0);
    expect_number(NULL, "noise is not the gateway", false, mcpax_heard());
    call(5, 1);
    expect_number(NULL, "a call is, even when it does not run", true, mcpax_heard());
    expect_number(NULL, "asked once, told once", false, mcpax_heard());
}

/* Whether a message of these bytes counts as a word of the gateway, which keeps a dead man's switch from acting. */
static bool is_heard(const uint8_t *message, size_t length)
{
    const bytes frame = frame_of(message, length);
    mcpax_heard();
    receive(&frame);
    return mcpax_heard();
}

#define EXPECT_HEARD(what, is, ...) \
    do { \
        const uint8_t message[] = {__VA_ARGS__}; \
        expect_number(NULL, what, is, is_heard(message, sizeof message)); \
    } while (0)

static void test_what_is_heard(void)
{
    synchronise(1);
#if MCPAX_PROFILE_A
    EXPECT_HEARD("a heartbeat", true, MCPAX_TYPE_HEARTBEAT, 0, 7, 0, 1);
    EXPECT_HEARD("a heartbeat for another boot", true, MCPAX_TYPE_HEARTBEAT, 0, 7, 0, 2);
    EXPECT_HEARD("a call of no tool", true, MCPAX_TYPE_CALL, 200, 7);
    EXPECT_HEARD("a short heartbeat", false, MCPAX_TYPE_HEARTBEAT, 0, 7, 1);
    EXPECT_HEARD("a long heartbeat", false, MCPAX_TYPE_HEARTBEAT, 0, 7, 0, 1, 0);
    EXPECT_HEARD("a heartbeat of a tool", false, MCPAX_TYPE_HEARTBEAT, 1, 7, 0, 1);
    EXPECT_HEARD("a response", false, MCPAX_TYPE_RESPONSE, 5, 7, 0);
    EXPECT_HEARD("an event", false, MCPAX_TYPE_EVENT, 1, 7, 0, 1);
    EXPECT_HEARD("announce!, which Profile A has not", false, MCPAX_TYPE_REGISTRATION, 0, 0);
    EXPECT_HEARD("an unknown type", false, 6, 0, 7, 0, 1);
    EXPECT_HEARD("type 0", false, 0, 0, 7, 0, 1);
#else
    EXPECT_HEARD("a heartbeat", true, 0xA4, 0, 2, 1, MCPAX_TYPE_HEARTBEAT, 2, 7, 8, 1);
    EXPECT_HEARD("a heartbeat for another boot", true, 0xA4, 0, 2, 1, MCPAX_TYPE_HEARTBEAT, 2, 7, 8, 2);
    EXPECT_HEARD("announce!", true, 0xA2, 0, 2, 1, MCPAX_TYPE_REGISTRATION);
    EXPECT_HEARD("a call of no tool", true, 0xA5, 0, 2, 1, MCPAX_TYPE_CALL, 2, 7, 3, 0x18, 200, 4, 0xA0);
    EXPECT_HEARD("a heartbeat without its boot id", false, 0xA4, 0, 2, 1, MCPAX_TYPE_HEARTBEAT, 2, 7, 8);
    EXPECT_HEARD("a heartbeat of three pairs", false, 0xA3, 0, 2, 1, MCPAX_TYPE_HEARTBEAT, 2, 7);
    EXPECT_HEARD("a long heartbeat", false, 0xA4, 0, 2, 1, MCPAX_TYPE_HEARTBEAT, 2, 7, 8, 1, 0);
    EXPECT_HEARD("a long announce!", false, 0xA2, 0, 2, 1, MCPAX_TYPE_REGISTRATION, 0);
    EXPECT_HEARD("a heartbeat of a sequence above 255", false, 0xA4, 0, 2, 1, MCPAX_TYPE_HEARTBEAT, 2, 0x19, 1, 7, 8, 1);
    EXPECT_HEARD("a heartbeat of a boot id above 65535", false, 0xA4, 0, 2, 1, MCPAX_TYPE_HEARTBEAT, 2, 7, 8, 0x1A, 0, 1, 0, 1);
    EXPECT_HEARD("a heartbeat with an unknown key", false, 0xA4, 0, 2, 1, MCPAX_TYPE_HEARTBEAT, 2, 7, 7, 1);
    EXPECT_HEARD("a response", false, 0xA3, 0, 2, 2, 7, 5, 0xA0);
    EXPECT_HEARD("a response to a call of sequence 1", false, 0xA3, 0, 2, 2, 1, 5, 0xA0);
    EXPECT_HEARD("an event", false, 0xA5, 0, 2, 1, MCPAX_TYPE_EVENT, 3, 1, 5, 0xA1, 0, 1, 13, 0);
    EXPECT_HEARD("an unknown method", false, 0xA2, 0, 2, 1, 6);
    EXPECT_HEARD("another version", false, 0xA2, 0, 1, 1, MCPAX_TYPE_REGISTRATION);
    EXPECT_HEARD("a map of indefinite length", false, 0xBF, 0, 2, 1, MCPAX_TYPE_REGISTRATION, 0xFF);
    EXPECT_HEARD("a sequence of 64 bits", false, 0xA4, 0, 2, 1, MCPAX_TYPE_HEARTBEAT, 2, 0x1B, 0, 0, 0, 0, 0, 0, 0, 7, 8, 1);
    EXPECT_HEARD("a sequence that is text", false, 0xA4, 0, 2, 1, MCPAX_TYPE_HEARTBEAT, 2, 0x61, '7', 8, 1);
    EXPECT_HEARD("no map at all", false, 0x18, 7);
#endif
    bytes frame = call_frame(5, 1);
    frame.byte[frame.length - 2] ^= 1; /* of the CRC; in Profile B the last byte is the delimiter */
    receive(&frame);
    mcpax_silence();
    expect_number(NULL, "a call whose CRC is wrong", false, mcpax_heard());
}

/* A call as long as the map has any is taken; one byte more is not, whatever the framing made of it. */
static void test_longest_request(void)
{
#if MCPAX_PROFILE_A
    uint8_t message[LONGEST] = {MCPAX_TYPE_CALL, 200, 1};
#else
    uint8_t message[LONGEST] = {0xA5, 0, 2, 1, MCPAX_TYPE_CALL, 2, 7, 3, 0x18, 200, 4}; /* and zeros, so COBS needs no full block */
#endif
    synchronise(1);
    expect_number(NULL, "the longest request", true, is_heard(message, MCPAX_REQUEST_MAX));
    expect_number(NULL, "one byte more", false, is_heard(message, MCPAX_REQUEST_MAX + 1));
    mcpax_silence();
    expect_number(NULL, "the longest request after it", true, is_heard(message, MCPAX_REQUEST_MAX));
}

static void test_events_that_cannot_be_sent(void)
{
    static const uint8_t word[MCPAX_PASSING_MAX + 1] = {0};
    const mcpax_value said[] = {[FIELD_SAID_WORD] = {.string = {word, sizeof word}}, [FIELD_SAID_MOOD] = {.i = 0}};
    const bytes nothing = {.length = 0};

    start(1);
    sent.length = 0;
    mcpax_notify(EVENT_SAID, said);
    expect_bytes(NULL, "an event that does not fit is not sent", &nothing, &sent);
}

#if MCPAX_KEPT > 0 /* else there is no buffer */
static void test_out_stays_in_its_buffer(void)
{
    enum { ROOM = MCPAX_FRAME_ROOM(3) };
    uint8_t buffer[ROOM + 1];

    buffer[ROOM] = 0xEE;
    mcpax_out_begin(buffer, 3);
    for (uint8_t i = 1; i <= 3; i++) {
        mcpax_out_byte(i);
    }
    expect_number(NULL, "a message that just fits", false, mcpax.failed);
    mcpax_out_end();
    mcpax_out_begin(buffer, 3);
    for (uint8_t i = 1; i <= 4; i++) {
        mcpax_out_byte(i);
    }
    expect_number(NULL, "a message that does not", true, mcpax.failed);
    expect_number(NULL, "what follows the buffer is untouched", 0xEE, buffer[ROOM]);
}
#endif

int main(int argc, char **argv)
{
    vector v;
    if (argc != 2) {
        return 2;
    }
    vectors_open(argv[1]);
    while (vectors_next(&v)) {
        if (is(v.field[1], STUB)) {
            test_dialogue(&v);
        }
    }
    test_many_calls_that_do_not_run();
    test_every_sequence_runs_once();
    test_heard();
    test_what_is_heard();
    test_longest_request();
    test_events_that_cannot_be_sent();
#if MCPAX_KEPT > 0
    test_out_stays_in_its_buffer();
#endif
    return vectors_end(argv[0]);
}
