/*
 * What a run holds, as the analysis would read it: one JSON object, for the tests of the importers
 * to compare with what they put in. `dump PATH...`; with -s the sums over the device's time line in
 * place of every event: busy and computing between the first op's start and the last one's end, the
 * ops of the last marked step left out, as HolisticTraceAnalysis has it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "import/import.h"

static void dump_event(struct tfh_json *j, struct tfh_run *run, const struct tfh_event *ev)
{
	bool mark = ev->kind == TFT_MARK || ev->kind == TFT_RANGE;
	uint32_t text = (uint32_t)(ev->kind == TFT_MARK ? ev->w[1] : ev->w[0]);

	tfh_json_object(j);
	tfh_json_key(j, "t0");
	tfh_json_i64(j, ev->t0);
	tfh_json_key(j, "t1");
	tfh_json_i64(j, ev->t1);
	tfh_json_key(j, "kind");
	tfh_json_u64(j, ev->kind);
	tfh_json_key(j, "fn");
	tfh_json_str(j, ev->fn->name);
	tfh_json_key(j, "family");
	tfh_json_u64(j, ev->fn->family);
	tfh_json_key(j, "thread");
	tfh_json_u64(j, ev->thread);
	tfh_json_key(j, "depth");
	tfh_json_u64(j, ev->depth);
	tfh_json_key(j, "dir");
	tfh_json_u64(j, ev->dir);
	tfh_json_key(j, "pageable");
	tfh_json_bool(j, ev->pageable);
	tfh_json_key(j, "stream");
	tfh_json_u64(j, ev->stream);
	tfh_json_key(j, "w");
	tfh_json_array(j);
	for (int i = 0; i < 3; i++)
		tfh_json_u64(j, ev->w[i]);
	tfh_json_end(j);
	tfh_json_key(j, "name");
	tfh_json_str(j, mark ? tfh_run_name(run, ev->process, TFT_NAME_STRING, text, NULL, NULL)
			: ev->fn->family == TFH_FAM_LAUNCH
				? tfh_run_name(run, ev->process, TFT_NAME_FUNCTION,
					       (uint32_t)ev->w[0], NULL, NULL)
			: ev->fn->family == TFH_FAM_STAGE
				? tfh_run_name(run, ev->process, TFT_NAME_STAGE, (uint32_t)ev->w[1],
					       NULL, NULL)
				: "");
	tfh_json_end(j);
}

static void dump_op(struct tfh_json *j, const struct tfh_op *op)
{
	const struct {
		const char *key;
		int64_t value;
	} field[] = {{"t0", op->t0},
		     {"t1", op->t1},
		     {"device", op->device},
		     {"ctx", op->ctx},
		     {"stream", op->stream},
		     {"kind", op->kind},
		     {"dir", op->dir},
		     {"pageable", op->pageable},
		     {"communication", op->communication},
		     {"bytes", (int64_t)op->bytes},
		     {"grid", (int64_t)op->grid},
		     {"block", (int64_t)op->block},
		     {"correlation", op->correlation},
		     {"graph", op->graph},
		     {"node", (int64_t)op->node},
		     {"issue0", op->issue0},
		     {"issue1", op->issue1},
		     {"thread", op->thread == UINT32_MAX ? -1 : (int64_t)op->thread},
		     {"call", (int64_t)op->call}};

	tfh_json_object(j);
	tfh_json_key(j, "name");
	tfh_json_str(j, op->name);
	for (size_t i = 0; i < sizeof(field) / sizeof(*field); i++) {
		tfh_json_key(j, field[i].key);
		tfh_json_i64(j, field[i].value);
	}
	tfh_json_end(j);
}

/* Ops come in order of their start. Union of what is asked for, clipped to nothing. */
struct sum {
	int64_t until, busy;
};
static void cover(struct sum *s, int64_t t0, int64_t t1)
{
	if (t1 <= s->until)
		return;
	s->busy += t1 - (t0 > s->until ? t0 : s->until);
	s->until = t1;
}

static int64_t last_mark(struct tfh_run *run, uint32_t process)
{
	int64_t marks = 0, at = INT64_MAX;
	struct tfh_merge *merge;
	struct tfh_event ev;
	struct tfh_err err;

	if (tfh_merge_open(run, process, &merge, &err))
		exit(1);
	while (tfh_merge_next(merge, &ev))
		if (ev.kind == TFT_MARK && ++marks)
			at = ev.t0;
	tfh_merge_close(merge);
	return marks > 1 ? at : INT64_MAX;
}

static void dump_sums(struct tfh_json *j, struct tfh_run *run, uint32_t process)
{
	struct sum all = {.until = INT64_MIN}, compute = {.until = INT64_MIN};
	int64_t first = INT64_MAX, last = INT64_MIN, before = last_mark(run, process);
	struct tfh_err err;
	struct tfh_ops *ops;
	struct tfh_op op;

	if (tfh_ops_open(run, process, &ops, &err))
		exit(1);
	while (tfh_ops_next(ops, &op)) {
		if (op.issue0 >= before)
			continue;
		first = op.t0 < first ? op.t0 : first;
		last = op.t1 > last ? op.t1 : last;
		cover(&all, op.t0, op.t1);
		if (op.kind == TFH_OP_KERNEL && !op.communication)
			cover(&compute, op.t0, op.t1);
	}
	tfh_ops_close(ops);
	tfh_json_key(j, "span_ns");
	tfh_json_i64(j, last > first ? last - first : 0);
	tfh_json_key(j, "busy_ns");
	tfh_json_i64(j, all.busy);
	tfh_json_key(j, "compute_ns");
	tfh_json_i64(j, compute.busy);
}

static void dump_process(struct tfh_json *j, struct tfh_run *run, uint32_t i, bool sums)
{
	const struct tfh_process *p;
	struct tfh_gpu_info gpu;
	struct tfh_merge *merge;
	struct tfh_event ev;
	struct tfh_ops *ops;
	struct tfh_op op;
	struct tfh_err err;

	tfh_run_processes(run, &p);
	tfh_run_gpu(run, i, &gpu);
	tfh_json_object(j);
	tfh_json_key(j, "host");
	tfh_json_str(j, p[i].host);
	tfh_json_key(j, "exe");
	tfh_json_str(j, p[i].exe);
	tfh_json_key(j, "pid");
	tfh_json_u64(j, p[i].pid);
	tfh_json_key(j, "rank");
	tfh_json_i64(j, p[i].rank);
	tfh_json_key(j, "gpu");
	tfh_json_u64(j, gpu.source);
	tfh_json_key(j, "n_ops");
	tfh_json_u64(j, gpu.ops);
	tfh_json_key(j, "unissued");
	tfh_json_u64(j, gpu.unissued);
	tfh_json_key(j, "dependencies");
	tfh_json_bool(j, gpu.dependencies);
	tfh_json_key(j, "processors");
	tfh_json_u64(j, gpu.processors);
	if (sums) {
		dump_sums(j, run, i);
		tfh_json_end(j);
		return;
	}
	tfh_json_key(j, "events");
	tfh_json_array(j);
	if (tfh_merge_open(run, i, &merge, &err))
		exit(1);
	while (tfh_merge_next(merge, &ev))
		dump_event(j, run, &ev);
	tfh_merge_close(merge);
	tfh_json_end(j);
	tfh_json_key(j, "ops");
	tfh_json_array(j);
	if (tfh_ops_open(run, i, &ops, &err))
		exit(1);
	while (tfh_ops_next(ops, &op))
		dump_op(j, &op);
	tfh_ops_close(ops);
	tfh_json_end(j);
	tfh_json_end(j);
}

int main(int argc, char **argv)
{
	bool sums = argc > 1 && !strcmp(argv[1], "-s");
	const struct tfh_process *p;
	struct tfh_run *run;
	struct tfh_err err = {0};
	struct tfh_json j;
	int rc = tfh_import_open((const char *const *)argv + 1 + sums, (uint32_t)(argc - 1 - sums),
				 &run, &err);

	if (rc) {
		fprintf(stderr, "%d %s\n", rc, err.text);
		return 3;
	}
	tfh_json_init(&j, stdout, 0);
	tfh_json_object(&j);
	tfh_json_key(&j, "source");
	tfh_json_u64(&j, tfh_run_source(run));
	tfh_json_key(&j, "wall");
	tfh_json_i64(&j, tfh_run_wall_ns(run));
	tfh_json_key(&j, "start");
	tfh_json_i64(&j, tfh_run_start_realtime_ns(run));
	tfh_json_key(&j, "processes");
	tfh_json_array(&j);
	for (uint32_t i = 0, n = tfh_run_processes(run, &p); i < n; i++)
		dump_process(&j, run, i, sums);
	tfh_json_end(&j);
	tfh_json_end(&j);
	rc = tfh_json_finish(&j);
	putchar('\n');
	tfh_run_close(run);
	return rc ? 1 : 0;
}
