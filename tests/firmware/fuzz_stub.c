/*
 * Fuzzing the stub (libFuzzer). Built for both profiles, and each in two ways: with RAW input, which tests the framing and seldom gets past
 * the CRC; and with input that is a list of steps, whose messages are framed properly, which tests everything behind it. And for maps
 * that we ship, whose buffers are as small as can be. What belongs to one application is behind fuzz_app.h.
 *
 * Besides the sanitizers, these must hold whatever comes in:
 *   - a handler never runs for a sequence that has run, nor while not synchronised;
 *   - every byte sent is part of a well-formed message that a stub may send;
 *   - nothing is read or written behind the buffer that a message is in. The sanitizers do not see that: all buffers are in one struct.
 * They are checked by code of its own, not by the library's.
 */
#include <string.h>

#include "fuzz_app.h"
#include "internal.h"

/* --- The line ------------------------------------------------------------------------------------------------------------- */

#define SENT_MAX 8192

static uint8_t sent[SENT_MAX];
static size_t sent_length;

void mcpax_port_put(uint8_t byte)
{
    MUST(sent_length < SENT_MAX);
    sent[sent_length++] = byte;
}

/* --- What is sent is well-formed -------------------------------------------------------------------------------------------- */

static void check_sender(uint8_t type)
{
    MUST(type == MCPAX_TYPE_RESPONSE || type == MCPAX_TYPE_REGISTRATION || type == MCPAX_TYPE_HEARTBEAT || type == MCPAX_TYPE_EVENT);
}

static uint16_t slow_crc16(const uint8_t *data, size_t length)
{
    uint16_t crc = 0xFFFF;
    for (size_t i = 0; i < length; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            const unsigned top = ((unsigned)crc >> 15) ^ (((unsigned)data[i] >> (7 - bit)) & 1u);
            crc = (uint16_t)((crc << 1) ^ (top ? 0x1021 : 0));
        }
    }
    return crc;
}

#if MCPAX_PROFILE_A

/* Checks one frame; gives its length. */
static size_t check_frame(const uint8_t *frame, size_t left)
{
    MUST(left >= 2 && frame[0] == 0xA5);
    size_t head = 2, length = frame[1];
    if (length >= 0x80) {
        MUST(left >= 3);
        length = (length & 0x7F) << 8 | frame[2];
        head = 3;
        MUST(length >= 0x80);
    }
    MUST(length >= 3 && head + length + 2 <= left);
    const uint16_t crc = slow_crc16(frame + 1, head - 1 + length);
    MUST(frame[head + length] == crc >> 8 && frame[head + length + 1] == (crc & 0xFF));
    check_sender(frame[head]);
    MUST(frame[head] != MCPAX_TYPE_REGISTRATION);
    MUST(frame[head] != MCPAX_TYPE_RESPONSE || length >= 4);
    MUST(frame[head] != MCPAX_TYPE_RESPONSE || frame[head + 3] == MCPAX_OK || length == 4);
    MUST(frame[head] != MCPAX_TYPE_HEARTBEAT || length == 11);
    return head + length + 2;
}

#else

/* Walks over one CBOR item; gives its length. Shortest heads only. */
static size_t check_item(const uint8_t *item, size_t left, unsigned depth)
{
    MUST(left > 0 && depth < 6);
    const uint8_t major = item[0] >> 5, info = item[0] & 31;
    const size_t head = info < 24 ? 1 : 1 + ((size_t)1 << (info - 24));
    uint32_t number = info;

    MUST(info <= 26 && head <= left);
    if (head > 1) {
        number = 0;
        for (size_t i = 1; i < head; i++) {
            number = number << 8 | item[i];
        }
        MUST(major == 7 || number >= (head == 2 ? 24u : head == 3 ? 0x100u : 0x10000u));
    }
    size_t used = head;
    if (major == 2 || major == 3) {
        MUST(number <= left - used);
        used += number;
    } else if (major == 4 || major == 5) {
        for (uint32_t i = 0; i < (major == 5 ? 2 * number : number); i++) {
            used += check_item(item + used, left - used, depth + 1);
        }
    } else {
        MUST(major <= 1 || item[0] == 0xF4 || item[0] == 0xF5 || item[0] == 0xFA);
    }
    return used;
}

static size_t check_frame(const uint8_t *frame, size_t left)
{
    static uint8_t body[SENT_MAX];
    size_t length = 0, at = 0;

    while (at < left && frame[at] != 0) {
        const uint8_t code = frame[at++];
        for (uint8_t i = 1; i < code; i++) {
            MUST(at < left && frame[at] != 0);
            body[length++] = frame[at++];
        }
        if (code < 0xFF && at < left && frame[at] != 0) {
            body[length++] = 0;
        }
    }
    MUST(at < left && length > 2);
    MUST(slow_crc16(body, length) == 0);
    MUST(check_item(body, length - 2, 0) == length - 2);
    MUST(body[0] >> 5 == 5 && body[1] == 0 && body[2] == 2);
    if (body[3] == 1) {
        check_sender(body[4]);
        MUST(body[4] != MCPAX_TYPE_RESPONSE);
    } else {
        MUST(body[0] == 0xA3 && body[3] == 2);
    }
    return at + 1;
}

#endif

static void check_sent(void)
{
    for (size_t at = 0; at < sent_length;) {
        at += check_frame(sent + at, sent_length - at);
    }
    sent_length = 0;
}

/* --- Messages stay in their buffers -------------------------------------------------------------------------------------------- */

static void check_read(void)
{
    MUST(mcpax.filled <= MCPAX_RECEIVE_ROOM);
    MUST(mcpax.in == NULL || (mcpax.in >= mcpax.received && mcpax.in <= mcpax.received + MCPAX_RECEIVE_ROOM));
}

void __real_mcpax_out_end(void);
void __wrap_mcpax_out_end(void);

#if MCPAX_KEPT > 0

#define OUT_START (MCPAX_PROFILE_A ? sizeof(mcpax_size) : 1) /* where a message begins in its buffer */

static void check_written(void)
{
    const size_t max = mcpax.frame == mcpax.passing ? MCPAX_PASSING_MAX : MCPAX_RESPONSE_MAX;
    bool known = mcpax.frame == mcpax.passing;

    for (size_t i = 0; i < MCPAX_KEPT; i++) {
        known = known || mcpax.frame == mcpax.kept[i];
    }
    MUST(known);
    MUST(mcpax.out >= mcpax.frame && (size_t)(mcpax.out - mcpax.frame) <= OUT_START + max);
}

#else

static void check_written(void)
{
    /* Where nothing is kept, messages are not written into buffers, but sent as they come. */
}

#endif

void __wrap_mcpax_out_end(void)
{
    check_written();
    __real_mcpax_out_end();
}

/* --- At most once: the rules of docs/wire-format.md §5 once more, with sequences that never wrap ---------------------------------- */

static struct {
    bool synchronised;
    int64_t highest;        /* extended sequence */
    int64_t synchronised_at;
    uint64_t ran;           /* bit n: (highest - n) has run */
    bool in_call;
    int64_t sequence;       /* extended, of the call at hand */
    bool may_run;
} model;

static uint16_t boot_id;

void __real_mcpax_handle_call(void);
void __wrap_mcpax_handle_call(void);
void __real_mcpax_handle_heartbeat(void);
void __wrap_mcpax_handle_heartbeat(void);

void __wrap_mcpax_handle_call(void)
{
    const int8_t distance = (int8_t)(uint8_t)(mcpax.sequence - (uint8_t)model.highest);

    model.sequence = model.highest + distance;
    model.may_run = false;
    if (model.synchronised && distance > 0) {
        model.ran = distance < 64 ? model.ran << distance : 0;
        model.highest = model.sequence;
        model.may_run = true;
    } else if (model.synchronised && distance > -MCPAX_WINDOW && model.sequence > model.synchronised_at) {
        model.may_run = (model.ran >> -distance & 1) == 0;
    }
    model.in_call = true;
    __real_mcpax_handle_call();
    model.in_call = false;
}

void __wrap_mcpax_handle_heartbeat(void)
{
    if (mcpax.believed_boot_id == boot_id && !model.synchronised) {
        model.synchronised = true;
        model.highest = mcpax.sequence;
        model.synchronised_at = mcpax.sequence;
        model.ran = 0;
    }
    __real_mcpax_handle_heartbeat();
    MUST(mcpax.highest == (model.synchronised ? (uint8_t)model.highest : 0));
}

void fuzz_handler_ran(void)
{
    MUST(model.in_call && model.may_run);
    model.may_run = false; /* a second handler within the same call */
    model.ran |= UINT64_C(1) << (model.highest - model.sequence);
}

/* --- Input ---------------------------------------------------------------------------------------------------------------------- */

static void start(uint16_t id)
{
    memset(&model, 0, sizeof model);
    memset(&mcpax, 0, sizeof mcpax); /* as a chip's startup does */
    boot_id = id;
    fuzz_app_start();
    mcpax_start(id);
    check_sent();
}

static void receive(const uint8_t *data, size_t length)
{
    while (length-- > 0) {
        mcpax_receive(*data++);
        check_read();
        check_sent();
    }
}

static void silence(void)
{
    mcpax_silence();
    check_read();
    check_sent();
}

#ifdef RAW

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    start(1);
    mcpax.sequence = 0;
    mcpax.believed_boot_id = 1;
    mcpax_handle_heartbeat();
    sent_length = 0;
    receive(data, size);
    silence();
    return 0;
}

#else

#define MESSAGE_ROOM (MCPAX_REQUEST_MAX + 16) /* so that some are too long */
#define CALL_HEAD_MAX 12

/* Make a frame of a message as the gateway would; gives its length. */
static size_t make_frame(const uint8_t *message, size_t length, uint8_t *frame)
{
    uint8_t body[2 + MESSAGE_ROOM + 2]; /* what the CRC covers, and the CRC */
    size_t count = 0, made = 0;

#if MCPAX_PROFILE_A
    if (length >= 0x80) {
        body[count++] = (uint8_t)(0x80 | length >> 8);
    }
    body[count++] = (uint8_t)length;
#endif
    memcpy(body + count, message, length);
    count += length;
    const uint16_t crc = slow_crc16(body, count);
    body[count++] = (uint8_t)(crc >> 8);
    body[count++] = (uint8_t)crc;
#if MCPAX_PROFILE_A
    frame[made++] = 0xA5;
    memcpy(frame + made, body, count);
    made += count;
#else
    for (size_t at = 0; at <= count;) {
        size_t run = 0;
        while (run < 254 && at + run < count && body[at + run] != 0) {
            run++;
        }
        frame[made++] = (uint8_t)(run + 1);
        memcpy(frame + made, body + at, run);
        made += run;
        at += run + (run < 254); /* over the zero, or the end */
    }
    frame[made++] = 0;
#endif
    return made;
}

static void receive_message(const uint8_t *message, size_t length)
{
    uint8_t frame[2 * MESSAGE_ROOM];
    receive(frame, make_frame(message, length < MESSAGE_ROOM ? length : MESSAGE_ROOM, frame));
}

static void receive_call(uint8_t tool_id, uint8_t sequence, const uint8_t *payload, size_t length)
{
    uint8_t message[CALL_HEAD_MAX + UINT8_MAX];
#if MCPAX_PROFILE_A
    const uint8_t head[] = {MCPAX_TYPE_CALL, tool_id, sequence};
#else
    const uint8_t head[] = {0xA5, 0, 2, 1, MCPAX_TYPE_CALL, 2, 0x18, sequence, 3, 0x18, tool_id, 4};
#endif
    memcpy(message, head, sizeof head);
    memcpy(message + sizeof head, payload, length);
    receive_message(message, sizeof head + length);
}

static void receive_heartbeat(uint8_t sequence, uint16_t believed)
{
#if MCPAX_PROFILE_A
    const uint8_t message[] = {MCPAX_TYPE_HEARTBEAT, 0, sequence, (uint8_t)(believed >> 8), (uint8_t)believed};
#else
    const uint8_t message[] = {0xA4, 0, 2, 1, MCPAX_TYPE_HEARTBEAT, 2, 0x18, sequence, 8, 0x19, (uint8_t)(believed >> 8), (uint8_t)believed};
#endif
    receive_message(message, sizeof message);
}

/* Input: steps of KIND, LENGTH, and LENGTH bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    start(0x1234);
    receive_heartbeat(0, boot_id);
    while (size >= 2) {
        const uint8_t kind = data[0] & 7;
        const uint8_t *step = data + 2;
        const size_t length = data[1] < size - 2 ? data[1] : size - 2;

        if (kind == 0) {
            receive(step, length);
        } else if (kind == 1 && length >= 3) {
            receive_message(step, length);
        } else if (kind == 2) {
            silence();
        } else if (kind == 3 && length >= 1) {
            start((uint16_t)(1 + step[0]));
        } else if (kind == 4 && length >= 2) {
            receive_heartbeat(step[0], step[1] & 1 ? boot_id : step[1]);
        } else if (kind == 5 && length >= 1) {
            fuzz_app_happen(step[0], step + 1, length - 1);
            check_sent();
        } else if (length >= 2) {
            receive_call(step[0] % 10, step[1], step + 2, length - 2);
        }
        data = step + length;
        size -= 2 + length;
    }
    return 0;
}

#endif
