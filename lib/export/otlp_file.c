/*
 * A trace of OpenTelemetry in OTLP's JSON file format: an ExportTraceServiceRequest per line, with
 * spans of one process. In JSON, OTLP has ids in hexadecimal, 64-bit integers as strings, and
 * enumerations as numbers. Ids are hashes of what they identify, so a second export has the same
 * ids.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/vocabulary.h"
#include "export/naming.h"
#include "export/walk.h"
#include "export/writers.h"
#include "report/text_parts.h"
#include "tfhook/version.h"

/* A line ends after the span that takes it past this: collectors cut lines of a file at 1 MiB. */
#define LINE_BYTES (1u << 19)

enum { SPAN_RUN, SPAN_STEP, SPAN_CALL, SPAN_OP };

struct otlp_file {
	const struct tfh_export *x;
	const struct tfh_thread_info *thread;
	const struct tfh_export_rank *rank; /* NULL: there are no steps */
	const struct tfh_process *p;
	uint32_t process;
	int64_t from, to; /* the exported time */
	FILE *out;
	struct tfh_json j; /* for one line */
	bool open;	   /* a line was begun */
	size_t size;	   /* upper bound of the line's bytes */
	uint64_t seed;
	char trace[33];
};

/* ---- ids ---- */

static uint64_t seed_of(const struct tfh_export *x)
{
	const char *const *argv;
	const struct tfh_process *p;
	uint32_t argc = x->hidden ? 0 : tfh_run_command(x->run, &argv);
	uint32_t n = tfh_run_processes(x->run, &p);
	uint64_t hash = tfh_hash_u64((uint64_t)tfh_export_start_ns(x));

	for (uint32_t i = 0; i < argc; i++)
		hash = tfh_hash_add(hash, tfh_hash_str(argv[i]));
	for (uint32_t i = 0; i < n; i++) {
		hash = tfh_hash_add(hash, tfh_hash_str(tfh_export_host(x, i)));
		hash = tfh_hash_add(hash, p[i].pid);
		hash = tfh_hash_add(hash, (uint64_t)p[i].start_ns);
		hash = tfh_hash_add(hash, p[i].events);
	}
	return hash;
}

/* Unique in a process, since tfh_hash_u64() is a bijection. No id may be 0. */
static uint64_t span_id(const struct otlp_file *o, unsigned kind, uint64_t number)
{
	uint64_t id = tfh_hash_u64(tfh_hash_add(o->seed, o->process) + (number << 2 | kind));

	return id ? id : 1;
}

static uint64_t run_id(const struct otlp_file *o)
{
	return tfh_hash_add(o->seed, SPAN_RUN) | 1;
}

/* The span of the step that contains a moment, else that of the run. */
static uint64_t parent_at(const struct otlp_file *o, int64_t t)
{
	const struct tfh_step *s = tfh_export_step_at(o->rank, t);

	return s && tfh_export_has(o->x, s) ? span_id(o, SPAN_STEP, s->index) : run_id(o);
}

/* ---- JSON ---- */

/* A text, of which a character takes at most six bytes. */
static void put_string(struct otlp_file *o, const char *key, const char *text)
{
	tfh_json_kstr(&o->j, key, text);
	o->size += 6 * strlen(text) + 32;
}

static void put_id(struct otlp_file *o, const char *key, uint64_t id)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, id);
	put_string(o, key, text);
}

/* Unix time, which is not negative. */
static void put_time(struct otlp_file *o, const char *key, int64_t ns)
{
	int64_t t = (int64_t)((uint64_t)tfh_export_start_ns(o->x) + (uint64_t)ns);
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, t > 0 ? t : 0);
	put_string(o, key, text);
}

static void begin_value(struct otlp_file *o, const char *key)
{
	tfh_json_object(&o->j);
	put_string(o, "key", key);
	tfh_json_key(&o->j, "value");
	tfh_json_object(&o->j);
}

static void end_levels(struct otlp_file *o, int levels)
{
	while (levels--)
		tfh_json_end(&o->j);
}

/* Nothing if the text is NULL. */
static void put_text(struct otlp_file *o, const char *key, const char *text)
{
	if (!text)
		return;
	begin_value(o, key);
	put_string(o, "stringValue", text);
	end_levels(o, 2);
}

static void put_int(struct otlp_file *o, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	begin_value(o, key);
	put_string(o, "intValue", text);
	end_levels(o, 2);
}

/* Nothing if the number is unknown. */
static void put_double(struct otlp_file *o, const char *key, double value)
{
	if (!isfinite(value))
		return;
	begin_value(o, key);
	tfh_json_kf64(&o->j, "doubleValue", value);
	end_levels(o, 2);
	o->size += 64;
}

/* ---- lines ---- */

static const char *job_name(const struct otlp_file *o)
{
	return tfh_pseudonym(o->x->hidden, TFH_NAMED_PROGRAM, tfh_job_name(o->x->run));
}

static void put_command(struct otlp_file *o)
{
	const char *const *argv;
	uint32_t argc = tfh_run_command(o->x->run, &argv);

	if (!argc || o->x->hidden)
		return;
	begin_value(o, "process.command_args");
	tfh_json_key(&o->j, "arrayValue");
	tfh_json_object(&o->j);
	tfh_json_key(&o->j, "values");
	tfh_json_array(&o->j);
	for (uint32_t i = 0; i < argc; i++) {
		tfh_json_object(&o->j);
		put_string(o, "stringValue", argv[i]);
		end_levels(o, 1);
	}
	end_levels(o, 4);
}

static void put_resource(struct otlp_file *o)
{
	const struct tfh_process *p = o->p;
	char key[128];

	put_text(o, "service.name", job_name(o));
	if (*p->host)
		put_text(o, "host.name", tfh_export_host(o->x, o->process));
	if (p->pid)
		put_int(o, "process.pid", p->pid);
	if (*p->exe == '/' && !o->x->hidden)
		put_text(o, "process.executable.path", p->exe);
	put_command(o);
	if (p->rank >= 0)
		put_int(o, "tfhook.rank", p->rank);
	if (p->world > 0)
		put_int(o, "tfhook.world", p->world);
	for (uint32_t i = 0; i < p->n_software; i++) {
		snprintf(key, sizeof(key), "tfhook.version.%s", p->software[i].name);
		put_text(o, key, p->software[i].version);
	}
}

static void begin_line(struct otlp_file *o)
{
	o->open = true;
	o->size = 0;
	tfh_json_init(&o->j, o->out, 0);
	tfh_json_object(&o->j);
	tfh_json_key(&o->j, "resourceSpans");
	tfh_json_array(&o->j);
	tfh_json_object(&o->j);
	tfh_json_key(&o->j, "resource");
	tfh_json_object(&o->j);
	tfh_json_key(&o->j, "attributes");
	tfh_json_array(&o->j);
	put_resource(o);
	end_levels(o, 2);
	tfh_json_key(&o->j, "scopeSpans");
	tfh_json_array(&o->j);
	tfh_json_object(&o->j);
	tfh_json_key(&o->j, "scope");
	tfh_json_object(&o->j);
	put_string(o, "name", "tfhook");
	put_string(o, "version", TFHOOK_VERSION);
	end_levels(o, 1);
	tfh_json_key(&o->j, "spans");
	tfh_json_array(&o->j);
}

static int end_line(struct otlp_file *o)
{
	if (!o->open)
		return 0;
	o->open = false;
	end_levels(o, 6);
	return tfh_json_finish(&o->j);
}

/* Begins a span, and leaves its attributes open. `parent` 0: it has none. */
static void begin_span(struct otlp_file *o, const char *name, uint64_t id, uint64_t parent,
		       int64_t t0, int64_t t1)
{
	if (!o->open)
		begin_line(o);
	tfh_json_object(&o->j);
	put_string(o, "traceId", o->trace);
	put_id(o, "spanId", id);
	if (parent)
		put_id(o, "parentSpanId", parent);
	put_string(o, "name", name);
	tfh_json_ki64(&o->j, "kind", 1); /* SPAN_KIND_INTERNAL */
	put_time(o, "startTimeUnixNano", t0);
	put_time(o, "endTimeUnixNano", t1);
	tfh_json_key(&o->j, "attributes");
	tfh_json_array(&o->j);
	o->size += 64;
}

/* `link`: the span that caused this one, 0: unknown. */
static int end_span(struct otlp_file *o, uint64_t link, bool failed)
{
	end_levels(o, 1);
	if (link) {
		tfh_json_key(&o->j, "links");
		tfh_json_array(&o->j);
		tfh_json_object(&o->j);
		put_string(o, "traceId", o->trace);
		put_id(o, "spanId", link);
		end_levels(o, 2);
	}
	if (failed) {
		tfh_json_key(&o->j, "status");
		tfh_json_object(&o->j);
		tfh_json_ki64(&o->j, "code", 2); /* STATUS_CODE_ERROR */
		end_levels(o, 1);
	}
	end_levels(o, 1);
	o->size += 64;
	return o->size > LINE_BYTES ? end_line(o) : 0;
}

/* ---- spans ---- */

static int put_run(struct otlp_file *o)
{
	const struct tfh_result *r = o->x->result;
	const char tier[] = {r->verdict.tier, '\0'};

	begin_span(o, job_name(o), run_id(o), 0, 0, tfh_run_end_ns(o->x->run));
	put_text(o, "tfhook.kind", "run");
	put_text(o, "tfhook.class", tfh_class_name(r->verdict.cls));
	put_text(o, "tfhook.cause", tfh_cause_name(r->verdict.cause));
	put_double(o, "tfhook.share", r->verdict.share);
	put_text(o, "tfhook.confidence", tfh_confidence_name(r->verdict.confidence));
	put_text(o, "tfhook.tier", tier);
	put_int(o, "tfhook.steps", (int64_t)r->steps.count);
	put_double(o, "tfhook.step_median_ms", r->steps.median_s * 1e3);
	return end_span(o, 0, false);
}

static int put_process(void *arg, uint32_t process, const struct tfh_process *p)
{
	struct otlp_file *o = arg;

	o->process = process;
	o->p = p;
	o->rank = tfh_export_rank_of(o->x, process);
	tfh_export_span(o->x, process, &o->from, &o->to);
	return process == o->x->result->process ? put_run(o) : 0;
}

static int put_step(void *arg, const struct tfh_export_rank *rank, const struct tfh_step *s)
{
	static const char *const part[] = {
#define BREAKDOWN(id, name, class) "tfhook." name "_ms",
#include "base/vocabulary.def"
#undef BREAKDOWN
	};
	struct otlp_file *o = arg;
	const char tier[] = {s->tier, '\0'};

	(void)rank;
	begin_span(o, "step", span_id(o, SPAN_STEP, s->index), run_id(o), tfh_step_begin_ns(s),
		   tfh_step_end_ns(s));
	put_text(o, "tfhook.kind", "step");
	put_int(o, "tfhook.step", (int64_t)s->index);
	put_text(o, "tfhook.segment", tfh_segment_name((enum tfh_segment)s->segment));
	put_text(o, "tfhook.class", tfh_class_name((enum tfh_class)s->cls));
	put_text(o, "tfhook.cause", tfh_cause_name((enum tfh_cause)s->cause));
	put_text(o, "tfhook.tier", tier);
	for (int i = 0; i < TFH_PART_COUNT; i++)
		put_double(o, part[i], (double)s->breakdown[i] * 1e3);
	return end_span(o, 0, false);
}

static int put_call(void *arg, const struct tfh_walk_call *call)
{
	struct otlp_file *o = arg;
	const struct tfh_event *ev = call->ev;
	int64_t bytes = tfh_export_call_bytes(ev);
	bool failed = ev->flags & TFT_F_FAILED;
	char room[TFH_EXPORT_NAME];

	begin_span(o, call->name, span_id(o, SPAN_CALL, call->id), parent_at(o, ev->t0), ev->t0,
		   ev->t1);
	put_text(o, "tfhook.kind",
		 ev->kind == TFT_RANGE	? "range"
		 : ev->kind == TFT_MARK ? "mark"
					: "call");
	put_int(o, "thread.id", tfh_export_tid(o->x, ev->thread));
	put_text(o, "thread.name", tfh_export_thread(o->x, ev->thread));
	if (bytes >= 0)
		put_int(o, "tfhook.bytes", bytes);
	if (*call->kernel)
		put_text(o, "tfhook.kernel", tfh_export_full_name(room, call->kernel));
	if (call->count != 1)
		put_int(o, "tfhook.calls", (int64_t)call->count);
	if (failed)
		put_int(o, "tfhook.error", ev->result);
	return end_span(o, 0, failed);
}

static int put_op(void *arg, const struct tfh_op *op, uint64_t call)
{
	struct otlp_file *o = arg;
	bool linked = call && op->issue1 >= o->from && op->issue0 < o->to;
	char room[TFH_EXPORT_NAME];

	begin_span(o, tfh_export_full_name(room, tfh_export_op_name(op)),
		   span_id(o, SPAN_OP, op->number), parent_at(o, op->t0), op->t0, op->t1);
	put_text(o, "tfhook.kind", tfh_export_op_kind(op));
	put_int(o, "tfhook.device", op->device);
	put_int(o, "tfhook.stream", op->stream);
	if (op->kind == TFH_OP_COPY || op->kind == TFH_OP_MEMSET)
		put_int(o, "tfhook.bytes", (int64_t)op->bytes);
	return end_span(o, linked ? span_id(o, SPAN_CALL, call) : 0, false);
}

static int end_process(void *arg, uint32_t process)
{
	(void)process;
	return end_line(arg);
}

int tfh_write_otlp(const struct tfh_export *x, FILE *out, struct tfh_err *err)
{
	static const struct tfh_walker walker = {.process = put_process,
						 .step = put_step,
						 .call = put_call,
						 .op = put_op,
						 .end = end_process};
	struct otlp_file o = {.x = x, .out = out, .seed = seed_of(x)};

	snprintf(o.trace, sizeof(o.trace), "%016" PRIx64 "%016" PRIx64, tfh_hash_u64(o.seed + 1),
		 o.seed);
	tfh_run_threads(x->run, &o.thread);
	return tfh_walk(x, &walker, &o, err);
}
