#include "optiboot.h"

#include <string.h>

#define FLASH_SIZE 32768u
#define BOOT_SECTION 512u    /* bytes at the end of flash, where Optiboot itself stands */
#define FLASH_PAGE 128u      /* bytes */
#define COMMAND_MAX (5 + FLASH_PAGE)

/* Atmel application note AVR061: STK500 Communication Protocol */
enum {
    STK_OK = 0x10,
    STK_INSYNC = 0x14,
    STK_NOSYNC = 0x15,
    CRC_EOP = 0x20,          /* ends every command */
    STK_GET_SYNC = 0x30,
    STK_GET_PARAMETER = 0x41,
    STK_SET_DEVICE = 0x42,
    STK_SET_DEVICE_EXT = 0x45,
    STK_ENTER_PROGMODE = 0x50,
    STK_LEAVE_PROGMODE = 0x51,
    STK_LOAD_ADDRESS = 0x55,
    STK_UNIVERSAL = 0x56,
    STK_PROG_PAGE = 0x64,
    STK_READ_PAGE = 0x74,
    STK_READ_SIGN = 0x75,

    PARAMETER_SW_MAJOR = 0x81,
    PARAMETER_SW_MINOR = 0x82,
};
#define OPTIBOOT_MAJOR 4
#define OPTIBOOT_MINOR 4
#define PARAMETER_UNKNOWN 3  /* what Optiboot answers for the rest */

static const uint8_t signature[] = {0x1E, 0x95, 0x0F}; /* ATmega328P */

static uint8_t *flash;
static void (*programmed)(void);

static uint8_t command[COMMAND_MAX];
static size_t length;
static uint32_t address; /* of the next page, in bytes */

void optiboot_attach(uint8_t *chip_flash, void (*chip_programmed)(void))
{
    flash = chip_flash;
    programmed = chip_programmed;
}

static void start(void)
{
    length = 0;
    address = 0;
}

static uint32_t page_size(void)
{
    return (uint32_t)command[1] << 8 | command[2];
}

/* Bytes of the command that has begun, with its end mark; 0 if there is no such command or it cannot be held. */
static size_t expected_length(void)
{
    switch (command[0]) {
    case STK_GET_SYNC:
    case STK_ENTER_PROGMODE:
    case STK_LEAVE_PROGMODE:
    case STK_READ_SIGN:
        return 2;
    case STK_GET_PARAMETER:
        return 3;
    case STK_LOAD_ADDRESS:
        return 4;
    case STK_READ_PAGE:
        return 5;
    case STK_UNIVERSAL:
        return 6;
    case STK_SET_DEVICE_EXT:
        return 7;
    case STK_SET_DEVICE:
        return 22;
    case STK_PROG_PAGE:
        if (length < 3) {
            return COMMAND_MAX; /* its own length is still to come */
        }
        return page_size() <= FLASH_PAGE ? 5 + page_size() : 0;
    default:
        return 0;
    }
}

static void write_page(void)
{
    const bool to_flash = command[3] == 'F'; /* else EEPROM, which Optiboot leaves alone as well */
    if (to_flash && address + page_size() <= FLASH_SIZE - BOOT_SECTION) {
        memcpy(flash + address, command + 4, page_size());
        programmed();
    }
}

static void obey(void (*send)(uint8_t byte))
{
    switch (command[0]) {
    case STK_GET_PARAMETER:
        send(command[1] == PARAMETER_SW_MAJOR ? OPTIBOOT_MAJOR : command[1] == PARAMETER_SW_MINOR ? OPTIBOOT_MINOR : PARAMETER_UNKNOWN);
        break;
    case STK_LOAD_ADDRESS:
        address = 2 * (command[1] | (uint32_t)command[2] << 8); /* comes in words */
        break;
    case STK_PROG_PAGE:
        write_page();
        break;
    case STK_READ_PAGE:
        for (uint32_t i = 0; i < page_size(); i++) {
            send(flash[(address + i) % FLASH_SIZE]);
        }
        break;
    case STK_READ_SIGN:
        for (size_t i = 0; i < sizeof signature; i++) {
            send(signature[i]);
        }
        break;
    case STK_UNIVERSAL:
        send(0); /* fuses and chip erase: Optiboot pretends too, it erases page by page */
        break;
    default:
        break;
    }
}

static enum boot_answer receive(uint8_t byte, void (*send)(uint8_t byte))
{
    command[length++] = byte;
    const size_t expected = expected_length();
    if (expected == 0) {
        length = 0;
    }
    if (expected == 0 || length < expected) {
        return BOOT_LISTENING;
    }
    length = 0;
    if (byte != CRC_EOP) {
        send(STK_NOSYNC);
        return BOOT_LISTENING;
    }
    send(STK_INSYNC);
    obey(send);
    send(STK_OK);
    return command[0] == STK_LEAVE_PROGMODE ? BOOT_LEAVE : BOOT_SERVED;
}

const struct bootloader optiboot = {.start = start, .receive = receive};
