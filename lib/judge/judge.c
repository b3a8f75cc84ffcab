/* The order of the phases: choice of the process, survey, steps, attribution, verdict,
 * explanation. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/generations.h"
#include "judge/result_make.h"
#include "judge/verdict/verdict.h"

/* The process with the most work that can be judged. If no call was recorded but the program marked
 * its steps, these and the samples between them are judged. */
static uint32_t critical(const struct tfh_feed *f)
{
	uint32_t best = UINT32_MAX, marked = UINT32_MAX;

	for (uint32_t i = 0; i < f->n_processes; i++) {
		const struct tfh_process *p = &f->processes[i];
		if (tfh_generations_other(f->generations, i))
			continue;
		if ((p->has_gpu || p->has_tf) &&
		    (best == UINT32_MAX || p->events > f->processes[best].events))
			best = i;
		if (p->has_marks &&
		    (marked == UINT32_MAX || p->events > f->processes[marked].events))
			marked = i;
	}
	return best == UINT32_MAX ? marked : best;
}

/* Fills the eight stages of training, as far as host times show them: their exposed time. */
static void fill_stages(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	static const struct {
		enum tfh_cause cause;
		enum tfh_stage stage;
	} map[] = {
		{TFH_CAUSE_INPUT_READ, TFH_STAGE_RAW_INPUT},
		{TFH_CAUSE_INPUT_GENERATOR, TFH_STAGE_RAW_INPUT},
		{TFH_CAUSE_INPUT_REMOTE, TFH_STAGE_RAW_INPUT},
		{TFH_CAUSE_INPUT_UNKNOWN, TFH_STAGE_RAW_INPUT},
		{TFH_CAUSE_INPUT_MAP, TFH_STAGE_PREPROCESS},
		{TFH_CAUSE_INPUT_DECODE, TFH_STAGE_PREPROCESS},
		{TFH_CAUSE_INPUT_BATCH, TFH_STAGE_PREPROCESS},
		{TFH_CAUSE_INPUT_SHUFFLE, TFH_STAGE_PREPROCESS},
		{TFH_CAUSE_INPUT_CACHE, TFH_STAGE_PREPROCESS},
		{TFH_CAUSE_TRANSFER_H2D_PAGEABLE, TFH_STAGE_H2D},
		{TFH_CAUSE_TRANSFER_H2D_PINNED, TFH_STAGE_H2D},
		{TFH_CAUSE_TRANSFER_D2H, TFH_STAGE_D2H},
		{TFH_CAUSE_HOST_CALLBACK, TFH_STAGE_POSTPROCESS},
		{TFH_CAUSE_HOST_LOGGING, TFH_STAGE_POSTPROCESS},
		{TFH_CAUSE_HOST_CHECKPOINT, TFH_STAGE_STORAGE},
	};
	double steps = accounts->judged_steps ? (double)accounts->judged_steps : NAN;

	for (int s = 0; s < TFH_STAGE_COUNT; s++)
		r->stages[s].hidden_s = NAN;
	for (size_t i = 0; i < sizeof(map) / sizeof(*map); i++)
		r->stages[map[i].stage].exposed_s +=
			(double)accounts->cause_ns[map[i].cause] / 1e9 / steps;
	r->stages[TFH_STAGE_COMPUTE].exposed_s = (double)accounts->compute_ns / 1e9 / steps;
	r->stages[TFH_STAGE_COMMUNICATION].exposed_s = NAN;
}

static const char *gpu_times(const struct tfh_accounts *accounts)
{
	if (!accounts->device || accounts->device->gpu.source == TFH_GPU_NONE)
		return "none";
	return accounts->device->gpu.source == TFH_GPU_CUPTI ? "cupti" : "imported";
}

static void fill_quality(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	double waited = tfh_steps_wait(accounts);

	r->quality.events = accounts->facts->events;
	r->quality.gpu_times = gpu_times(accounts);
	if (accounts->device && accounts->device->gpu.graphs && *accounts->device->gpu.graphs)
		r->quality.graphs = accounts->device->gpu.graphs;
	r->quality.unattributed_share = r->breakdown[TFH_PART_UNATTRIBUTED].share;
	r->quality.overhead_share =
		accounts->facts->last > accounts->facts->first
			? (double)accounts->facts->events * TFH_HOOK_NS /
				  (double)tfh_recorded_ns(accounts->facts, accounts->facts->first,
							  accounts->facts->last)
			: NAN;
	r->quality.clock_residual_s = NAN;
	/* From samples of the threads; NAN if there are none, or hardly any. */
	r->quality.run_delay_share = waited > 0 ? waited : NAN;
	r->quality.crowded = waited > TFH_CROWDED_SHARE;
}

/* What a prediction would save in that many steps of `mean` seconds. */
static void save(struct tfh_whatif *w, double mean, uint64_t steps)
{
	enum tfh_gain gain = tfh_gain_of(w);
	double without = gain == TFH_GAIN_PREDICTED ? w->step_s
			 : gain == TFH_GAIN_BOUND   ? mean / w->ceiling_speedup
						    : w->about_s;

	w->saved_s = isnan(without) ? NAN : fmax((mean - without) * (double)steps, 0);
}

/* Fills in what each prediction would save in the run if all its steps gained as much as the judged
 * ones. If every step compiles, the fix leaves the compiling of the first ones. */
static void fill_saved(struct tfh_result *r)
{
	uint64_t steps = r->steps.total;
	double mean = 0;

	if (r->steady.cause == TFH_CAUSE_HOST_COMPILE)
		steps -= r->steps.warmup < steps ? r->steps.warmup : steps;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		mean += r->breakdown[p].s_per_step;
	for (uint32_t i = 0; i < r->n_whatif; i++)
		save(&r->whatif[i], mean, steps);
	for (uint32_t i = 0; i < r->n_place; i++)
		save(&r->place[i].gain, mean, steps);
	save(&r->uncrowded, mean, steps);
}

/* Class, cause, and the tables behind them. */
static int decide(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	int rc = tfh_classify(accounts, r);

	if (!rc)
		rc = tfh_fill_tables(accounts, r);
	if (!rc && tfh_tier(accounts) != 'C')
		rc = tfh_device_tables(accounts->device, r);
	return rc ? rc : tfh_fill_input(accounts, r);
}

/* What fixing each cause would gain; the class may give way to one whose removal gains more. */
static int predict(const struct tfh_accounts *accounts, struct tfh_samples *samples,
		   struct tfh_result *r)
{
	int rc = 0;

	tfh_find_supply(accounts, r);
	tfh_whatif(accounts, r);
	for (int k = 0; k < TFH_REMOVE_COUNT; k++)
		r->need_s[k] = NAN;
	for (int k = 0; k < TFH_XPROF_COUNT; k++)
		r->xprof[k] = NAN;
	if (tfh_tier(accounts) != 'C') {
		tfh_device_whatif(accounts->device, samples, r);
		tfh_xprof_fill(samples, r->xprof);
		rc = tfh_prefer_gain(accounts, r);
		tfh_find_uneven_devices(r);
	}
	if (rc)
		return rc;
	tfh_place_gains(accounts, samples, r);
	tfh_forget_gains(accounts, r);
	return 0;
}

static void fill_memory(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	r->heap = accounts->facts->heap;
	if (!accounts->device)
		return;
	/* Without device times the number of devices is unknown: assume one if its memory is
	 * enough. */
	uint64_t memory = accounts->device->gpu.memory;
	uint32_t one = !accounts->device->n_device && r->heap.peak <= memory;
	r->heap.capacity = memory * (accounts->device->n_device + one);
}

/* How the run went: its loops, changes over time, and what recurs. */
static int describe_run(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	double last_gap_s = tfh_last_gap_s(accounts);

	tfh_find_recurring(accounts, last_gap_s, r);
	r->tree = accounts->loops->tree;
	r->n_tree = accounts->loops->n_tree;
	int rc = tfh_find_changes(accounts, r);
	if (rc)
		return rc;
	r->jitter_s = accounts->judged_steps
			      ? (double)accounts->cause_ns[TFH_CAUSE_COMMUNICATION_JITTER] / 1e9 /
					(double)accounts->judged_steps
			      : 0;
	r->exchanges = accounts->facts->exchanges;
	fill_memory(accounts, r);
	tfh_fill_last(accounts, r);
	tfh_find_loop_causes(accounts, r);
	rc = tfh_settle_tree(accounts, last_gap_s, r);
	if (rc)
		return rc;
	tfh_fill_segments(accounts, last_gap_s, r);
	fill_stages(accounts, r);
	if (tfh_tier(accounts) != 'C')
		tfh_device_stages(accounts->device, r);
	tfh_find_slow_steps(accounts, r);
	tfh_find_patterns(accounts, r);
	tfh_find_rest(accounts, r);
	return 0;
}

/* The lines of the program that are responsible, and what follows from them. */
static int find_places(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_seen_line all_steps = {0};
	int rc = tfh_find_called_work(accounts, r);

	if (!rc)
		rc = tfh_find_lines(accounts, r, &all_steps);
	if (!rc)
		rc = tfh_find_call_lines(accounts, r);
	if (!rc)
		rc = tfh_find_computed(accounts, r);
	if (!rc && accounts->facts->restarts)
		rc = tfh_find_asked_line(accounts, r);
	tfh_find_late_line(accounts, r);
	tfh_fix_gains(accounts, r);
	fill_saved(r);
	if (!rc)
		rc = tfh_find_workers(accounts, r);
	if (!rc)
		rc = tfh_find_new_pools(accounts, r);
	tfh_find_lock_holder(accounts, r);
	tfh_find_stage_lines(accounts, r);
	if (!rc)
		rc = tfh_find_asked_line(accounts, r);
	if (!r->found.line.file && all_steps.file)
		r->found.line = all_steps;
	if (!rc)
		rc = tfh_find_callers(accounts, r);
	if (!rc)
		r->found.serves = tfh_find_serving(accounts, r);
	return rc;
}

/* Fills in the result after the passes. */
static int conclude(const struct tfh_accounts *accounts, struct tfh_samples *samples,
		    struct tfh_result *r)
{
	int rc = decide(accounts, r);

	if (!rc)
		rc = predict(accounts, samples, r);
	if (!rc)
		rc = describe_run(accounts, r);
	if (!rc)
		rc = find_places(accounts, r);
	if (!rc)
		rc = tfh_find_start(accounts, r);
	if (!rc)
		rc = tfh_find_compiling(accounts, r);
	if (rc)
		return rc;
	tfh_fill_startup(accounts, r);
	rc = tfh_fill_discarded(accounts, r);
	if (!rc)
		fill_quality(accounts, r);
	return rc;
}

/* Computes accounts, predictions and verdict from the findings. */
static int weigh(struct tfh_accounts *accounts, struct tfh_result *r, struct tfh_err *err)
{
	struct tfh_samples samples = {0};
	const struct tfh_sampler sampler = tfh_sampler_of(&samples);
	int rc = tfh_find_places(accounts, &samples);

	if (rc)
		tfh_err_set(err, rc, "out of memory");
	else
		rc = tfh_find_accounts(accounts, &sampler, err);
	if (!rc)
		tfh_find_through(accounts);
	if (!rc && (rc = conclude(accounts, &samples, r)))
		tfh_err_set(err, rc, "out of memory");
	/* Long arrays pass to the result. */
	if (r->step && r->step == accounts->step.v)
		accounts->step.v = NULL;
	if (r->step_cause && r->step_cause == accounts->step_cause)
		accounts->step_cause = NULL;
	tfh_samples_free(&samples);
	tfh_accounts_free(accounts);
	return rc;
}

/* Runs the phases in order: each uses the results of the earlier ones unchanged. */
static int run_phases(struct tfh_facts *facts, const struct tfh_matches *matches,
		      struct tfh_result *r, struct tfh_err *err)
{
	struct tfh_loops loops;
	struct tfh_cover *cover = NULL;
	struct tfh_exposed exposed = {0};
	int rc = tfh_find_loops(facts, &loops, err);

	if (!rc)
		rc = tfh_cover_find(facts, &cover, err);
	if (!rc && (rc = tfh_exposed_find(facts, matches, &exposed)))
		tfh_err_set(err, rc, "out of memory");
	if (!rc) {
		struct tfh_accounts accounts = {.facts = facts,
						.loops = &loops,
						.cover = cover,
						.matches = matches,
						.exposed = &exposed};
		rc = weigh(&accounts, r, err);
	}
	tfh_exposed_free(&exposed);
	tfh_cover_free(cover);
	tfh_loops_free(&loops);
	return rc;
}

/* Judges one process. */
static int judge(const struct tfh_feed *feed, uint32_t process, const struct tfh_matches *matches,
		 struct tfh_result **out, struct tfh_err *err)
{
	struct tfh_arena *arena;
	struct tfh_result *r = tfh_result_new(process, &arena);
	struct tfh_facts *facts = calloc(1, sizeof(*facts));
	int rc = r && facts ? 0 : tfh_err_set(err, -ENOMEM, "out of memory");

	if (!rc) {
		rc = tfh_find_facts(feed, process, arena, facts, err);
		if (!rc)
			rc = run_phases(facts, matches, r, err);
		tfh_facts_free(facts);
	}
	free(facts);
	if (rc)
		tfh_result_free(r);
	*out = rc ? NULL : r;
	return rc;
}

/* Among processes without a rank, puts the one first that the current first one waits for in their
 * exchanges. */
static void put_late_first(const struct tfh_matches *m, uint32_t *process, uint32_t n)
{
	double most = TFH_VERDICT_LATER_TIMES * tfh_matches_late(m, process[0]);
	uint32_t first = process[0];

	for (uint32_t i = 1; i < n; i++)
		if (tfh_matches_held(m, process[i]) > most) {
			most = tfh_matches_held(m, process[i]);
			process[0] = process[i];
			process[i] = first;
			first = process[0];
		}
}

static int by_birth(const void *a, const void *b, void *arg)
{
	const struct tfh_process *p = arg, *x = &p[*(const uint32_t *)a],
				 *y = &p[*(const uint32_t *)b];

	return x->born_ns != y->born_ns ? (x->born_ns < y->born_ns ? -1 : 1)
	       : x->pid != y->pid	? (x->pid < y->pid ? -1 : 1)
					: 0;
}

/* Whether one process started the other, or a third one started both. */
static bool are_related(const struct tfh_process *a, const struct tfh_process *b)
{
	return !strcmp(a->host, b->host) && a->exe && b->exe && !strcmp(a->exe, b->exe) &&
	       (a->ppid == b->ppid || a->ppid == b->pid || b->ppid == a->pid);
}

/* Puts those of n processes without a rank first, in the order of their start, that are ranks of
 * one job: they do nothing together but exchanging. Returns their number; 0: there are none.
 * Programs mostly start rank 0 first, and give the number to a function, where only PyTorch's
 * libraries learn it (torch.multiprocessing.spawn). */
static uint32_t find_unnumbered(const struct tfh_feed *f, const struct tfh_matches *m,
				uint32_t *process, uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t p = process[i];
		if (!tfh_matches_all(m, p) ||
		    (found && !are_related(&f->processes[process[0]], &f->processes[p])))
			continue;
		process[i] = process[found];
		process[found++] = p;
	}
	if (found < 2)
		return 0;
	tfh_sort(process, found, sizeof(*process), by_birth, (void *)f->processes);
	return found;
}

/* Judges n processes, and matches their exchanges with those of all; if the others are ranks like
 * them, all. */
static int judge_ranks(const struct tfh_feed *f, uint32_t *process, uint32_t n, uint32_t all,
		       struct tfh_result **out, struct tfh_err *err)
{
	struct tfh_matches *matches = tfh_matches_new();
	struct tfh_result **r = calloc(all, sizeof(*r));
	struct tfh_feed each = *f;
	int rc = matches && r ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < all && !rc; i++)
		rc = tfh_matches_add(matches, f, process[i], n == 1, err);
	if (!rc)
		rc = tfh_matches_find(matches);
	uint32_t unnumbered = !rc && all > n ? find_unnumbered(f, matches, process, all) : 0;
	if (unnumbered) {
		n = unnumbered;
		each.chain = f->likely ? NULL : f->chain; /* likely steps are those of one */
		each.likely = NULL;
		f = &each;
	} else if (!rc && all > n) {
		put_late_first(matches, process, all);
	}
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = judge(f, process[i], matches, &r[i], err);
	if (!rc)
		rc = tfh_join_ranks(f, matches, r, n, out);
	if (rc == -ENOMEM)
		tfh_err_set(err, rc, "out of memory");
	for (uint32_t i = 0; i < n && !rc && f->each; i++)
		rc = f->each(f->each_arg, r[i], err);
	for (uint32_t i = 0; r && i < n; i++)
		if (r[i] != *out || rc)
			tfh_result_free(r[i]);
	*out = rc ? NULL : *out;
	free(r);
	tfh_matches_free(matches);
	return rc;
}

/* Whether a program was started again for the same work with other data or another seed. */
static bool are_alike(const struct tfh_process *a, const struct tfh_process *b)
{
	double more = fabs((double)a->events - (double)b->events);

	return a->exe && b->exe && !strcmp(a->exe, b->exe) && a->has_gpu == b->has_gpu &&
	       more <= TFH_BLOCKING_SHARE * (double)b->events;
}

/* Counts further processes that do about as much work but have no rank. They may be ranks of one
 * job that wait for each other, and only one of them is judged. */
static void count_others(const struct tfh_feed *f, struct tfh_result *r)
{
	const struct tfh_process *judged = &f->processes[r->process];
	struct tfh_findings *out = &r->found;
	int64_t begin = judged->start_ns, end = judged->last_ns;

	/* Only the time of the steps counts: before or after them, the process may wait for the
	 * other one. */
	if (r->n_step) {
		const struct tfh_step *last = &r->step[r->n_step - 1];
		begin = (int64_t)(r->step[0].start_s * 1e9);
		end = (int64_t)((last->start_s + last->dur_s) * 1e9);
	}

	out->pid = judged->pid;
	for (uint32_t i = 0; i < f->n_processes; i++) {
		const struct tfh_process *p = &f->processes[i];
		if (i == r->process || p->events * TFH_VERDICT_UNJUDGED_PART < judged->events ||
		    (!p->has_gpu && (judged->has_gpu || !p->has_tf)))
			continue;
		out->unjudged++;
		bool in_turn =
			p->last_ns > p->start_ns && (p->start_ns > end || p->last_ns < begin);
		out->in_turn += in_turn;
		out->alike += in_turn && are_alike(p, judged);
	}
}

/* The processes without a rank that may exchange data with the first one on the CPU;
 * returns their number with it. */
static uint32_t find_peers(const struct tfh_feed *f, uint32_t process[TFH_VERDICT_RANKS])
{
	const struct tfh_process *first = &f->processes[process[0]];
	uint32_t n = 1;

	for (uint32_t i = 0; i < f->n_processes && n < TFH_VERDICT_RANKS; i++) {
		const struct tfh_process *p = &f->processes[i];
		if (p != first && first->torch && p->torch && p->has_tf && !first->has_gpu &&
		    !p->has_gpu)
			process[n++] = i;
	}
	return n;
}

/* Hands on the ranks of the generations that the verdict is not about. */
static int judge_generations(const struct tfh_feed *f, struct tfh_err *err)
{
	struct tfh_generations g = *f->generations;
	struct tfh_feed other = *f;
	int rc = 0;

	other.generations = &g;
	for (g.judged = 0; g.judged < g.n && !rc; g.judged++) {
		uint32_t process[TFH_VERDICT_RANKS], n = tfh_ranks_of(&other, process);
		struct tfh_result *r = NULL;
		if (g.judged == f->generations->judged)
			continue;
		rc = judge_ranks(&other, process, n, n, &r, err);
		tfh_result_free(r);
	}
	return rc;
}

static int analyze_feed(const struct tfh_feed *feed, struct tfh_result **out, struct tfh_err *err)
{
	uint32_t process[TFH_VERDICT_RANKS], n = tfh_ranks_of(feed, process), top = critical(feed);

	*out = NULL;
	uint64_t cut = 0;
	for (uint32_t i = 0; i < feed->n_processes; i++)
		cut += feed->processes[i].tail_bytes + feed->processes[i].bad_chunks;
	bool sampled = top == UINT32_MAX && !cut;
	if (sampled)
		top = tfh_sampled_process(feed);
	if (top == UINT32_MAX && cut)
		return tfh_err_set(
			err, -ENODATA,
			"nothing to analyse: what is left of the recording has no call of the GPU "
			"driver, TensorFlow or PyTorch; its files are damaged or truncated; "
			"`tfhook verify` says where");
	if (top == UINT32_MAX)
		return tfh_err_set(
			err, -ENODATA,
			"nothing to analyse: no call of the GPU driver, TensorFlow or PyTorch and "
			"no mark of a step was recorded in %u process%s; `tfhook doctor` says what "
			"can be recorded",
			feed->n_processes, feed->n_processes == 1 ? "" : "es");
	if (n > 1)
		return judge_ranks(feed, process, n, n, out, err);
	process[0] = top;
	int rc = judge_ranks(feed, process, 1, n ? 1 : find_peers(feed, process), out, err);
	if (!rc && sampled)
		rc = tfh_find_sampled(feed, *out);
	else if (!rc && !n && !(*out)->n_rank)
		count_others(feed, *out);
	return rc;
}

int tfh_analyze_feed(const struct tfh_feed *feed, struct tfh_result **out, struct tfh_err *err)
{
	int rc = analyze_feed(feed, out, err);

	if (rc || !feed->each || !feed->every_generation || !feed->generations)
		return rc;
	rc = judge_generations(feed, err);
	if (rc) {
		tfh_result_free(*out);
		*out = NULL;
	}
	return rc;
}
