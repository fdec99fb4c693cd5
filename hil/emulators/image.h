/*
 * Reads an ELF image into a copy of a chip's flash. It knows the file format and where flash lies, nothing of the chip that will run it.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_FLASH_MAX 32768

struct image_target {
    const char *name;        /* for messages */
    uint16_t machine;        /* e_machine */
    uint32_t flash_start;
    uint32_t flash_size;     /* at most IMAGE_FLASH_MAX */
    uint32_t elsewhere;      /* load addresses from here on are no flash (EEPROM, fuses) and left out; 0: there are none */
};

/* Fill flash, erased where the image says nothing. If the file is no image for this chip: false, a reason, and flash as it was. */
bool image_read(const char *path, const struct image_target *target, uint8_t *flash, char *reason, size_t reason_size);

#endif
