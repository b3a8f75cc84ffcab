/* What a process' files say about device times: chunks, spans, losses, and why there are none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/tft_write.h"

#include "model/ops/device_ops.h"
#include "model/symbols/kernel_name.h"

/* Header times of tables are exact to some microseconds: rows may begin earlier by at most this. */
#define HEADER_SLACK_NS 1000000

static int add_chunk(struct tfh_run *run, struct tfh_gpu *g, uint32_t file, uint32_t chunk)
{
	const struct tft_chunk_info *c = tft_chunk(run->file[file].reader, chunk);
	bool gpus = c->type == TFT_GPUS;
	struct tfh_table_chunk **v = gpus ? &g->gpus : &g->drvr;
	uint32_t *n = gpus ? &g->n_gpus : &g->n_drvr, *cap = gpus ? &g->cap_gpus : &g->cap_drvr;

	if (tfh_room_for((void **)v, cap, *n, sizeof(**v)))
		return -ENOMEM;
	(*v)[(*n)++] = (struct tfh_table_chunk){
		.file = file,
		.chunk = chunk,
		.segment = tft_head(run->file[file].reader)->segment,
		.t_last = c->t_last,
		.packed = c->packed_bytes,
		.first = c->t_first ? tfh_run_ns(run, file, c->t_first) - HEADER_SLACK_NS
				    : INT64_MIN};
	return 0;
}

static void count_losses(struct tfh_gpu *g, const char *data, size_t len)
{
	struct tft_loss loss;

	for (; len >= sizeof(loss); data += sizeof(loss), len -= sizeof(loss)) {
		memcpy(&loss, data, sizeof(loss));
		if (loss.cause == TFT_LOSS_CUPTI)
			g->dropped += loss.count;
	}
}

/* The rest of a line after `key`; NULL if the line begins with something else. */
static const char *after(const char *key, const char *line, size_t n)
{
	size_t len = strlen(key);

	return n >= len && !memcmp(line, key, len) ? line + len : NULL;
}

static int take_text(struct tfh_run *run, const char **out, const char *text, const char *end)
{
	*out = tfh_arena_strndup(&run->arena, text, (size_t)(end - text));
	return *out ? 0 : -ENOMEM;
}

/* In numbers, strtoul stops at the end of the line. */
static int take_note(struct tfh_run *run, struct tfh_gpu *g, const char *line, size_t n)
{
	const char *v;

	if ((v = after("gpu.processors=", line, n))) {
		uint32_t count = (uint32_t)strtoul(v, NULL, 10);
		g->processors = count > g->processors ? count : g->processors;
	} else if ((v = after("gpu.memory=", line, n))) {
		g->memory = strtoull(v, NULL, 10);
	} else if ((v = after("gpu.overhead_ns=", line, n))) {
		uint64_t ns = strtoull(v, NULL, 10);
		g->overhead_ns = ns > g->overhead_ns ? ns : g->overhead_ns;
	} else if ((v = after("gpu.recorder_ns=", line, n))) {
		uint64_t ns = strtoull(v, NULL, 10);
		g->recorder_ns = ns > g->recorder_ns ? ns : g->recorder_ns;
	} else if ((v = after("gpu.library=", line, n))) {
		return take_text(run, &g->library, v, line + n);
	} else if ((v = after("gpu.graphs=", line, n))) {
		return take_text(run, &g->graphs, v, line + n);
	} else if ((v = after("gpu.why=", line, n))) {
		return take_text(run, &g->why, v, line + n);
	}
	return 0;
}

static int take_notes(struct tfh_run *run, struct tfh_gpu *g, const char *text, size_t len)
{
	int rc = 0;

	while (len && !rc) {
		const char *eol = memchr(text, '\n', len);
		size_t n = eol ? (size_t)(eol - text) : len;
		if (eol)
			rc = take_note(run, g, text, n);
		n += eol != NULL;
		text += n;
		len -= n;
	}
	return rc;
}

static int by_span(const void *a, const void *b)
{
	const struct tfh_gpu_span *x = a, *y = b;

	return x->t0 != y->t0 ? (x->t0 < y->t0 ? -1 : 1) : x->t1 < y->t1 ? -1 : x->t1 > y->t1;
}

static int add_span(struct tfh_gpu *g, int64_t t0, int64_t t1, bool nodes)
{
	if (t1 <= t0)
		return 0;
	if (tfh_room_for((void **)&g->span, &g->cap_span, g->n_span, sizeof(*g->span)))
		return -ENOMEM;
	g->span[g->n_span++] = (struct tfh_gpu_span){t0, t1, nodes};
	return 0;
}

/* Joins spans of consecutive chunks, which end and begin at the same tick. */
static void join_spans(struct tfh_gpu *g)
{
	uint32_t n = 0;

	if (g->n_span)
		qsort(g->span, g->n_span, sizeof(*g->span), by_span);
	for (uint32_t i = 0; i < g->n_span; i++) {
		struct tfh_gpu_span *last = n ? &g->span[n - 1] : NULL;
		if (last && g->span[i].t0 <= last->t1 + 1000 && g->span[i].nodes == last->nodes)
			last->t1 = g->span[i].t1 > last->t1 ? g->span[i].t1 : last->t1;
		else
			g->span[n++] = g->span[i];
	}
	g->n_span = n;
}

/* Removes spans around a moment at which the clock of the rows was set: times there are
 * unreliable. */
static int cut_spans(struct tfh_gpu *g, int64_t t0, int64_t t1)
{
	uint32_t n = g->n_span;
	int rc = 0;

	for (uint32_t i = 0; i < n && !rc; i++) {
		int64_t end = g->span[i].t1;
		if (end <= t0 || g->span[i].t0 >= t1)
			continue;
		g->span[i].t1 = g->span[i].t0 < t0 ? t0 : g->span[i].t0;
		rc = add_span(g, t1, end, g->span[i].nodes);
	}
	for (uint32_t i = n = 0; i < g->n_span; i++)
		if (g->span[i].t1 > g->span[i].t0)
			g->span[n++] = g->span[i];
	g->n_span = n;
	return rc;
}

/* Counts devices and finds out whether there are collectives; if there are none, the analysis saves
 * a pass over all ops. `scratch` has room for a chunk's rows; `seen` has one entry per device. */
static void look_at_rows(struct tfh_gpu *g, const struct tft_table_view *v, uint64_t *scratch,
			 bool seen[256])
{
	uint64_t same;
	bool differ;

	if (!v->rows)
		return;
	differ = tft_table_values(v, TFT_GPUS_DEVICE, scratch, &same);
	for (uint32_t i = 0; i < (differ ? v->rows : 1); i++) {
		bool *one = &seen[(uint8_t)(differ ? scratch[i] : same)];
		g->devices += !*one;
		*one = true;
	}
	for (uint32_t at = 0; at < v->heap_bytes && !g->collectives;) {
		const char *text = tft_table_text(v, at);
		g->collectives = tfh_kernel_communicates(text);
		at += (uint32_t)strlen(text) + 1;
	}
}

static int look_into(struct tfh_run *run, struct tfh_gpu *g, const struct tfh_table_chunk *c,
		     uint64_t *scratch, bool seen[256])
{
	struct tft_table_view v;
	struct tfh_axis axis;
	struct tfh_err err;
	const void *data;
	size_t len;
	int rc = 0;

	if (tft_chunk_payload(run->file[c->file].reader, c->chunk, &data, &len, &err) ||
	    tft_table_open(&v, data, len))
		return 0; /* damaged: it adds no span, so its time becomes a hole */
	g->ops += v.rows;
	look_at_rows(g, &v, scratch, seen);
	for (uint32_t i = 0; i < v.spans && !rc; i++) {
		struct tft_gpu_span s = tft_table_span_at(&v, i);
		rc = add_span(g, tfh_run_ns(run, c->file, s.first),
			      tfh_run_ns(run, c->file, s.last), s.flags & TFT_GPU_SPAN_NODES);
	}
	if (rc || tfh_axis_make(&axis, run, c->file, &v))
		return rc;
	for (uint32_t i = 0; i + 1 < axis.n && !rc; i++)
		if (tfh_axis_step(&axis, i))
			rc = cut_spans(g, axis.run[i], axis.run[i + 1]);
	tfh_axis_free(&axis);
	return rc;
}

static int by_number(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Returns 0 for copies of the same chunk. */
static int by_content(const struct tfh_table_chunk *x, const struct tfh_table_chunk *y)
{
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->segment != y->segment)
		return by_number(x->segment, y->segment);
	return x->t_last != y->t_last ? by_number(x->t_last, y->t_last)
				      : by_number(x->packed, y->packed);
}

static int by_first(const void *a, const void *b)
{
	const struct tfh_table_chunk *x = a, *y = b;
	int order = by_content(x, y);

	if (order)
		return order;
	return x->file != y->file ? by_number(x->file, y->file) : by_number(x->chunk, y->chunk);
}

/* Sorts chunks and removes duplicates from copied files. Rows have no numbers, so duplicates could
 * not be recognised later. */
static void sort_chunks(struct tfh_table_chunk *v, uint32_t *n)
{
	uint32_t kept = 0;

	if (*n)
		qsort(v, *n, sizeof(*v), by_first);
	for (uint32_t i = 0; i < *n; i++)
		if (!kept || by_content(&v[kept - 1], &v[i]) || v[kept - 1].file == v[i].file)
			v[kept++] = v[i];
	*n = kept;
}

static int look_at_file(struct tfh_run *run, struct tfh_gpu *g, uint32_t file)
{
	struct tft_reader *r = run->file[file].reader;
	int rc = 0;

	for (uint32_t i = 0; i < tft_chunk_count(r) && !rc; i++) {
		uint32_t type = tft_chunk(r, i)->type;
		const void *data;
		size_t len;
		struct tfh_err err;
		if (type == TFT_GPUS || type == TFT_DRVR)
			rc = add_chunk(run, g, file, i);
		else if ((type == TFT_NOTE || type == TFT_LOSS) &&
			 !tft_chunk_payload(r, i, &data, &len, &err)) {
			if (type == TFT_LOSS)
				count_losses(g, data, len);
			else
				rc = take_notes(run, g, data, len);
		}
	}
	return rc;
}

static int look(struct tfh_run *run, uint32_t process, struct tfh_gpu *g)
{
	uint64_t *scratch = malloc(TFT_TABLE_ROWS_MAX * sizeof(*scratch));
	bool seen[256] = {false};
	int rc = scratch ? 0 : -ENOMEM;

	for (uint32_t f = 0; f < run->n_file && !rc; f++)
		if (run->file[f].process == process)
			rc = look_at_file(run, g, f);
	sort_chunks(g->gpus, &g->n_gpus);
	sort_chunks(g->drvr, &g->n_drvr);
	for (uint32_t i = 0; i < g->n_gpus && !rc; i++)
		rc = look_into(run, g, &g->gpus[i], scratch, seen);
	free(scratch);
	join_spans(g);
	return rc;
}

struct tfh_gpu *tfh_gpu_of(struct tfh_run *run, uint32_t process)
{
	struct tfh_model_proc *p = &run->proc[process];

	if (p->gpu)
		return p->gpu;
	p->gpu = calloc(1, sizeof(*p->gpu));
	if (p->gpu) {
		pthread_mutex_init(&p->gpu->texts.lock, NULL);
		tfh_arena_init(&p->gpu->texts.arena, 0);
	}
	if (p->gpu && look(run, process, p->gpu)) {
		tfh_gpu_free(p->gpu);
		p->gpu = NULL;
	}
	return p->gpu;
}

void tfh_gpu_free(struct tfh_gpu *g)
{
	if (!g)
		return;
	free(g->gpus);
	free(g->drvr);
	free(g->span);
	tfh_issued_free(g->issued);
	free(g->texts.v);
	tfh_arena_free(&g->texts.arena);
	pthread_mutex_destroy(&g->texts.lock);
	free(g);
}

void tfh_run_gpu(struct tfh_run *run, uint32_t process, struct tfh_gpu_info *out)
{
	const struct tfh_gpu *g;

	*out = (struct tfh_gpu_info){.why = "", .library = "", .graphs = ""};
	if (run->built) {
		tfh_built_gpu(run, process, out);
		return;
	}
	g = process < run->n_proc ? tfh_gpu_of(run, process) : NULL;
	if (!g)
		return;
	out->dropped = g->dropped;
	out->processors = g->processors;
	out->overhead_ns = g->overhead_ns;
	out->recorder_ns = g->recorder_ns;
	out->memory = g->memory;
	out->library = g->library ? g->library : "";
	out->graphs = g->graphs ? g->graphs : "";
	if (!g->n_span && !g->ops) {
		out->why = g->why ? g->why : "";
		return;
	}
	out->source = run->source == TFH_SRC_TFT ? TFH_GPU_CUPTI : TFH_GPU_IMPORTED;
	out->span = g->span;
	out->n_span = g->n_span;
	out->ops = g->ops;
	out->unissued = g->unissued;
	out->devices = g->devices;
	out->collectives = g->collectives;
	/* Without host records (the driver alone loaded tfhook), no op has a call. */
	out->dependencies = run->proc[process].pub.has_gpu;
}

/* ---- a second set of readers ---- */

struct tfh_run *tfh_shadow(struct tfh_run *run, uint32_t process, struct tfh_err *err)
{
	struct tfh_run *s = malloc(sizeof(*s));
	int rc = 0;

	if (!s || !(s->file = malloc((run->n_file + 1) * sizeof(*s->file)))) {
		free(s);
		tfh_err_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	struct tfh_file *file = s->file;
	*s = *run;
	s->file = file;
	memcpy(file, run->file, run->n_file * sizeof(*file));
	for (uint32_t i = 0; i < s->n_file; i++) {
		if (file[i].process != process)
			continue;
		file[i].reader = NULL;
		if (!rc) /* a running job may have deleted the file meanwhile */
			rc = tft_open_again(run->file[i].reader, &file[i].reader, err);
	}
	if (!rc)
		return s;
	tfh_shadow_free(s, process);
	return NULL;
}

void tfh_shadow_free(struct tfh_run *s, uint32_t process)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_file; i++)
		if (s->file[i].process == process && s->file[i].reader)
			tft_close(s->file[i].reader);
	free(s->file);
	free(s);
}
