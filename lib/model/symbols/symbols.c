#include "model/symbols/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/chunk.h"
#include "model/symbols/demangle.h"

/* Bytes for symbols of all files together: 20 million symbols, more than the largest programs
 * have. */
#define SYMBOLS_MOST (512u << 20)
#define TABLE_MOST (256u << 20)
#define NOTES_MOST (64u << 10)
#define NAME_MOST (64u << 10)

/* Copies of a file's tables: the file may change while it is parsed. */
struct tfh_symbols {
	int fd;
	uint64_t size;
	Elf64_Ehdr head;
	Elf64_Phdr *segment; /* head.e_phnum of them */
	Elf64_Sym *symbol;
	size_t count;
	uint64_t strings, string_bytes; /* offsets in the file */
	char *name;			/* buffer for one name */
};

static size_t held; /* bytes of symbols held; used only by the thread that resolves names */

/* Whether a table of n entries lies within the file. */
static bool inside(const struct tfh_symbols *s, uint64_t at, uint64_t n, uint64_t each)
{
	return at <= s->size && n <= (s->size - at) / each;
}

static bool read_at(const struct tfh_symbols *s, void *to, size_t bytes, uint64_t at)
{
	return tft_pread(s->fd, to, bytes, at) == 0;
}

/* A copy of n entries of the file; NULL if they are outside of it or too large. */
static void *copy_table(const struct tfh_symbols *s, uint64_t at, uint64_t n, size_t each)
{
	void *copy = inside(s, at, n, each) && n <= TABLE_MOST / each ? malloc(n * each + 1) : NULL;

	if (copy && !read_at(s, copy, n * each, at)) {
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

/* A file with another build id is refused. One without any is accepted: it may have been
 * stripped. */
static bool id_fits(const struct tfh_symbols *s, const char *hex)
{
	int found = -1;

	for (unsigned i = 0; *hex && found < 0 && i < s->head.e_phnum; i++) {
		const Elf64_Phdr *p = &s->segment[i];
		uint8_t *notes = p->p_type == PT_NOTE && p->p_filesz <= NOTES_MOST
					 ? copy_table(s, p->p_offset, p->p_filesz, 1)
					 : NULL;
		if (notes)
			found = id_in(notes, p->p_filesz, hex);
		free(notes);
	}
	return found != 0;
}

/* Takes .symtab if the file has it, otherwise .dynsym. */
static bool find_tables(struct tfh_symbols *s)
{
	Elf64_Shdr *section = copy_table(s, s->head.e_shoff, s->head.e_shnum, sizeof(*section));
	const Elf64_Shdr *found = NULL;

	for (unsigned i = 0; section && i < s->head.e_shnum; i++) {
		const Elf64_Shdr *h = &section[i];
		bool all = h->sh_type == SHT_SYMTAB;
		if ((!all && (h->sh_type != SHT_DYNSYM || found)) ||
		    h->sh_link >= s->head.e_shnum ||
		    !inside(s, h->sh_offset, h->sh_size / sizeof(Elf64_Sym), sizeof(Elf64_Sym)) ||
		    !inside(s, section[h->sh_link].sh_offset, section[h->sh_link].sh_size, 1))
			continue;
		found = h;
		if (all)
			break;
	}
	if (found) {
		s->count = found->sh_size / sizeof(Elf64_Sym);
		s->strings = section[found->sh_link].sh_offset;
		s->string_bytes = section[found->sh_link].sh_size;
		size_t bytes = s->count * sizeof(*s->symbol);
		if (bytes <= SYMBOLS_MOST - held)
			s->symbol = copy_table(s, found->sh_offset, s->count, sizeof(*s->symbol));
		held += s->symbol ? bytes : 0;
	}
	free(section);
	return s->symbol && s->count;
}

static bool sound(struct tfh_symbols *s)
{
	if (s->size < sizeof(s->head) || !read_at(s, &s->head, sizeof(s->head), 0))
		return false;
	s->segment = copy_table(s, s->head.e_phoff, s->head.e_phnum, sizeof(*s->segment));
	s->name = malloc(NAME_MOST);
	return !memcmp(s->head.e_ident, ELFMAG, SELFMAG) &&
	       s->head.e_ident[EI_CLASS] == ELFCLASS64 && s->head.e_ident[EI_DATA] == ELFDATA2LSB &&
	       s->segment && s->name;
}

/* Opens a file for reading symbols; -1 if it must not be read. The path is untrusted, and opening a
 * device may have side effects, so the file is checked first. Other users' files are read only for
 * traces of one's own. */
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

struct tfh_symbols *tfh_symbols_open(const char *path, const char *build_id, bool trusted)
{
	struct tfh_symbols *s = calloc(1, sizeof(*s));
	struct stat st;

	if (!s)
		return NULL;
	s->fd = open_regular(path, trusted);
	if (s->fd >= 0 && !fstat(s->fd, &st)) {
		s->size = (uint64_t)st.st_size;
		if (sound(s) && id_fits(s, build_id) && find_tables(s))
			return s;
	}
	tfh_symbols_close(s);
	return NULL;
}

void tfh_symbols_close(struct tfh_symbols *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	if (s->symbol)
		held -= s->count * sizeof(*s->symbol);
	free(s->segment);
	free(s->symbol);
	free(s->name);
	free(s);
}

/* Length of a symbol without what compilers append to the names of clones ("put.constprop.0").
 * Names of C and C++ have no dots. */
static size_t source_name(const char *symbol)
{
	const char *dot = strchr(symbol, '.');

	return dot && dot > symbol ? (size_t)(dot - symbol) : strlen(symbol);
}

/* Demangles C++ names (model/symbols/demangle.h), and cuts what does not fit. */
static void readable(const char *symbol, char *name, size_t size)
{
	char plain[4096], text[4096];

	snprintf(plain, sizeof(plain), "%.*s", (int)source_name(symbol), symbol);
	snprintf(name, size, "%s", tfh_demangle(plain, text, sizeof(text)) ? text : plain);
}

bool tfh_symbols_find(const struct tfh_symbols *s, uint64_t file_offset, char *name, size_t size,
		      uint64_t *into)
{
	uint64_t address = 0, best = UINT64_MAX;
	const Elf64_Sym *found = NULL;

	for (unsigned i = 0; i < s->head.e_phnum; i++) {
		const Elf64_Phdr *p = &s->segment[i];
		if (p->p_type == PT_LOAD && file_offset - p->p_offset < p->p_filesz)
			address = file_offset - p->p_offset + p->p_vaddr;
	}
	for (size_t i = 0; i < s->count; i++) {
		const Elf64_Sym *y = &s->symbol[i];
		uint64_t at = address - y->st_value;
		if (ELF64_ST_TYPE(y->st_info) != STT_FUNC || y->st_shndx == SHN_UNDEF ||
		    at >= (y->st_size ? y->st_size : 1) || at >= best)
			continue;
		best = at;
		found = y;
	}
	if (!found || found->st_name >= s->string_bytes)
		return false;
	uint64_t left = s->string_bytes - found->st_name;
	size_t n = left < NAME_MOST ? (size_t)left : NAME_MOST;
	if (!read_at(s, s->name, n, s->strings + found->st_name) || !memchr(s->name, '\0', n))
		return false;
	readable(s->name, name, size);
	*into = best;
	return true;
}
