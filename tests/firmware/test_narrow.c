/* A stub whose numbers have 16 bits: what does not fit is refused, not cut. And one whose handler leaves results unset. Once per profile. */
#include <string.h>

#include "internal.h"
#include "vectors.h"

static bytes sent;
static unsigned long runs;

void mcpax_port_put(uint8_t byte)
{
    append(&sent, byte);
}

uint8_t mcpax_tool_set(const mcpax_value *args, mcpax_value *results)
{
    runs++;
    results[RESULT_SET_LEVEL] = args[ARG_SET_LEVEL];
    return MCPAX_OK;
}

uint8_t mcpax_tool_say(const mcpax_value *args, mcpax_value *results)
{
    static const uint8_t word[] = {'o', 'h', '!'};

    runs++;
    if (!args[ARG_SAY_LEAVE].u) {
        results[RESULT_SAY_TIMES].u = 7;
        results[RESULT_SAY_WORD].string.data = word;
        results[RESULT_SAY_WORD].string.length = sizeof word;
    }
    return MCPAX_OK;
}

static bytes frame_of(const uint8_t *message, size_t length)
{
    static uint8_t buffer[MCPAX_FRAME_ROOM(64)];
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

/* The message of a call, with these bytes as its arguments. */
static void call(uint8_t tool_id, const uint8_t *arguments, size_t length)
{
    static uint8_t sequence;
    uint8_t message[64];
    size_t head = 0;

    sequence = (uint8_t)(sequence % 20 + 1); /* one byte in CBOR, too */
    if (sequence == 1) {
        memset(&mcpax, 0, sizeof mcpax);
        mcpax_start(1);
        mcpax.sequence = 0;
        mcpax.believed_boot_id = 1;
        mcpax_handle_heartbeat();
    }
#if MCPAX_PROFILE_A
    const uint8_t start[] = {MCPAX_TYPE_CALL, tool_id, sequence};
#else
    const uint8_t start[] = {0xA5, 0, 2, 1, MCPAX_TYPE_CALL, 2, sequence, 3, tool_id, 4};
#endif
    memcpy(message, start, sizeof start);
    head = sizeof start;
    memcpy(message + head, arguments, length);
    const bytes frame = frame_of(message, head + length);
    sent.length = 0;
    for (size_t i = 0; i < frame.length; i++) {
        mcpax_receive(frame.byte[i]);
    }
}

/* `status` after a call with these arguments: 0 and one run, or a refusal and none. */
static void expect_status(const char *what, uint8_t status, const uint8_t *arguments, size_t length)
{
    const unsigned long before = runs;
    call(1, arguments, length);
    expect_number(NULL, what, status, mcpax.status);
    expect_number(NULL, what, status == MCPAX_OK, runs - before);
}

#define EXPECT(what, status, ...) \
    do { \
        const uint8_t arguments[] = {__VA_ARGS__}; \
        expect_status(what, status, arguments, sizeof arguments); \
    } while (0)

static void test_numbers(void)
{
#if MCPAX_PROFILE_A
    EXPECT("at the lower limits", MCPAX_OK, 5, 0, 0xFD, 0xFF);
    EXPECT("at the upper limits", MCPAX_OK, 10, 0, 3, 0);
    EXPECT("256 more than a right one", MCPAX_OUT_OF_RANGE, 5, 1, 0, 0);
    EXPECT("below a signed one's limit", MCPAX_OUT_OF_RANGE, 5, 0, 0xFC, 0xFF);
#else
    EXPECT("at the lower limits", MCPAX_OK, 0xA2, 0, 5, 1, 0x22);
    EXPECT("at the upper limits", MCPAX_OK, 0xA2, 0, 10, 1, 3);
    EXPECT("256 more than a right one", MCPAX_OUT_OF_RANGE, 0xA2, 0, 0x19, 1, 5, 1, 0);
    EXPECT("65536 more than a right one", MCPAX_OUT_OF_RANGE, 0xA2, 0, 0x1A, 0, 1, 0, 5, 1, 0);
    EXPECT("2^24 more", MCPAX_OUT_OF_RANGE, 0xA2, 0, 0x1A, 1, 0, 0, 5, 1, 0);
    EXPECT("2^32 - 2^16 more", MCPAX_OUT_OF_RANGE, 0xA2, 0, 0x1A, 0xFF, 0xFF, 0, 5, 1, 0);
    EXPECT("a signed one, 65536 more", MCPAX_OUT_OF_RANGE, 0xA2, 0, 5, 1, 0x1A, 0, 1, 0, 2);
    EXPECT("a signed one, 65536 less", MCPAX_OUT_OF_RANGE, 0xA2, 0, 5, 1, 0x3A, 0, 1, 0, 2);
    EXPECT("a signed one that would lose its sign", MCPAX_OUT_OF_RANGE, 0xA2, 0, 5, 1, 0x19, 0xFF, 0xFE);
    EXPECT("a negative one that would", MCPAX_OUT_OF_RANGE, 0xA2, 0, 5, 1, 0x39, 0xFF, 0xFD);
    EXPECT("-1 for an unsigned one", MCPAX_OUT_OF_RANGE, 0xA2, 0, 0x20, 1, 0);
    EXPECT("-6 for an unsigned one, whose bits are those of 5", MCPAX_OUT_OF_RANGE, 0xA2, 0, 0x25, 1, 0);
    EXPECT("64 bits", MCPAX_BAD_ARGUMENTS, 0xA2, 0, 0x1B, 0, 0, 0, 0, 0, 0, 0, 5, 1, 0);
    EXPECT("text", MCPAX_BAD_ARGUMENTS, 0xA2, 0, 0x61, '5', 1, 0);
#endif
}

/* What a handler does not set is zero and empty, not what another call has left. */
static void test_unset_results(void)
{
    static const uint8_t set_it[] = {
#if MCPAX_PROFILE_A
        0
#else
        0xA1, 0, 0xF4
#endif
    };
    static const uint8_t leave_it[] = {
#if MCPAX_PROFILE_A
        1
#else
        0xA1, 0, 0xF5
#endif
    };
    static const uint8_t nothing[] = {
#if MCPAX_PROFILE_A
        0, 0, 0, 0, 0, 0
#else
        0xA2, 0, 0, 1, 0x60
#endif
    };

    call(2, set_it, sizeof set_it);
    expect_number(NULL, "a handler that sets its results", 7, mcpax.results[RESULT_SAY_TIMES].u);
    call(2, leave_it, sizeof leave_it);
    expect_number(NULL, "one that leaves them has run", MCPAX_OK, mcpax.status);
    bytes got = sent;
#if MCPAX_PROFILE_A
    uint8_t answer[4 + sizeof nothing] = {MCPAX_TYPE_RESPONSE, 2, mcpax.sequence, MCPAX_OK};
    const size_t head = 4;
#else
    uint8_t answer[6 + sizeof nothing] = {0xA3, 0, 2, 2, mcpax.sequence, 5};
    const size_t head = 6;
#endif
    memcpy(answer + head, nothing, sizeof nothing);
    const bytes expected = frame_of(answer, sizeof answer);
    expect_bytes(NULL, "and its answer", &expected, &got);
}

/* A call as long as the map has any is taken; one byte more is not. test_stub.c tells the same of lengths that 8 bits cannot count. */
static void test_longest_request(void)
{
#if MCPAX_PROFILE_A
    enum { HEAD = 3 };
#else
    enum { HEAD = 10 };
#endif
    static const uint8_t nothing[MCPAX_REQUEST_MAX + 1] = {0};

    mcpax_heard();
    call(9, nothing, MCPAX_REQUEST_MAX - HEAD);
    expect_number(NULL, "the longest request", true, mcpax_heard());
    call(9, nothing, MCPAX_REQUEST_MAX + 1 - HEAD);
    mcpax_silence();
    expect_number(NULL, "one byte more", false, mcpax_heard());
    call(9, nothing, MCPAX_REQUEST_MAX - HEAD);
    expect_number(NULL, "the longest request after it", true, mcpax_heard());
}

int main(int argc, char **argv)
{
    (void)argc;
    test_numbers();
    test_unset_results();
    test_longest_request();
    return vectors_end(argv[0]);
}
