#include "judge/facts/place_role.h"

#include <fnmatch.h>
#include <string.h>

#include "base/text.h"
#include "format/layout.h"

enum when { ANY, NOT_BEFORE, BEFORE, NOT_AFTER };

static const struct {
	enum tfh_cause cause;
	bool whole;
} roles[TFH_ROLE_COUNT] = {
	[TFH_ROLE_NONE] = {TFH_CAUSE_HOST_UNKNOWN, false},
#define ROLE(id, cause, whole) [TFH_ROLE_##id] = {TFH_CAUSE_##cause, whole},
#include "judge/facts/places.def"
#undef ROLE
};

static const struct place_row {
	const char *file, *function; /* file NULL: the program's own */
	enum tfh_role role;
	enum when when;
} rows[] = {
#define IN(file, function, role, when) {file, function, TFH_ROLE_##role, when},
#define OWN(function, role, when) {NULL, function, TFH_ROLE_##role, when},
#include "judge/facts/places.def"
#undef IN
#undef OWN
};

struct function_row {
	const char *file, *function;
};

static const struct function_row waits[] = {
#define WAITS(file, function) {file, function},
#include "judge/facts/places.def"
#undef WAITS
};

static const struct function_row passes[] = {
#define PASS(file, function) {file, function},
#include "judge/facts/places.def"
#undef PASS
};

bool tfh_role_compiles(enum tfh_role role)
{
	return role == TFH_ROLE_COMPILE || role == TFH_ROLE_REWRITE;
}

bool tfh_role_takes(enum tfh_role role)
{
	return role == TFH_ROLE_TAKE || role == TFH_ROLE_RECEIVE;
}

bool tfh_role_waits(enum tfh_role role)
{
	return role == TFH_ROLE_QUEUE || role == TFH_ROLE_LOCK || tfh_role_takes(role);
}

enum tfh_cause tfh_role_cause(enum tfh_role role)
{
	return roles[role].cause;
}

bool tfh_same_function(const struct tfh_model_line *a, const struct tfh_model_line *b)
{
	return !strcmp(a->function, b->function) && !strcmp(a->file, b->file);
}

bool tfh_same_line(const struct tfh_model_line *a, const struct tfh_model_line *b)
{
	return a->line == b->line && tfh_same_function(a, b);
}

bool tfh_is_import(const struct tfh_model_line *f)
{
	return tfh_starts_with(f->file, "<frozen importlib");
}

enum tfh_order tfh_order_of(const struct tfh_model_line *seen, uint32_t n_seen,
			    const struct tfh_model_line *call, uint32_t n_call)
{
	while (n_seen && n_call) {
		const struct tfh_model_line *a = &seen[--n_seen], *b = &call[--n_call];
		if (!tfh_same_function(a, b))
			return TFH_ORDER_UNKNOWN;
		if (a->line != b->line)
			return a->line < b->line ? TFH_ORDER_BEFORE : TFH_ORDER_AFTER;
	}
	return TFH_ORDER_UNKNOWN;
}

const struct tfh_model_line *tfh_place_called(const struct tfh_model_line *frame, uint32_t n)
{
	uint32_t called = n ? tfh_place_lead(frame, n) : 0, outer;

	while (called + 1 < n && !frame[called + 1].library)
		called++;
	for (outer = called + 1; outer < n && frame[outer].library;)
		outer++;
	return outer < n && !frame[called].library ? &frame[called] : NULL;
}

static bool in_time(enum when when, enum tfh_order order)
{
	if (when == NOT_AFTER)
		return order != TFH_ORDER_AFTER;
	return when == ANY || (when == BEFORE) == (order == TFH_ORDER_BEFORE);
}

bool tfh_makes_pass(const char *function)
{
	static const char *const names[] = {"predict", "evaluate", "validate", "test"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(tfh_last_name(function), names[i]))
			return true;
	return false;
}

bool tfh_in_script_ops(const char *file)
{
	return strstr(file, "/tensorflow/python/ops/script_ops.py") != NULL;
}

/* Whether a pattern can match, by its first letter: a frame is compared with every row, and most
 * comparisons end here. */
static bool may_match(const char *pattern, const char *name)
{
	return *pattern == *name || *pattern == '*' || *pattern == '?' || *pattern == '[';
}

/* Whether a frame is in a row's file. */
static bool in_file(const struct place_row *r, const struct tfh_model_line *frame,
		    enum tfh_path path)
{
	if (!r->file)
		return !frame->library;
	if (path == TFH_PATH_WHOLE)
		return frame->library && tfh_is_in_package(frame->file, r->file);
	if (!*r->file || !strcmp(frame->function, "<module>"))
		return false;
	if (path == TFH_PATH_NAME)
		return *frame->file && strcmp(r->function, "*") != 0 &&
		       strcmp(frame->file, "__init__.py") != 0 &&
		       !strcmp(frame->file, tfh_file_of(r->file));
	return *r->file == '/' ? tfh_starts_with(frame->file, r->file + 1)
			       : frame->library && tfh_is_in_package(frame->file, r->file);
}

static const struct place_row *row_of(const struct tfh_model_line *frame, enum tfh_path path,
				      enum tfh_order order)
{
	const char *last = tfh_last_name(frame->function);

	if (frame->library && !strcmp(last, "<module>")) /* is imported, not used */
		return NULL;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct place_row *r = &rows[i];
		const char *name = strchr(r->function, '.') ? frame->function : last;
		if (in_time(r->when, order) && may_match(r->function, name) &&
		    in_file(r, frame, path) && !fnmatch(r->function, name, 0))
			return r;
	}
	return NULL;
}

static const struct place_row *row_of_frame(const struct tfh_model_line *frame,
					    enum tfh_order order)
{
	return row_of(frame, TFH_PATH_WHOLE, order);
}

struct tfh_role_frame tfh_role_frame(const struct tfh_model_line *frame, enum tfh_path path)
{
	const struct place_row *r = row_of(frame, path, TFH_ORDER_UNKNOWN);

	return (struct tfh_role_frame){.row = r ? (uint16_t)(r - rows + 1) : 0,
				       .library = frame->library || (r && r->file)};
}

static enum tfh_role role_of(const struct place_row *row)
{
	return row ? row->role : TFH_ROLE_NONE;
}

static enum tfh_role role_of_frame(const struct tfh_model_line *frame, enum tfh_order order)
{
	return role_of(row_of_frame(frame, order));
}

bool tfh_profiles(const char *file, const char *function)
{
	const struct tfh_model_line frame = {.file = file, .function = function, .library = true};

	return file && function && role_of_frame(&frame, TFH_ORDER_UNKNOWN) == TFH_ROLE_PROFILE;
}

/* Whether a library's function, by its own name, writes or shows what its callees read, decode or
 * compute: a table's columns, a tensor's digits. A row for a whole package says less: a tracker may
 * wrap the function that trains. */
static bool writes_what(const struct place_row *row, enum tfh_role inner)
{
	bool writes = role_of(row) == TFH_ROLE_SAVE || role_of(row) == TFH_ROLE_LOG;

	return writes && row->file && strcmp(row->function, "*") != 0 &&
	       (inner == TFH_ROLE_READ || inner == TFH_ROLE_DECODE || inner == TFH_ROLE_MAP ||
		inner == TFH_ROLE_COMPUTE);
}

/* A walk from the innermost frame of a stack to the outermost. A queue inside a data loader belongs
 * to the loader, a request to the tracker that makes it, and what writes a file says less than the
 * function that calls it. Whatever a compiler does is compiling: it reads files and pipes, and runs
 * the layers that it traces. */
struct role_walk {
	enum tfh_role weak, found;
	bool outside; /* beyond the functions called by the program's innermost frame */
};

/* False: the role is found. */
static bool step_out(struct role_walk *w, const struct place_row *row, bool library)
{
	enum tfh_role role = role_of(row);
	bool tells = !w->outside || roles[role].whole;
	bool yields = !library || tfh_role_waits(role) || role == TFH_ROLE_KEEP ||
		      role == TFH_ROLE_WRITE || role == TFH_ROLE_COLLECT || role == TFH_ROLE_REMOTE;

	if ((role == TFH_ROLE_COMPILE && w->found != TFH_ROLE_REWRITE) ||
	    role == TFH_ROLE_CONVERT || role == TFH_ROLE_PROFILE) {
		w->found = role;
		return false;
	}
	if (role != TFH_ROLE_NONE && tells && yields)
		w->weak = w->weak == TFH_ROLE_NONE || w->weak == TFH_ROLE_WRITE ? role : w->weak;
	else if (role != TFH_ROLE_NONE && tells &&
		 (w->found == TFH_ROLE_NONE || writes_what(row, w->found)))
		w->found = role;
	w->outside = w->outside || !library;
	return true;
}

static enum tfh_role role_of_walk(const struct role_walk *w)
{
	return w->found != TFH_ROLE_NONE ? w->found : w->weak;
}

enum tfh_role tfh_place_role(const struct tfh_model_line *frame, uint32_t n, enum tfh_order order)
{
	struct role_walk w = {0};

	for (uint32_t i = 0; i < n; i++)
		if (!step_out(&w, row_of_frame(&frame[i], order), frame[i].library))
			break;
	return role_of_walk(&w);
}

enum tfh_role tfh_role_of_frames(const struct tfh_role_frame *frame, uint32_t n)
{
	struct role_walk w = {0};

	while (n--)
		if (!step_out(&w, frame[n].row ? &rows[frame[n].row - 1] : NULL, frame[n].library))
			break;
	return role_of_walk(&w);
}

/* Whether the loader's frame i calls a function that combines samples: PyTorch's fetcher for data
 * sets with an index calls only the data set (by __getitem__ in a list, or __getitems__) and that
 * function. */
static bool calls_collate(const struct tfh_model_line *frame, uint32_t i)
{
	const char *called = i ? tfh_last_name(frame[i - 1].function) : NULL;

	return called && !strcmp(frame[i].function, "_MapDatasetFetcher.fetch") &&
	       fnmatch("__getitem*", called, 0) != 0 && strcmp(called, "<listcomp>") != 0;
}

enum tfh_role tfh_loader_role(const struct tfh_model_line *frame, uint32_t n, int state)
{
	/* Everything a loader does is before the step that it loads for. */
	enum tfh_role role = tfh_place_role(frame, n, TFH_ORDER_BEFORE);
	bool own = false, puts_together = false;

	if (role == TFH_ROLE_READ || role == TFH_ROLE_DECODE || role == TFH_ROLE_MAP)
		return role;
	for (uint32_t i = 0; i < n; i++) {
		enum tfh_role of = role_of_frame(&frame[i], TFH_ORDER_UNKNOWN);
		if (frame[i].library && (of == TFH_ROLE_LOADER || of == TFH_ROLE_BATCH)) {
			puts_together |= own && calls_collate(frame, i);
			break;
		}
		own |= !frame[i].library;
		puts_together |= !frame[i].library &&
				 !fnmatch("*collate*", tfh_last_name(frame[i].function), 0);
	}
	if (puts_together || (!own && role == TFH_ROLE_BATCH))
		return TFH_ROLE_BATCH;
	if (state == TFT_STATE_READ || state == TFT_STATE_NAMES || state == TFT_STATE_PAGE)
		return TFH_ROLE_READ;
	return own ? TFH_ROLE_MAP : TFH_ROLE_LOADER;
}

static bool is_one_of(const struct function_row *row, size_t n, const struct tfh_model_line *frame)
{
	const char *name = tfh_last_name(frame->function);

	for (size_t i = 0; i < n && frame->library; i++)
		if (may_match(row[i].function, name) && !fnmatch(row[i].function, name, 0) &&
		    tfh_is_in_package(frame->file, row[i].file))
			return true;
	return false;
}

bool tfh_passes_on(const struct tfh_model_line *frame)
{
	return is_one_of(passes, sizeof(passes) / sizeof(*passes), frame);
}

const struct tfh_model_line *tfh_place_evaluates(const struct tfh_model_line *frame, uint32_t n)
{
	const struct tfh_model_line *last = NULL, *called = NULL;
	bool computes = false;

	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_model_line *f = &frame[i];
		computes |= f->library && (strstr(f->file, "/torch/nn/modules/module.py") ||
					   strstr(f->file, "/torch/utils/_contextlib.py"));
		if (f->library)
			continue;
		called = last ? last
			      : called; /* its caller's program frame is this one, or further out */
		last = computes && i + 1 < n && frame[i + 1].library &&
				       !tfh_passes_on(&frame[i + 1]) &&
				       !tfh_is_in_package(frame[i + 1].file, "/torch/")
			       ? f
			       : NULL;
	}
	return called;
}

bool tfh_place_waits(const struct tfh_model_line *frame)
{
	return is_one_of(waits, sizeof(waits) / sizeof(*waits), frame);
}

/* Whether what it calls of the program is only shown by the line that called it. */
static bool owns(enum tfh_role role)
{
	return tfh_role_compiles(role) || role == TFH_ROLE_PROFILE;
}

uint32_t tfh_role_lead(const struct tfh_model_line *frame, uint32_t n, enum tfh_role role,
		       uint32_t *callee)
{
	uint32_t from = 0, lead;

	for (uint32_t i = 0; i < n && owns(role); i++)
		if (owns(role_of_frame(&frame[i], TFH_ORDER_UNKNOWN)))
			from = i;
	lead = n > from ? from + tfh_place_lead(frame + from, n - from) : 0;
	*callee = from ? from : lead ? lead - 1 : n;
	while (*callee && *callee < n && tfh_passes_on(&frame[*callee]))
		--*callee;
	return lead;
}
