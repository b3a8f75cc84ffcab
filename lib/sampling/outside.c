#include "sampling/outside.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/arch.h"
#include "base/fd.h"

#define LINE_MOST 4352u	       /* of /proc/PID/maps: a path and the text before it */
#define TABLE_MOST (16u << 20) /* bytes of a symbol table; the largest libpython has 0.2 MB */
#define SECTIONS 256u

static int copy(int32_t pid, uint64_t from, void *to, size_t bytes)
{
	struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes)
		return 0;
	return errno == EPERM || errno == ESRCH ? -errno : -ENOENT;
}

/* ---- which file ---- */

struct py_file {
	uint64_t base;
	char path[4096];
};

/* Whether a line of /proc/PID/maps ("7f00-7f80 r--p 00000000 fe:01 4711 /usr/lib/...") names such a
 * file. */
static bool takes(const char *line, const char *program, struct py_file *o)
{
	char *at;
	const char *path = strchr(line, '/'), *name = path ? strrchr(path, '/') + 1 : NULL;
	uint64_t base = strtoull(line, &at, 16);
	unsigned offset;

	if (!path || sscanf(at, "-%*x %*s %x", &offset) != 1 || offset ||
	    (strcmp(path, program) && strncmp(name, "libpython3", 10)) || strlen(path) >= 4096)
		return false;
	o->base = base;
	memcpy(o->path, path, strlen(path) + 1);
	return true;
}

/* At most the program and one libpython3. */
#define OBJECTS 3

static int find_objects(int32_t pid, struct py_file *o)
{
	char path[64], program[4096], line[LINE_MOST];
	ssize_t len;
	FILE *f;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	len = readlink(path, program, sizeof(program) - 1);
	if (len < 0)
		return errno == EPERM || errno == EACCES || errno == ESRCH ? -errno : -ENOENT;
	program[len] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && n < OBJECTS && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (takes(line, program, &o[n]))
			n++;
	}
	if (f)
		fclose(f);
	return f ? n : -errno;
}

/* ---- its exports ---- */

struct exported {
	uint64_t runtime, code_type, version; /* addresses in the process; 0: none */
	uint64_t runtime_bytes;
};

static void *table_of(int fd, uint64_t at, uint64_t bytes)
{
	void *table = bytes && bytes <= TABLE_MOST ? malloc(bytes + 1) : NULL;

	if (table && tfh_pread(fd, table, bytes, (off_t)at) != (ssize_t)bytes) {
		free(table);
		return NULL;
	}
	if (table)
		((char *)table)[bytes] = '\0';
	return table;
}

static void take_names(const Elf64_Sym *symbol, uint64_t n, const char *text, uint64_t bytes,
		       uint64_t shift, struct exported *out)
{
	for (uint64_t i = 0; i < n; i++) {
		const char *name = text + (symbol[i].st_name < bytes ? symbol[i].st_name : bytes);
		uint64_t at = symbol[i].st_value + shift;

		if (!symbol[i].st_value || (*name != '_' && *name != 'P'))
			continue;
		if (!strcmp(name, "_PyRuntime")) {
			out->runtime = at;
			out->runtime_bytes = symbol[i].st_size;
		} else if (!strcmp(name, "PyCode_Type"))
			out->code_type = at;
		else if (!strcmp(name, "Py_Version"))
			out->version = at;
	}
}

/* The difference between the file's addresses and those in the process. */
static uint64_t shift_of(int fd, const Elf64_Ehdr *h, uint64_t base)
{
	Elf64_Phdr *p = table_of(fd, h->e_phoff, h->e_phnum * sizeof(*p));
	uint64_t shift = base;

	for (unsigned i = 0; p && i < h->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_offset < 4096) {
			shift = base - (p[i].p_vaddr - p[i].p_offset);
			break;
		}
	free(p);
	return shift;
}

static void read_exports(int fd, uint64_t base, struct exported *out)
{
	Elf64_Shdr *s, *names = NULL, *texts;
	Elf64_Ehdr h;

	if (tfh_pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) ||
	    h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_shnum > SECTIONS ||
	    !(s = table_of(fd, h.e_shoff, h.e_shnum * sizeof(*s))))
		return;
	for (unsigned i = 0; i < h.e_shnum && !names; i++)
		if (s[i].sh_type == SHT_DYNSYM && s[i].sh_link < h.e_shnum)
			names = &s[i];
	if (names) {
		texts = &s[names->sh_link];
		Elf64_Sym *symbol = table_of(fd, names->sh_offset, names->sh_size);
		char *text = table_of(fd, texts->sh_offset, texts->sh_size);
		if (symbol && text)
			take_names(symbol, names->sh_size / sizeof(*symbol), text, texts->sh_size,
				   shift_of(fd, &h, base), out);
		free(symbol);
		free(text);
	}
	free(s);
}

static bool exports(int32_t pid, const struct py_file *o, struct exported *out)
{
	char path[4200];
	int fd;

	/* As the process sees it, since it may have another root directory. */
	snprintf(path, sizeof(path), "/proc/%d/root%s", pid, o->path);
	fd = tfh_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	*out = (struct exported){0};
	if (fd < 0)
		return false;
	read_exports(fd, o->base, out);
	tfh_close(fd);
	return out->runtime && out->code_type;
}

/* ---- the interpreter ---- */

/* Up to 3.10, only the file's name shows the version: python3.8, libpython3.8.so.1.0. */
static unsigned minor_of(const char *path)
{
	const char *name = strrchr(path, '/'), *at = name ? strstr(name, "python3.") : NULL;

	return at ? (unsigned)strtoul(at + strlen("python3."), NULL, 10) : 0;
}

#define STATE_INTERPRETER 16 /* in a thread state: the interpreter it belongs to */

/* _PyRuntime contains the interpreter's address. Of the words there, an interpreter is one whose
 * newest thread state refers back to it. The last one is taken, because the newest interpreter
 * comes before the main one. */
static uint64_t find_interpreter(int32_t pid, const struct tfh_py_layout *at,
				 const uint8_t *runtime)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < TFH_PY_RUNTIME_BYTES; i += sizeof(uint64_t)) {
		uint64_t interpreter = tfh_py_word(runtime + i), state, back;

		if (interpreter < 4096 || interpreter & 7 || interpreter >= TFH_ARCH_ADDRESSES ||
		    interpreter == found)
			continue;
		if (!copy(pid, interpreter + at->threads, &state, sizeof(state)) && state &&
		    !copy(pid, state + STATE_INTERPRETER, &back, sizeof(back)) &&
		    back == interpreter)
			found = interpreter;
	}
	return found;
}

static int take_interpreter(int32_t pid, const struct py_file *o, const struct exported *e,
			    struct tfh_py_outside *out, const char **why)
{
	uint8_t runtime[TFH_PY_RUNTIME_BYTES];
	uint64_t version = 0;
	int err = copy(pid, e->runtime, runtime, sizeof(runtime));

	if (!err && e->version)
		err = copy(pid, e->version, &version, sizeof(version));
	if (err)
		return err;
	out->py = (struct tfh_py){.minor = version ? version >> 16 & 0xff : minor_of(o->path),
				  .runtime = (const char *)(uintptr_t)e->runtime,
				  .code_type = e->code_type,
				  .own_seed = true};
	out->runtime_bytes = e->runtime_bytes;
	*why = tfh_py_unreadable(out->py.minor, version, runtime, &out->py.at);
	if (*why)
		return -ENOTSUP;
	out->interpreter = find_interpreter(pid, &out->py.at, runtime);
	return out->interpreter ? 0 : -ENOENT;
}

int tfh_py_find_outside(int32_t pid, struct tfh_py_outside *out, const char **why)
{
	struct py_file object[OBJECTS];
	struct exported e;
	int n = find_objects(pid, object);

	*why = NULL;
	for (int i = 0; i < n; i++)
		if (exports(pid, &object[i], &e))
			return take_interpreter(pid, &object[i], &e, out, why);
	return n < 0 ? n : -ENOENT;
}
