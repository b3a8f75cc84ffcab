/*
 * The loaded modules, listed when a backtrace is written for the first time. A module is identified
 * by its range and name. Its load and unload times are known to within the interval between two
 * checks.
 */
#include "record/stacks/modules.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "format/table.h"
#include "format/tft_write.h"
#include "record/process/forks.h"
#include "record/process/recorder.h"

#define MODULES 1024u
#define PATHS_BYTES (256u << 10)
#define BUILD_ID_BYTES 20 /* SHA-1; longer ids are cut */

struct module {
	uint64_t start, end, offset;
	uint64_t loaded, unloaded; /* ticks; 0 = before the first check, or not yet */
	uint32_t path;
	bool seen, used, written;
	char build_id[2 * BUILD_ID_BYTES + 1];
};

#define HEAP_BYTES (PATHS_BYTES + MODULES * sizeof(((struct module *)0)->build_id))

/* In a separate mapping, created at the first check. */
static struct {
	struct module module[MODULES];
	char paths[PATHS_BYTES];
	/* of the chunk that is being written */
	struct tft_mods_row row[MODULES];
	char heap[HEAP_BYTES];
	uint8_t payload[MODULES * sizeof(struct tft_mods_row) + HEAP_BYTES + 4096];
} * t;
static uint32_t n_modules, path_bytes;
static uint64_t looked; /* ticks of the last check that found a change */
static unsigned long long changes;

static void read_build_id(struct module *m, const uint8_t *note, size_t bytes)
{
	while (bytes >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) h;
		size_t name, all;

		memcpy(&h, note, sizeof(h));
		name = sizeof(h) + ((h.n_namesz + 3u) & ~3u);
		all = name + ((h.n_descsz + 3u) & ~3u);
		if (all > bytes)
			return;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 &&
		    !memcmp(note + sizeof(h), "GNU", 4)) {
			for (uint32_t i = 0; i < h.n_descsz && i < BUILD_ID_BYTES; i++)
				snprintf(m->build_id + 2 * i, 3, "%02x", note[name + i]);
			return;
		}
		note += all;
		bytes -= all;
	}
}

static bool add(const struct dl_phdr_info *info, const ElfW(Phdr) * p)
{
	struct module *m = &t->module[n_modules];
	size_t len = strlen(info->dlpi_name) + 1;

	if (n_modules == MODULES || path_bytes + len > PATHS_BYTES)
		return false;
	*m = (struct module){.start = info->dlpi_addr + p->p_vaddr,
			     .end = info->dlpi_addr + p->p_vaddr + p->p_memsz,
			     .offset = p->p_offset,
			     .loaded = looked,
			     .path = path_bytes,
			     .seen = true};
	memcpy(t->paths + path_bytes, info->dlpi_name, len);
	path_bytes += (uint32_t)len;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			read_build_id(m,
				      (const uint8_t *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
				      info->dlpi_phdr[i].p_memsz);
	n_modules++;
	return true;
}

static bool known(const struct dl_phdr_info *info, const ElfW(Phdr) * p)
{
	for (uint32_t i = 0; i < n_modules; i++) {
		struct module *m = &t->module[i];
		if (m->start == info->dlpi_addr + p->p_vaddr && m->end - m->start == p->p_memsz &&
		    !m->unloaded && !strcmp(t->paths + m->path, info->dlpi_name)) {
			m->seen = true;
			return true;
		}
	}
	return false;
}

/* Runs under the loader's lock, so it only copies. */
static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	unsigned long long n = info->dlpi_adds + info->dlpi_subs;

	(void)size;
	if (n == changes && n_modules) {
		*(bool *)data = false;
		return 1;
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD && p->p_flags & PF_X && !known(info, p) && !add(info, p))
			return 1;
	}
	return 0;
}

struct counters {
	unsigned long long n;
};

static int count(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	((struct counters *)data)->n = info->dlpi_adds + info->dlpi_subs;
	return 1;
}

void tfh_modules_look(uint64_t now)
{
	struct counters c;
	bool changed = true;

	if (!tfh_memory(&t, sizeof(*t), "the libraries of call sites"))
		return;
	for (uint32_t i = 0; i < n_modules; i++)
		t->module[i].seen = false;
	tfh_unforked_begin();
	dl_iterate_phdr(count, &c);
	dl_iterate_phdr(look, &changed);
	tfh_unforked_end();
	if (!changed)
		return;
	changes = c.n;
	looked = now;
	for (uint32_t i = 0; i < n_modules; i++)
		if (!t->module[i].seen && !t->module[i].unloaded) {
			t->module[i].unloaded = now;
			t->module[i].written = false;
		}
}

static int take_unloads(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(unsigned long long *)data = info->dlpi_subs;
	return 1;
}

bool tfh_modules_unloaded(void)
{
	static unsigned long long known;
	unsigned long long now = 0, before = known;

	tfh_unforked_begin();
	dl_iterate_phdr(take_unloads, &now);
	tfh_unforked_end();
	known = now;
	return now != before;
}

void tfh_modules_use(uint64_t address)
{
	for (uint32_t i = 0; i < n_modules; i++)
		if (address - t->module[i].start < t->module[i].end - t->module[i].start &&
		    !t->module[i].unloaded)
			t->module[i].used = true;
}

static uint32_t text(uint32_t *bytes, const char *s)
{
	uint32_t at = *bytes;
	size_t len = strlen(s) + 1;

	if (len == 1 || at + len > HEAP_BYTES)
		return 0;
	memcpy(t->heap + at, s, len);
	*bytes += (uint32_t)len;
	return at;
}

/* The path as a reader will find it: the program by its own path, others without `.` and links. */
static const char *full_path(const char *path, char buf[PATH_MAX])
{
	if (!*path)
		return tfh_recorder.exe;
	return *path == '/' ? path : realpath(path, buf) ? buf : path;
}

int tfh_modules_put(struct tft_writer *w, uint64_t now)
{
	struct tft_table_extra extra = {0};
	char buf[PATH_MAX];
	uint32_t n = 0, bytes = 1;
	int err;

	for (uint32_t i = 0; i < n_modules; i++) {
		const struct module *m = &t->module[i];
		if (!m->used || m->written)
			continue;
		t->row[n] = (struct tft_mods_row){.start = m->start,
						  .end = m->end,
						  .offset = m->offset,
						  .loaded = m->loaded,
						  .unloaded = m->unloaded};
		t->row[n].path = text(&bytes, full_path(t->paths + m->path, buf));
		t->row[n++].build_id = text(&bytes, m->build_id);
	}
	if (!n)
		return 0;
	extra.heap = t->heap;
	extra.heap_bytes = bytes;
	err = tft_write_chunk_at(w, TFT_MODS, t->payload,
				 (uint32_t)tft_table_pack(&tft_mods, t->row, n, &extra, t->payload),
				 now, now);
	for (uint32_t i = 0; i < n_modules && !err; i++)
		t->module[i].written |= t->module[i].used;
	return err;
}

void tfh_modules_new_segment(void)
{
	for (uint32_t i = 0; i < n_modules; i++)
		t->module[i].written = false;
}
