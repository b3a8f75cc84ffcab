#include "base/bisect.h"
#include "base/text.h"
#include "model/symbols/backtraces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/table.h"
#include "model/known.h"
#include "model/opened.h"
#include "model/symbols/pylines.h"
#include "model/symbols/symbols.h"

#define SITE_FRAMES 3
#define STACK_FRAMES 64
#define PYTHON_FRAMES 256
/* bytes of one function's name in a line: template arguments can fill a page */
#define NAME_MOST 96

struct frame_row {
	uint32_t stack, place;
	uint16_t index;
	uint64_t address, t; /* t: time of the chunk, ticks */
};

struct traced_module {
	struct tft_mods_row row;
	const char *path, *build_id, *file;
	struct tfh_symbols *symbols;
	bool opened;
	bool trusted; /* the trace file that names the module belongs to this user or root */
};

struct site {
	uint32_t stack;
	const char *text;
};

struct tfh_sites {
	struct frame_row *row;
	uint32_t n_row, cap_row;
	struct traced_module *module;
	uint32_t n_module, cap_module;
	struct site *site; /* call sites requested so far */
	uint32_t n_site, cap_site;
};

/* ---- reading ---- */

static int take_stacks(struct tfh_sites *s, const struct tft_table_view *v, uint64_t t)
{
	struct tft_btrc_row *rows = calloc(v->rows + 1, sizeof(*rows));
	int rc = rows ? tft_table_rows(v, &tft_btrc, rows) : -ENOMEM;

	for (uint32_t i = 0; i < v->rows && !rc; i++) {
		if (tfh_room_for((void **)&s->row, &s->cap_row, s->n_row, sizeof(*s->row)))
			rc = -ENOMEM;
		else
			s->row[s->n_row++] = (struct frame_row){rows[i].stack, rows[i].place,
								rows[i].index, rows[i].address, t};
	}
	free(rows);
	return rc;
}

static int take_modules(struct tfh_run *run, struct tfh_sites *s, const struct tft_table_view *v,
			bool trusted)
{
	struct tft_mods_row *rows = calloc(v->rows + 1, sizeof(*rows));
	int rc = rows ? tft_table_rows(v, &tft_mods, rows) : -ENOMEM;

	for (uint32_t i = 0; i < v->rows && !rc; i++) {
		struct traced_module m = {.row = rows[i], .trusted = trusted};
		m.path = tfh_arena_strdup(&run->arena, tft_table_text(v, rows[i].path));
		m.build_id = tfh_arena_strdup(&run->arena, tft_table_text(v, rows[i].build_id));
		if (!m.path || !m.build_id ||
		    tfh_room_for((void **)&s->module, &s->cap_module, s->n_module,
				 sizeof(*s->module))) {
			rc = -ENOMEM;
		} else {
			m.file = tfh_file_of(m.path);
			s->module[s->n_module++] = m;
		}
	}
	free(rows);
	return rc;
}

/* By backtrace number. Later segments repeat earlier ones' backtraces; the earliest comes first, as
 * it was written closest to the calls. */
static int by_stack(const void *a, const void *b)
{
	const struct frame_row *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return x->t < y->t ? -1 : x->t > y->t;
}

static int read_file(struct tfh_run *run, struct tfh_sites *s, struct tft_reader *r)
{
	bool trusted = tft_owner(r) == geteuid() || tft_owner(r) == 0;
	int rc = 0;

	for (uint32_t i = 0; i < tft_chunk_count(r) && !rc; i++) {
		const struct tft_chunk_info *c = tft_chunk(r, i);
		struct tft_table_view v;
		struct tfh_err err;
		const void *data;
		size_t len;

		if ((c->type != TFT_BTRC && c->type != TFT_MODS) ||
		    tft_chunk_payload(r, i, &data, &len, &err) || tft_table_open(&v, data, len))
			continue; /* damaged: these call sites stay unknown */
		rc = c->type == TFT_BTRC ? take_stacks(s, &v, c->t_first)
					 : take_modules(run, s, &v, trusted);
	}
	return rc;
}

/* Backtraces of a process; NULL when out of memory or if there are none. */
static struct tfh_sites *sites_of(struct tfh_run *run, uint32_t process)
{
	struct tfh_sites *s;
	int rc = 0;

	if (run->built || process >= run->n_proc)
		return NULL;
	s = run->proc[process].sites;
	if (s || !(s = calloc(1, sizeof(*s))))
		return s;
	for (uint32_t f = 0; f < run->n_file && !rc; f++)
		if (run->file[f].process == process)
			rc = read_file(run, s, run->file[f].reader);
	if (s->n_row)
		qsort(s->row, s->n_row, sizeof(*s->row), by_stack);
	run->proc[process].sites = s;
	return s;
}

void tfh_sites_free(struct tfh_sites *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_module; i++)
		tfh_symbols_close(s->module[i].symbols);
	free(s->module);
	free(s->row);
	free(s->site);
	free(s);
}

/* ---- frames that are not the program's ---- */

/* Frames of tfhook, the driver and the CUDA runtime: they say nothing about the program. */
static bool is_way_in(const struct tfh_model_frame *f)
{
	static const char *const file[] = {"libtfhook", "libcuda.so", "libcudart", "libcupti"};
	const char *name = f->function;

	for (size_t i = 0; i < sizeof(file) / sizeof(*file); i++)
		if (tfh_starts_with(f->module, file[i]))
			return true;
	/* A CUDA runtime linked statically into another library. */
	return (tfh_starts_with(name, "cuda") && name[4] >= 'A' && name[4] <= 'Z') ||
	       (tfh_starts_with(name, "cu") && name[2] >= 'A' && name[2] <= 'Z') ||
	       tfh_starts_with(name, "__cuda") || tfh_starts_with(name, "cudart::");
}

/* Frames of the Python interpreter and of its calls into C: there are many, and they only say that
 * Python was running. */
static bool is_python(const struct tfh_model_frame *f)
{
	static const char *const file[] = {"libpython", "python", "libffi", "_ctypes",
					   "_cffi_backend"};

	for (size_t i = 0; i < sizeof(file) / sizeof(*file); i++)
		if (tfh_starts_with(f->module, file[i]))
			return true;
	return false;
}

/* Frames of the C library that started the program or the thread. */
static bool is_start(const struct tfh_model_frame *f)
{
	return !strcmp(f->function, "_start") ||
	       (tfh_starts_with(f->module, "libc.so") &&
		(!*f->function || tfh_starts_with(f->function, "__libc_start") ||
		 tfh_starts_with(f->function, "clone") || !strcmp(f->function, "start_thread")));
}

/* Such a frame is named by its function. Debug information of the libraries is not read for it:
 * that takes longer than the rest of a small report. */
static bool wants_line(const struct tfh_model_frame *f)
{
	return !is_way_in(f) && !is_python(f) && !is_start(f);
}

/* ---- queries ---- */

/* The module that contained an address when its backtrace was written. */
static struct traced_module *module_at(struct tfh_sites *s, uint64_t address, uint64_t t)
{
	struct traced_module *found = NULL;

	for (uint32_t i = 0; i < s->n_module; i++) {
		const struct tft_mods_row *m = &s->module[i].row;
		if (address - m->start < m->end - m->start && m->loaded <= t &&
		    (!m->unloaded || t < m->unloaded))
			found = &s->module[i];
	}
	return found;
}

static int resolve(struct tfh_run *run, struct tfh_sites *s, const struct frame_row *row,
		   struct tfh_model_frame *out)
{
	/* A return address may lie just after its function's end. */
	uint64_t call = row->address - 1;
	struct traced_module *m = module_at(s, call, row->t);
	char name[1024], file[TFH_SYMBOLS_FILE];
	uint64_t in_file;

	*out = (struct tfh_model_frame){"", "", row->address, row->address, "", 0};
	if (!m)
		return 0;
	out->module = m->file;
	out->offset = row->address - m->row.start + m->row.offset;
	if (!m->opened) {
		m->symbols = tfh_symbols_open(m->path, m->build_id, m->trusted);
		m->opened = true;
	}
	in_file = call - m->row.start + m->row.offset;
	if (m->symbols && tfh_symbols_find(m->symbols, in_file, name, sizeof(name), &out->offset)) {
		out->function = tfh_arena_strdup(&run->arena, name);
		if (!out->function)
			return -ENOMEM;
		if (wants_line(out) && tfh_symbols_line(m->symbols, in_file, out->offset, file,
							sizeof(file), &out->line))
			out->file = tfh_arena_strdup(&run->arena, file);
		out->offset++;
	}
	return out->file ? 0 : -ENOMEM;
}

/* The first row of a backtrace, or where it would be inserted. */
static uint32_t row_of(const struct tfh_sites *s, uint32_t stack)
{
	return (uint32_t)TFH_BISECT(i, 0, s->n_row, s->row[i].stack < stack);
}

uint32_t tfh_run_python(struct tfh_run *run, uint32_t process, uint32_t stack,
			struct tfh_model_line *frame, uint32_t most)
{
	if (stack && run->known)
		return tfh_known_python(run->known, process, stack, frame, most);
	struct tfh_sites *s = stack ? sites_of(run, process) : NULL;
	uint32_t at = s ? row_of(s, stack) : 0;

	return s && at < s->n_row && s->row[at].stack == stack
		       ? tfh_run_place(run, process, s->row[at].place, frame, most)
		       : 0;
}

uint32_t tfh_run_stack(struct tfh_run *run, uint32_t process, uint32_t stack,
		       struct tfh_model_frame *frame, uint32_t most)
{
	if (stack && run->known)
		return tfh_known_frames(run->known, process, stack, frame, most);
	struct tfh_sites *s = stack ? sites_of(run, process) : NULL;
	uint32_t low = s ? row_of(s, stack) : 0, n = 0;

	for (; s && low < s->n_row && s->row[low].stack == stack && n < most; low++) {
		/* Repeated in a later segment, or only its Python frames are known. */
		if (s->row[low].index < n || !s->row[low].address)
			continue;
		if (resolve(run, s, &s->row[low], &frame[n]))
			break;
		n++;
	}
	return n;
}

static struct tfh_model_line line_of(const struct tfh_model_frame *f, bool library)
{
	return (struct tfh_model_line){f->line ? f->file : f->module, f->function, f->line,
				       library};
}

uint32_t tfh_run_functions(struct tfh_run *run, uint32_t process, uint32_t stack,
			   struct tfh_model_line *frame, uint32_t most)
{
	struct tfh_model_frame all[STACK_FRAMES];
	uint32_t of = tfh_run_stack(run, process, stack, all, STACK_FRAMES), n = 0;
	const char *program = process < run->n_proc ? tfh_file_of(run->proc[process].pub.exe) : "";
	bool own = false;

	for (uint32_t i = 0; i < of && n < most; i++) {
		const struct tfh_model_frame *f = &all[i];
		if (is_python(f))
			return 0;
		if (!*f->function || is_way_in(f) || is_start(f))
			continue;
		bool library = strcmp(f->module, program) != 0;
		own |= !library;
		frame[n++] = line_of(f, library);
	}
	return own ? n : 0;
}

bool tfh_run_function(struct tfh_run *run, uint32_t process, uint64_t address,
		      struct tfh_model_line *out)
{
	/* The code after its first instruction, as of a call that it made. */
	const struct frame_row row = {.address = address + 1, .t = UINT64_MAX};
	struct tfh_sites *s = run->known ? NULL : sites_of(run, process);
	struct tfh_model_frame f;

	if (!s || resolve(run, s, &row, &f) || !*f.function || is_way_in(&f) ||
	    strcmp(f.module, tfh_file_of(run->proc[process].pub.exe)) != 0)
		return false;
	*out = line_of(&f, false);
	return true;
}

static size_t add_frame(char *out, size_t size, const struct tfh_model_frame *f, const char *module)
{
	char line[NAME_MOST + 16] = "";
	int n;

	if (f->line)
		snprintf(line, sizeof(line), "%.*s:%u ", NAME_MOST, tfh_short_file(f->file),
			 f->line);
	if (is_python(f))
		n = snprintf(out, size, "Python");
	else if (!*f->function)
		n = snprintf(out, size, "%s+0x%llx", *f->module ? f->module : "(generated code)",
			     (unsigned long long)f->offset);
	else if (!strcmp(f->module, module))
		n = snprintf(out, size, "%s%.*s", line, NAME_MOST, f->function);
	else
		n = snprintf(out, size, "%s%.*s [%s]", line, NAME_MOST, f->function, f->module);
	return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

/* Skips frames without a name in front of a named frame of the same file: local functions of a
 * stripped library, such as a statically linked CUDA runtime. */
static uint32_t skip_nameless(const struct tfh_model_frame *f, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && !*f[i].function && *f[i].module && !strcmp(f[i].module, f[0].module))
		i++;
	return i < n && *f[i].function && !strcmp(f[i].module, f[0].module) ? i : 0;
}

static void describe(const struct tfh_model_frame *f, uint32_t n, char *out, size_t size)
{
	const char *module = "";
	uint32_t shown = 0, i = 0;
	size_t at = 0;

	*out = '\0';
	while (n > 1 && is_start(&f[n - 1]))
		n--;
	while (i < n && is_way_in(&f[i]))
		i++;
	i += skip_nameless(f + i, n - i);
	while (i < n && is_way_in(&f[i]))
		i++;
	for (; i < n && shown < SITE_FRAMES; i++) {
		if (shown && is_python(&f[i]) && is_python(&f[i - 1]))
			continue;
		if (shown)
			at += (size_t)snprintf(out + at, size - at, " < ");
		at += add_frame(out + at, size - at, &f[i], module);
		module = f[i].module;
		shown++;
		if (!strcmp(f[i].function, "main"))
			break;
	}
}

/* Returns false if nothing is known. */
static bool describe_site(struct tfh_run *run, uint32_t process, uint32_t stack, char *line,
			  size_t size)
{
	struct tfh_model_line python[PYTHON_FRAMES];
	struct tfh_model_frame frame[STACK_FRAMES];
	uint32_t n = tfh_run_python(run, process, stack, python, PYTHON_FRAMES);

	if (n) {
		tfh_place_text(python, n, line, size);
	} else {
		n = tfh_run_stack(run, process, stack, frame, STACK_FRAMES);
		describe(frame, n, line, size);
	}
	for (char *c = line; *c; c++) /* names come from untrusted files */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return n > 0;
}

const char *tfh_run_site(struct tfh_run *run, uint32_t process, uint32_t stack)
{
	struct tfh_sites *s = stack ? sites_of(run, process) : NULL;
	char line[(2 * NAME_MOST + 320) * SITE_FRAMES];
	const char *text;

	for (uint32_t i = 0; s && i < s->n_site; i++)
		if (s->site[i].stack == stack)
			return s->site[i].text;
	if (!s || !describe_site(run, process, stack, line, sizeof(line)))
		return "";
	text = tfh_arena_strdup(&run->arena, line);
	if (!text)
		return "";
	if (!tfh_room_for((void **)&s->site, &s->cap_site, s->n_site, sizeof(*s->site)))
		s->site[s->n_site++] = (struct site){stack, text};
	return text;
}
