/* The two checksums of the wire format, bit by bit: flash is worth more here than cycles. */
#include "internal.h"

#define CRC8_POLYNOMIAL 0x07u
#define CRC8_TOP_BIT 0x80u
#define CRC16_POLYNOMIAL 0x1021u
#define CRC16_TOP_BIT 0x8000u

uint8_t mcpax_crc8(uint8_t crc, uint8_t byte)
{
    crc ^= byte;
    for (uint8_t bit = 0; bit < 8; bit++) {
        const uint8_t feedback = (crc & CRC8_TOP_BIT) ? CRC8_POLYNOMIAL : 0;
        crc = (uint8_t)((crc << 1) ^ feedback);
    }
    return crc;
}

uint16_t mcpax_crc16(uint16_t crc, const uint8_t MCPAX_IN_RAM *data, const uint8_t MCPAX_IN_RAM *end)
{
    while (data != end) {
#if defined(__SDCC_mcs51) /* bit by bit it would be slower than the line. A whole byte folds in with shifts by 12, 5 and 0, all of them short here */
        uint8_t fold = (uint8_t)(crc >> 8) ^ *data++;
        fold ^= fold >> 4;
        const uint8_t high = (uint8_t)crc ^ (uint8_t)(fold << 4) ^ (fold >> 3);
        crc = (uint16_t)(high << 8) | (uint8_t)(fold ^ (uint8_t)(fold << 5));
#else
        crc ^= (uint16_t)((uint16_t)*data++ << 8);
        for (uint8_t bit = 8; bit > 0; bit--) {
            const bool feedback = (crc & CRC16_TOP_BIT) != 0;
            crc = (uint16_t)(crc << 1);
            if (feedback) {
                crc ^= CRC16_POLYNOMIAL;
            }
        }
#endif
    }
    return crc;
}
