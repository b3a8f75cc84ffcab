/* The end of a Kineto trace: calls and ops get the correlation that an arrow gives them, waits what
 * they wait for, and the run its identity. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "import/kineto_process.h"

/* Whether a wait is the profiler's own: PyTorch's profiler waits for the device when it stops,
 * which is the last event of a trace. */
static bool profilers_own(const struct tfh_kineto *k, const struct tfh_event *ev)
{
	static const char whole[] = "Synchronize";
	const char *name = ev->fn->name;
	size_t n = strlen(name);

	if (ev->fn->family != TFH_FAM_SYNC)
		return false;
	return n > sizeof(whole) - 1 && !strcmp(name + n - (sizeof(whole) - 1), whole) &&
	       (strstr(name, "Device") || strstr(name, "Ctx")) && ev->t0 >= k->last_begin &&
	       ev->t0 >= k->last_end;
}

static int late_calls(struct tfh_kineto *k)
{
	int rc = 0;

	for (uint32_t i = 0; i < k->call.n && !rc; i++) {
		struct tfh_kineto_late_call *c = &k->call.v[i];
		const uint64_t *id = tfh_map_get(&k->arrow, c->anchor), *index = NULL;
		if (!k->gpu && c->ev.fn->family == TFH_FAM_SYNC && !profilers_own(k, &c->ev))
			continue; /* for a device without any ops */
		if (profilers_own(k, &c->ev)) {
			k->stop = c->ev.t0;
			continue;
		}
		if (!c->correlation && id)
			c->correlation = (uint32_t)*id;
		if (c->correlation)
			index = tfh_map_get(&k->wait, c->correlation);
		if (index) {
			const struct tfh_kineto_wait *w = &k->waits.v[*index - 1];
			c->ev.stream = w->stream;
			if (w->record > 0)
				c->ev.w[0] = (uint64_t)w->record;
		}
		rc = tfh_build_event(k->b, &c->ev, c->correlation);
	}
	return rc;
}

static int late_ops(struct tfh_kineto *k)
{
	int rc = 0;

	for (uint32_t i = 0; i < k->op.n && !rc; i++) {
		struct tfh_op *op = &k->op.v[i].op;
		const uint64_t *id = tfh_map_get(&k->arrow, k->op.v[i].anchor);
		if (id)
			op->correlation = (uint32_t)*id;
		if (op->kind == TFH_OP_KERNEL)
			op->name = tfh_build_text(k->b, k->process, TFT_NAME_FUNCTION,
						  (uint32_t)op->node);
		op->node = 0;
		rc = tfh_build_op(k->b, op);
	}
	return rc;
}

/* Steps of a trace that has only the device's rows. */
static int device_steps(struct tfh_kineto *k)
{
	int64_t thread = k->steps.n ? tfh_kineto_thread(k, 0) : 0;
	int rc = thread < 0 ? -ENOMEM : 0;

	for (uint32_t i = 0; i < k->steps.n && !rc; i++) {
		const struct tfh_kineto_step *s = &k->steps.v[i];
		struct tfh_event ev = {.t0 = s->t0,
				       .t1 = s->t1,
				       .process = k->process,
				       .thread = (uint32_t)thread};
		char name[64];
		snprintf(name, sizeof(name), "ProfilerStep#%" PRIu64, s->number);
		rc = tfh_import_host_event(k->b, name, TFT_RANGE_NOTE, &ev);
		rc = rc ? rc : tfh_build_event(k->b, &ev, 0);
	}
	return rc;
}

static int32_t small(int64_t v)
{
	return v >= 0 && v < 1 << 24 ? (int32_t)v : -1;
}

int tfh_kineto_end(struct tfh_kineto *k, const struct tfh_kineto_facts *facts)
{
	const char *exe = "";
	int rc = late_calls(k);

	if (!rc && k->entries && !k->threads)
		rc = device_steps(k);
	if (!rc)
		rc = late_ops(k);
	if (!rc && k->stop < INT64_MAX)
		tfh_build_cut_ranges(k->b, k->process, INT64_MIN, k->stop);
	if (!rc && k->entries && !k->gpu)
		rc = tfh_build_host_only(k->b, k->process);
	if (!k->rocprof) /* whose processes are kinds of entries */
		exe = tfh_kineto_label(k, k->host_pid);
	if (k->device >= 0 &&
	    k->device < (int64_t)(sizeof(facts->processors) / sizeof(*facts->processors)))
		tfh_build_processors(k->b, k->process, facts->processors[k->device]);
	tfh_build_shift(k->b, k->process, facts->base_ns);
	if (rc)
		return rc;
	return tfh_build_identity(k->b, k->process, exe,
				  k->host_pid > 0 && !k->rocprof ? (uint32_t)k->host_pid : 0,
				  small(facts->rank), small(facts->world));
}
