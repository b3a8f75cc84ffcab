/* Notes below a verdict: they are not part of it, but worth knowing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/priced.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

void tfh_note_supply(struct tfh_wording *w)
{
	const struct tfh_supply *s = &w->r->supply;
	const char *why = "the pipeline only works while a batch is requested";
	/* Now a step takes a batch and the rest, in all `headroom` times a batch. With batches made
	 * ahead, it would take the longer of the two. */
	double ahead = s->headroom / fmax(1, s->headroom - 1);
	bool on_request =
		w->r->steady.cls == TFH_CLASS_INPUT_BOUND && s->basis == TFH_SUPPLY_ON_REQUEST;

	if (!((on_request ? ahead : s->headroom) > TFH_REPORT_HEADROOM) ||
	    s->headroom > TFH_REPORT_HEADROOM_FAR)
		return;
	/* The advice has a bound for such workers that knows how many processors there are. */
	if (on_request && w->r->found.workers.more.to)
		return;
	if (on_request) {
		tfh_remark(w, tfh_phrase(w,
					 "making a batch takes %s: one thread that reads ahead "
					 "would make steps %.3g times as fast",
					 tfh_phrase_time(w, s->period_s), ahead));
		return;
	}
	if (s->basis == TFH_SUPPLY_WAITED)
		why = tfh_phrase(w, "from %" PRIu64 " batches in a row that were waited for",
				 s->seen);
	else if (s->basis == TFH_SUPPLY_BURSTS)
		why = tfh_phrase(w,
				 "from %" PRIu64 " bursts, each from one empty buffer to the next",
				 s->seen);
	tfh_remark(w, tfh_phrase(w,
				 "the input pipeline could feed steps %.3g times as fast: making a "
				 "batch takes %s, a usual step %s (%s)",
				 s->headroom, tfh_phrase_time(w, s->period_s),
				 tfh_phrase_time(w, s->headroom * s->period_s), why));
}

static const char *percent(struct tfh_wording *w, double share)
{
	return tfh_phrase(w, "%.0f %%", share * 100);
}

const char *tfh_no_more_threads(const struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;

	for (uint32_t i = 0; i < w->n_advice; i++)
		if (strstr(w->advice[i].todo, "num_parallel_calls"))
			return "";
	if (r->steady.cls == TFH_CLASS_INPUT_BOUND &&
	    (!r->found.workers.more.to || r->found.workers.more.from))
		return ": more threads or loader workers will not help";
	/* A program that runs one thread at a time has no number of threads to change. */
	if (r->found.contended.own > 0 && r->found.contended.own <= 1)
		return "";
	return r->steady.cls == TFH_CLASS_HOST_BOUND || r->steady.cause == TFH_CAUSE_COMPUTE_CPU
		       ? ": more threads will not help"
		       : "";
}

void tfh_note_machine(struct tfh_wording *w)
{
	const struct tfh_machine_findings *m = &w->r->found.machine;

	/* Not if it was already said who had the CPUs while the steps waited for one. */
	bool told = w->r->found.contended.share >= TFH_CROWDED_SHARE &&
		    !isnan(w->r->found.contended.busy);
	if (m->busy > 0 && !told)
		tfh_remark(w,
			   tfh_phrase(w, "the machine's CPUs were busy, %.3g of %.0f on average%s",
				      m->busy, m->processors, tfh_no_more_threads(w)));
	if (m->throttled > 0)
		tfh_remark(w, tfh_phrase(w,
					 "the container had used up its limit of %.3g CPUs "
					 "for %s of the time (added up over its CPUs): raise "
					 "the limit, or run fewer threads",
					 m->limit, percent(w, m->throttled)));
	if (m->steal > 0)
		tfh_remark(w, tfh_phrase(w,
					 "the hypervisor gave %.3g of this machine's %.0f CPUs "
					 "to others",
					 m->steal, m->processors));
	if (m->io > 0)
		tfh_remark(w,
			   tfh_phrase(w,
				      "for %s of the time every task that could run waited for a "
				      "disk: `tfhook report --machine` shows its reads and writes",
				      percent(w, m->io)));
	if (m->memory > 0 || m->swap > 0)
		tfh_remark(w, tfh_phrase(w,
					 "memory was short: for %s of the time a task waited for "
					 "it; %.3g MB/s went to or from swap",
					 percent(w, m->memory), m->swap / 1e6));
}

/* Copies by threads on another memory node than the device's pass through the link between the
 * processors, and so does memory that these threads allocate. */
static void note_far(struct tfh_wording *w)
{
	const struct tfh_machine_findings *m = &w->r->found.machine;

	if (!(m->far > 0) || m->device_node < 0 ||
	    w->r->breakdown[TFH_PART_TRANSFER].share < TFH_REPORT_FAR_COPIES)
		return;
	tfh_remark(w,
		   tfh_phrase(w,
			      "the threads that use the device spent %s of their CPU time on "
			      "other memory nodes than its node %d, so that copies also cross "
			      "the link between the processors: numactl --cpunodebind=%d "
			      "--membind=%d binds a process to it",
			      percent(w, m->far), m->device_node, m->device_node, m->device_node));
}

/* Only if a faster clock would shorten the step. */
static void note_lowered(struct tfh_wording *w, const struct tfh_gpu_findings *g)
{
	static const char *const why[][2] = {
		{"for power",
		 "raise its power limit, or let it do less work of low precision at once"},
		{"for heat", "check its cooling"},
		{"by a setting", "nvidia-smi -rgc and -rac reset it"},
		{"by the board", "nvidia-smi -q -d PERFORMANCE shows why"}};

	if (w->r->steady.cls != TFH_CLASS_COMPUTE_BOUND)
		return;
	for (int i = 0; i < 4; i++) {
		const char *drawn = "";
		if (!(g->lowered[i] > 0))
			continue;
		if (!i && g->power > 0 && g->limit > 0)
			drawn = tfh_phrase(w, " (up to %.0f of %.0f W)", g->power, g->limit);
		tfh_remark(
			w,
			tfh_phrase(
				w,
				"the clock of GPU %d was lowered %s in %s of the readings, one a "
				"second%s: %s",
				g->lowered_device, why[i][0], percent(w, g->lowered[i]), drawn,
				why[i][1]));
	}
}

static const char *meaning_of(double xid)
{
	static const struct {
		int first, last;
		const char *sentence;
	} known[] = {
#define XID(number, last_number, sentence) {number, last_number, sentence},
#include "report/words/xids.def"
#undef XID
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (xid >= known[i].first && xid <= known[i].last)
			return known[i].sentence;
	return "NVIDIA's catalog of Xid errors explains it";
}

static void note_errors(struct tfh_wording *w, const struct tfh_gpu_findings *g)
{
	if (g->xids > 0)
		tfh_remark(w, tfh_phrase(w, "the driver reported %.0f %s on GPU %d, %sXid %.0f: %s",
					 g->xids, g->xids > 1 ? "errors" : "error", g->xid_device,
					 g->xids > 1 ? "the last one " : "", g->last_xid,
					 meaning_of(g->last_xid)));
	if (g->ecc > 0)
		tfh_remark(w, tfh_phrase(w,
					 "the memory of GPU %d had %.0f errors that ECC could not "
					 "correct: do not trust its results",
					 g->ecc_device, g->ecc));
}

void tfh_note_devices(struct tfh_wording *w)
{
	note_far(w);
	note_lowered(w, &w->r->found.machine.gpu);
	note_errors(w, &w->r->found.machine.gpu);
}

/* Whether a setting of the number of threads cannot matter: other programs have the CPUs that they
 * would need, or the program only waits. */
static bool lacks_no_threads(const struct tfh_result *r, const struct tfh_priced *row)
{
	return strstr(row->variable, "_NUM_THREADS") &&
	       (r->found.machine.busy > 0 || r->steady.cause == TFH_CAUSE_HOST_WAIT ||
		r->steady.cause == TFH_CAUSE_HOST_SLEEP);
}

/* Settings that may be related to the verdict. */
void tfh_note_priced(struct tfh_wording *w)
{
	uint64_t set = w->r->found.priced;

	for (uint32_t i = 0; i < tfh_priced_count && w->r->steady.cls != TFH_CLASS_NONE; i++) {
		const struct tfh_priced *row = &tfh_priced[i];
		if (set >> i & 1 && row->classes >> w->r->steady.cls & 1 &&
		    !lacks_no_threads(w->r, row))
			tfh_remark(w, tfh_phrase(w, row->part ? "%s with %s: %s" : "%s=%s: %s",
						 row->variable, row->value, row->sentence));
	}
}

/* Setting any of these variables disables glibc's dynamic mmap threshold (mallopt(3)), so mmap has
 * to be disabled, too. */
void tfh_note_faults(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;

	if (!(r->found.fault.pages > 0))
		return;
	double step_s = r->steps.total_s / (double)r->steps.count;
	const char *text = tfh_phrase(
		w,
		"%.0f page faults cost a step of %s at least %s of CPU time: keep freed memory in "
		"the process (MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=4000000000, which takes more "
		"memory), or use another allocator",
		r->found.fault.pages, tfh_phrase_time(w, step_s),
		tfh_phrase_time(w, r->found.fault.cost_s));
	if (r->found.fault.cost_s >= TFH_REPORT_FAULT_SHARE * step_s)
		tfh_remark_first(w, text);
	else
		tfh_remark(w, text);
}

static void stalls(struct tfh_wording *w)
{
	const struct tfh_findings *found = &w->r->found;
	uint32_t n = found->stall.n;

	if (!n)
		return;
	const char *text = tfh_phrase(
		w,
		"%u step%s took %s%s, over %d times the usual (%s): %s, or work that no other step "
		"does; not counted above",
		n, n == 1 ? "" : "s", tfh_phrase_time(w, found->stall.total_s),
		n == 1 ? "" : " in all", TFH_ACCOUNT_STALL_TIMES, tfh_part_name(found->stall.most),
		tfh_others_crowd(w->r) ? "other programs had the CPUs" : "a pause");
	/* The first screen's table has them. */
	if (w->r->n_tree && found->stall.total_s >= TFH_REPORT_OTHER_SHARE * w->r->tree[0].wall_s)
		tfh_remark_first(w, text);
	else
		tfh_remark(w, text);
}

/* Whether the steps are known only by an optimizer's updates, and most of the time is what precedes
 * every n-th of them. For an agent that acts and then learns, the user counts something else as
 * steps. */
static bool are_updates(const struct tfh_result *r)
{
	return !r->steps.rounds && r->steps.clock_name &&
	       !strcmp(r->steps.clock_name, "Optimizer.step") &&
	       r->found.slow.share > TFH_VERDICT_MOST_SHARE;
}

static void slow_in_turn(struct tfh_wording *w)
{
	const struct tfh_findings *found = &w->r->found;

	if (found->slow.every > 0 && found->slow.share > TFH_REPORT_SLOW_SHARE)
		tfh_remark(w, tfh_phrase(w,
					 "%severy %s step takes %s longer than usual (%s), "
					 "%.0f %% of training time",
					 w->r->steps.rounds ? "once a round, "
					 : are_updates(w->r)
						 ? "steps are updates by the optimizer; with what "
						   "comes before it (acting, evaluation), "
						 : "",
					 tfh_phrase_ordinal(w, found->slow.every),
					 tfh_phrase_time(w, found->slow.longer_s),
					 tfh_part_name(found->slow.part), 100 * found->slow.share));
	else if (found->slow.n && !(found->slow.every > 0))
		tfh_remark(w,
			   tfh_phrase(w,
				      "%llu steps take %s longer than the others (%s), %.0f %% of "
				      "training time",
				      (unsigned long long)found->slow.n,
				      tfh_phrase_time(w, found->slow.longer_s),
				      tfh_part_name(found->slow.part), 100 * found->slow.share));
}

/* Whether an optimizer's kernel is launched in some steps only. Equal numbers of launches alone may
 * as well be a picture or a log in every n-th step. */
static bool accumulates(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_kernels; i++) {
		double calls = r->kernels[i].calls_per_step;
		if (tfh_kernel_family(r->kernels[i].name) == TFH_FAMILY_OPTIMIZER && calls > 0 &&
		    fabs(calls - round(calls)) > TFH_BLOCKING_SHARE)
			return true;
	}
	return false;
}

static void patterns(struct tfh_wording *w)
{
	const struct tfh_pattern *p = &w->r->pattern;

	if (p->per_update > 1)
		tfh_remark(
			w,
			tfh_phrase(
				w,
				accumulates(w->r)
					? "the optimizer runs once in %u steps: gradients of "
					  "several batches are accumulated"
					: "the number of launches repeats every %u steps: one of "
					  "them does more, or kinds of steps alternate",
				p->per_update));
	else if (p->n_kind > 1)
		tfh_remark(w, tfh_phrase(w,
					 "steps are of %u kinds: %" PRIu64
					 " with %u launch%s (%.2f ms), "
					 "%" PRIu64 " with %u (%.2f ms)%s",
					 p->n_kind, p->kind[0].count, p->kind[0].launches,
					 p->kind[0].launches == 1 ? "" : "es",
					 1e3 * p->kind[0].median_s, p->kind[1].count,
					 p->kind[1].launches, 1e3 * p->kind[1].median_s,
					 p->n_kind > 2 ? ", ..." : ""));
	if (p->inner > 1)
		tfh_remark(w, tfh_phrase(w,
					 "the launches of a step repeat %u times inside it: "
					 "micro-steps or equal layers",
					 p->inner));
	if (p->recompiles && p->recompile_s > TFH_REPORT_RUN_SHARE * w->r->steps.total_s)
		tfh_remark(w,
			   tfh_phrase(w,
				      "%" PRIu64 " module%s loaded or compiled after start-up, "
				      "%s in all: %s",
				      p->recompiles, p->recompiles == 1 ? " was" : "s were",
				      tfh_phrase_time(w, p->recompile_s),
				      tfh_unloads(w->r) ? "steps unload them again"
							: "new shapes, or functions traced again"));
}

static void alike_loops(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;

	if (r->found.alike_loops && r->steps.clock == TFH_STEP_CLOCK_ITERATOR)
		tfh_remark(
			w,
			tfh_phrase(
				w,
				"%u loops have equally many batches and feed functions of the same "
				"name: models trained one after the other, judged together",
				r->found.alike_loops));
}

static void discarded(struct tfh_wording *w, const struct tfh_discarded *g)
{
	char steps[128] = "";

	if (g->steps)
		snprintf(steps, sizeof(steps), ": %s%" PRIu64 " steps of %.2f ms on average",
			 g->estimated ? "about " : "", g->steps, 1e3 * g->mean_s);
	tfh_remark(
		w,
		tfh_phrase(
			w,
			"records of %.1f s, from %.1f s after the start, were deleted to keep to "
			"TFHOOK_MAX_SIZE%s; they are not among the steps judged",
			g->end_s - g->start_s, tfh_into_run(w->r, g->start_s), steps));
}

/* If kernels of several threads never overlap, the time of computing is no lower bound: without the
 * threads' waits, kernels could run at the same time. */
static void threads_in_turn(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;

	if (r->verdict.cls == TFH_CLASS_COMPUTE_BOUND && r->found.threads_turn)
		tfh_remark_first(
			w, tfh_phrase(w,
				      "the %" PRIu32
				      " threads that launch have streams of their own, but no two "
				      "kernels run at once: do they wait for a lock?",
				      r->found.threads_turn));
}

/* Processes that may be ranks of one job that wait for each other, of which only one is judged. */
static void unjudged(struct tfh_wording *w)
{
	const struct tfh_findings *found = &w->r->found;

	if (found->unnumbered)
		tfh_remark(w, "no launcher numbers the ranks, which are known by their exchanges: "
			      "their numbers here are the order in which they started");
	if (found->unjudged && found->alike == found->unjudged)
		tfh_remark_first(
			w,
			tfh_phrase(w,
				   "this is process %u; %u more did the same before or after it: "
				   "times are those of one, gains of the run those of all",
				   found->pid, found->unjudged));
	else if (found->unjudged && found->in_turn == found->unjudged)
		tfh_remark_first(
			w,
			tfh_phrase(w,
				   "this is process %u; %u more made about as many calls before or "
				   "after it and %s not judged",
				   found->pid, found->unjudged,
				   found->unjudged == 1 ? "is" : "are"));
	else if (found->unjudged)
		tfh_remark_first(
			w,
			tfh_phrase(
				w,
				"this is process %u; %u more made about as many calls and %s not "
				"judged: %s",
				found->pid, found->unjudged, found->unjudged == 1 ? "is" : "are",
				found->imported
					? "nothing that they exchanged shows whether they are "
					  "ranks of one job"
					: "if they are ranks of one job, set TFHOOK_RANK, or RANK "
					  "and WORLD_SIZE (in a spawned function, first of all: "
					  "os.environ)"));
}

/* Requests for device memory that failed. */
static void memory(struct tfh_wording *w)
{
	const struct tfh_heap_sum *h = &w->r->heap;
	const struct tfh_failure *f = &h->failure[0];
	const char *last = "";

	if (h->capacity && (double)h->peak > TFH_REPORT_NEARLY_FULL * (double)h->capacity)
		tfh_remark(w, tfh_phrase(w, "device memory was nearly full: %.1f MB of %.1f MB",
					 (double)h->peak / 1e6, (double)h->capacity / 1e6));
	if (!h->failed)
		return;
	if (f->n_before)
		last = tfh_phrase(w, "; the last one before it was %s of %.1f MB", f->before[0].fn,
				  (double)f->before[0].bytes / 1e6);
	const char *text = tfh_phrase(
		w,
		"%" PRIu64 " request%s for device memory failed, the first %.1f s after the "
		"start: %s of %.1f MB with %.1f MB in use%s",
		h->failed, h->failed == 1 ? "" : "s", (double)f->at.t / 1e9, f->at.fn,
		(double)f->at.bytes / 1e6, (double)f->in_use / 1e6, last);
	w->no_memory = text;
	tfh_remark(w, text);
	tfh_advise(
		w, "device memory ran out", text,
		"smaller batches, or free what is kept between steps; see `tfhook report --memory`",
		TFH_REMOVE_NONE);
}

void tfh_note_steps(struct tfh_wording *w)
{
	memory(w);
	stalls(w);
	slow_in_turn(w);
	patterns(w);
	alike_loops(w);
	for (uint32_t i = 0; i < w->r->n_discarded; i++)
		discarded(w, &w->r->discarded[i]);
	unjudged(w);
	threads_in_turn(w);
	if (w->r->found.no_python)
		tfh_remark(w, tfh_phrase(w, "no lines of Python: %s", w->r->found.no_python));
}
