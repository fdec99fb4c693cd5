/* The two checksums of the wire format, without tables: 256 or 512 bytes of flash are worth more here than a few cycles. */
#include "internal.h"

#define CRC8_POLYNOMIAL 0x07u
#define TOP_BIT 0x80u

uint8_t mcpax_crc8(uint8_t crc, uint8_t byte)
{
    crc ^= byte;
    for (uint8_t bit = 0; bit < 8; bit++) {
        const uint8_t feedback = (crc & TOP_BIT) ? CRC8_POLYNOMIAL : 0;
        crc = (uint8_t)((crc << 1) ^ feedback);
    }
    return crc;
}

/* CRC-16/CCITT-FALSE. The polynomial 0x1021 has so few terms that a whole byte folds in with shifts (12, 5, 0) alone. */
uint16_t mcpax_crc16(uint16_t crc, uint8_t byte)
{
    uint8_t fold = (uint8_t)((crc >> 8) ^ byte);
    fold ^= (uint8_t)(fold >> 4);
    return (uint16_t)((crc << 8) ^ ((uint16_t)fold << 12) ^ ((uint16_t)fold << 5) ^ fold);
}
