#include "model/symbols/pylines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/packages.h"
#include "base/text.h"
#include "format/table.h"
#include "model/known.h"
#include "model/opened.h"

#define NUMBERS_MOST (1u << 16) /* bound on codes and places; no recorder writes more */
#define NAME_MOST 96		/* bytes of a function's name in a line */
#define DEEPEST 4096u		/* bound on callers: a damaged file may hold a cycle */

struct py_function {
	const char *file, *name;
	bool library;
};

struct place {
	uint32_t caller, code, line;
};

struct tfh_places {
	struct py_function *code; /* by number; segments repeat earlier ones' rows */
	struct place *place;
	uint32_t codes, places;
};

/* Makes room for element i. */
static int make_room(void **v, uint32_t *n, uint32_t i, size_t size)
{
	uint32_t want = *n ? *n : 256;
	char *grown;

	if (i < *n)
		return 0;
	if (i >= NUMBERS_MOST)
		return -EINVAL;
	while (want <= i)
		want *= 2;
	grown = realloc(*v, want * size);
	if (!grown)
		return -ENOMEM;
	memset(grown + *n * size, 0, (want - *n) * size);
	*v = grown;
	*n = want;
	return 0;
}

/* The position after the last occurrence of `with`; NULL if there is none. */
static const char *after(const char *path, const char *with)
{
	const char *found = NULL;

	for (const char *at = path; (at = strstr(at, with)); at++)
		found = at + strlen(with);
	return found;
}

/* The package's part of a path in a framework's own folders: installed with `pip --target`, or
 * built in its source tree, a framework is below no site-packages. NULL for other paths. */
static const char *in_framework(const char *path)
{
	static const char *const folders[] = {
		"/tensorflow/python/",
		"/tensorflow/_api/",
		"/keras/src/",
		"/torch/nn/",
		"/torch/optim/",
		"/torch/utils/",
		"/torch/_",
		"/torch/autograd/",
		"/torch/cuda/",
		"/torch/fx/",
		"/jax/_src/",
		"/jaxlib/",
		"/flax/linen/",
		"/flax/core/",
		"/numpy/_core/",
		"/numpy/lib/",
		"/numba/core/",
		"/numba/cuda/",
		"/cupy/_core/",
		"/cupy/cuda/",
		"/pandas/core/",
		"/pandas/io/",
		"/llvmlite/",
		"/taichi/lang/",
		"/tinygrad/engine/",
		"/tinygrad/uop/",
		"/tinygrad/codegen/",
		"/tinygrad/runtime/",
		"/tinygrad/nn/",
		"/tinygrad/schedule/",
		"/tinygrad/mixin/",
		"/python/tfhook/",
	};
	const char *found;

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if ((found = after(path, folders[i])))
			return found - strlen(folders[i]) + 1;
	return NULL;
}

/* Whether the code is in no file, and is not the program as typed or given by -c: modules frozen
 * into the interpreter, and code that libraries generate ("<sqlalchemy generated ...>", "<attrs
 * generated ...>", torch.fx' "<eval_with_key>.3"). torch.compile() writes its code into a folder
 * torchinductor_USER by default. */
static bool is_generated(const char *path)
{
	static const char *const program[] = {"<string>", "<stdin>", "<console>", "<ipython-input"};

	for (size_t i = 0; i < sizeof(program) / sizeof(*program); i++)
		if (tfh_starts_with(path, program[i]))
			return false;
	return *path == '<' || strstr(path, "/torchinductor_");
}

/* The module's part of a path in an installed package or the standard library, or the name of
 * generated code; NULL for other paths. */
static const char *in_library(const char *path)
{
	static const char *const standard[] = {"/lib/python3", "/lib64/python3"};
	const char *found;

	if (is_generated(path))
		return path;
	if ((found = tfh_in_packages(path)))
		return found;
	for (size_t i = 0; i < sizeof(standard) / sizeof(*standard); i++)
		if ((found = after(path, standard[i])) && (found = strchr(found, '/')))
			return found + 1;
	return in_framework(path);
}

uint32_t tfh_library_frames(const struct tfh_model_line *frame, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && frame[i].library)
		i++;
	return i;
}

const char *tfh_last_name(const char *function)
{
	const char *dot = strrchr(function, '.');

	return dot ? dot + 1 : function;
}

bool tfh_file_of_library(const char *path)
{
	return in_library(path);
}

bool tfh_is_in_package(const char *path, const char *part)
{
	const char *module = *part == '/' && strstr(path, part) ? in_library(path) : NULL;

	/* the part of a library's path begins behind a slash */
	return strstr(module && module > path ? module - 1 : path, part);
}

bool tfh_makes_jax_ops(const char *file, const char *function)
{
	static const char *const parts[] = {"/jax/_src/numpy/", "/jax/_src/lax/", "/jax/_src/nn/",
					    "/jax/_src/scipy/", "/jax/_src/random.py"};

	if (strstr(file, "/jax/_src/array.py"))
		return strstr(function, "__getitem__") || strstr(function, "__iter__");
	if (strstr(file, "/jax/_src/numpy/array_constructors.py"))
		return false;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (strstr(file, parts[i]))
			return true;
	return false;
}

static int take_codes(struct tfh_run *run, struct tfh_places *p, const struct tft_table_view *v)
{
	struct tft_pyco_row *rows = calloc(v->rows + 1, sizeof(*rows));
	int rc = rows ? tft_table_rows(v, &tft_pyco, rows) : -ENOMEM;

	for (uint32_t i = 0; i < v->rows && !rc; i++) {
		rc = make_room((void **)&p->code, &p->codes, rows[i].code, sizeof(*p->code));
		if (rc == -EINVAL || (!rc && p->code[rows[i].code].file)) {
			rc = 0;
			continue;
		}
		if (rc)
			break;
		struct py_function *c = &p->code[rows[i].code];
		c->file = tfh_arena_strdup(&run->arena, tft_table_text(v, rows[i].file));
		c->name = tfh_arena_strdup(&run->arena, tft_table_text(v, rows[i].name));
		c->library = c->file && in_library(c->file);
		rc = c->file && c->name ? 0 : -ENOMEM;
	}
	free(rows);
	return rc;
}

static int take_places(struct tfh_places *p, const struct tft_table_view *v)
{
	struct tft_pyfr_row *rows = calloc(v->rows + 1, sizeof(*rows));
	int rc = rows ? tft_table_rows(v, &tft_pyfr, rows) : -ENOMEM;

	for (uint32_t i = 0; i < v->rows && !rc; i++) {
		rc = make_room((void **)&p->place, &p->places, rows[i].place, sizeof(*p->place));
		if (!rc)
			p->place[rows[i].place] =
				(struct place){rows[i].caller, rows[i].code, rows[i].line};
		rc = rc == -EINVAL ? 0 : rc;
	}
	free(rows);
	return rc;
}

static int read_file(struct tfh_run *run, struct tfh_places *p, struct tft_reader *r)
{
	int rc = 0;

	for (uint32_t i = 0; i < tft_chunk_count(r) && !rc; i++) {
		uint32_t type = tft_chunk(r, i)->type;
		struct tft_table_view v;
		struct tfh_err err;
		const void *data;
		size_t len;

		if ((type != TFT_PYCO && type != TFT_PYFR) ||
		    tft_chunk_payload(r, i, &data, &len, &err) || tft_table_open(&v, data, len))
			continue; /* damaged: these lines stay unknown */
		rc = type == TFT_PYCO ? take_codes(run, p, &v) : take_places(p, &v);
	}
	return rc;
}

/* Python lines of a process; NULL when out of memory or if there are none. */
static struct tfh_places *places_of(struct tfh_run *run, uint32_t process)
{
	struct tfh_places *p;
	int rc = 0;

	if (run->built || process >= run->n_proc)
		return NULL;
	p = run->proc[process].places;
	if (p || !(p = calloc(1, sizeof(*p))))
		return p;
	for (uint32_t f = 0; f < run->n_file && !rc; f++)
		if (run->file[f].process == process)
			rc = read_file(run, p, run->file[f].reader);
	run->proc[process].places = p;
	return p;
}

void tfh_places_free(struct tfh_places *p)
{
	if (!p)
		return;
	free(p->code);
	free(p->place);
	free(p);
}

static bool is_string(const char *file)
{
	return !strcmp(file, "<string>");
}

static bool made_by_library(const char *file)
{
	return is_string(file) || strstr(file, "__autograph_generated_file");
}

void tfh_own_generated(struct tfh_model_line *frame, uint32_t n)
{
	bool program = false; /* a frame further out is the program's */

	for (uint32_t i = n; i-- > 0;) {
		/* Also a constructor that the standard library makes (namedtuple). */
		if (program && made_by_library(frame[i].file) &&
		    (frame[i + 1].library ||
		     (is_string(frame[i].file) && !is_string(frame[i + 1].file))))
			frame[i].library = true;
		program |= !frame[i].library;
	}
}

uint32_t tfh_run_place(struct tfh_run *run, uint32_t process, uint32_t place,
		       struct tfh_model_line *frame, uint32_t most)
{
	if (place && run->known)
		return tfh_known_place(run->known, process, place, frame, most);
	const struct tfh_places *p = place ? places_of(run, process) : NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; p && place && place < p->places && n < most && i < DEEPEST; i++) {
		const struct place *at = &p->place[place];
		const struct py_function *c =
			at->code && at->code < p->codes ? &p->code[at->code] : NULL;
		if (c && c->file)
			frame[n++] =
				(struct tfh_model_line){c->file, c->name, at->line, c->library};
		place = at->caller;
	}
	tfh_own_generated(frame, n);
	return n;
}

uint32_t tfh_place_lead(const struct tfh_model_line *frame, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!frame[i].library)
			return i;
	return 0;
}

const char *tfh_short_file(const char *path)
{
	const char *name = in_library(path), *slash = strrchr(path, '/');

	if (name)
		return name;
	if (!slash)
		return path;
	if (!tfh_starts_with(slash, "/__"))
		return slash + 1;
	while (slash > path && slash[-1] != '/')
		slash--;
	return slash;
}

static size_t add(char *out, size_t size, const char *before, const struct tfh_model_line *f)
{
	int n;

	if (f->line)
		n = snprintf(out, size, "%s%.200s:%u %.*s", before, tfh_short_file(f->file),
			     f->line, NAME_MOST, f->function);
	else
		n = snprintf(out, size, "%s%.200s %.*s", before, tfh_short_file(f->file), NAME_MOST,
			     f->function);
	return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

size_t tfh_place_text(const struct tfh_model_line *frame, uint32_t n, char *out, size_t size)
{
	uint32_t own = n ? tfh_place_lead(frame, n) : 0;
	size_t at;

	*out = '\0';
	at = n ? add(out, size, "", &frame[own]) : 0;
	if (own)
		at += add(out + at, size - at, " > ", &frame[own - 1]);
	return at;
}
