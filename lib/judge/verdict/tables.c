/* The tables of the report: copies, kernels, pipeline stages, start-up. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/verdict/verdict.h"

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

static const char *kernel_name(const struct tfh_accounts *accounts, uint32_t id)
{
	const char *s =
		accounts->facts->feed->name(accounts->facts->feed->arg, accounts->facts->process,
					    TFT_NAME_FUNCTION, id, NULL, NULL);

	return *s ? s : tfh_arena_text(accounts->facts->arena, "kernel #%u", id);
}

int tfh_fill_tables(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	double steps = accounts->train_steps ? (double)accounts->train_steps : NAN;

	r->transfers = tfh_arena_array(accounts->facts->arena, accounts->copy.n + 1,
				       sizeof(*r->transfers));
	r->kernels = tfh_arena_array(accounts->facts->arena, accounts->kernel.n + 2,
				     sizeof(*r->kernels));
	if (!r->transfers || !r->kernels)
		return -ENOMEM;
	for (size_t i = 0; i < accounts->copy.n; i++) {
		const struct tfh_copy_use *u = &accounts->copy.v[i];
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
		t->where = tfh_site_text(accounts, u->site);
		t->stack = tfh_site_most(u->site)->stack;
	}
	for (size_t i = 0; i < accounts->kernel.n; i++) {
		struct tfh_kernel *k = &r->kernels[r->n_kernels++];
		k->name = kernel_name(accounts, accounts->kernel.v[i].function);
		k->calls_per_step = (double)accounts->kernel.v[i].calls / steps;
		k->median_s = k->s_per_step = k->share_of_busy = NAN;
	}
	if (accounts->graph_launches) {
		struct tfh_kernel *k = &r->kernels[r->n_kernels++];
		k->name = "graph launch";
		k->calls_per_step = (double)accounts->graph_launches / steps;
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

/* The last kernel of each stream. */
void tfh_fill_last(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_feed *f = accounts->facts->feed;
	const uint32_t most = sizeof(r->last) / sizeof(*r->last);

	struct tfh_last_call by_stream[TFH_FACTS_LAST_LAUNCHES];
	memcpy(by_stream, accounts->facts->last_launch, sizeof(by_stream));
	qsort(by_stream, TFH_FACTS_LAST_LAUNCHES, sizeof(*by_stream), by_time);
	for (uint32_t i = 0; i < most && by_stream[i].t; i++) {
		const struct tfh_last_call *c = &by_stream[i];
		struct tfh_last_launch *l = &r->last[r->n_last++];
		l->stream = c->stream;
		l->handle = 0;
		if (c->stream)
			f->name(f->arg, accounts->facts->process, TFT_NAME_STREAM, c->stream,
				&l->handle, NULL);
		l->kernel = tfh_arena_text(accounts->facts->arena, "%s",
					   kernel_name(accounts, c->function));
	}
}

static int by_self(const void *a, const void *b)
{
	const struct tfh_input_stage *x = a, *y = b;
	/* Waiting inside an asynchronous stage is not its own time. */
	double xs = x->async ? 0 : x->self_s_per_step, ys = y->async ? 0 : y->self_s_per_step;

	if (x->guilty != y->guilty)
		return x->guilty ? -1 : 1;
	return xs > ys ? -1 : xs < ys;
}

int tfh_fill_input(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	double steps = accounts->train_steps ? (double)accounts->train_steps : NAN;

	r->input = tfh_arena_array(accounts->facts->arena, accounts->facts->stage.n + 1,
				   sizeof(*r->input));
	if (!r->input)
		return -ENOMEM;
	for (size_t i = 0; i < accounts->facts->stage.n; i++) {
		const struct tfh_stage_use *s = &accounts->facts->stage.v[i];
		const struct tfh_stage_time *t = &accounts->stage[i].time;
		struct tfh_input_stage *o = &r->input[r->n_input];
		if (!t->calls && (int32_t)i != accounts->guilty)
			continue;
		r->n_input++;
		o->name = s->type;
		o->prefix = s->prefix;
		o->self_s_per_step = (double)t->self / 1e9 / steps;
		o->calls_per_step = (double)t->calls / steps;
		o->parallelism = s->parallelism;
		o->async = s->async;
		o->guilty = (int32_t)i == accounts->guilty;
		/* Steps per second that the stage could sustain. An asynchronous stage shows that
		 * only while it is the one waited for: then it equals what it delivered. */
		if (!s->async)
			o->capacity_per_s = t->self > 0 ? steps * 1e9 / (double)t->self : NAN;
		else
			o->capacity_per_s = o->guilty && t->calls && accounts->train_ns
						    ? (double)accounts->judged_steps * 1e9 /
							      (double)accounts->train_ns
						    : NAN;
	}
	qsort(r->input, r->n_input, sizeof(*r->input), by_self);
	return 0;
}

static void first(int64_t phase[], enum tfh_phase which, int64_t t)
{
	if (!phase[which] || t < phase[which])
		phase[which] = t;
}

void tfh_fill_startup(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_facts *facts = accounts->facts;
	int64_t phase[TFH_PHASE_COUNT];

	memcpy(phase, facts->phase, sizeof(phase));
	TFH_EACH (i, facts->batch.n)
		if (!facts->batch.v[i].end)
			first(phase, TFH_PHASE_BATCH, facts->batch.v[i].t1);
	TFH_EACH (i, accounts->loops->window.n) {
		const struct tfh_window *w = &accounts->loops->window.v[i];
		if (w->segment == TFH_SEGMENT_EVAL || !w->steps)
			continue;
		first(phase, TFH_PHASE_STEP, w->t1);
		if (tfh_window_counts(accounts, i)) {
			first(phase, TFH_PHASE_STEADY, w->t0);
			break;
		}
	}
	for (int k = 0; k < TFH_PHASE_COUNT; k++)
		r->startup[k] = phase[k] ? (double)phase[k] / 1e9 : NAN;
}
