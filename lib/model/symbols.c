#include "model/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/demangle.h"

struct tfh_symbols {
	const uint8_t *data;
	size_t size;
	Elf64_Ehdr head;
	size_t symbols, count, strings, string_bytes; /* places in the file */
};

/* Whether a table of n entries lies in the file. */
static bool inside(const struct tfh_symbols *s, uint64_t at, uint64_t n, uint64_t each)
{
	return at <= s->size && n <= (s->size - at) / each;
}

static bool section(const struct tfh_symbols *s, unsigned i, Elf64_Shdr *out)
{
	if (i >= s->head.e_shnum)
		return false;
	memcpy(out, s->data + s->head.e_shoff + i * sizeof(*out), sizeof(*out));
	return true;
}

static bool segment(const struct tfh_symbols *s, unsigned i, Elf64_Phdr *out)
{
	if (i >= s->head.e_phnum)
		return false;
	memcpy(out, s->data + s->head.e_phoff + i * sizeof(*out), sizeof(*out));
	return true;
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

/* Only a file with another id is refused; one without any may have been stripped of it. */
static bool id_fits(const struct tfh_symbols *s, const char *hex)
{
	Elf64_Phdr p;

	for (unsigned i = 0; *hex && segment(s, i, &p); i++) {
		uint64_t at = p.p_offset, left = p.p_filesz;
		if (p.p_type != PT_NOTE || !inside(s, at, left, 1))
			continue;
		while (left >= sizeof(Elf64_Nhdr)) {
			Elf64_Nhdr h;
			memcpy(&h, s->data + at, sizeof(h));
			uint64_t name = sizeof(h) + (((uint64_t)h.n_namesz + 3) & ~3ull);
			uint64_t all = name + (((uint64_t)h.n_descsz + 3) & ~3ull);
			if (all > left)
				break;
			if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4)
				return same_id(s->data + at + name, h.n_descsz, hex);
			at += all;
			left -= all;
		}
	}
	return true;
}

/* .symtab where it was left in, else .dynsym. */
static bool find_tables(struct tfh_symbols *s)
{
	Elf64_Shdr h, text;

	for (unsigned i = 0; section(s, i, &h); i++) {
		bool all = h.sh_type == SHT_SYMTAB;
		if ((!all && (h.sh_type != SHT_DYNSYM || s->count)) ||
		    !section(s, h.sh_link, &text) ||
		    !inside(s, h.sh_offset, h.sh_size / sizeof(Elf64_Sym), sizeof(Elf64_Sym)) ||
		    !inside(s, text.sh_offset, text.sh_size, 1))
			continue;
		s->symbols = h.sh_offset;
		s->count = h.sh_size / sizeof(Elf64_Sym);
		s->strings = text.sh_offset;
		s->string_bytes = text.sh_size;
		if (all)
			break;
	}
	return s->count != 0;
}

static bool sound(struct tfh_symbols *s)
{
	if (s->size < sizeof(s->head))
		return false;
	memcpy(&s->head, s->data, sizeof(s->head));
	return !memcmp(s->head.e_ident, ELFMAG, SELFMAG) &&
	       s->head.e_ident[EI_CLASS] == ELFCLASS64 && s->head.e_ident[EI_DATA] == ELFDATA2LSB &&
	       inside(s, s->head.e_phoff, s->head.e_phnum, sizeof(Elf64_Phdr)) &&
	       inside(s, s->head.e_shoff, s->head.e_shnum, sizeof(Elf64_Shdr));
}

struct tfh_symbols *tfh_symbols_open(const char *path, const char *build_id)
{
	struct tfh_symbols *s = calloc(1, sizeof(*s));
	/* The path comes out of a file: what is no regular file is not waited for. */
	int fd = s ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	void *map = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (map != MAP_FAILED) {
		s->data = map;
		s->size = (size_t)st.st_size;
		if (sound(s) && id_fits(s, build_id) && find_tables(s))
			return s;
	}
	tfh_symbols_close(s);
	return NULL;
}

void tfh_symbols_close(struct tfh_symbols *s)
{
	if (s && s->data)
		munmap((void *)(uintptr_t)s->data, s->size);
	free(s);
}

/* C++ names are read (model/demangle.h), and cut where they find no room. */
static void readable(const char *symbol, char *name, size_t size)
{
	char text[4096];

	snprintf(name, size, "%s", tfh_demangle(symbol, text, sizeof(text)) ? text : symbol);
}

bool tfh_symbols_find(const struct tfh_symbols *s, uint64_t file_offset, char *name, size_t size,
		      uint64_t *into)
{
	const uint8_t *text = s->data + s->strings, *end = NULL;
	uint64_t address = 0, best = UINT64_MAX;
	Elf64_Phdr p;
	Elf64_Sym y, found;

	for (unsigned i = 0; segment(s, i, &p); i++)
		if (p.p_type == PT_LOAD && file_offset - p.p_offset < p.p_filesz)
			address = file_offset - p.p_offset + p.p_vaddr;
	for (size_t i = 0; i < s->count; i++) {
		memcpy(&y, s->data + s->symbols + i * sizeof(y), sizeof(y));
		uint64_t at = address - y.st_value;
		if (ELF64_ST_TYPE(y.st_info) != STT_FUNC || y.st_shndx == SHN_UNDEF ||
		    at >= (y.st_size ? y.st_size : 1) || at >= best)
			continue;
		best = at;
		found = y;
	}
	if (best != UINT64_MAX && found.st_name < s->string_bytes)
		end = memchr(text + found.st_name, '\0', s->string_bytes - found.st_name);
	if (!end)
		return false;
	readable((const char *)text + found.st_name, name, size);
	*into = best;
	return true;
}
