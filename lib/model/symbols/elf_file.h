/* An ELF file of which parts are read. The file is untrusted, and may change meanwhile. */
#ifndef TFH_MODEL_SYMBOLS_ELF_FILE_H
#define TFH_MODEL_SYMBOLS_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tfh_elf {
	int fd;
	uint64_t size;
	Elf64_Ehdr head;
	Elf64_Phdr *segment; /* head.e_phnum of them */
	bool same_build;     /* it has the build id that was asked for */
};

/* Opens a file that a process had loaded. False if it is missing, invalid, or has another build id
 * (hex; "": unknown); or if it belongs neither to root nor to this user, while the trace is not
 * `trusted` (this user's or root's). One without any build id is accepted: it may have been
 * stripped. */
bool tfh_elf_open(struct tfh_elf *e, const char *path, const char *build_id, bool trusted);
void tfh_elf_close(struct tfh_elf *e);

/* Whether a table of n entries lies within the file. */
bool tfh_elf_inside(const struct tfh_elf *e, uint64_t at, uint64_t n, uint64_t each);
bool tfh_elf_read(const struct tfh_elf *e, void *to, size_t bytes, uint64_t at);
/* A copy of n entries of the file; NULL if they are outside of it or too large. */
void *tfh_elf_copy(const struct tfh_elf *e, uint64_t at, uint64_t n, size_t each);
/* A copy of a section, unpacked if it is compressed; NULL: there is none, or it is larger than
 * `most` bytes. */
uint8_t *tfh_elf_section(const struct tfh_elf *e, const char *name, size_t most, size_t *bytes);
/* The address of what is at an offset in the file; 0: nothing. */
uint64_t tfh_elf_address(const struct tfh_elf *e, uint64_t file_offset);

#endif
