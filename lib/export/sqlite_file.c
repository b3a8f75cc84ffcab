/*
 * An SQLite database: our own tables, and views with the names of the tables in Nsight Systems'
 * export and the columns that people query. Times are nanoseconds since the run's start.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vocabulary.h"
#include "export/naming.h"
#include "export/sqlite_rows.h"
#include "export/walk.h"
#include "export/writers.h"
#include "model/symbols/kernel_name.h"
#include "tfhook/version.h"

#define BREAKDOWN(...) "f"
static const char step_form[] = "iiiitttt"
#include "base/vocabulary.def"
	;
#undef BREAKDOWN

enum { STRINGS, META, PROCESSES, THREADS, STEPS, CALLS, OPS, VERDICT };

static const char tables[] =
	"CREATE TABLE strings (id INTEGER PRIMARY KEY, value TEXT);"
	"CREATE TABLE meta (key TEXT PRIMARY KEY, value);"
	"CREATE TABLE processes (process INTEGER PRIMARY KEY, rank INTEGER, pid INTEGER, host "
	"TEXT, exe TEXT, world INTEGER, thread INTEGER, marked INTEGER);"
	"CREATE TABLE threads (thread INTEGER PRIMARY KEY, process INTEGER, tid INTEGER, name "
	"TEXT);CREATE TABLE steps (process INTEGER, step INTEGER, start INTEGER, end INTEGER, "
	"segment TEXT, class TEXT, cause TEXT, tier TEXT"
#define BREAKDOWN(id, name, class) ", " name "_s REAL"
#include "base/vocabulary.def"
#undef BREAKDOWN
	");"
	"CREATE TABLE calls (process INTEGER, id INTEGER, thread INTEGER, start INTEGER, end "
	"INTEGER, name INTEGER, kind TEXT, kernel INTEGER, stream INTEGER, bytes INTEGER, count "
	"INTEGER, error INTEGER, event INTEGER, waits INTEGER, range INTEGER);"
	"CREATE TABLE ops (process INTEGER, device INTEGER, context INTEGER, stream INTEGER, "
	"kind TEXT, start INTEGER, end INTEGER, name INTEGER, short INTEGER, bytes INTEGER, "
	"direction INTEGER, pageable INTEGER, call INTEGER, gridX INTEGER, gridY INTEGER, "
	"gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, shared INTEGER, "
	"graph INTEGER, node INTEGER);"
	"CREATE TABLE verdict (class TEXT, cause TEXT, share REAL, confidence TEXT, tier TEXT, "
	"steps INTEGER, median_s REAL, p95_s REAL, total_s REAL);";

/* Views, created after the rows. DuckDB parses a view's text by its own grammar, in which `end` is
 * a keyword. CUPTI's numbers of copy kinds: 1 HtoD, 2 DtoH, 8 DtoD, 9 HtoH, 10 PtoP; of memory: 0
 * pageable, 1 pinned, 2 device. NVTX's event type 59 is a push/pop range. Correlation ids begin
 * above those that readers treat as the first calls of a process. */
#define OF_CALL "call + 65536 AS correlationId"
#define OF_ITSELF "calls.id + 65536 AS correlationId"
#define GLOBAL_TID "(pid << 24) | (tid & 16777215) AS globalTid"
#define OF_THREADS                                                                                 \
	"JOIN threads USING (thread) JOIN processes ON processes.process = calls.process "
static const char views[] =
	"CREATE INDEX calls_id ON calls (process, id);"
	"CREATE INDEX ops_call ON ops (process, call);"
	"CREATE VIEW StringIds AS SELECT id, value FROM strings;"
	"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT start, \"end\", device AS deviceId, "
	"context AS contextId, stream AS streamId, " OF_CALL ", pid << 24 AS globalPid, "
	"name AS demangledName, short AS shortName, name AS mangledName, gridX, gridY, gridZ, "
	"blockX, blockY, blockZ, NULL AS registersPerThread, NULL AS staticSharedMemory, "
	"shared AS dynamicSharedMemory, graph AS graphId, node AS graphNodeId "
	"FROM ops JOIN processes USING (process) WHERE kind = 'kernel';"
	"CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS SELECT start, \"end\", device AS deviceId, "
	"context AS contextId, stream AS streamId, " OF_CALL ", pid << 24 AS globalPid, "
	"bytes, CASE direction WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 8 WHEN 4 THEN 9 WHEN 5 THEN "
	"10 ELSE 0 END AS copyKind, CASE WHEN direction IN (1, 4) THEN 1 - pageable ELSE 2 END AS "
	"srcKind, CASE WHEN direction IN (2, 4) THEN 1 - pageable ELSE 2 END AS dstKind, graph AS "
	"graphId, node AS graphNodeId FROM ops JOIN processes USING (process) WHERE kind = 'copy';"
	"CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET AS SELECT start, \"end\", device AS deviceId, "
	"context AS contextId, stream AS streamId, " OF_CALL ", pid << 24 AS globalPid, "
	"NULL AS value, bytes, 2 AS memKind, graph AS graphId, node AS graphNodeId "
	"FROM ops JOIN processes USING (process) WHERE kind = 'memset';"
	"CREATE VIEW CUPTI_ACTIVITY_KIND_RUNTIME AS SELECT start, \"end\", NULL AS eventClass, "
	"" GLOBAL_TID ", " OF_ITSELF ", calls.name AS nameId, "
	"coalesce(error, 0) AS returnValue FROM calls " OF_THREADS
	"WHERE kind = 'driver' AND count = 1;"
	"CREATE VIEW CUPTI_ACTIVITY_KIND_SYNCHRONIZATION AS SELECT start, \"end\", NULL AS "
	"deviceId, NULL AS contextId, CASE stream WHEN 0 THEN 4294967295 ELSE stream END AS "
	"streamId, " OF_ITSELF ", pid << 24 AS globalPid, CASE WHEN waits = 2 THEN 2 "
	"WHEN event IS NOT NULL THEN 1 WHEN stream = 0 THEN 4 ELSE 3 END AS syncType, "
	"coalesce(event, 4294967295) AS eventId FROM calls " OF_THREADS "WHERE waits IS NOT NULL;"
	"CREATE VIEW CUPTI_ACTIVITY_KIND_CUDA_EVENT AS SELECT NULL AS deviceId, NULL AS contextId, "
	"stream AS streamId, " OF_ITSELF ", pid << 24 AS globalPid, event AS eventId "
	"FROM calls " OF_THREADS "WHERE event IS NOT NULL AND waits IS NULL;"
	"CREATE VIEW NVTX_EVENTS AS SELECT start, \"end\", 59 AS eventType, "
	"(SELECT value FROM strings WHERE strings.id = range) AS text, range AS textId, " GLOBAL_TID
	", 0 AS domainId FROM calls " OF_THREADS "WHERE range IS NOT NULL "
	"UNION ALL SELECT start, \"end\", 59, 'ProfilerStep#' || step, NULL, (pid << 24) | (tid & "
	"16777215), 0 FROM steps JOIN processes USING (process) JOIN threads ON threads.thread = "
	"processes.thread WHERE marked = 0;"
	"CREATE VIEW TARGET_INFO_GPU AS SELECT 0 AS id, value AS smCount FROM meta WHERE key = "
	"'multiprocessors';"
	"CREATE VIEW TARGET_INFO_SESSION_START_TIME AS SELECT value AS utcEpochNs FROM meta "
	"WHERE key = 'start_unix_ns';"
	"CREATE VIEW TARGET_INFO_SYSTEM_ENV AS SELECT 'Hostname' AS name, host AS value "
	"FROM processes LIMIT 1;"
	"CREATE VIEW ThreadNames AS SELECT name, " GLOBAL_TID " "
	"FROM threads JOIN processes USING (process) WHERE name IS NOT NULL;";

struct sqlite_out {
	const struct tfh_export *x;
	struct tfh_row_writer w;
	uint32_t process;
	uint64_t *issued; /* by thread: number of calls that put work on the device */
};

/* ---- rows ---- */

static int put_process(void *arg, uint32_t process, const struct tfh_process *p)
{
	struct sqlite_out *o = arg;
	const struct tfh_thread_info *t;
	uint32_t n = tfh_run_threads(o->x->run, &t);
	int rc = 0;

	(void)p;
	o->process = process;
	for (uint32_t i = 0; i < n && !rc; i++)
		if (t[i].process == process)
			rc = tfh_rows_put(&o->w, THREADS, "iiit", (int64_t)i, (int64_t)process,
					  (int64_t)tfh_export_tid(o->x, i),
					  tfh_export_thread(o->x, i));
	return rc;
}

static int end_process(void *arg, uint32_t process)
{
	struct sqlite_out *o = arg;
	const struct tfh_export_rank *rank = tfh_export_rank_of(o->x, process);
	const struct tfh_process *p;

	tfh_run_processes(o->x->run, &p);
	return tfh_rows_put(&o->w, PROCESSES, "iuittuii", (int64_t)process,
			    (int64_t)p[process].rank, (int64_t)tfh_export_pid(o->x, process),
			    tfh_export_host(o->x, process), tfh_export_exe(o->x, process),
			    (int64_t)p[process].world,
			    (int64_t)tfh_export_driving(o->x, process, o->issued),
			    (int64_t)(rank && rank->clock == TFH_STEP_CLOCK_MARK));
}

static int put_step(void *arg, const struct tfh_export_rank *rank, const struct tfh_step *s)
{
	struct sqlite_out *o = arg;
	const char tier[] = {s->tier, '\0'};
	double part[TFH_PART_COUNT];

	for (int p = 0; p < TFH_PART_COUNT; p++)
		part[p] = (double)s->breakdown[p];
	return tfh_rows_put(&o->w, STEPS, step_form, (int64_t)rank->process, (int64_t)s->index,
			    tfh_step_begin_ns(s), tfh_step_end_ns(s),
			    tfh_segment_name((enum tfh_segment)s->segment),
			    tfh_class_name((enum tfh_class)s->cls),
			    tfh_cause_name((enum tfh_cause)s->cause), tier
#define BREAKDOWN(id, name, class) , part[TFH_PART_##id]
#include "base/vocabulary.def"
#undef BREAKDOWN
	);
}

/* `range`, `mark`, `driver` (also CUDA's runtime), or `framework` for everything else. */
static const char *kind_of(const struct tfh_event *ev)
{
	if (ev->kind == TFT_RANGE)
		return "range";
	if (ev->kind == TFT_MARK)
		return "mark";
	return ev->fn->family < TFH_FAM_COMMUNICATION ? "driver" : "framework";
}

/* The text of a call's row in NVTX_EVENTS; NULL: it has none. */
static const char *range_text(const struct tfh_walk_call *call, char room[256])
{
	const struct tfh_event *ev = call->ev;

	if (ev->kind == TFT_AGG || !strcmp(kind_of(ev), "driver"))
		return NULL;
	if (ev->kind == TFT_MARK)
		snprintf(room, 256, "ProfilerStep#%llu", (unsigned long long)ev->w[0]);
	else if (ev->kind == TFT_CALL && ev->fn->family == TFH_FAM_CONSUMER)
		return tfh_export_batch_name(room, call->name);
	else
		return call->name;
	return room;
}

/* Whether the host (1) or a stream (2) waits; -1: neither. */
static int64_t waits(const struct tfh_event *ev)
{
	if (ev->kind != TFT_CALL)
		return -1;
	return ev->fn->family == TFH_FAM_SYNC ? 1 : ev->fn->family == TFH_FAM_STREAM_WAIT ? 2 : -1;
}

/* The event that a call records or waits for, -1 if none. */
static int64_t event_of(const struct tfh_event *ev)
{
	uint8_t family = ev->fn->family;
	bool has =
		ev->kind == TFT_CALL && (family == TFH_FAM_EVENT || family == TFH_FAM_STREAM_WAIT ||
					 (family == TFH_FAM_SYNC && strstr(ev->fn->name, "Event")));

	return has && ev->w[0] && ev->w[0] < INT64_MAX ? (int64_t)ev->w[0] : -1;
}

static int put_call(void *arg, const struct tfh_walk_call *call)
{
	struct sqlite_out *o = arg;
	const struct tfh_event *ev = call->ev;
	char room[TFH_EXPORT_NAME], batch[256];
	const char *text = range_text(call, batch);
	int64_t name, kernel = -1, range = -1;
	int rc = tfh_rows_string(&o->w, STRINGS, call->name, &name);

	if (!rc && *call->kernel)
		rc = tfh_rows_string(&o->w, STRINGS, tfh_export_full_name(room, call->kernel),
				     &kernel);
	if (!rc && text)
		rc = tfh_rows_string(&o->w, STRINGS, text, &range);
	if (rc)
		return rc;
	o->issued[ev->thread] += tfh_export_issues(ev);
	return tfh_rows_put(&o->w, CALLS, "iiiiiituiuiuuuu", (int64_t)o->process, (int64_t)call->id,
			    (int64_t)ev->thread, ev->t0, ev->t1, name, kind_of(ev), kernel,
			    (int64_t)ev->stream, tfh_export_call_bytes(ev), (int64_t)call->count,
			    ev->flags & TFT_F_FAILED ? (int64_t)ev->result : -1, event_of(ev),
			    waits(ev), range);
}

static int put_op(void *arg, const struct tfh_op *op, uint64_t call)
{
	struct sqlite_out *o = arg;
	struct tfh_export_shape shape = tfh_export_shape_of(op);
	char room[TFH_EXPORT_NAME], brief[TFH_KERNEL_NAME];
	const char *name = tfh_export_op_name(op);
	bool kernel = op->kind == TFH_OP_KERNEL;
	int64_t full, brief_id;
	int rc = tfh_rows_string(&o->w, STRINGS, tfh_export_full_name(room, name), &full);

	if (!rc)
		rc = tfh_rows_string(&o->w, STRINGS,
				     kernel ? tfh_kernel_short(brief, name, TFH_KERNEL_NAME - 1)
					    : name,
				     &brief_id);
	if (rc)
		return rc;
	return tfh_rows_put(
		&o->w, OPS, "iiiitiiiiuiiuiiiiiiiuu", (int64_t)o->process, (int64_t)op->device,
		(int64_t)op->ctx, (int64_t)op->stream, tfh_export_op_kind(op), op->t0, op->t1, full,
		brief_id, kernel ? (int64_t)-1 : (int64_t)op->bytes, (int64_t)op->dir,
		(int64_t)op->pageable, call ? (int64_t)call : (int64_t)-1, (int64_t)shape.grid[0],
		(int64_t)shape.grid[1], (int64_t)shape.grid[2], (int64_t)shape.block[0],
		(int64_t)shape.block[1], (int64_t)shape.block[2], (int64_t)shape.shared,
		op->graph ? (int64_t)op->graph : (int64_t)-1,
		op->graph ? (int64_t)op->node : (int64_t)-1);
}

/* ---- the file ---- */

static int put_facts(struct sqlite_out *o)
{
	const struct tfh_result *r = o->x->result;
	const char tier[] = {r->verdict.tier, '\0'};
	struct tfh_gpu_info gpu;
	int rc = tfh_rows_put(&o->w, META, "tt", "version", TFHOOK_VERSION);

	if (!rc && !o->x->hidden)
		rc = tfh_rows_put(&o->w, META, "tt", "path", tfh_run_path(o->x->run));
	if (!rc)
		rc = tfh_rows_put(&o->w, META, "ti", "start_unix_ns", tfh_export_start_ns(o->x));
	if (!rc)
		rc = tfh_rows_put(&o->w, META, "ti", "wall_ns", tfh_run_wall_ns(o->x->run));
	tfh_run_gpu(o->x->run, r->process, &gpu);
	if (!rc)
		rc = tfh_rows_put(&o->w, META, "ti", "multiprocessors", (int64_t)gpu.processors);
	if (rc)
		return rc;
	return tfh_rows_put(&o->w, VERDICT, "ttfttifff", tfh_class_name(r->verdict.cls),
			    tfh_cause_name(r->verdict.cause), r->verdict.share,
			    tfh_confidence_name(r->verdict.confidence), tier,
			    (int64_t)r->steps.count, r->steps.median_s, r->steps.p95_s,
			    r->steps.total_s);
}

static int create(struct sqlite_out *o, struct tfh_err *err)
{
	static const struct {
		const char *name;
		uint32_t columns;
	} all[] = {[STRINGS] = {"strings", 2},
		   [META] = {"meta", 2},
		   [PROCESSES] = {"processes", 8},
		   [THREADS] = {"threads", 4},
		   [STEPS] = {"steps", 8 + TFH_PART_COUNT},
		   [CALLS] = {"calls", 15},
		   [OPS] = {"ops", 22},
		   [VERDICT] = {"verdict", 9}};
	int rc = tfh_rows_create(&o->w, err);

	if (!rc)
		rc = tfh_rows_run(&o->w, tables);
	for (uint32_t i = 0; i < sizeof(all) / sizeof(*all) && !rc; i++)
		rc = tfh_rows_table(&o->w, i, all[i].name, all[i].columns);
	return rc;
}

int tfh_write_sqlite(const struct tfh_export *x, FILE *out, struct tfh_err *err)
{
	static const struct tfh_walker walker = {.process = put_process,
						 .step = put_step,
						 .call = put_call,
						 .op = put_op,
						 .end = end_process};
	const struct tfh_thread_info *t;
	struct sqlite_out o = {
		.x = x, .issued = calloc(tfh_run_threads(x->run, &t) + 1, sizeof(*o.issued))};
	int rc = o.issued ? create(&o, err) : tfh_err_set(err, -ENOMEM, "out of memory");

	if (!rc)
		rc = put_facts(&o);
	if (!rc)
		rc = tfh_walk(x, &walker, &o, err);
	if (!rc)
		rc = tfh_rows_run(&o.w, views);
	if (!rc)
		rc = tfh_rows_copy(&o.w, out);
	tfh_rows_free(&o.w);
	free(o.issued);
	return rc;
}
