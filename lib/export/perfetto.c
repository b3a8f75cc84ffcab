/* The content of a Perfetto file: per process steps, classes, threads, streams and counters. */
#include "export/perfetto.h"

#include <math.h>

#include "export/writers.h"
#include "model/symbols/kernel_name.h"

static int start_process(void *arg, uint32_t process, const struct tfh_process *p)
{
	struct perfetto *f = arg;
	struct tfh_gpu_info gpu;
	char name[512];

	tfh_run_gpu(f->x->run, process, &gpu);
	f->device = gpu.ops;
	if (p->rank >= 0)
		snprintf(name, sizeof(name), "rank %d (%s, %s)", p->rank,
			 tfh_export_exe(f->x, process), tfh_export_host(f->x, process));
	else
		snprintf(name, sizeof(name), "%s",
			 *p->exe ? tfh_export_exe(f->x, process) : "process");
	return tfh_perfetto_process(f, process, name);
}

/* ---- steps ---- */

static int put_class(struct perfetto *f, const struct tfh_step *s)
{
	const char *cls = tfh_class_name((enum tfh_class)s->cls);
	struct perfetto_event e;

	if (!cls)
		return 0;
	int rc = tfh_perfetto_slice(f, tfh_perfetto_row(f, ROW_CLASSES, 0), tfh_step_begin_ns(s),
				    tfh_step_end_ns(s), "class", cls, &e);
	return rc ? rc : tfh_perfetto_done(f, &e);
}

static int put_step(void *arg, const struct tfh_export_rank *rank, const struct tfh_step *s)
{
	struct perfetto *f = arg;
	struct perfetto_event e;
	const char *cause = tfh_cause_name((enum tfh_cause)s->cause),
		   *segment = tfh_segment_name((enum tfh_segment)s->segment);
	char name[48];
	int rc;

	(void)rank;
	snprintf(name, sizeof(name), "step %llu", (unsigned long long)s->index);
	rc = tfh_perfetto_slice(f, tfh_perfetto_row(f, ROW_STEPS, 0), tfh_step_begin_ns(s),
				tfh_step_end_ns(s), "step", name, &e);
	if (!rc) {
		tfh_perfetto_uint(f, "index", s->index);
		if (segment)
			tfh_perfetto_text(f, "segment", segment);
		if (cause)
			tfh_perfetto_text(f, "cause", cause);
		for (int p = 0; p < TFH_PART_COUNT; p++)
			tfh_perfetto_double(f, tfh_part_name((enum tfh_part)p),
					    (double)s->breakdown[p]);
		rc = tfh_perfetto_done(f, &e);
	}
	if (rc >= 0)
		rc = put_class(f, s);
	if (rc >= 0)
		rc = tfh_perfetto_value(f, "step time", "s", tfh_step_begin_ns(s), s->dur_s);
	return rc > 0 ? 0 : rc;
}

/* ---- calls and ops ---- */

static const char *category_of(const struct tfh_event *ev)
{
	if (ev->kind == TFT_RANGE || ev->kind == TFT_MARK)
		return "range";
	return ev->fn->family >= TFH_FAM_CONSUMER ? "framework" : "driver";
}

static int put_call(void *arg, const struct tfh_walk_call *call)
{
	struct perfetto *f = arg;
	const struct tfh_event *ev = call->ev;
	struct perfetto_event e;
	char kernel[TFH_KERNEL_NAME];
	int rc = tfh_perfetto_slice(f, tfh_perfetto_row(f, ROW_THREAD, ev->thread), ev->t0, ev->t1,
				    category_of(ev), call->name, &e);

	if (rc)
		return rc > 0 ? 0 : rc;
	if (*call->kernel)
		tfh_perfetto_text(f, "kernel",
				  tfh_kernel_short(kernel, call->kernel, TFH_KERNEL_NAME - 1));
	if (ev->kind == TFT_CALL && ev->fn->args == TFH_ARGS_COPY)
		tfh_perfetto_uint(f, "bytes", ev->w[0]);
	if (ev->kind == TFT_MARK)
		tfh_perfetto_uint(f, "step", ev->w[0]);
	if (call->count > 1)
		tfh_perfetto_uint(f, "calls", call->count);
	if (ev->flags & TFT_F_FAILED)
		tfh_perfetto_uint(f, "error", ev->result);
	if (f->device && tfh_export_issues(ev))
		tfh_perfetto_flow(f, call->id, false);
	return tfh_perfetto_done(f, &e);
}

static int put_op(void *arg, const struct tfh_op *op, uint64_t call)
{
	struct perfetto *f = arg;
	struct perfetto_event e;
	char kernel[TFH_KERNEL_NAME];
	const char *name = tfh_export_op_name(op);
	uint64_t stream = (uint64_t)op->device << 32 | op->stream;
	int rc = tfh_perfetto_slice(
		f, tfh_perfetto_row(f, ROW_STREAM, stream), op->t0, op->t1, "op",
		name == op->name ? tfh_kernel_short(kernel, name, TFH_KERNEL_NAME - 1) : name, &e);

	if (rc)
		return rc > 0 ? 0 : rc;
	if (op->bytes)
		tfh_perfetto_uint(f, "bytes", op->bytes);
	if (op->correlation)
		tfh_perfetto_uint(f, "correlation", op->correlation);
	if (call) /* many ops of a graph come from one call */
		tfh_perfetto_flow(f, call, !op->graph);
	return tfh_perfetto_done(f, &e);
}

/* ---- counters, and unfinished calls ---- */

static int put_meters(struct perfetto *f, uint32_t process)
{
	const struct tfh_meter_line *line;
	uint32_t n = tfh_run_meters(f->x->run, process, &line);
	int64_t from, to;
	int rc = 0;

	tfh_export_span(f->x, process, &from, &to);
	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_meter_line *m = &line[i];
		char name[96];
		int len = snprintf(name, sizeof(name), "%s",
				   tfh_meters[m->meter].value[m->value].name);
		if (m->device >= 0)
			snprintf(name + len, sizeof(name) - (size_t)len, " %d", m->device);
		for (uint32_t k = 0; k < m->n && !rc; k++) {
			int64_t t = m->t0 + (int64_t)k * m->width_ns;
			if (!isnan(m->point[k]) && t >= from && t < to)
				rc = tfh_perfetto_value(f, name,
							tfh_meters[m->meter].value[m->value].unit,
							t, (double)m->point[k]);
		}
	}
	return rc;
}

static int put_samples(struct perfetto *f, uint32_t process)
{
	const struct tfh_sample *s;
	uint32_t n = tfh_run_samples(f->x->run, process, &s);
	int64_t from, to;
	int rc = 0;

	tfh_export_span(f->x, process, &from, &to);
	for (uint32_t i = 1; i < n && !rc; i++) {
		double passed = (double)(s[i].t - s[i - 1].t) / 1e9;
		if (s[i].t < from || s[i].t >= to || passed <= 0)
			continue;
		rc = tfh_perfetto_value(f, "processors used", "processors", s[i - 1].t,
					s[i].cpu_s / passed);
		if (!rc && s[i].resident_bytes)
			rc = tfh_perfetto_value(f, "memory resident", "bytes", s[i].t,
						(double)s[i].resident_bytes);
	}
	return rc;
}

/* Writes calls that had not ended: slices without an end. */
static int put_open(struct perfetto *f, uint32_t process)
{
	const struct tfh_in_flight *open;
	uint32_t n = f->x->part ? 0 : tfh_run_in_flight(f->x->run, &open);
	int rc = 0;

	for (uint32_t i = 0; i < n && !rc; i++) {
		struct perfetto_event e;
		if (open[i].process != process)
			continue;
		rc = tfh_perfetto_slice(f, tfh_perfetto_row(f, ROW_THREAD, open[i].thread),
					open[i].begin_ns, INT64_MAX, "in flight", open[i].fn, &e);
		if (!rc)
			rc = tfh_perfetto_done(f, &e);
	}
	return rc > 0 ? 0 : rc;
}

static int end_process(void *arg, uint32_t process)
{
	struct perfetto *f = arg;
	int rc = tfh_perfetto_close_rows(f);

	if (!rc)
		rc = put_open(f, process);
	if (!rc)
		rc = put_samples(f, process);
	return rc ? rc : put_meters(f, process);
}

int tfh_write_perfetto(const struct tfh_export *x, FILE *out, struct tfh_err *err)
{
	static const struct tfh_walker walker = {.process = start_process,
						 .step = put_step,
						 .call = put_call,
						 .op = put_op,
						 .end = end_process};
	struct perfetto f = {.x = x, .out = out};
	int rc;

	tfh_run_threads(x->run, &f.thread);
	rc = tfh_perfetto_begin(&f);
	if (!rc)
		rc = tfh_walk(x, &walker, &f, err);
	tfh_perfetto_free(&f);
	return rc;
}
