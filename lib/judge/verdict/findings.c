/*
 * Facts of a run that belong to no table and become sentences of the report.
 *
 * Page faults: memory that the job returns to the kernel and takes again, page by page. glibc's
 * arenas do that in threads that allocate large blocks. Samples count the page faults of the
 * process, and the recorder has measured the minimum cost of one. The product is processor time of
 * any thread; only a run without the faults shows what a step loses.
 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "judge/verdict/verdict.h"

struct fault_sums {
	double wall_s, cost_s, system_s, faults, kept, page;
};

/* Adds up the samples between the first step and the last. */
static void add_up(const struct tfh_accounts *accounts, struct fault_sums *u)
{
	const struct tfh_sample *s = NULL;
	uint32_t n = tfh_machine_samples(accounts->facts, &s);
	int64_t t0 = accounts->loops->window.v[0].t0,
		t1 = accounts->loops->window.v[accounts->loops->window.n - 1].t1;

	for (uint32_t i = 1; i < n; i++) {
		if (s[i - 1].t < t0 || s[i].t > t1 || s[i].fault_s <= 0)
			continue;
		u->wall_s += (double)(s[i].t - s[i - 1].t) / 1e9;
		u->faults += (double)s[i].faults;
		u->cost_s += (double)s[i].faults * s[i].fault_s;
		u->system_s += s[i].system_s;
		u->kept += (double)s[i].resident_bytes - (double)s[i - 1].resident_bytes;
		u->page = (double)s[i].page_bytes;
	}
}

static void find_faults(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct fault_sums u = {0};

	if (!accounts->loops->window.n || !r->steps.count)
		return;
	add_up(accounts, &u);
	if (u.system_s < u.cost_s) /* the kernel's clock ticks slowly on some machines */
		u.cost_s = u.system_s;
	if (u.wall_s < TFH_FACTS_LEAST_SAMPLED_S || u.cost_s < TFH_VERDICT_FAULT_SHARE * u.wall_s ||
	    u.kept > TFH_VERDICT_FAULT_KEPT * u.faults * u.page)
		return;
	double step_s = r->steps.total_s / (double)r->steps.count;
	r->found.fault.pages = u.faults / u.wall_s * step_s;
	r->found.fault.cost_s = u.cost_s / u.wall_s * step_s;
}

static void find_stalls(struct tfh_result *r)
{
	double part[TFH_PART_COUNT] = {0};

	r->found.stall.most = TFH_PART_HOST;
	TFH_EACH (i, r->n_step) {
		if (r->step[i].segment != TFH_SEGMENT_STALL)
			continue;
		r->found.stall.n++;
		r->found.stall.total_s += r->step[i].dur_s;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			part[p] += (double)r->step[i].breakdown[p];
	}
	for (int p = 0; p < TFH_PART_COUNT; p++)
		if (part[p] > part[r->found.stall.most])
			r->found.stall.most = p;
}

static struct tfh_call_site site_of(const struct tfh_accounts *accounts,
				    const struct tfh_site_use *use)
{
	const struct tfh_feed *f = accounts->facts->feed;
	const char *where = use && use->stack && f->site
				    ? f->site(f->arg, accounts->facts->process, use->stack)
				    : "";

	return (struct tfh_call_site){*where && use->fn ? use->fn->name : "",
				      *where ? tfh_arena_text(accounts->facts->arena, "%s", where)
					     : "",
				      use ? use->stack : 0};
}

/* The place where most of the calls were made that account for a cause's time. */
static struct tfh_call_site call_site(const struct tfh_accounts *accounts,
				      const struct tfh_site_use *site)
{
	return site_of(accounts, tfh_site_most(site));
}

/* Likewise of waits for the device. */
static struct tfh_call_site wait_site(const struct tfh_accounts *accounts)
{
	const struct tfh_site_use *most = accounts->wait_site, *s;

	for (size_t at = 0; (s = tfh_wait_sites(accounts, &at));)
		if (tfh_site_most(s)->ns > tfh_site_most(most)->ns)
			most = s;
	return call_site(accounts, most);
}

/* The place of most of the pauses on one side, by the calls there. NULL unless pauses elsewhere and
 * all shorter pauses would be less than half of the cause's time even if all of them were the
 * cause's. A place's share of its function's pauses is taken from those with backtraces. */
static const struct tfh_site_use *bound_of(const struct tfh_accounts *accounts,
					   const struct tfh_pause_bound *bound, double cause_s)
{
	const struct tfh_site_use *fn = tfh_site_most(bound->fn), *most = NULL;
	double all = (double)(accounts->pauses_ns + accounts->gaps_ns), known = 0;

	for (int i = 0; i < TFH_ACCOUNT_SITES; i++) {
		const struct tfh_site_use *s = &bound->site[i];
		if (!s->stack || s->fn != fn->fn)
			continue;
		known += (double)s->ns;
		most = most && most->ns >= s->ns ? most : s;
	}
	if (!most || known < TFH_BLOCKING_SHARE * (double)fn->ns)
		return NULL;
	double there = (double)fn->ns * (double)most->ns / known,
	       cause = 1e9 * cause_s * (double)accounts->train_steps;
	return (all - there) * 2 < cause ? most : NULL;
}

static bool has_python(const struct tfh_accounts *accounts, uint32_t stack)
{
	const struct tfh_feed *f = accounts->facts->feed;
	struct tfh_model_line line;

	return f->lines && stack && f->lines(f->arg, accounts->facts->process, stack, &line, 1);
}

/* Where pauses begin and end: lines of Python, or in a program without it calls. */
static void find_pauses(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	enum tfh_part part = tfh_cause_part(r->steady.cause);
	double cause_s = part == TFH_PART_HOST || part == TFH_PART_INPUT
				 ? r->found.cause_s[r->steady.cause]
				 : 0;

	r->found.pause = r->found.before = site_of(accounts, NULL);
	if (has_python(accounts, tfh_site_most(accounts->pause_site)->stack)) {
		r->found.pause = call_site(accounts, accounts->pause_site);
		return;
	}
	r->found.before = site_of(accounts, bound_of(accounts, &accounts->pauses_from, cause_s));
	r->found.pause = site_of(accounts, bound_of(accounts, &accounts->pauses_to, cause_s));
	r->found.around = true;
}

static void code_time(const struct tfh_accounts *accounts, enum tfh_cause cause, double steps,
		      struct tfh_code_time *out)
{
	struct tfh_pause_site site[TFH_CODE_FUNCTIONS];

	out->n = accounts->judged_steps ? tfh_pauses_sites(accounts, cause, site) : 0;
	out->s_per_step = (double)tfh_pauses_ns(accounts, cause) / 1e9 / steps;
	for (uint32_t i = 0; i < out->n; i++) {
		out->function[i].name = tfh_arena_text(accounts->facts->arena, "%s", site[i].name);
		out->function[i].s_per_step = (double)site[i].ns / 1e9 / steps;
	}
}

/* The ops that take most of the computing on a processor. A function of TensorFlow's is the whole
 * step, so it is not named, but the time of the ops around it is a share of all computing. */
static void computed_time(const struct tfh_accounts *accounts, struct tfh_code_time *out)
{
	const struct tfh_facts *facts = accounts->facts;
	double steps = (double)accounts->train_steps;

	out->n = 0;
	out->s_per_step = 0;
	for (size_t i = 0; i < facts->tag.n && steps > 0; i++) {
		double s = (double)accounts->ran_ns[i] / 1e9 / steps;
		uint32_t at = out->n;
		if (s <= 0 || facts->tag.v[i].getnext) /* it waits for input */
			continue;
		out->s_per_step += s;
		if (facts->tag.v[i].function)
			continue;
		while (at > 0 && s > out->function[at - 1].s_per_step)
			at--;
		if (at >= TFH_CODE_FUNCTIONS)
			continue;
		out->n += out->n < TFH_CODE_FUNCTIONS;
		memmove(out->function + at + 1, out->function + at,
			(out->n - at - 1) * sizeof(*out->function));
		out->function[at].s_per_step = s;
		out->function[at].name = tfh_arena_text(
			facts->arena, "%s",
			facts->feed->name(facts->feed->arg, facts->process, TFT_NAME_OP,
					  facts->tag.v[i].name, NULL, NULL));
	}
}

static void find_device(const struct tfh_accounts *accounts, double steps, struct tfh_findings *out)
{
	const struct tfh_device *d = accounts->device;

	out->lead_s = out->before_s = 0;
	if (!d)
		return;
	out->device_times = d->gpu.source != TFH_GPU_NONE;
	out->windows_timed = d->windows_a + d->windows_b;
	out->lead_s = accounts->judged_steps ? (double)d->lead / 1e9 / steps : 0;
	out->before_s = (double)accounts->loops->lead_in / 1e9;
	out->no_device_times = d->gpu.why && *d->gpu.why ? d->gpu.why : NULL;
	out->lost_ops = d->gpu.dropped;
	out->calls_back = accounts->facts->calls_back;
	out->replays = accounts->facts->graph_launches * 2 > accounts->facts->launches;
	out->threads_turn = tfh_threads_in_turn(d);
	out->queued_functions =
		d->called * TFH_VERDICT_QUEUED_PART > accounts->cause_ns[TFH_CAUSE_HOST_CALLBACK];
	if (d->turns * TFH_VERDICT_QUEUED_PART > accounts->cause_ns[TFH_CAUSE_HOST_SYNC])
		out->devices_turn = d->n_device;
	out->copies_held = d->held * TFH_VERDICT_QUEUED_PART >
			   accounts->cause_ns[TFH_CAUSE_TRANSFER_H2D_PINNED];
}

/* "__inference_train_step_1234" is the program's train_step. */
static const char *plain_name(const struct tfh_facts *facts, uint32_t name)
{
	const char *s =
		facts->feed->name(facts->feed->arg, facts->process, TFT_NAME_OP, name, NULL, NULL);
	size_t n;

	if (tfh_starts_with(s, "__") && strchr(s + 2, '_'))
		s = strchr(s + 2, '_') + 1;
	n = strlen(s);
	while (n && ((s[n - 1] >= '0' && s[n - 1] <= '9') || s[n - 1] == '_'))
		n--;
	return tfh_arena_text(facts->arena, "%.*s", (int)n, s);
}

/* Finds the function with the most time. */
static void find_retraced(const struct tfh_facts *facts, struct tfh_retraced *out)
{
	const struct tfh_tag *best = NULL;

	for (size_t i = 0; i < facts->tag.n; i++)
		if (facts->tag.v[i].retraced && (!best || facts->tag.v[i].all_ns > best->all_ns))
			best = &facts->tag.v[i];
	if (!best)
		return;
	out->name = plain_name(facts, best->name);
	out->calls = best->all_count;
	for (size_t i = 0; i < facts->tag.n; i++)
		out->variants += facts->tag.v[i].retraced && facts->tag.v[i].base == best->base;
}

/* Adds up the samples of the driving threads in the judged steps. */
static void sum_samples(const struct tfh_accounts *accounts, struct tfh_seen_sum *out)
{
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;
	double ns = 0;

	while (tfh_next_judged_sample(accounts, &at, &k)) {
		out->samples++;
		ns += k.ns;
		for (int s = 0; s < TFH_SEEN_COUNT; s++)
			out->part[s] += ((s == k.state) - out->part[s]) * k.ns / ns;
	}
}

static double moved(const struct tfh_same_copy *c)
{
	return (double)c->bytes * (double)c->steps;
}

/* Whether most bytes copied in the verdict's direction are copied again in most steps. */
static void find_again(const struct tfh_accounts *accounts, const struct tfh_result *r,
		       struct tfh_copied_again *out)
{
	enum tfh_cause cause = r->steady.cause;
	enum tfh_dir dir = cause == TFH_CAUSE_TRANSFER_D2H ? TFH_DIR_D2H : TFH_DIR_H2D;
	uint64_t least = (uint64_t)(TFH_VERDICT_MOST_SHARE * (double)accounts->train_steps);
	struct tfh_same_copy most = tfh_most_same(accounts, dir, least),
			     up = tfh_most_same(accounts, TFH_DIR_H2D, least);
	double bytes = 0;

	/* A library's buffers are used again, whatever they contain. */
	if (tfh_is_staged(accounts, cause))
		return;
	if (dir == TFH_DIR_H2D && cause != TFH_CAUSE_TRANSFER_H2D_PAGEABLE &&
	    cause != TFH_CAUSE_TRANSFER_H2D_PINNED)
		return;
	for (size_t i = 0; i < accounts->copy.n; i++)
		bytes += accounts->copy.v[i].dir == dir ? (double)accounts->copy.v[i].bytes : 0;
	/* What a library fetches may come from new device memory each time,
	 * but goes to the same host memory. */
	if (2 * up.back > up.steps && moved(&up) > TFH_VERDICT_MOST_SHARE * bytes)
		most = up;
	if (moved(&most) <= TFH_VERDICT_MOST_SHARE * bytes)
		return;
	*out = (struct tfh_copied_again){dir, (double)most.bytes, most.steps,
					 up.host == most.host ? up.back : 0};
}

static void count_windows(const struct tfh_accounts *accounts, struct tfh_findings *out)
{
	TFH_EACH (i, accounts->loops->window.n) {
		const struct tfh_window *w = &accounts->loops->window.v[i];
		out->windows += w->steps > 0;
		if (accounts->use[i].segment == TFH_SEGMENT_TRAIN && w->hole)
			out->holed_steps += w->steps;
	}
}

void tfh_find_rest(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_facts *facts = accounts->facts;
	struct tfh_findings *out = &r->found;
	double steps = accounts->judged_steps ? (double)accounts->judged_steps : NAN;

	out->cpu_only = facts->cpu_only && !(accounts->device && accounts->device->ops);
	out->torch = tfh_uses_torch(facts) || facts->feed->kineto;
	out->graphs = tfh_executes_graphs(facts);
	out->imported = facts->feed->imported;
	out->input_visible = facts->consumers;
	out->mixed_copies = (double)accounts->mixed_bytes >
			    TFH_VERDICT_MIXED_SHARE * (double)accounts->train_ns;
	out->input_cause = accounts->input_cause;
	out->asker_works = accounts->asker_works;
	out->restarts = facts->restarts;
	out->made_anew = facts->made_anew;
	out->uncached_s = tfh_uncached_s(accounts);
	out->supposed = tfh_is_supposed(accounts, r->steady.cause);
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		out->cause_s[c] = (double)accounts->cause_ns[c] / 1e9 / steps;
	out->graph_ran = accounts->compute_ran;
	out->code_ran =
		facts->cpu_wall > 0 ? (double)facts->cpu_running / (double)facts->cpu_wall : NAN;
	sum_samples(accounts, &out->seen);
	out->kernel_share = facts->much_kernel ? facts->kernel_share : 0;
	find_retraced(facts, &out->retraced);
	out->wait = wait_site(accounts);
	out->alloc = call_site(accounts, accounts->alloc_site);
	out->load = call_site(accounts, accounts->load_site);
	find_pauses(accounts, r);
	code_time(accounts, TFH_CAUSE_HOST_PYTHON, steps, &out->python);
	code_time(accounts, TFH_CAUSE_HOST_UNKNOWN, steps, &out->other);
	if (r->steady.cause == TFH_CAUSE_COMPUTE_CPU)
		computed_time(accounts, &out->verdict);
	else if (r->steady.cause != TFH_CAUSE_NONE)
		code_time(accounts, r->steady.cause, steps, &out->verdict);
	out->functions = tfh_pauses_know(accounts->pauses);
	count_windows(accounts, out);
	out->alike_loops = accounts->loops->alike_loops;
	out->no_python = facts->process < facts->feed->n_processes
				 ? facts->feed->processes[facts->process].no_python
				 : NULL;
	out->others_compute_s = NAN;
	find_again(accounts, r, &out->again);
	find_device(accounts, steps, out);
	find_stalls(r);
	find_faults(accounts, r);
}
