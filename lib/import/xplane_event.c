/* Interprets the events of an XPlane trace as calls, ops and steps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

#include "import/xplane.h"
#include "model/symbols/kernel_name.h"

#define MAX_EVENTS 40000000u /* limit on events, about 5 GB */

struct step {
	int64_t group, t0, t1;
};

struct module_run { /* a program's run on a device */
	uint64_t key;
	int64_t t0, t1;
};

struct tfh_xplane {
	struct tfh_builder *b;
	uint32_t process;
	uint64_t count, threads;
	struct tfh_xplace at; /* the current line */
	/* steps marked by the program, or else those that the profiler derived on the devices */
	uint64_t marked;
	struct step *step;
	uint32_t n_step, cap_step;
	struct tfh_map by_group;
	struct module_run *module;
	uint32_t n_module, cap_module;
	int64_t from, to; /* between them the profiler did not start or stop */
	bool device;	  /* it was called, or worked */
	bool cpu_ops;	  /* a host thread executed ops of XLA's */
};

struct tfh_xplane *tfh_xplane_new(struct tfh_builder *b, const char *host)
{
	struct tfh_xplane *x = calloc(1, sizeof(*x));
	int64_t process = tfh_build_process(b, host, "", 0, -1);

	if (!x || process < 0) {
		free(x);
		return NULL;
	}
	x->b = b;
	x->process = (uint32_t)process;
	x->from = INT64_MIN;
	x->to = INT64_MAX;
	return x;
}

void tfh_xplane_free(struct tfh_xplane *x)
{
	if (!x)
		return;
	tfh_map_free(&x->by_group);
	free(x->step);
	free(x->module);
	free(x);
}

uint64_t tfh_xplane_count(const struct tfh_xplane *x)
{
	return x->count;
}

/* "Stream #134(Compute)": 134. */
static uint32_t first_number(const char *text)
{
	text += strcspn(text, "0123456789");
	return (uint32_t)strtoul(text, NULL, 10);
}

int tfh_xplane_line(struct tfh_xplane *x, enum tfh_xline what, const char *name, int64_t id,
		    uint32_t device)
{
	x->at.what = what;
	x->at.device = device;
	x->at.stream = what != TFH_XLINE_STREAM		  ? 0
		       : !tfh_starts_with(name, "Stream") ? (uint32_t)id
							  : first_number(name);
	if (what == TFH_XLINE_HOST && x->threads++ < TFH_IMPORT_THREADS) {
		int64_t t = tfh_build_thread(x->b, x->process, (uint32_t)id, name);
		if (t < 0)
			return (int)t;
		x->at.thread = (uint32_t)t;
	}
	return 0;
}

struct tfh_xplace tfh_xplane_here(const struct tfh_xplane *x)
{
	return x->at;
}

void tfh_xplane_back(struct tfh_xplane *x, struct tfh_xplace place)
{
	x->at = place;
}

void tfh_xplane_processors(struct tfh_xplane *x, uint32_t n)
{
	tfh_build_processors(x->b, x->process, n);
}

/* The number after "key:" in a details text; 0 if missing. */
static uint64_t detail(const char *text, const char *key)
{
	size_t n = strlen(key);
	const char *at = text;

	while ((at = strstr(at, key)) && !((at == text || at[-1] == ' ') && at[n] == ':'))
		at++;
	return at ? strtoull(at + n + 1, NULL, 10) : 0;
}

static void detail3(const char *text, const char *key, uint32_t v[3])
{
	const char *at = strstr(text, key);

	for (int i = 0; at && i < 3; i++) {
		at += strcspn(at, "0123456789 ");
		v[i] = (uint32_t)strtoul(at, (char **)&at, 10);
		at += *at == ',';
	}
}

/* The text of a TPU's op is XLA's: "%copy-done.3 = f32[8]{0} copy-done(...)". */
static void name_of(const char *text, char *name, size_t size)
{
	const char *end = *text == '%' ? strstr(text, " = ") : NULL;

	text += end != NULL;
	tfh_copy_text(name, size, text, end ? (size_t)(end - text) : strlen(text));
}

/* Of the shapes that begin a copy's tuple, the first is the destination's, the second the source's.
 * "S(5)" in a shape is XLA's number of the host's memory. */
static uint8_t direction(const char *text)
{
	static const char done[] = "copy-done((", start[] = " = (";
	const char *at = strstr(text, done), *tuple = strstr(text, start);
	bool host[3] = {false};
	int depth = 0, shape = 0;

	at = at ? at + strlen(done) : tuple ? tuple + strlen(start) : "";
	for (; *at && depth >= 0 && shape < 2; at++) {
		depth += !!strchr("([{", *at) - !!strchr(")]}", *at);
		shape += !depth && *at == ',';
		host[shape] |= tfh_starts_with(at, "S(5)");
	}
	return host[0] == host[1] ? TFH_DIR_D2D : host[0] ? TFH_DIR_D2H : TFH_DIR_H2D;
}

static bool xla_collective(const char *name)
{
	static const char *const all[] = {
		"all-reduce",	      "all-gather",	   "reduce-scatter",	  "all-to-all",
		"collective-permute", "ragged-all-to-all", "collective-broadcast"};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (tfh_starts_with(name, all[i]))
			return true;
	return false;
}

/* ---- the device ---- */

static int add_op(struct tfh_xplane *x, const struct tfh_xevent *e)
{
	char name[TFH_XPLANE_NAME];
	uint32_t grid[3] = {0}, block[3] = {0};

	x->device = true;
	name_of(e->name, name, sizeof(name));
	bool moved = tfh_starts_with(name, "copy-start") || tfh_starts_with(name, "copy-done");
	bool copy = *e->copy || tfh_starts_with(name, "Memcpy") || moved;
	bool set = !copy && (*e->memset || tfh_starts_with(name, "Memset"));
	struct tfh_op op = {
		.t0 = e->t0,
		.t1 = e->t1,
		.process = x->process,
		.device = x->at.device,
		.stream = x->at.stream,
		.kind = copy  ? TFH_OP_COPY
			: set ? TFH_OP_MEMSET
			      : TFH_OP_KERNEL,
		.name = copy || set ? "" : name,
	};

	if (e->number[TFH_XSTAT_CORRELATION] > 0)
		op.correlation = (uint32_t)e->number[TFH_XSTAT_CORRELATION];
	if (e->number[TFH_XSTAT_CONTEXT] > 0)
		op.ctx = (uint32_t)e->number[TFH_XSTAT_CONTEXT];
	if (e->number[TFH_XSTAT_GRAPH] > 0)
		op.graph = (uint32_t)e->number[TFH_XSTAT_GRAPH];
	if (e->number[TFH_XSTAT_NODE] > 0)
		op.node = (uint64_t)e->number[TFH_XSTAT_NODE];
	if (copy) {
		op.bytes = detail(e->copy, "size");
		tfh_import_copy_name(name, &op);
		op.pageable |= strstr(e->copy, "pageable") != NULL;
		op.dir = moved ? direction(e->name) : op.dir;
	} else if (set) {
		op.bytes = detail(e->memset, "size");
	} else {
		detail3(e->kernel, "grid:", grid);
		detail3(e->kernel, "block:", block);
		op.grid = tfh_import_grid(grid);
		op.block = tfh_import_block(block, (uint32_t)detail(e->kernel, "shm"));
		op.communication = tfh_kernel_communicates(name) || xla_collective(name);
	}
	return tfh_build_op(x->b, &op);
}

static int push_step(struct tfh_xplane *x, struct step s)
{
	if (x->n_step == x->cap_step) {
		uint32_t want = x->cap_step ? x->cap_step * 2 : 64;
		struct step *v = realloc(x->step, want * sizeof(*v));
		if (!v)
			return -ENOMEM;
		x->step = v;
		x->cap_step = want;
	}
	x->step[x->n_step++] = s;
	return 0;
}

/* Adds a step. If it ran on several devices, the longest counts, as in XProf. */
static int add_step(struct tfh_xplane *x, const struct tfh_xevent *e)
{
	struct step s = {.group = e->number[TFH_XSTAT_GROUP], .t0 = e->t0, .t1 = e->t1};
	uint64_t *at;

	if (s.group < 0)
		s.group = (int64_t)first_number(e->name);
	at = tfh_map_put(&x->by_group, tfh_hash_u64((uint64_t)s.group), NULL);
	if (!at)
		return -ENOMEM;
	if (*at) {
		struct step *old = &x->step[*at - 1];
		if (s.t1 - s.t0 > old->t1 - old->t0)
			*old = s;
		return 0;
	}
	*at = x->n_step + 1;
	return push_step(x, s);
}

/* Notes the run of a program on the device. */
static int add_module(struct tfh_xplane *x, const struct tfh_xevent *e)
{
	uint64_t name = tfh_hash_bytes(e->name, strcspn(e->name, "("));

	if (x->n_module == x->cap_module) {
		uint32_t want = x->cap_module ? x->cap_module * 2 : 64;
		struct module_run *v = realloc(x->module, want * sizeof(*v));
		if (!v)
			return -ENOMEM;
		x->module = v;
		x->cap_module = want;
	}
	x->module[x->n_module++] =
		(struct module_run){tfh_hash_add(name, x->at.device), e->t0, e->t1};
	return 0;
}

/* If nothing else marks steps: the program with the most device time, if it ran three times. A
 * training loop runs one program again and again. */
static int steps_of_modules(struct tfh_xplane *x)
{
	struct tfh_map index = {0};
	struct use {
		int64_t ns;
		uint32_t n;
	} *use = calloc(x->n_module + 1, sizeof(*use)), *best = NULL;
	uint64_t *at, key = 0;
	int rc = use ? 0 : -ENOMEM;

	for (uint32_t i = 0, n = 0; i < x->n_module && !rc; i++) {
		at = tfh_map_put(&index, x->module[i].key, NULL);
		if (!at) {
			rc = -ENOMEM;
			break;
		}
		*at = *at ? *at : ++n;
		use[*at - 1].ns += x->module[i].t1 - x->module[i].t0;
		use[*at - 1].n++;
	}
	for (uint32_t i = 0; i < x->n_module && !rc; i++) {
		struct use *u = &use[*tfh_map_get(&index, x->module[i].key) - 1];
		if (u->n >= 3 && (!best || u->ns > best->ns)) {
			best = u;
			key = x->module[i].key;
		}
	}
	for (uint32_t i = 0; i < x->n_module && best && !rc; i++)
		if (x->module[i].key == key)
			rc = push_step(x, (struct step){.group = x->n_step,
							.t0 = x->module[i].t0,
							.t1 = x->module[i].t1});
	tfh_map_free(&index);
	free(use);
	return rc;
}

/* ---- the host ---- */

static int name_word(struct tfh_xplane *x, enum tft_name kind, const char *text, uint64_t *word)
{
	int64_t id = tfh_build_name(x->b, x->process, kind, text);

	*word = id < 0 ? 0 : (uint64_t)id;
	return id < 0 ? (int)id : 0;
}

/* The driver function of an event: named like one, or named after the kernel or copy that it
 * issued. */
static const struct tfh_fn_info *driver_call(const struct tfh_xevent *e)
{
	const struct tfh_fn_info *fn = tfh_import_call(e->name);
	bool async = detail(e->copy, "async") || detail(e->memset, "async");
	struct tfh_op op = {0};

	if (fn || e->number[TFH_XSTAT_CORRELATION] <= 0)
		return fn;
	if (*e->memset || tfh_starts_with(e->name, "Memset"))
		return &tfh_fn_table[async ? TFH_FN_cuMemsetD8Async : TFH_FN_cuMemsetD8_v2];
	if (!*e->copy && !tfh_starts_with(e->name, "Memcpy"))
		return &tfh_fn_table[TFH_FN_cuLaunchKernel];
	tfh_import_copy_name(e->name, &op);
	switch (op.dir) {
	case TFH_DIR_H2D:
		return &tfh_fn_table[async ? TFH_FN_cuMemcpyHtoDAsync_v2 : TFH_FN_cuMemcpyHtoD_v2];
	case TFH_DIR_D2H:
		return &tfh_fn_table[async ? TFH_FN_cuMemcpyDtoHAsync_v2 : TFH_FN_cuMemcpyDtoH_v2];
	case TFH_DIR_D2D:
		return &tfh_fn_table[async ? TFH_FN_cuMemcpyDtoDAsync_v2 : TFH_FN_cuMemcpyDtoD_v2];
	case TFH_DIR_P2P:
		return &tfh_fn_table[async ? TFH_FN_cuMemcpyPeerAsync : TFH_FN_cuMemcpyPeer];
	}
	return &tfh_fn_table[async ? TFH_FN_cuMemcpyAsync : TFH_FN_cuMemcpy];
}

/* Whether the program marked this event as a step: it has a step number, or one of the three names
 * that XProf knows. */
static bool is_step(const struct tfh_xevent *e)
{
	return e->number[TFH_XSTAT_STEP] >= 0 &&
	       (tfh_starts_with(e->name, "train") || tfh_starts_with(e->name, "test") ||
		tfh_starts_with(e->name, "TraceContext") || !strchr(e->name, ':'));
}

static int tensorflow_call(struct tfh_xplane *x, const struct tfh_xevent *e, struct tfh_event *ev)
{
	static const struct {
		const char *prefix;
		enum tfh_fn fn;
	} executes[] = {{"EagerLocalExecute: ", TFH_FN_TFE_Execute},
			{"EagerExecute: ", TFH_FN_TFE_Execute},
			{"SessionRun", TFH_FN_TF_SessionRun}};

	if (!strcmp(e->name, "IteratorGetNextOp::DoCompute"))
		ev->fn = &tfh_fn_table[TFH_FN_tf_getnext_op];
	else if (!strcmp(e->name, "IteratorGetNextAsOptionalOp::DoCompute"))
		ev->fn = &tfh_fn_table[TFH_FN_tf_getnext_optional_op];
	else if (tfh_starts_with(e->name, "tf_data_iterator_get_next"))
		ev->fn = &tfh_fn_table[TFH_FN_user_getnext];
	if (ev->fn)
		return name_word(x, TFT_NAME_ITERATOR, "tf.data", &ev->w[0]);
	if (tfh_starts_with(e->name, "Iterator::")) {
		ev->fn = &tfh_fn_table[TFH_FN_tf_stage_getnext];
		return name_word(x, TFT_NAME_STAGE, e->name, &ev->w[1]);
	}
	for (size_t i = 0; i < sizeof(executes) / sizeof(*executes); i++)
		if (tfh_starts_with(e->name, executes[i].prefix)) {
			ev->fn = &tfh_fn_table[executes[i].fn];
			return name_word(x, TFT_NAME_OP, e->name + strlen(executes[i].prefix),
					 &ev->w[0]);
		}
	return 0;
}

/* The Python tracer's functions start with a dollar; names with a namespace are the framework's, as
 * is the call of a compiled function. */
static enum tft_range range_of(const char *name)
{
	if (*name == '$')
		return TFT_RANGE_PYTHON;
	if (strstr(name, "SequencingEvent") || strstr(name, "BlockHostUntil"))
		return TFT_RANGE_NOTE; /* waits for the device */
	return strstr(name, "::") || tfh_starts_with(name, "PjitFunction") ? TFT_RANGE_OP
									   : TFT_RANGE_NOTE;
}

/* Whether an event is JAX's or TensorFlow's function that starts or stops the profiler, which takes
 * up to seconds: no time of the program's. */
static bool profilers_own(struct tfh_xplane *x, const struct tfh_xevent *e)
{
	static const struct {
		const char *file, *start, *stop;
	} all[] = {{"$profiler.py:", " start_trace", " stop_trace"},
		   {"$profiler_v2.py:", " start", " stop"}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const char *function = strchr(e->name, ' ');
		if (!function || !tfh_starts_with(e->name, all[i].file))
			continue;
		if (!strcmp(function, all[i].start))
			x->from = e->t1 > x->from ? e->t1 : x->from;
		else if (!strcmp(function, all[i].stop))
			x->to = e->t0 < x->to ? e->t0 : x->to;
		else
			continue;
		return true;
	}
	return false;
}

static int add_host(struct tfh_xplane *x, const struct tfh_xevent *e)
{
	struct tfh_event ev = {.t0 = e->t0,
			       .t1 = e->t1,
			       .process = x->process,
			       .thread = x->at.thread,
			       .kind = TFT_CALL};
	int64_t correlation = e->number[TFH_XSTAT_CORRELATION];
	int rc = 0;

	if (e->t0 == e->t1 || !*e->name || profilers_own(x, e))
		return 0; /* an instant, such as a counted allocation */
	ev.fn = driver_call(e);
	if (ev.fn) {
		x->device = true;
		ev.dir = ev.fn->dir;
		if (*e->copy)
			ev.w[0] = detail(e->copy, "size");
	} else if (is_step(e)) {
		ev.kind = TFT_MARK;
		ev.fn = &tfh_fn_table[TFH_FN_mark_step];
		ev.w[0] = (uint64_t)e->number[TFH_XSTAT_STEP];
		rc = name_word(x, TFT_NAME_STRING, e->name, &ev.w[1]);
		x->marked++;
	} else {
		rc = tensorflow_call(x, e, &ev);
	}
	if (!rc && !ev.fn) {
		ev.kind = TFT_RANGE;
		ev.fn = &tfh_fn_table[TFH_FN_mark_range];
		rc = name_word(x, TFT_NAME_STRING, e->name, &ev.w[0]);
		bool op = e->number[TFH_XSTAT_HLO] > 0;
		ev.w[1] = op ? TFT_RANGE_OP : range_of(e->name);
		x->cpu_ops |= op;
	}
	return rc ? rc : tfh_build_event(x->b, &ev, correlation > 0 ? (uint32_t)correlation : 0);
}

int tfh_xplane_event(struct tfh_xplane *x, const struct tfh_xevent *e)
{
	if (++x->count > MAX_EVENTS)
		return -E2BIG;
	if (x->at.what == TFH_XLINE_STREAM)
		return add_op(x, e);
	if (x->at.what == TFH_XLINE_MODULES)
		return add_module(x, e);
	return x->at.what == TFH_XLINE_STEPS ? add_step(x, e) : add_host(x, e);
}

/* ---- the end of the file ---- */

int tfh_xplane_end(struct tfh_xplane *x)
{
	int64_t thread = 0;
	int rc = 0;

	tfh_build_cut_ranges(x->b, x->process, x->from, x->to);
	if (x->cpu_ops && !x->device)
		rc = tfh_build_host_only(x->b, x->process);
	if (!rc && !x->marked && !x->n_step)
		rc = steps_of_modules(x);
	if (rc || x->marked || !x->n_step)
		return rc;
	thread = tfh_build_thread(x->b, x->process, 0, "steps of the device");
	if (thread < 0)
		return (int)thread;
	for (uint32_t i = 0; i < x->n_step && !rc; i++) {
		struct tfh_event ev = {.t0 = x->step[i].t0,
				       .t1 = x->step[i].t1,
				       .process = x->process,
				       .thread = (uint32_t)thread,
				       .kind = TFT_MARK,
				       .fn = &tfh_fn_table[TFH_FN_mark_step],
				       .w = {(uint64_t)x->step[i].group, 0, 0}};
		rc = name_word(x, TFT_NAME_STRING, "step", &ev.w[1]);
		if (!rc)
			rc = tfh_build_event(x->b, &ev, 0);
	}
	return rc;
}
