/* Counts copies, kernels and pipeline stages over the training steps, call by call. */
#include <errno.h>
#include <string.h>

#include "judge/account/account.h"

static int count_copy(struct tfh_accounts *accounts, const struct tfh_event *ev,
		      const struct tfh_piece *p)
{
	struct tfh_copy_use u = {.fn = ev->fn, .dir = p->dir, .pageable = p->pageable};
	size_t i = 0;

	while (i < accounts->copy.n &&
	       (accounts->copy.v[i].fn != ev->fn || accounts->copy.v[i].dir != p->dir ||
		accounts->copy.v[i].pageable != p->pageable))
		i++;
	if (i == accounts->copy.n && TFH_PUSH(accounts->copy, u))
		return -ENOMEM;
	accounts->copy.v[i].calls++;
	accounts->copy.v[i].bytes += p->bytes;
	accounts->copy.v[i].ns += p->t1 - p->t0;
	accounts->copy.v[i].blocking += p->activity == TFH_ACTIVITY_COPY;
	if (p->bytes && p->bytes < TFH_ACCOUNT_SMALL_COPY) { /* 0: unknown */
		accounts->copy.v[i].small++;
		accounts->copy.v[i].small_ns += p->t1 - p->t0;
	}
	tfh_site_count(accounts->copy.v[i].site, ev);
	tfh_count_same(accounts, ev, accounts->counted);
	return 0;
}

static int count_kernel(struct tfh_accounts *accounts, const struct tfh_event *ev, uint32_t n)
{
	uint32_t function = (uint32_t)ev->w[0], bucket = function % TFH_ACCOUNT_KERNEL_BUCKETS, at;

	/* Usually there are few ids, numbered consecutively. */
	for (at = accounts->kernel_at[bucket]; at; at = accounts->kernel.v[at - 1].before)
		if (accounts->kernel.v[at - 1].function == function)
			break;
	if (!at) {
		if (TFH_PUSH(accounts->kernel,
			     (struct tfh_kernel_use){.function = function,
						     .before = accounts->kernel_at[bucket]}))
			return -ENOMEM;
		at = accounts->kernel_at[bucket] = (uint32_t)accounts->kernel.n;
	}
	accounts->kernel.v[at - 1].calls += n;
	return 0;
}

/* The training window in which a call ended; NULL if none. */
static inline struct tfh_use *use_of(struct tfh_accounts *accounts, const struct tfh_event *ev)
{
	while (accounts->counted < accounts->loops->window.n &&
	       accounts->loops->window.v[accounts->counted].t1 < ev->t1)
		accounts->counted++;
	if (accounts->counted == accounts->loops->window.n)
		return NULL;
	const struct tfh_window *w = &accounts->loops->window.v[accounts->counted];
	return ev->t1 < w->t0 || w->segment != TFH_SEGMENT_TRAIN
		       ? NULL
		       : &accounts->use[accounts->counted];
}

void tfh_count_pause(struct tfh_accounts *accounts, const struct tfh_event *ev)
{
	if (!use_of(accounts, ev))
		return;
	tfh_site_count(accounts->pause_site, ev);
	accounts->asked = *ev;
}

static void count_bound(struct tfh_pause_bound *bound, const struct tfh_bound_call *call,
			const struct tfh_event *pause)
{
	struct tfh_event known = *pause;

	known.fn = call->fn;
	known.stack = call->stack;
	tfh_site_count(bound->site, &known);
	tfh_site_count_function(bound->fn, &known);
}

void tfh_count_bounds(struct tfh_accounts *accounts, const struct tfh_bounded_pause *p)
{
	const struct tfh_event pause = {.t0 = p->t0, .t1 = p->t1}, end = {.t1 = p->t2};

	if (p->t1 <= p->t0 || !use_of(accounts, &end))
		return;
	if (p->brief) {
		accounts->gaps_ns += p->t1 - p->t0;
		return;
	}
	accounts->pauses_ns += p->t1 - p->t0;
	count_bound(&accounts->pauses_from, &p->from, &pause);
	count_bound(&accounts->pauses_to, &p->to, &pause);
}

/* Counts a call that waits for a batch, or that executes ops one of which does, with the stack of
 * the pause before it. The batch may be taken by a thread of the library. */
static void count_input(struct tfh_accounts *accounts, const struct tfh_event *ev,
			const struct tfh_piece *p)
{
	struct tfh_event *asked = &accounts->asked;

	if (p->activity == TFH_ACTIVITY_INPUT)
		accounts->asked_ns += ev->t1 - ev->t0;
	if (ev->depth || ev->thread != asked->thread)
		return;
	asked->t0 = ev->t1 - accounts->asked_ns;
	asked->t1 = ev->t1;
	if (accounts->asked_ns)
		tfh_site_count(accounts->input_site, asked);
	asked->stack = 0;
	accounts->asked_ns = 0;
}

int tfh_count_launches_of(struct tfh_accounts *accounts, struct tfh_use *use,
			  const struct tfh_event *ev, uint32_t n)
{
	use->launches += n;
	return count_kernel(accounts, ev, n);
}

int tfh_count_launch(struct tfh_accounts *accounts, const struct tfh_event *ev)
{
	struct tfh_use *use = use_of(accounts, ev);

	if (!use)
		return 0;
	tfh_site_count(accounts->launch_site, ev);
	return tfh_count_launches_of(accounts, use, ev, 1);
}

struct tfh_use *tfh_count_window(struct tfh_accounts *accounts, int64_t t, int64_t *until)
{
	const struct tfh_event last = {.t1 = t};
	struct tfh_use *use = use_of(accounts, &last);

	*until = INT64_MAX;
	if (accounts->counted == accounts->loops->window.n)
		return NULL;
	const struct tfh_window *w = &accounts->loops->window.v[accounts->counted];
	*until = t < w->t0 ? w->t0 - 1 : w->t1;
	return use;
}

/* Counts an executed call: what it waits for exchanges with other ranks, and what it computes. */
static void count_executed(struct tfh_accounts *accounts, const struct tfh_event *ev)
{
	const struct tfh_facts *facts = accounts->facts;
	struct tfh_event part = *ev;

	part.t0 = ev->t1 - tfh_exposed_ns(accounts->exposed, ev->t0, ev->t1);
	if (part.t0 < part.t1)
		tfh_site_count(accounts->exchange_site, &part);
	part.t1 = part.t0;
	part.t0 = ev->t0;
	tfh_site_count(accounts->executed_site, &part);
	if (ev->w[0] < facts->tag_of.n && facts->tag_of.v[ev->w[0]] >= 0)
		accounts->ran_ns[facts->tag_of.v[ev->w[0]]] += part.t1 - part.t0;
}

static void count_stage(struct tfh_accounts *accounts, const struct tfh_event *ev, int32_t at,
			bool train)
{
	struct tfh_stage_account *stage = &accounts->stage[at];
	size_t i = accounts->counted;

	if (train)
		tfh_stage_count(&stage->time, ev);
	else if (i == accounts->loops->window.n || ev->t1 < accounts->loops->window.v[i].t0 ||
		 accounts->loops->window.v[i].steps)
		return;
	tfh_stage_count(&stage->with_between, ev);
}

/* Counts windows, since a call of the runtime contains one of the driver. */
static void count_graph(struct tfh_accounts *accounts, const struct tfh_event *ev)
{
	bool again = accounts->graph_steps && accounts->graph_window == accounts->counted;

	tfh_site_count(accounts->graph_site, ev);
	if (again || !strstr(ev->fn->name, "GraphInstantiate"))
		return;
	accounts->graph_steps++;
	accounts->graph_window = accounts->counted;
}

int tfh_count_event(struct tfh_accounts *accounts, const struct tfh_event *ev,
		    const struct tfh_piece *p)
{
	struct tfh_use *use = use_of(accounts, ev);
	int32_t stage = p->passive ? tfh_stage_index(accounts->facts, p->stage) : -1;

	if (stage >= 0)
		count_stage(accounts, ev, stage, use != NULL);
	if (stage >= 0 || !use)
		return 0;
	count_input(accounts, ev, p);
	use->launches += tfh_family_launches(p->family);
	if (p->activity == TFH_ACTIVITY_MODULE && strstr(ev->fn->name, "Load")) {
		accounts->recompiles++;
		accounts->recompile_ns += ev->t1 - ev->t0;
	}
	accounts->unloads += p->activity == TFH_ACTIVITY_MODULE && strstr(ev->fn->name, "Unload");
	if (p->family == TFH_FAM_GRAPH)
		count_graph(accounts, ev);
	if (p->family == TFH_FAM_MANAGED)
		tfh_site_count(accounts->managed_site, ev);
	if (tfh_family_launches(p->family))
		tfh_site_count(accounts->launch_site, ev);
	if (p->activity == TFH_ACTIVITY_SYNC)
		tfh_site_count(accounts->wait_site, ev);
	else if (p->activity == TFH_ACTIVITY_ALLOC)
		tfh_site_count(accounts->alloc_site, ev);
	else if (p->activity == TFH_ACTIVITY_MODULE)
		tfh_site_count(accounts->load_site, ev);
	else if (p->activity == TFH_ACTIVITY_EXEC)
		count_executed(accounts, ev);
	if (p->family == TFH_FAM_COPY)
		return count_copy(accounts, ev, p);
	if (p->family == TFH_FAM_LAUNCH)
		return count_kernel(accounts, ev, 1);
	if (p->family == TFH_FAM_GRAPH_LAUNCH)
		accounts->graph_launches++;
	return 0;
}
