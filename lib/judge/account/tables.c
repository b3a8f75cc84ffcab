/*
 * What is counted call by call over the training steps: copies, kernels, pipeline stages.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/internal.h"

static int count_copy(struct tfh_job *job, const struct tfh_event *ev, const struct tfh_piece *p)
{
	struct tfh_copy_use u = {.fn = ev->fn, .dir = p->dir, .pageable = p->pageable};
	size_t i = 0;

	while (i < job->copy.n && (job->copy.v[i].fn != ev->fn || job->copy.v[i].dir != p->dir ||
				   job->copy.v[i].pageable != p->pageable))
		i++;
	if (i == job->copy.n && TFH_PUSH(job->copy, u))
		return -ENOMEM;
	job->copy.v[i].calls++;
	job->copy.v[i].bytes += p->bytes;
	job->copy.v[i].ns += p->t1 - p->t0;
	job->copy.v[i].blocking += p->label == TFH_L_COPY;
	if (p->bytes < TFH_SMALL_COPY) {
		job->copy.v[i].small++;
		job->copy.v[i].small_ns += p->t1 - p->t0;
	}
	tfh_site_count(job->copy.v[i].site, ev);
	return 0;
}

static int count_kernel(struct tfh_job *job, const struct tfh_event *ev)
{
	uint32_t function = (uint32_t)ev->w[0], bucket = function % TFH_KERNEL_BUCKETS, at;

	/* Mostly ids are few and given in turn. */
	for (at = job->kernel_at[bucket]; at; at = job->kernel.v[at - 1].before)
		if (job->kernel.v[at - 1].function == function)
			break;
	if (!at) {
		if (TFH_PUSH(job->kernel,
			     (struct tfh_kernel_use){.function = function,
						     .before = job->kernel_at[bucket]}))
			return -ENOMEM;
		at = job->kernel_at[bucket] = (uint32_t)job->kernel.n;
	}
	job->kernel.v[at - 1].calls++;
	return 0;
}

static void count_stage(struct tfh_job *job, const struct tfh_event *ev, const struct tfh_piece *p)
{
	int32_t at = tfh_stage_index(job, p->stage);

	if (at < 0)
		return;
	struct tfh_stage_use *s = &job->stage.v[at];
	if (ev->kind == TFT_AGG) {
		s->calls += ev->ctx;
		s->total += (int64_t)ev->w[0];
		s->self += (int64_t)ev->w[1];
	} else {
		s->calls++;
		s->total += ev->t1 - ev->t0;
		s->self += (int64_t)ev->w[2];
	}
}

/* The training window that a call ended in; NULL: none. */
static inline struct tfh_window *window_of(struct tfh_job *job, const struct tfh_event *ev)
{
	while (job->counted < job->window.n && job->window.v[job->counted].t1 < ev->t1)
		job->counted++;
	if (job->counted == job->window.n)
		return NULL;
	struct tfh_window *w = &job->window.v[job->counted];
	return ev->t1 < w->t0 || w->segment != TFH_SEGMENT_TRAIN ? NULL : w;
}

int tfh_count_launch(struct tfh_job *job, const struct tfh_event *ev)
{
	struct tfh_window *w = window_of(job, ev);

	if (!w)
		return 0;
	w->launches++;
	return count_kernel(job, ev);
}

int tfh_count_event(struct tfh_job *job, const struct tfh_event *ev, const struct tfh_piece *p)
{
	struct tfh_window *w = window_of(job, ev);

	if (!w)
		return 0;
	w->launches += p->family == TFH_FAM_LAUNCH || p->family == TFH_FAM_GRAPH_LAUNCH;
	if (p->label == TFH_L_MODULE && strstr(ev->fn->name, "Load")) {
		job->recompiles++;
		job->recompile_ns += ev->t1 - ev->t0;
	}
	if (p->label == TFH_L_SYNC)
		tfh_site_count(job->wait_site, ev);
	else if (p->label == TFH_L_ALLOC)
		tfh_site_count(job->alloc_site, ev);
	else if (p->label == TFH_L_MODULE)
		tfh_site_count(job->load_site, ev);
	if (p->passive)
		count_stage(job, ev, p);
	else if (p->family == TFH_FAM_COPY)
		return count_copy(job, ev, p);
	else if (p->family == TFH_FAM_LAUNCH)
		return count_kernel(job, ev);
	else if (p->family == TFH_FAM_GRAPH_LAUNCH)
		job->graph_launches++;
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct tfh_transfer *x = a, *y = b;
	return x->bytes_per_step > y->bytes_per_step ? -1 : x->bytes_per_step < y->bytes_per_step;
}

static int by_calls(const void *a, const void *b)
{
	const struct tfh_kernel *x = a, *y = b;
	return x->calls_per_step > y->calls_per_step ? -1 : x->calls_per_step < y->calls_per_step;
}

static const char *kernel_name(struct tfh_job *job, uint32_t id)
{
	const char *s =
		job->feed->name(job->feed->arg, job->process, TFT_NAME_FUNCTION, id, NULL, NULL);

	return *s ? s : tfh_text(job, "kernel #%u", id);
}

int tfh_fill_tables(struct tfh_job *job, struct tfh_result *r)
{
	double steps = job->train_steps ? (double)job->train_steps : NAN;

	r->transfers = tfh_arena_array(&job->arena, job->copy.n + 1, sizeof(*r->transfers));
	r->kernels = tfh_arena_array(&job->arena, job->kernel.n + 2, sizeof(*r->kernels));
	if (!r->transfers || !r->kernels)
		return -ENOMEM;
	for (size_t i = 0; i < job->copy.n; i++) {
		const struct tfh_copy_use *u = &job->copy.v[i];
		struct tfh_transfer *t = &r->transfers[r->n_transfers++];
		bool host = u->dir == TFH_DIR_H2D || u->dir == TFH_DIR_D2H;
		t->fn = u->fn->name;
		t->dir = u->dir;
		t->pageable = host ? u->pageable : -1;
		t->calls_per_step = (double)u->calls / steps;
		t->bytes_per_step = (double)u->bytes / steps;
		/* A call that only queues the copy says nothing about its speed. */
		t->bytes_per_s = u->blocking == u->calls && u->ns > 0
					 ? (double)u->bytes * 1e9 / (double)u->ns
					 : NAN;
		t->blocking_calls = u->blocking;
		t->calls = u->calls;
		t->where = tfh_site_text(job, u->site);
	}
	for (size_t i = 0; i < job->kernel.n; i++) {
		struct tfh_kernel *k = &r->kernels[r->n_kernels++];
		k->name = kernel_name(job, job->kernel.v[i].function);
		k->calls_per_step = (double)job->kernel.v[i].calls / steps;
		k->median_s = k->s_per_step = k->share_of_busy = NAN;
	}
	if (job->graph_launches) {
		struct tfh_kernel *k = &r->kernels[r->n_kernels++];
		k->name = "graph launch";
		k->calls_per_step = (double)job->graph_launches / steps;
		k->median_s = k->s_per_step = k->share_of_busy = NAN;
	}
	qsort(r->transfers, r->n_transfers, sizeof(*r->transfers), by_bytes);
	qsort(r->kernels, r->n_kernels, sizeof(*r->kernels), by_calls);
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct tfh_last_call *x = a, *y = b;
	return x->t > y->t ? -1 : x->t < y->t;
}

/* The kernels launched last, stream by stream. */
void tfh_fill_last(struct tfh_job *job, struct tfh_result *r)
{
	const struct tfh_feed *f = job->feed;
	const uint32_t most = sizeof(r->last) / sizeof(*r->last);

	qsort(job->last_launch, TFH_LAST_LAUNCHES, sizeof(*job->last_launch), by_time);
	for (uint32_t i = 0; i < most && job->last_launch[i].t; i++) {
		const struct tfh_last_call *c = &job->last_launch[i];
		struct tfh_last_launch *l = &r->last[r->n_last++];
		l->stream = c->stream;
		l->t = c->t;
		l->handle = 0;
		if (c->stream)
			f->name(f->arg, job->process, TFT_NAME_STREAM, c->stream, &l->handle, NULL);
		l->kernel = tfh_text(job, "%s", kernel_name(job, c->function));
	}
}
