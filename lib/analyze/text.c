/*
 * The verdict in words: one sentence, its evidence, what is missing when there is none, and what to
 * do.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/device.h"
#include "analyze/remedy.h"
#include "model/kernel_name.h"

/* Of the device's memory. */
#define NEARLY_FULL 0.95

static double share(const struct tfh_result *r, enum tfh_part p)
{
	return r->breakdown[p].share;
}

static void evidence(struct tfh_verdict *v, const char *line)
{
	if (v->n_evidence < sizeof(v->evidence) / sizeof(v->evidence[0]))
		v->evidence[v->n_evidence++] = line;
}

static void advise(struct tfh_result *r, const char *finding, const char *why, const char *todo,
		   double gain)
{
	if (r->n_advice < 5)
		r->advice[r->n_advice++] = (struct tfh_advice){finding, why, todo, gain};
}

static double ceiling(const struct tfh_result *r, enum tfh_remove what)
{
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == what)
			return r->whatif[i].ceiling_speedup;
	return NAN;
}

static const char *ms(struct tfh_job *job, double s)
{
	if (s >= 10)
		return tfh_text(job, "%.1f s", s);
	return s >= 0.01   ? tfh_text(job, "%.0f ms", s * 1e3)
	       : s >= 1e-3 ? tfh_text(job, "%.2f ms", s * 1e3)
			   : tfh_text(job, "%.0f us", s * 1e6);
}

static const struct tfh_input_stage *guilty(const struct tfh_result *r)
{
	return r->n_input && r->input[0].guilty ? &r->input[0] : NULL;
}

/* What to do about the slow stage; `why` is the line that shows it. */
static void advise_stage(struct tfh_result *r, const struct tfh_input_stage *g,
			 enum tfh_cause cause, const char *why)
{
	struct tfh_remedy remedy = tfh_stage_remedy(g, cause);

	if (remedy.todo)
		advise(r, remedy.finding, why, remedy.todo, ceiling(r, TFH_REMOVE_INPUT));
}

/* An asynchronous stage works on threads of its own: what is measured is the waiting for it. */
static const char *stage_line(struct tfh_job *job, const struct tfh_input_stage *g)
{
	return tfh_text(job,
			g->async ? "%s (%s): waited for %s per step, %.1f calls"
				 : "%s (%s): %s of its own time per step, %.1f calls",
			g->name, g->prefix, ms(job, g->self_s_per_step), g->calls_per_step);
}

static void explain_input(struct tfh_job *job, struct tfh_result *r)
{
	struct tfh_verdict *v = &r->verdict;
	const struct tfh_input_stage *g = guilty(r);
	const char *wait = ms(job, r->breakdown[TFH_PART_INPUT].s_per_step);

	v->text =
		tfh_text(job, "every step waits %s of %s for its batch%s%s", wait,
			 ms(job, r->steps.total_s / (double)(r->steps.count ? r->steps.count : 1)),
			 g ? "; the pipeline's slow stage is " : "", g ? g->name : "");
	if (!g && v->cause == TFH_CAUSE_INPUT_DATALOADER)
		advise(r, "the DataLoader does not keep up", v->text,
		       "more workers (num_workers, prefetch_factor), pin_memory=True, or cheaper "
		       "transforms",
		       ceiling(r, TFH_REMOVE_INPUT));
	if (!g)
		return;
	evidence(v, stage_line(job, g));
	advise_stage(r, g, v->cause, v->evidence[v->n_evidence - 1]);
	bool prefetch = false;
	for (uint32_t i = 0; i < r->n_input; i++)
		prefetch |= strstr(r->input[i].name, "Prefetch") != NULL;
	if (!prefetch)
		advise(r, "the pipeline does not prefetch", "no Prefetch stage was seen",
		       "end the pipeline with prefetch(tf.data.AUTOTUNE)", NAN);
}

/* Where input is the second class, its stage is worth a line, too. */
static void explain_also(struct tfh_job *job, struct tfh_result *r)
{
	const struct tfh_input_stage *g = guilty(r);

	for (uint32_t i = 0; g && i < r->verdict.n_also; i++)
		if (r->verdict.also[i] == TFH_CLASS_INPUT_BOUND)
			advise_stage(r, g, job->input_cause, stage_line(job, g));
}

/* Samples tell how long the threads with calls were ready to run and had no processor. */
static void remark_crowd(struct tfh_job *job, struct tfh_result *r)
{
	double waited = tfh_crowd(job);

	if (waited > TFH_CROWDED_SHARE)
		tfh_remark(r,
			   tfh_text(job,
				    "in every second the job's threads together waited %s for a "
				    "processor: other work on this machine, or too few processors, "
				    "distorts these times",
				    ms(job, waited)));
}

/* The copies that a cause speaks of: the first, which move most, of that kind; of small ones those
 * that are most in number. */
static const struct tfh_transfer *copies_of(const struct tfh_result *r, enum tfh_cause cause)
{
	const struct tfh_transfer *best = NULL;

	for (uint32_t i = 0; i < r->n_transfers; i++) {
		const struct tfh_transfer *t = &r->transfers[i];
		if (cause == TFH_CAUSE_TRANSFER_SMALL_COPIES) {
			best = !best || t->calls_per_step > best->calls_per_step ? t : best;
			continue;
		}
		if ((cause == TFH_CAUSE_TRANSFER_H2D_PAGEABLE && t->pageable == 0) ||
		    (cause == TFH_CAUSE_TRANSFER_H2D_PINNED && t->pageable == 1))
			continue;
		bool up = cause == TFH_CAUSE_TRANSFER_H2D_PAGEABLE ||
			  cause == TFH_CAUSE_TRANSFER_H2D_PINNED;
		enum tfh_dir dir = up				     ? TFH_DIR_H2D
				   : cause == TFH_CAUSE_TRANSFER_D2H ? TFH_DIR_D2H
				   : cause == TFH_CAUSE_TRANSFER_D2D ? TFH_DIR_D2D
				   : cause == TFH_CAUSE_TRANSFER_P2P ? TFH_DIR_P2P
								     : t->dir;
		if (t->dir == dir)
			return t;
	}
	return best;
}

static const char *size(struct tfh_job *job, double bytes)
{
	static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
	int u = 0;

	for (; u < 4 && bytes >= 999.5; u++)
		bytes /= 1000;
	return tfh_text(job, u && bytes < 99.95 ? "%.3g %s" : "%.0f %s", bytes, unit[u]);
}

/* Copies below this size say nothing of a rate, and reading them back is waiting rather than moving
 * bytes. */
#define FEW_BYTES 4096

static void explain_transfer(struct tfh_job *job, struct tfh_result *r)
{
	struct tfh_verdict *v = &r->verdict;
	const struct tfh_transfer *t = copies_of(r, v->cause);

	v->text = tfh_text(job, "copies block %s of every step",
			   ms(job, r->breakdown[TFH_PART_TRANSFER].s_per_step));
	if (!t)
		return;
	bool few = t->bytes_per_step < FEW_BYTES * t->calls_per_step;
	evidence(v, tfh_text(job, "%s: %s per step in %.1f calls%s%s", t->fn,
			     size(job, t->bytes_per_step), t->calls_per_step,
			     isfinite(t->bytes_per_s) && !few
				     ? tfh_text(job, ", %.2f GB/s", t->bytes_per_s / 1e9)
				     : "",
			     t->pageable != 1	     ? ""
			     : t->dir == TFH_DIR_D2H ? ", to pageable memory"
						     : ", from pageable memory"));
	double gain = ceiling(r, TFH_REMOVE_TRANSFER);
	if (v->cause == TFH_CAUSE_TRANSFER_SMALL_COPIES)
		advise(r, "very many small copies", v->evidence[v->n_evidence - 1],
		       "gather them in one buffer and copy that", gain);
	else if (v->cause == TFH_CAUSE_TRANSFER_D2H && few)
		advise(r, "the host waits for small results", v->evidence[v->n_evidence - 1],
		       "read results (.item(), .numpy()) every n-th step only", gain);
	else if (v->cause == TFH_CAUSE_TRANSFER_H2D_PAGEABLE)
		advise(r, "batches are copied from pageable memory", v->evidence[v->n_evidence - 1],
		       "copy asynchronously from pinned memory, one batch ahead; copy smaller "
		       "types",
		       gain);
	else
		advise(r, "copies are not hidden behind computing", v->evidence[v->n_evidence - 1],
		       "copy on a stream of its own, one batch ahead; copy less", gain);
}

/* The causes of the program's own making. */
static void explain_code(struct tfh_job *job, struct tfh_result *r, const char *time)
{
	static const struct {
		enum tfh_cause cause;
		const char *what, *finding, *todo;
		enum tfh_remove remove;
	} row[] = {
		{TFH_CAUSE_HOST_SYNC,
		 "%s of every step the program waits for a device that has nothing to do",
		 "the program waits for the device too often",
		 "read results (.item(), .numpy(), synchronize) every n-th step only",
		 TFH_REMOVE_SYNC},
		{TFH_CAUSE_HOST_ALLOC,
		 "the host holds every step up for %s, most of it by allocating and freeing device "
		 "memory",
		 "device memory is allocated in every step",
		 "allocate once and reuse, or take memory from a pool (cudaMallocAsync)",
		 TFH_REMOVE_HOST},
		{TFH_CAUSE_HOST_COMPILE,
		 "the host holds every step up for %s, most of it by loading or compiling kernels",
		 "kernels are compiled or loaded in every step",
		 "keep shapes the same from step to step, and cache what was compiled",
		 TFH_REMOVE_HOST},
		{TFH_CAUSE_NONE,
		 "the program's own code holds every step up for %s while nothing else runs",
		 "the program's own code runs between the steps' work",
		 "see what that thread does (py-spy top --pid PID), and do it less often, in "
		 "another thread, or while the device computes",
		 TFH_REMOVE_HOST},
	};
	size_t i = 0;

	while (row[i].cause != TFH_CAUSE_NONE && row[i].cause != r->verdict.cause)
		i++;
	r->verdict.text = tfh_text(job, row[i].what, time);
	const char *line = tfh_site_line(job, r->verdict.cause);
	if (line)
		evidence(&r->verdict, line);
	const char *todo = tfh_site_advice(job, r->verdict.cause);
	advise(r, row[i].finding, r->verdict.text, todo ? todo : row[i].todo,
	       ceiling(r, row[i].remove));
}

static void explain_host(struct tfh_job *job, struct tfh_result *r)
{
	struct tfh_verdict *v = &r->verdict;
	double s = r->breakdown[TFH_PART_LAUNCH].s_per_step +
		   r->breakdown[TFH_PART_HOST].s_per_step + r->breakdown[TFH_PART_SYNC].s_per_step;
	double own = v->cause >= 0 && job->judged_steps
			     ? (double)job->cause_ns[v->cause] / 1e9 / (double)job->judged_steps
			     : s;
	double calls = 0;
	bool queued; /* functions that streams run */

	for (uint32_t i = 0; i < r->n_kernels; i++)
		calls += r->kernels[i].calls_per_step;
	switch (v->cause) {
	case TFH_CAUSE_HOST_LAUNCH:
		v->text = job->cpu_only
				  ? tfh_text(job, "issuing ops one by one takes %s of every step",
					     ms(job, own))
				  : tfh_text(job, "issuing %.0f launches takes %s of every step",
					     calls, ms(job, own));
		advise(r, "many small launches", v->text,
		       job->cpu_only
			       ? "run the step in one tf.function"
			       : "capture the step in a graph, fuse kernels, or use larger batches",
		       ceiling(r, TFH_REMOVE_LAUNCH));
		break;
	case TFH_CAUSE_HOST_CALLBACK:
		queued = job->device && job->device->called * 2 > job->cause_ns[v->cause];
		v->text = tfh_text(
			job,
			queued ? "%s of every step the device waits for functions of the program "
				 "that it queued in streams (cuLaunchHostFunc)"
			       : "%s of every step pass between the step's work and the asking for "
				 "the next batch: callbacks, metrics, logging",
			ms(job, own));
		advise(r, "callbacks hold the training loop up", v->text,
		       queued ? "make them shorter, or let nothing in the stream wait for them"
			      : "run them every n-th step, or in a thread",
		       ceiling(r, TFH_REMOVE_HOST));
		break;
	case TFH_CAUSE_HOST_UNKNOWN:
		if (job->compute_ran < 0.3) {
			v->text = tfh_text(job,
					   "the step's graph waits instead of computing: while it "
					   "executes, the process "
					   "has a processor for %.0f %% of the time",
					   100 * job->compute_ran);
			advise(r, "something in the graph waits", v->text,
			       "look for Python functions (numpy_function, py_function) and file "
			       "accesses in the step",
			       ceiling(r, TFH_REMOVE_HOST));
			break;
		}
		/* fall through */
	default: /* allocating and compiling are said to be most of all that the host does */
		explain_code(job, r,
			     ms(job, v->cause == TFH_CAUSE_HOST_ALLOC ||
						     v->cause == TFH_CAUSE_HOST_COMPILE
					     ? s
					     : own));
	}
	if (job->cpu_wall > 0)
		evidence(v,
			 tfh_text(job,
				  "between calls its thread used the processor for %.0f %% of the "
				  "time, and slept or waited for the rest",
				  100.0 * (double)job->cpu_running / (double)job->cpu_wall));
}

static void explain_communication(struct tfh_job *job, struct tfh_result *r)
{
	struct tfh_verdict *v = &r->verdict;
	const char *time = ms(job, r->breakdown[TFH_PART_COMMUNICATION].s_per_step);
	bool late = v->cause == TFH_CAUSE_COMMUNICATION_JITTER;

	v->text =
		late ? tfh_text(job, "every step waits %s for other ranks to join its collectives",
				time)
		     : tfh_text(job, "the exchange between ranks holds every step up for %s", time);
	if (late)
		advise(r, "some ranks come late to the collectives", v->text,
		       "look at the rank that waits least: what holds it up holds all up",
		       ceiling(r, TFH_REMOVE_COMMUNICATION));
	else
		advise(r, "collectives are not hidden behind computing", v->text,
		       "overlap the exchange with the backward pass, exchange less often or in "
		       "fewer, larger pieces",
		       ceiling(r, TFH_REMOVE_COMMUNICATION));
}

static const char *kernel_share(struct tfh_job *job, const struct tfh_result *r)
{
	char name[TFH_KERNEL_NAME];

	return tfh_text(job, "%s takes %.0f %% of the computing, %.1f calls per step, %s each",
			tfh_kernel_short(name, r->kernels[0].name, 60),
			100 * r->kernels[0].share_of_busy, r->kernels[0].calls_per_step,
			ms(job, r->kernels[0].median_s));
}

/* One op that is most of the computing is worth a line whatever the class. */
static void explain_kernels(struct tfh_job *job, struct tfh_result *r)
{
	struct tfh_verdict *v = &r->verdict;

	if (v->tier == 'C' || !r->n_kernels)
		return;
	if (r->n_kernels > 1 && r->kernels[0].share_of_busy > 0.5) {
		const char *line = kernel_share(job, r);
		evidence(v, line);
		advise(r, "one op is most of the computing", line,
		       "look for a cheaper form of it, another layout, or a fused kernel", NAN);
	}
	if (v->cause == TFH_CAUSE_COMPUTE_UNDERFILLED)
		advise(r, "kernels too small to fill the device",
		       "most of the computing is in kernels with blocks for less than half of the "
		       "device's processors",
		       "larger batches, or fused kernels", NAN);
}

static uint64_t holed_steps(const struct tfh_job *job)
{
	uint64_t n = 0;

	TFH_EACH (i, job->window.n)
		if (job->window.v[i].segment == TFH_SEGMENT_TRAIN && job->window.v[i].hole)
			n += job->window.v[i].steps;
	return n;
}

static void explain_none(struct tfh_job *job, struct tfh_result *r)
{
	struct tfh_verdict *v = &r->verdict;

	if (!r->steps.count) {
		v->missing =
			job->clock == TFH_STEP_CLOCK_NONE
				? "no repeating step was found"
				: tfh_text(job, "only %" PRIu64 " step(s), all of them start-up",
					   r->steps.total);
		v->missing_do =
			job->clock == TFH_STEP_CLOCK_NONE
				? "record a longer run, or mark steps (include/tfhook/tfhook.h)"
				: "record a longer run";
	} else if (holed_steps(job) * 2 > r->steps.count) {
		v->missing = tfh_text(
			job, "%" PRIu64 " of %" PRIu64 " steps touch holes in the recording",
			holed_steps(job), r->steps.count);
		v->missing_do = "if records were dropped, raise TFHOOK_RING_TOTAL; if files are "
				"missing, bring them back";
	} else if (isnan(r->breakdown[TFH_PART_UNATTRIBUTED].share)) {
		v->missing = "no step ran to its end after the start-up";
		v->missing_do = "record a longer run";
	} else {
		v->missing = tfh_text(job, "%.0f %% of the step's time could not be attributed",
				      100 * share(r, TFH_PART_UNATTRIBUTED));
		v->missing_do =
			tfh_tier(job) == 'C'
				? "device times are needed for this job"
				: "what the device's ops waited for was not recorded: record whole "
				  "steps, with graphs' kernels and stream events";
	}
	v->text = "not enough evidence for a verdict";
}

/* What the verdict rests on, and what is missing. */
static void explain_base(struct tfh_job *job, struct tfh_result *r)
{
	const struct tfh_device *d = job->device;
	uint64_t judged = d ? d->windows_a + d->windows_b : 0;

	if (r->verdict.tier == 'C' && job->cpu_only)
		return;
	if (r->quality.graphs)
		tfh_remark(r, tfh_text(job,
				       "graphs: only whole launches were timed from some moment "
				       "on: %s",
				       r->quality.graphs));
	if (r->verdict.tier == 'C' && d && d->gpu.source != TFH_GPU_NONE) {
		if (r->steps.count)
			tfh_remark(
				r,
				"there are device times, but for no step that is judged they are "
				"complete: what the device did is concluded from waits");
		return;
	}
	if (r->verdict.tier == 'C') {
		tfh_remark(
			r,
			d && d->gpu.why && *d->gpu.why
				? tfh_text(job, "no device times: %s", d->gpu.why)
				: "no device times: what the device did is concluded from waits");
		return;
	}
	if (judged < job->window.n)
		evidence(&r->verdict, tfh_text(job, "device times cover %" PRIu64 " of %zu steps",
					       judged, job->window.n));
	double lead = job->judged_steps ? (double)d->lead / 1e9 / (double)job->judged_steps : 0;
	if (lead > 0.5 * r->steps.median_s && lead > 1e-3)
		evidence(
			&r->verdict,
			tfh_text(job,
				 "the host is %s ahead of the device at the end of a step: what it "
				 "does meanwhile costs nothing",
				 ms(job, lead)));
	if (r->verdict.tier == 'B')
		tfh_remark(r,
			   "the device's ops could not be joined with the calls that issued them: "
			   "what waited for what is not known");
	if (d->gpu.dropped)
		tfh_remark(r, tfh_text(job, "the driver's profiler lost %" PRIu64 " ops",
				       d->gpu.dropped));
}

/* Requests for device memory that failed. */
static void explain_memory(struct tfh_job *job, struct tfh_result *r)
{
	const struct tfh_heap_sum *h = &r->heap;
	const struct tfh_failure *f = &h->failure[0];
	const char *last = "";

	if (h->capacity && (double)h->peak > NEARLY_FULL * (double)h->capacity)
		tfh_remark(r, tfh_text(job, "device memory was nearly full: %.1f MB of %.1f MB",
				       (double)h->peak / 1e6, (double)h->capacity / 1e6));
	if (!h->failed)
		return;
	if (f->n_before)
		last = tfh_text(job, "; the last one before it was %s of %.1f MB", f->before[0].fn,
				(double)f->before[0].bytes / 1e6);
	const char *text =
		tfh_text(job,
			 "%" PRIu64 " request%s for device memory failed, the first %.1f s after "
			 "the start: %s of %.1f MB with %.1f MB in use%s",
			 h->failed, h->failed == 1 ? "" : "s", (double)f->at.t / 1e9, f->at.fn,
			 (double)f->at.bytes / 1e6, (double)f->in_use / 1e6, last);
	tfh_remark(r, text);
	advise(r, "device memory ran out", text,
	       "smaller batches, or free what is kept between steps; see `memory` in --json", NAN);
}

/* The late one of several ranks. */
static void explain_ranks(struct tfh_job *job, struct tfh_result *r)
{
	if (r->jitter_s > 0.01 * r->steps.median_s &&
	    r->verdict.cause != TFH_CAUSE_COMMUNICATION_JITTER)
		evidence(&r->verdict, tfh_text(job, "%s of every step it waits for other ranks",
					       ms(job, r->jitter_s)));
}

/* What most steps do not do is not said of every step: the times are means. */
static void moderate(struct tfh_job *job, struct tfh_result *r)
{
	static const char every[] = "every step";
	struct tfh_verdict *v = &r->verdict;
	const char *old = v->text, *at = strstr(old, every);

	if (v->cls < 0 || !at || 2 * (uint64_t)r->steps.classes[v->cls].count >= r->steps.count)
		return;
	v->text = tfh_text(job, "%.*san average step%s", (int)(at - old), old,
			   at + sizeof(every) - 1);
	for (uint32_t i = 0; i < r->n_advice; i++)
		if (r->advice[i].evidence == old)
			r->advice[i].evidence = v->text;
}

void tfh_explain(struct tfh_job *job, struct tfh_result *r)
{
	struct tfh_verdict *v = &r->verdict;

	v->text = "";
	if (v->cls >= 0 && v->cls != TFH_CLASS_UNCLASSIFIED)
		evidence(v, tfh_text(job, "%u of %" PRIu64 " step%s %s, %.0f %% of training time",
				     r->steps.classes[v->cls].count, r->steps.count,
				     r->steps.count == 1 ? " is" : "s are", tfh_class_name(v->cls),
				     100 * r->steps.classes[v->cls].time_share));
	switch (v->cls) {
	case TFH_CLASS_INPUT_BOUND:
		explain_input(job, r);
		break;
	case TFH_CLASS_TRANSFER_BOUND:
		explain_transfer(job, r);
		break;
	case TFH_CLASS_HOST_BOUND:
		explain_host(job, r);
		break;
	case TFH_CLASS_COMMUNICATION_BOUND:
		explain_communication(job, r);
		break;
	case TFH_CLASS_COMPUTE_BOUND:
		v->text = job->cpu_only
				  ? tfh_text(job, "executing the graph takes %.0f %% of the step",
					     100 * share(r, TFH_PART_COMPUTE))
				  : tfh_text(job, "the device is busy for %.0f %% of the step",
					     100 * share(r, TFH_PART_COMPUTE));
		if (v->cause == TFH_CAUSE_COMPUTE_UNDERFILLED)
			v->text = tfh_text(
				job,
				"%s, most of it with kernels that have blocks for less than "
				"half of its processors: most of it is idle meanwhile",
				v->text);
		break;
	case TFH_CLASS_BALANCED:
		v->text = tfh_text(
			job, "compute takes %.0f %% of the step and nothing else blocks 5 %% of it",
			100 * share(r, TFH_PART_COMPUTE));
		break;
	default:
		explain_none(job, r);
	}
	moderate(job, r);
	explain_also(job, r);
	explain_kernels(job, r);
	if (!job->consumers && v->cls == TFH_CLASS_HOST_BOUND && v->cause == TFH_CAUSE_HOST_UNKNOWN)
		tfh_remark(r, "no input pipeline was visible");
	/* 1 GB/s: slower than any link; where even that would not matter nothing needs to be said.
	 */
	if (v->tier == 'C' && (double)job->mixed_bytes > 0.05 * (double)job->train_ns)
		tfh_remark(r,
			   "queued copies were waited for together with kernels: their share is an "
			   "estimate from the best bandwidth seen");
	remark_crowd(job, r);
	tfh_tell_faults(job, r);
	explain_base(job, r);
	explain_ranks(job, r);
	explain_memory(job, r);
}
