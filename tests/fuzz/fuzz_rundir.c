/*
 * Fuzzed input: a directory. The first byte says how it is named (the directory, or each of its
 * files) and which commands read it; then come entries: u8 name, u8 0, u16 0, u32 length, bytes.
 * `name` picks one of the table below. A journal's bytes are pieces (u32 offset in 8 bytes, u16
 * length, bytes), as most of a journal is hole.
 *
 * Whatever the files hold, `report`, `info`, `verify`, `repair`, `top`, `digest` and `diff` must neither crash nor hang nor
 * take memory beyond the bounds, and must end with a documented status.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "fuzz.h"
#include "import/import.h"
#include "report/report.h"
#include "top/otlp.h"

#define MAX_ENTRIES 16
#define ENTRY 8u
#define MAX_JOURNAL (96u << 20)

static const char *const names[] = {
	"p.host.1.0.tft",
	"p.host.1.1.tft",
	"p.host.1.2.tft",
	"r0.host.2.0.tft",
	"r1.host.3.0.tft",
	"run.json",
	"end.json",
	"p.host.1.journal",
	"p.host.2.journal",
	"trace.json",
	"other.pt.trace.json.gz",
	"host.xplane.pb",
	"plugins/profile/2026_01_01/host.xplane.pb",
	"plugins/profile/2026_01_02/host.xplane.pb",
	"plugins/profile/2026_01_02/host.trace.json.gz",
	"p.host.1.00.tft",
	"start.json",
	"digest.tft",
};
#define NAMES (sizeof(names) / sizeof(*names))

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

struct entry {
	uint8_t name;
	const uint8_t *data;
	uint32_t size;
};

/* Entries of an input, at most MAX_ENTRIES; the last may be cut. */
static uint32_t entries_of(const uint8_t *data, size_t size, struct entry *e)
{
	uint32_t n = 0;

	for (size_t at = 1; n < MAX_ENTRIES && size >= ENTRY && at <= size - ENTRY; n++) {
		e[n] = (struct entry){.name = data[at] % NAMES, .data = data + at + ENTRY};
		memcpy(&e[n].size, data + at + 4, 4);
		at += ENTRY;
		if (e[n].size > size - at)
			e[n].size = (uint32_t)(size - at);
		at += e[n].size;
	}
	return n;
}

/* ---- mutation ---- */

struct pack {
	uint8_t *out;
	size_t at, max;
};

static void put_entry(struct pack *p, uint8_t name, const uint8_t *data, size_t size)
{
	uint32_t head[2] = {name, (uint32_t)size};

	if (size > UINT32_MAX || p->max - p->at < ENTRY || size > p->max - p->at - ENTRY)
		return;
	memcpy(p->out + p->at, head, ENTRY);
	if (size)
		memcpy(p->out + p->at + ENTRY, data, size);
	p->at += ENTRY + size;
}

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* One piece of a journal: a number of it, or its bytes. */
static size_t mutate_journal(uint8_t *data, size_t size, uint32_t *seed)
{
	static const uint64_t odd[] = {0,     1,	  8,	      4096,	 65535,
				       65536, 0x7fffffff, 0xffffffff, UINT64_MAX};
	uint32_t chosen = next(seed) % 64;
	uint16_t n = 0;

	for (size_t at = 0; at + 6 <= size; at += 6u + n) {
		memcpy(&n, data + at + 4, 2);
		if (n > size - at - 6)
			break;
		if (chosen--)
			continue;
		if (n < 8 || next(seed) % 3) {
			LLVMFuzzerMutate(data + at + 6, n, n);
		} else {
			uint64_t v = odd[next(seed) % (sizeof(odd) / sizeof(*odd))];
			size_t wide = next(seed) % 2 ? 4 : 8;
			memcpy(data + at + 6 + next(seed) % (n / wide) * wide, &v, wide);
		}
		return size;
	}
	return LLVMFuzzerMutate(data, size, size);
}

static void put_mutated(struct pack *p, const struct entry *e, uint32_t *seed)
{
	size_t room = e->size + 1024;
	uint8_t *copy = calloc(1, room);

	if (!copy)
		return;
	memcpy(copy, e->data, e->size);
	if (ends_with(names[e->name], ".tft"))
		room = tfh_fuzz_mutate_tft(copy, e->size, room, next(seed));
	else if (ends_with(names[e->name], ".journal"))
		room = mutate_journal(copy, e->size, seed);
	else if (ends_with(names[e->name], ".json"))
		room = tfh_fuzz_mutate_json(copy, e->size, room, next(seed));
	else if (ends_with(names[e->name], ".pb"))
		room = tfh_fuzz_mutate_wire(copy, e->size, room, next(seed));
	else
		room = LLVMFuzzerMutate(copy, e->size, room);
	put_entry(p, e->name, copy, room);
	free(copy);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct entry e[MAX_ENTRIES];
	uint32_t draw = seed, n = size ? entries_of(data, size, e) : 0;

	if (!n || next(&draw) % 32 == 0)
		return LLVMFuzzerMutate(data, size, max);
	uint32_t chosen = next(&draw) % n, how = next(&draw) % 16;
	struct pack p = {.out = malloc(max), .at = 1, .max = max};
	if (!p.out)
		return size;
	p.out[0] = next(&draw) % 8 ? data[0] : (uint8_t)next(&draw);
	for (uint32_t i = 0; i < n; i++) {
		if (i != chosen)
			put_entry(&p, e[i].name, e[i].data, e[i].size);
		else if (how == 0) /* another name */
			put_entry(&p, (uint8_t)(next(&draw) % NAMES), e[i].data, e[i].size);
		else if (how == 1) /* twice */
			for (int k = 0; k < 2; k++)
				put_entry(&p, (uint8_t)(e[i].name + k), e[i].data, e[i].size);
		else if (how != 2 || n == 1) /* else left out */
			put_mutated(&p, &e[i], &draw);
	}
	memcpy(data, p.out, p.at);
	free(p.out);
	return p.at;
}

/* ---- the directory ---- */

static void write_journal(const struct entry *e)
{
	uint8_t *file = calloc(1, MAX_JOURNAL);
	size_t end = 0;
	uint32_t at8;
	uint16_t n;

	for (uint32_t at = 0; file && at + 6 <= e->size; at += 6u + n) {
		memcpy(&at8, e->data + at, 4);
		memcpy(&n, e->data + at + 4, 2);
		if (n > e->size - at - 6 || at8 > MAX_JOURNAL / 8 - 8192)
			break;
		memcpy(file + at8 * 8ull, e->data + at + 6, n);
		end = at8 * 8ull + n > end ? at8 * 8ull + n : end;
	}
	if (file)
		tfh_fuzz_write(names[e->name], file, end);
	free(file);
}

/* `words`: what follows "tfhook", then NULL. */
static void command(const char *const *words)
{
	char line[6][256] = {"tfhook"}, *argv[7] = {line[0]};
	FILE *out = stdout, *messages = stderr;
	char *text = NULL;
	size_t size;
	FILE *both = open_memstream(&text, &size);
	int argc = 1;

	for (; words[argc - 1]; argc++) {
		snprintf(line[argc], sizeof(line[argc]), "%s", words[argc - 1]);
		argv[argc] = line[argc];
	}
	if (!both)
		return;
	stdout = stderr = both;
	int status = tfh_cli(argc, argv);
	stdout = out;
	stderr = messages;
	fclose(both);
	tfh_fuzz_said(text, size, status);
	free(text);
}

#define COMMAND(...) command((const char *const[]){__VA_ARGS__, NULL})

/* One line of OpenMetrics: a comment, or NAME{LABEL="VALUE",...} NUMBER. */
static bool is_metric(const char *p)
{
	if (*p == '#')
		return true;
	p += strcspn(p, "{ ");
	if (*p++ != '{')
		return false;
	while (*p && *p != '}') {
		p += strspn(p, "abcdefghijklmnopqrstuvwxyz_");
		if (*p++ != '=' || *p++ != '"')
			return false;
		for (; *p && *p != '"'; p++)
			p += *p == '\\' && p[1];
		if (*p++ != '"')
			return false;
		p += *p == ',';
	}
	return p[0] == '}' && p[1] == ' ' && p[2] && !p[2 + strcspn(p + 2, " ")];
}

static void check_metrics(char *text, size_t size)
{
	char *rest = NULL;

	tfh_fuzz_is_text(text, size);
	if (size < 6 || strcmp(text + size - 6, "# EOF\n"))
		abort();
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!is_metric(line)) {
			fprintf(stderr, "fuzz: no metric: %s\n", line);
			abort();
		}
}

/* What `top` draws on screens of odd sizes, serves and sends. */
static void print_watched(const struct tfh_watch *w, int form)
{
	struct tfh_style style = {.utf8 = form & 1, .columns = form & 1 ? 20 : 33};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	if (form == 4)
		tfh_top_line(out, w);
	else if (form == 3)
		tfh_otlp_write(out, w, 1);
	else if (form == 2)
		tfh_top_metrics(out, w);
	else
		tfh_top_text(out, w, &style, form ? 4 : 23);
	fclose(out);
	if (form == 3)
		tfh_fuzz_is_json(text, size);
	else if (form == 2)
		check_metrics(text, size);
	else
		tfh_fuzz_is_text(text, size);
	free(text);
}

static void watch(const char *place)
{
	struct tfh_err err = {0};
	struct tfh_watch *w;

	if (tfh_watch_open(place, 30, &w, &err)) {
		tfh_fuzz_refused(&err);
		return;
	}
	tfh_watch_poll(w);
	if (w->phase != TFH_WATCH_WAITING)
		tfh_watch_judge(w);
	for (int form = 0; form < 5; form++)
		print_watched(w, form);
	tfh_watch_close(w);
}

/* What the first byte asks for. */
static void commands(uint8_t which, const char *path, const char *place)
{
	char repaired[256], made[256];

	snprintf(repaired, sizeof(repaired), "%s/repaired", place);
	snprintf(made, sizeof(made), "%s/repaired.digest", place);
	if (which & 2)
		COMMAND("info", path, which & 4 ? "--chunks" : NULL);
	if (which & 8)
		COMMAND("verify", path);
	if (which & 16)
		COMMAND("repair", path, "-o", repaired);
	if (which & 32)
		COMMAND("top", place, "--once", which & 4 ? "--json" : NULL);
	if (which & 32 && which & 4)
		watch(place);
	if (which & 64) {
		COMMAND("digest", path, "-o", made);
		COMMAND("diff", made, place, which & 4 ? "--json" : NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *place = tfh_fuzz_place();
	char path[MAX_ENTRIES][256];
	const char *paths[MAX_ENTRIES];
	struct entry e[MAX_ENTRIES];
	struct tfh_err err = {0};
	struct tfh_run *run;
	double begin = tfh_fuzz_clock();

	if (!place || !size)
		return 0;
	uint32_t n = entries_of(data, size, e), named = 0;
	for (uint32_t i = 0; i < n; i++)
		if (ends_with(names[e[i].name], ".journal"))
			write_journal(&e[i]);
		else
			tfh_fuzz_write(names[e[i].name], e[i].data, e[i].size);
	for (uint32_t i = 0; i < n && data[0] & 1; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%s", place, names[e[i].name]);
		paths[named++] = path[i];
	}
	if (!named)
		paths[named++] = place;
	if (tfh_import_open(paths, named, &run, &err))
		tfh_fuzz_refused(&err);
	else
		tfh_fuzz_report(run, size);
	commands(data[0], paths[0], place);
	tfh_fuzz_bound(begin, size);
	tfh_fuzz_clear();
	return 0;
}
