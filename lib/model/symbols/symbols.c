#include "model/symbols/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/symbols/debug_lines.h"
#include "model/symbols/demangle.h"
#include "model/symbols/elf_file.h"

/* Bytes for symbols of all files together: 20 million symbols, more than the largest programs
 * have. */
#define SYMBOLS_MOST (512u << 20)
#define NAME_MOST (64u << 10)

/* Copies of a file's tables: the file may change while it is parsed. */
struct tfh_symbols {
	struct tfh_elf elf;
	Elf64_Sym *symbol;
	size_t count;
	uint64_t strings, string_bytes; /* offsets in the file */
	char *name;			/* buffer for one name */
	char build_id[64];
	struct tfh_elf separate;       /* file with the debug information; fd -1: none */
	struct tfh_debug_lines *lines; /* NULL: none, or not looked for */
	struct tfh_debug_inlined *inlined;
	bool looked, looked_inlined, trusted;
};

static size_t held; /* bytes of symbols held; used only by the thread that resolves names */

/* Takes .symtab if the file has it, otherwise .dynsym. */
static bool find_tables(struct tfh_symbols *s)
{
	const struct tfh_elf *e = &s->elf;
	Elf64_Shdr *section = tfh_elf_copy(e, e->head.e_shoff, e->head.e_shnum, sizeof(*section));
	const Elf64_Shdr *found = NULL;

	for (unsigned i = 0; section && i < e->head.e_shnum; i++) {
		const Elf64_Shdr *h = &section[i];
		bool all = h->sh_type == SHT_SYMTAB;
		if ((!all && (h->sh_type != SHT_DYNSYM || found)) ||
		    h->sh_link >= e->head.e_shnum ||
		    !tfh_elf_inside(e, h->sh_offset, h->sh_size / sizeof(Elf64_Sym),
				    sizeof(Elf64_Sym)) ||
		    !tfh_elf_inside(e, section[h->sh_link].sh_offset, section[h->sh_link].sh_size,
				    1))
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
			s->symbol = tfh_elf_copy(e, found->sh_offset, s->count, sizeof(*s->symbol));
		held += s->symbol ? bytes : 0;
	}
	free(section);
	return s->symbol && s->count;
}

struct tfh_symbols *tfh_symbols_open(const char *path, const char *build_id, bool trusted)
{
	struct tfh_symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->trusted = trusted;
	s->separate.fd = -1;
	snprintf(s->build_id, sizeof(s->build_id), "%s", build_id);
	s->name = malloc(NAME_MOST);
	if (tfh_elf_open(&s->elf, path, build_id, trusted) && s->name && find_tables(s))
		return s;
	tfh_symbols_close(s);
	return NULL;
}

void tfh_symbols_close(struct tfh_symbols *s)
{
	if (!s)
		return;
	if (s->symbol)
		held -= s->count * sizeof(*s->symbol);
	tfh_debug_lines_close(s->lines);
	tfh_debug_inlined_close(s->inlined);
	tfh_elf_close(&s->separate);
	tfh_elf_close(&s->elf);
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
	uint64_t address = tfh_elf_address(&s->elf, file_offset), best = UINT64_MAX;
	const Elf64_Sym *found = NULL;

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
	if (!tfh_elf_read(&s->elf, s->name, n, s->strings + found->st_name) ||
	    !memchr(s->name, '\0', n))
		return false;
	readable(s->name, name, size);
	*into = best;
	return true;
}

/* The folder's name is the id's first byte. */
static struct tfh_debug_lines *separate_lines(struct tfh_symbols *s)
{
	char path[128];

	if (strlen(s->build_id) < 3 ||
	    strspn(s->build_id, "0123456789abcdef") < strlen(s->build_id))
		return NULL;
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", s->build_id,
		 s->build_id + 2);
	if (!tfh_elf_open(&s->separate, path, s->build_id, s->trusted))
		return NULL;
	return s->separate.same_build ? tfh_debug_lines_open(&s->separate) : NULL;
}

/* The line of the inlined call that contains the address. */
static bool find_call(struct tfh_symbols *s, uint64_t address, char *file, size_t size,
		      uint32_t *line)
{
	if (!s->looked_inlined)
		s->inlined = tfh_debug_inlined_open(s->separate.fd >= 0 ? &s->separate : &s->elf);
	s->looked_inlined = true;
	return s->inlined && tfh_debug_lines_call(s->lines, s->inlined, address, file, size, line);
}

bool tfh_symbols_line(struct tfh_symbols *s, uint64_t file_offset, uint64_t into, char *file,
		      size_t size, uint32_t *line)
{
	uint64_t address = tfh_elf_address(&s->elf, file_offset);
	char begins_in[TFH_SYMBOLS_FILE];
	uint32_t begin;

	/* A file that was compiled again has lines of a text that the job did not run. */
	if (!s->looked && s->elf.same_build) {
		s->lines = tfh_debug_lines_open(&s->elf);
		if (!s->lines)
			s->lines = separate_lines(s);
	}
	s->looked = true;
	if (!s->lines || !tfh_debug_lines_find(s->lines, address, file, size, line) ||
	    !tfh_debug_lines_find(s->lines, address - into, begins_in, sizeof(begins_in), &begin))
		return false;
	return !strcmp(file, begins_in) ||
	       (find_call(s, address, file, size, line) && !strcmp(file, begins_in));
}
