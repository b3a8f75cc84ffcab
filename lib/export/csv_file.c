/* One table of calls, ops and steps, one per line, in nanoseconds since the run's start. A plain
 * one also has the seconds of each part of a step. */
#include "base/vocabulary.h"
#include "export/csv.h"
#include "export/naming.h"
#include "export/walk.h"
#include "export/writers.h"

struct csv_out {
	const struct tfh_export *x;
	struct tfh_csv csv;
	uint32_t process;
	int32_t rank;
};

static void put_who(struct csv_out *o, const char *what, int64_t t0, int64_t t1)
{
	tfh_csv_text(&o->csv, what);
	if (o->rank >= 0)
		tfh_csv_int(&o->csv, o->rank);
	else
		tfh_csv_empty(&o->csv);
	tfh_csv_int(&o->csv, tfh_export_pid(o->x, o->process));
	tfh_csv_int(&o->csv, t0);
	tfh_csv_int(&o->csv, t1);
}

static void put_empty(struct csv_out *o, unsigned n)
{
	while (n--)
		tfh_csv_empty(&o->csv);
}

static int put_process(void *arg, uint32_t process, const struct tfh_process *p)
{
	struct csv_out *o = arg;

	o->process = process;
	o->rank = p->rank;
	return 0;
}

/* Ends a line; `s`: the step that it is about, if any. */
static int end_line(struct csv_out *o, const struct tfh_step *s)
{
	for (int p = 0; o->csv.plain && p < TFH_PART_COUNT; p++)
		if (s)
			tfh_csv_double(&o->csv, (double)s->breakdown[p]);
		else
			tfh_csv_empty(&o->csv);
	return tfh_csv_end(&o->csv);
}

static int put_step(void *arg, const struct tfh_export_rank *rank, const struct tfh_step *s)
{
	struct csv_out *o = arg;

	(void)rank;
	put_who(o, "step", tfh_step_begin_ns(s), tfh_step_end_ns(s));
	put_empty(o, 7);
	tfh_csv_int(&o->csv, (int64_t)s->index);
	tfh_csv_text(&o->csv, tfh_segment_name((enum tfh_segment)s->segment));
	tfh_csv_text(&o->csv, tfh_class_name((enum tfh_class)s->cls));
	tfh_csv_text(&o->csv, tfh_cause_name((enum tfh_cause)s->cause));
	return end_line(o, s);
}

static int put_call(void *arg, const struct tfh_walk_call *call)
{
	struct csv_out *o = arg;
	const struct tfh_event *ev = call->ev;

	put_who(o,
		ev->kind == TFT_RANGE  ? "range"
		: ev->kind == TFT_MARK ? "mark"
				       : "call",
		ev->t0, ev->t1);
	tfh_csv_text(&o->csv, call->name);
	tfh_csv_int(&o->csv, tfh_export_tid(o->x, ev->thread));
	put_empty(o, 1);
	tfh_csv_int(&o->csv, ev->stream);
	if (ev->kind == TFT_CALL && ev->fn->args == TFH_ARGS_COPY)
		tfh_csv_int(&o->csv, (int64_t)ev->w[0]);
	else
		tfh_csv_empty(&o->csv);
	tfh_csv_int(&o->csv, (int64_t)call->id);
	tfh_csv_int(&o->csv, (int64_t)call->count);
	put_empty(o, 4);
	return end_line(o, NULL);
}

static int put_op(void *arg, const struct tfh_op *op, uint64_t call)
{
	struct csv_out *o = arg;
	char room[TFH_EXPORT_NAME];

	put_who(o, "op", op->t0, op->t1);
	tfh_csv_text(&o->csv, tfh_export_full_name(room, tfh_export_op_name(op)));
	put_empty(o, 1);
	tfh_csv_int(&o->csv, op->device);
	tfh_csv_int(&o->csv, op->stream);
	tfh_csv_int(&o->csv, (int64_t)op->bytes);
	if (call)
		tfh_csv_int(&o->csv, (int64_t)call);
	else
		tfh_csv_empty(&o->csv);
	put_empty(o, 5);
	return end_line(o, NULL);
}

int tfh_csv_table(const struct tfh_export *x, FILE *out, bool plain, struct tfh_err *err)
{
	static const char *const column[] = {
		"what",	  "rank",  "pid",  "start_ns", "end_ns", "name",    "tid",   "device",
		"stream", "bytes", "call", "calls",    "step",	 "segment", "class", "cause",
#define BREAKDOWN(id, name, class) name "_s",
#include "base/vocabulary.def"
#undef BREAKDOWN
	};
	static const struct tfh_walker walker = {
		.process = put_process, .step = put_step, .call = put_call, .op = put_op};
	struct csv_out o = {.x = x, .csv = {.out = out, .plain = plain}};

	for (size_t i = 0; i < sizeof(column) / sizeof(*column) - (plain ? 0 : TFH_PART_COUNT); i++)
		tfh_csv_text(&o.csv, column[i]);
	int rc = tfh_csv_end(&o.csv);
	return rc ? rc : tfh_walk(x, &walker, &o, err);
}

int tfh_write_csv(const struct tfh_export *x, FILE *out, struct tfh_err *err)
{
	return tfh_csv_table(x, out, false, err);
}
