#include "model/symbols/elf_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "format/chunk.h"

#define TABLE_MOST (256u << 20)
#define NOTES_MOST (64u << 10)
#define SECTION_NAME 32
/* Debug information becomes two to five times smaller; more is meant to fill the memory. */
#define RATIO_MOST 64u

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

bool tfh_elf_inside(const struct tfh_elf *e, uint64_t at, uint64_t n, uint64_t each)
{
	return at <= e->size && n <= (e->size - at) / each;
}

bool tfh_elf_read(const struct tfh_elf *e, void *to, size_t bytes, uint64_t at)
{
	return tft_pread(e->fd, to, bytes, at) == 0;
}

void *tfh_elf_copy(const struct tfh_elf *e, uint64_t at, uint64_t n, size_t each)
{
	void *copy = tfh_elf_inside(e, at, n, each) && n <= TABLE_MOST / each ? malloc(n * each + 1)
									      : NULL;

	if (copy && !tfh_elf_read(e, copy, n * each, at)) {
		free(copy);
		return NULL;
	}
	return copy;
}

static bool same_id(const uint8_t *id, uint32_t n, const char *hex)
{
	char byte[3];

	if (strlen(hex) > 2ul * n)
		return false;
	for (uint32_t i = 0; hex[2 * i]; i++) {
		snprintf(byte, sizeof(byte), "%02x", id[i]);
		if (strncmp(byte, hex + 2 * i, 2))
			return false;
	}
	return true;
}

/* Compares the build id in notes: 1: equal, 0: different, -1: there is none. */
static int id_in(const uint8_t *notes, uint64_t left, const char *hex)
{
	for (uint64_t at = 0; left >= sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr h;
		memcpy(&h, notes + at, sizeof(h));
		uint64_t name = sizeof(h) + (((uint64_t)h.n_namesz + 3) & ~3ull);
		uint64_t all = name + (((uint64_t)h.n_descsz + 3) & ~3ull);
		if (all > left)
			break;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4)
			return same_id(notes + at + name, h.n_descsz, hex);
		at += all;
		left -= all;
	}
	return -1;
}

static int compare_id(const struct tfh_elf *e, const char *hex)
{
	int found = -1;

	for (unsigned i = 0; *hex && found < 0 && i < e->head.e_phnum; i++) {
		const Elf64_Phdr *p = &e->segment[i];
		uint8_t *notes = p->p_type == PT_NOTE && p->p_filesz <= NOTES_MOST
					 ? tfh_elf_copy(e, p->p_offset, p->p_filesz, 1)
					 : NULL;
		if (notes)
			found = id_in(notes, p->p_filesz, hex);
		free(notes);
	}
	return found;
}

static bool sound(struct tfh_elf *e)
{
	if (e->size < sizeof(e->head) || !tfh_elf_read(e, &e->head, sizeof(e->head), 0))
		return false;
	e->segment = tfh_elf_copy(e, e->head.e_phoff, e->head.e_phnum, sizeof(*e->segment));
	return !memcmp(e->head.e_ident, ELFMAG, SELFMAG) &&
	       e->head.e_ident[EI_CLASS] == ELFCLASS64 && e->head.e_ident[EI_DATA] == ELFDATA2LSB &&
	       e->segment;
}

/* Opens a file for reading; -1 if it must not be read. The path is untrusted, and opening a device
 * may have side effects, so the file is checked first. Other users' files are read only for traces
 * of one's own. */
static int open_regular(const char *path, bool trusted)
{
	int at = open(path, O_PATH | O_CLOEXEC), fd = -1;
	char again[64];
	struct stat st;

	if (at >= 0 && !fstat(at, &st) && S_ISREG(st.st_mode) &&
	    (trusted || st.st_uid == 0 || st.st_uid == geteuid())) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", at);
		fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	if (at >= 0)
		close(at);
	return fd;
}

bool tfh_elf_open(struct tfh_elf *e, const char *path, const char *build_id, bool trusted)
{
	struct stat st;

	*e = (struct tfh_elf){.fd = open_regular(path, trusted)};
	if (e->fd >= 0 && !fstat(e->fd, &st)) {
		e->size = (uint64_t)st.st_size;
		int same = sound(e) ? compare_id(e, build_id) : 0;
		e->same_build = same > 0;
		if (same)
			return true;
	}
	tfh_elf_close(e);
	return false;
}

void tfh_elf_close(struct tfh_elf *e)
{
	if (e->fd >= 0)
		close(e->fd);
	free(e->segment);
	*e = (struct tfh_elf){.fd = -1};
}

/* The header of a section; false: there is none of that name. */
static bool find_section(const struct tfh_elf *e, const char *name, Elf64_Shdr *out)
{
	Elf64_Shdr *section = tfh_elf_copy(e, e->head.e_shoff, e->head.e_shnum, sizeof(*section));
	unsigned names = e->head.e_shstrndx, found = 0;
	size_t size = strlen(name) + 1;
	char text[SECTION_NAME];

	for (unsigned i = 1; section && names < e->head.e_shnum && i < e->head.e_shnum; i++) {
		uint64_t at = section[names].sh_offset + section[i].sh_name;
		if (section[i].sh_type == SHT_NOBITS || size > sizeof(text) ||
		    !tfh_elf_inside(e, at, size, 1) || !tfh_elf_read(e, text, size, at) ||
		    memcmp(text, name, size) != 0)
			continue;
		*out = section[i];
		found = i;
		break;
	}
	free(section);
	return found;
}

static bool unpack(uint32_t type, const uint8_t *from, size_t n, uint8_t *to, size_t size)
{
	uLongf got = size;

	if (type == ELFCOMPRESS_ZSTD)
		return ZSTD_decompress(to, size, from, n) == size;
	return type == ELFCOMPRESS_ZLIB && uncompress(to, &got, from, n) == Z_OK && got == size;
}

/* Frees the packed copy. */
static uint8_t *unpacked(uint8_t *packed, size_t n, size_t most, size_t *bytes)
{
	Elf64_Chdr h = {0};
	uint8_t *to = NULL;

	if (packed && n >= sizeof(h))
		memcpy(&h, packed, sizeof(h));
	if (h.ch_size && h.ch_size <= most && h.ch_size / RATIO_MOST <= n)
		to = malloc(h.ch_size);
	if (to && !unpack(h.ch_type, packed + sizeof(h), n - sizeof(h), to, h.ch_size)) {
		free(to);
		to = NULL;
	}
	free(packed);
	*bytes = to ? h.ch_size : 0;
	return to;
}

uint8_t *tfh_elf_section(const struct tfh_elf *e, const char *name, size_t most, size_t *bytes)
{
	Elf64_Shdr h;

	*bytes = 0;
	if (!find_section(e, name, &h) || !h.sh_size || h.sh_size > most)
		return NULL;
	uint8_t *copy = tfh_elf_copy(e, h.sh_offset, h.sh_size, 1);
	if (h.sh_flags & SHF_COMPRESSED)
		return unpacked(copy, h.sh_size, most, bytes);
	*bytes = copy ? h.sh_size : 0;
	return copy;
}

uint64_t tfh_elf_address(const struct tfh_elf *e, uint64_t file_offset)
{
	uint64_t address = 0;

	for (unsigned i = 0; i < e->head.e_phnum; i++) {
		const Elf64_Phdr *p = &e->segment[i];
		if (p->p_type == PT_LOAD && file_offset - p->p_offset < p->p_filesz)
			address = file_offset - p->p_offset + p->p_vaddr;
	}
	return address;
}
