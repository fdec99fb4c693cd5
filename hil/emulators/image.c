#include "image.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ERASED 0xFF

static bool read_at(FILE *file, long offset, void *into, size_t size)
{
    return fseek(file, offset, SEEK_SET) == 0 && fread(into, 1, size, file) == size;
}

static bool is_executable_for(const Elf32_Ehdr *header, const struct image_target *target)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS32 &&
           header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_type == ET_EXEC && header->e_machine == target->machine &&
           header->e_phentsize == sizeof(Elf32_Phdr);
}

/* A linker may map the file's own header in front of the program: that much of the first segment is none of it. */
static void skip_file_header(Elf32_Phdr *segment, const struct image_target *target)
{
    if (segment->p_offset == 0 && segment->p_paddr < target->flash_start) {
        const uint32_t before = target->flash_start - segment->p_paddr;
        const uint32_t skipped = before < segment->p_filesz ? before : segment->p_filesz;
        segment->p_offset += skipped;
        segment->p_paddr += skipped;
        segment->p_filesz -= skipped;
    }
}

static bool in_flash(const Elf32_Phdr *segment, const struct image_target *target)
{
    return segment->p_paddr >= target->flash_start && segment->p_filesz <= target->flash_size &&
           segment->p_paddr - target->flash_start <= target->flash_size - segment->p_filesz;
}

static bool read_segments(FILE *file, const char *path, const struct image_target *target, uint8_t *flash, char *reason, size_t reason_size)
{
    Elf32_Ehdr header;
    bool any = false;

    if (!read_at(file, 0, &header, sizeof header) || !is_executable_for(&header, target)) {
        snprintf(reason, reason_size, "%s is no ELF executable for the %s; build it for this board", path, target->name);
        return false;
    }
    for (uint32_t i = 0; i < header.e_phnum; i++) {
        Elf32_Phdr segment;
        if (!read_at(file, (long)(header.e_phoff + i * sizeof segment), &segment, sizeof segment)) {
            snprintf(reason, reason_size, "%s ends within its program headers; build it again", path);
            return false;
        }
        if (segment.p_type != PT_LOAD || (target->elsewhere != 0 && segment.p_paddr >= target->elsewhere)) {
            continue;
        }
        skip_file_header(&segment, target);
        if (segment.p_filesz == 0) {
            continue;
        }
        if (!in_flash(&segment, target)) {
            snprintf(reason, reason_size, "%s puts %lu bytes at 0x%04lx, outside the flash of the %s (%lu bytes at 0x%04lx); check its linker script",
                     path, (unsigned long)segment.p_filesz, (unsigned long)segment.p_paddr, target->name,
                     (unsigned long)target->flash_size, (unsigned long)target->flash_start);
            return false;
        }
        if (!read_at(file, (long)segment.p_offset, flash + (segment.p_paddr - target->flash_start), segment.p_filesz)) {
            snprintf(reason, reason_size, "%s ends within a segment; build it again", path);
            return false;
        }
        any = true;
    }
    if (!any) {
        snprintf(reason, reason_size, "%s has nothing to put into flash; link the whole program", path);
    }
    return any;
}

bool image_read(const char *path, const struct image_target *target, uint8_t *flash, char *reason, size_t reason_size)
{
    static uint8_t fresh[IMAGE_FLASH_MAX];
    FILE *const file = fopen(path, "rb");

    if (file == NULL) {
        snprintf(reason, reason_size, "%s cannot be read: %s; build the image first", path, strerror(errno));
        return false;
    }
    memset(fresh, ERASED, target->flash_size);
    const bool good = read_segments(file, path, target, fresh, reason, reason_size);
    fclose(file);
    if (good) {
        memcpy(flash, fresh, target->flash_size);
    }
    return good;
}
