/* The framing layer and the checksums alone, against the vectors. Built once per framing. */
#include <string.h>

#include "internal.h"
#include "vectors.h"

static bytes sent;
static bytes messages; /* those received, one behind the other */
static unsigned message_count;

void mcpax_port_put(uint8_t byte)
{
    append(&sent, byte);
}

mcpax_state mcpax;

void mcpax_message_received(void)
{
    message_count++;
    while (mcpax.in != mcpax.in_end) {
        append(&messages, *mcpax.in++);
    }
}

static void receive(const char *stream)
{
    memset(&mcpax, 0, sizeof mcpax);
    messages.length = 0;
    message_count = 0;
    while (*stream != '\0' && !is(stream, "-")) {
        bytes part = {.length = 0};
        char hex[3] = {0};
        if (*stream == '~') {
            mcpax_silence();
            stream++;
        } else if (*stream == ' ') {
            stream++;
        } else {
            memcpy(hex, stream, 2);
            append_hex(&part, hex);
            mcpax_receive(part.byte[0]);
            stream += 2;
        }
    }
}

static unsigned words(const char *field)
{
    unsigned count = is(field, "-") ? 0 : 1;
    for (; *field != '\0'; field++) {
        count += *field == ' ';
    }
    return count;
}

static void test_crc(const vector *v)
{
    bytes data = {.length = 0}, expected = {.length = 0}, got = {.length = 0};
    append_hex(&data, v->field[2]);
    append_hex(&expected, v->field[3]);
    if (is(v->field[1], "crc8")) {
        uint8_t crc = MCPAX_CRC8_START;
        for (size_t i = 0; i < data.length; i++) {
            crc = mcpax_crc8(crc, data.byte[i]);
        }
        append(&got, crc);
    } else {
        uint16_t crc = MCPAX_CRC16_START;
        crc = mcpax_crc16(crc, data.byte, data.byte + data.length);
        append(&got, (uint8_t)(crc >> 8));
        append(&got, (uint8_t)crc);
    }
    expect_bytes(v, "checksum", &expected, &got);
}

static void frame_and_send(const uint8_t *message, size_t length)
{
    static uint8_t buffer[MCPAX_FRAME_ROOM(MCPAX_REQUEST_MAX)];
    mcpax_out_begin(buffer, MCPAX_REQUEST_MAX);
    for (size_t i = 0; i < length; i++) {
        mcpax_out_byte(message[i]);
    }
    mcpax_out_end();
}

static void test_frame(const vector *v)
{
    bytes message = {.length = 0}, frame = {.length = 0};
    append_hex(&message, v->field[3]);
    append_hex(&frame, v->field[4]);

    sent.length = 0;
    frame_and_send(message.byte, message.length);
    expect_bytes(v, "frame sent", &frame, &sent);

    receive(v->field[4]);
    expect_number(v, "messages received", 1, message_count);
    expect_bytes(v, "message received", &message, &messages);
}

static void test_stream(const vector *v)
{
    bytes expected = {.length = 0};
    append_hex(&expected, v->field[5]);
    expect_number(v, "this build's largest message is the one the vector is made for", number(v->field[2]), MCPAX_REQUEST_MAX);
    receive(v->field[4]);
    expect_number(v, "messages received", words(v->field[5]), message_count);
    expect_bytes(v, "messages received, one behind the other", &expected, &messages);
}

int main(int argc, char **argv)
{
    vector v;
    if (argc != 2) {
        return 2;
    }
    vectors_open(argv[1]);
    while (vectors_next(&v)) {
        if (is(v.field[0], "crc")) {
            test_crc(&v);
        } else if (is(v.field[1], FRAMING) && is(v.field[0], "frame")) {
            test_frame(&v);
        } else if (is(v.field[1], FRAMING) && is(v.field[0], "stream")) {
            test_stream(&v);
        }
    }
    return vectors_end(argv[0]);
}
