/* Prints what the model says of a run's device ops, a line of JSON each: ops RUN. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/ops/ops.h"

static void print_info(const struct tfh_gpu_info *g, const struct tfh_process *p)
{
	printf("{\"pid\": %u, \"source\": %d, \"ops\": %" PRIu64 ", \"dropped\": %" PRIu64
	       ", \"unissued\": %" PRIu64 ", \"dependencies\": %d, \"processors\": %u, \"why\": "
	       "\"%s\", \"spans\": [",
	       p->pid, g->source, g->ops, g->dropped, g->unissued, g->dependencies, g->processors,
	       g->why);
	for (uint32_t i = 0; i < g->n_span; i++)
		printf("%s[%" PRId64 ", %" PRId64 ", %d]", i ? ", " : "", g->span[i].t0,
		       g->span[i].t1, g->span[i].nodes);
	puts("]}");
}

static void print_op(const struct tfh_op *op, const struct tfh_thread_info *threads)
{
	printf("{\"t0\": %" PRId64 ", \"t1\": %" PRId64 ", \"kind\": %d, \"dir\": %d, \"name\": "
	       "\"%s\", \"bytes\": %" PRIu64 ", \"device\": %u, \"stream\": %u, \"correlation\": "
	       "%u, \"graph\": %u, \"node\": %" PRIu64 ", \"pageable\": %d, \"grid\": %" PRIu64
	       ", \"issue0\": %" PRId64 ", \"issue1\": %" PRId64 ", \"tid\": %d, \"call\": %" PRId64
	       "}\n",
	       op->t0, op->t1, op->kind, op->dir, op->name, op->bytes, op->device, op->stream,
	       op->correlation, op->graph, op->node, op->pageable, op->grid, op->issue0, op->issue1,
	       op->thread == UINT32_MAX ? -1 : (int)threads[op->thread].tid, (int64_t)op->call);
}

/* A second pass finds what the first one found, though it joins nothing itself. */
static int check_again(struct tfh_run *run, uint32_t process, const struct tfh_op *v, size_t n)
{
	struct tfh_ops *ops;
	struct tfh_err err;
	struct tfh_op op;
	size_t i = 0, bad = 0;

	if (tfh_ops_open(run, process, &ops, &err))
		return 1;
	for (; tfh_ops_next(ops, &op); i++)
		bad += i >= n || op.t0 != v[i].t0 || op.t1 != v[i].t1 || op.number != v[i].number ||
		       op.correlation != v[i].correlation || op.issue0 != v[i].issue0 ||
		       op.issue1 != v[i].issue1 || op.thread != v[i].thread || op.call != v[i].call;
	tfh_ops_close(ops);
	if (bad || i != n)
		fprintf(stderr, "second pass: %zu ops of %zu, %zu differ\n", i, n, bad);
	return bad || i != n;
}

/* A thread's name, by which its calls are found, is written with its first flush. Where the machine is busy that comes
 * after ops which it issued, so a pass over the calls reads all names first, as in a report. */
static int read_names(struct tfh_run *run, uint32_t process)
{
	struct tfh_merge *merge;
	struct tfh_event ev;
	struct tfh_err err;

	if (tfh_merge_open(run, process, &merge, &err))
		return 1;
	while (tfh_merge_next(merge, &ev))
		;
	tfh_merge_close(merge);
	return 0;
}

static int print_process(struct tfh_run *run, uint32_t process, const struct tfh_process *p)
{
	const struct tfh_thread_info *threads;
	struct tfh_gpu_info info;
	struct tfh_ops *ops;
	struct tfh_err err;
	struct tfh_op op, *v = NULL;
	size_t n = 0;

	int rc = read_names(run, process) || tfh_ops_open(run, process, &ops, &err);

	tfh_run_threads(run, &threads);
	while (!rc && tfh_ops_next(ops, &op)) {
		struct tfh_op *more = realloc(v, (n + 1) * sizeof(*v));
		if (!more)
			abort();
		v = more;
		v[n++] = op;
		print_op(&op, threads);
	}
	rc = rc ? rc : tfh_ops_error(ops, &err);
	if (rc)
		fprintf(stderr, "ops: %s\n", err.text);
	tfh_ops_close(ops);
	rc = rc ? rc : check_again(run, process, v, n);
	free(v);
	tfh_run_gpu(run, process, &info);
	print_info(&info, p);
	return rc != 0;
}

int main(int argc, char **argv)
{
	const struct tfh_process *p;
	struct tfh_run *run;
	struct tfh_err err = {0};
	int bad = 0;

	if (argc < 2 || tfh_run_open((const char *const *)argv + 1, 1, &run, &err)) {
		fprintf(stderr, "ops: %s\n", err.text);
		return 2;
	}
	uint32_t n = tfh_run_processes(run, &p);
	for (uint32_t i = 0; i < n; i++)
		bad |= print_process(run, i, &p[i]);
	tfh_run_close(run);
	return bad;
}
