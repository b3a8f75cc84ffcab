/* Compute-bound jobs: what the device computes, and whether it computes for others. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "model/symbols/kernel_name.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

/* Advice about computing that no kind of kernel explains; NULL: the usual advice. */
static const char *compute_advice(const struct tfh_result *r)
{
	double dense = 0;

	for (uint32_t i = 0; i < r->n_families; i++)
		if (r->families[i].family == TFH_FAMILY_MATMUL_TENSOR ||
		    r->families[i].family == TFH_FAMILY_CONVOLUTION_TENSOR)
			dense += r->families[i].share_of_busy;
	if (dense > TFH_REPORT_KERNEL_SHARE)
		return "most of it runs on tensor cores already: smaller types (FP8), less to "
		       "compute, or more devices";
	if (r->found.torch)
		return "faster kernels (lower precision, torch.compile), or more devices";
	return tfh_runs(r, "TensorFlow") || tfh_runs(r, "JAX")
		       ? "faster kernels (lower precision, XLA), or more devices"
		       : NULL;
}

/* Whether all computing is one kernel. Advice about that one takes the place of the class's. */
static bool is_one_kernel(const struct tfh_result *r)
{
	return r->steady.tier != 'C' && r->n_kernels == 1 && r->kernels[0].share_of_busy > 0;
}

/* Who shares the device: "other processes (2 on average)", or "other processes" if their number is
 * unknown. */
static const char *sharers(struct tfh_wording *w)
{
	double n = w->r->found.machine.gpu.processes;

	if (!(n > 1))
		return "other processes";
	return tfh_phrase(w, "other processes (%.3g on average)", n - 1);
}

static void explain_gpu_contention(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	double others = r->found.cause_s[TFH_CAUSE_COMPUTE_CONTENTION], step = tfh_step_s(r);
	struct tfh_remedy m = tfh_remedy_of(TFH_CAUSE_COMPUTE_CONTENTION);

	w->text = tfh_phrase(w,
			     "for %s of every step the GPU works for %s, while ops of this job are "
			     "ready to run",
			     tfh_phrase_time(w, others), sharers(w));
	tfh_evidence(w, TFH_TELLS_MORE,
		     tfh_phrase(w, "alone on the GPU a step would take at best %s instead of %s",
				tfh_phrase_time(w, step - others), tfh_phrase_time(w, step)));
	tfh_advise(w, m.finding, w->text, m.todo, TFH_REMOVE_NONE);
}

void tfh_note_gpu_contention(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	double others = r->found.cause_s[TFH_CAUSE_COMPUTE_CONTENTION], step = tfh_step_s(r);

	if (r->steady.cause != TFH_CAUSE_COMPUTE_CONTENTION && others > TFH_BLOCKING_SHARE * step)
		tfh_remark(w, tfh_phrase(w,
					 "for %.0f %% of the steps' time the GPU worked for %s, "
					 "while ops of this job were ready to run",
					 100 * others / step, sharers(w)));
}

/* On the CPU, if the line with most of the computing calls PyTorch's optimizer. It passes over all
 * weights, however few of them a batch has gradients for. */
static void advise_optimizer(struct tfh_wording *w)
{
	const struct tfh_seen_line *l = &w->r->found.line;

	if (!w->r->found.cpu_only || w->r->lead || !l->callee_file ||
	    !strstr(l->callee_file, "/torch/optim/") || 2 * l->s_per_step < l->of_s)
		return;
	tfh_advise(w, "the optimizer takes most of the computing",
		   tfh_phrase(w, "%s of %s per step", tfh_phrase_time(w, l->s_per_step),
			      tfh_phrase_time(w, l->of_s)),
		   "large embeddings: gradients of the batch's rows only (sparse=True with SGD, "
		   "Adagrad or SparseAdam); else its fused form (fused=True), or fewer updates",
		   TFH_REMOVE_NONE);
}

/* Advice about Python functions that the step's graph calls, if they have the verdict's line. The
 * gain supposes that all of their time is gone. */
static void advise_python(struct tfh_wording *w)
{
	const struct tfh_seen_workers *k = &w->r->found.workers;
	const struct tfh_seen_line *l = &w->r->found.line;
	double s = l->s_per_step / k->line.share, step = tfh_step_s(w->r);
	const struct tfh_whatif gain = {.step_s = NAN,
					.ceiling_speedup = step / (step - s),
					.saved_s = s * (double)w->r->steps.total};

	if (w->r->lead || !(s > 0 && s < step) || !l->file || !k->line.file ||
	    l->line != k->line.line || strcmp(l->file, k->line.file) != 0 ||
	    !(tfh_called_python_s(k) > 0))
		return;
	tfh_advise_gain(w, "the step's graph calls functions of Python",
			tfh_phrase(w, "they run for %s of %s per step", tfh_phrase_time(w, s),
				   tfh_phrase_time(w, step)),
			"instead of py_function and numpy_function use ops of TensorFlow, or call "
			"them less often (a metric: once per epoch)",
			&gain);
}

/* A step takes as long as the device that computes longest. even: how long it would take if all
 * devices computed for the same time; NAN: unknown. */
static void advise_even_devices(struct tfh_wording *w, double even)
{
	double step = tfh_step_s(w->r);
	const struct tfh_whatif gain = {.step_s = NAN,
					.about_s = even,
					.ceiling_speedup = step / even,
					.saved_s = (step - even) * (double)w->r->steps.total};

	struct tfh_remedy m = tfh_remedy_of(TFH_CAUSE_COMPUTE_IMBALANCE);
	if (even > 0)
		tfh_advise_gain(w, m.finding, w->text, m.todo, &gain);
	else
		tfh_advise(w, m.finding, w->text, m.todo, TFH_REMOVE_NONE);
}

static void explain_busy(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_verdict *v = &r->steady;
	double busy = 100 * r->breakdown[TFH_PART_COMPUTE].share;
	bool few = v->cause == TFH_CAUSE_COMPUTE_UNDERFILLED;
	struct tfh_remedy m = tfh_remedy_in(r, w->r->found.cpu_only ? TFH_CAUSE_COMPUTE_CPU
					       : few		    ? TFH_CAUSE_COMPUTE_UNDERFILLED
								    : TFH_CAUSE_COMPUTE_DENSE);

	double even = tfh_even_devices_s(r);
	w->text = r->found.cpu_only
			  ? tfh_phrase(w, "computing on the CPU takes %.0f %% of the step", busy)
			  : tfh_phrase(w, "the %sdevice is busy for %.0f %% of the step%s",
				       even > 0 ? "busiest " : "", busy,
				       few ? ", mostly with kernels too small to fill it: blocks "
					     "for less than half of its multiprocessors"
					   : "");
	const char *line = v->cause == TFH_CAUSE_COMPUTE_IMBALANCE ? tfh_verdict_line(w) : NULL;
	if (line)
		tfh_evidence(w, TFH_TELLS_LINE, line);
	const char *parts = r->found.cpu_only ? tfh_computed_shares(w) : NULL;
	w->text = parts ? parts : w->text;
	if (even > 0 || v->cause == TFH_CAUSE_COMPUTE_IMBALANCE)
		advise_even_devices(w, even);
	tfh_explain_families(w);
	advise_optimizer(w);
	advise_python(w);
	const char *todo = v->cause == TFH_CAUSE_COMPUTE_DENSE ? compute_advice(r) : NULL;
	/* A dominant op has its own line; more devices would not help where one is idle. */
	if (!(even > 0 && v->cause == TFH_CAUSE_COMPUTE_DENSE) &&
	    v->cause != TFH_CAUSE_COMPUTE_IMBALANCE && v->cause != TFH_CAUSE_COMPUTE_DOMINANT_OP &&
	    !(v->cause == TFH_CAUSE_COMPUTE_DENSE && is_one_kernel(r)))
		tfh_advise(
			w, m.finding,
			few ? "most of the computing is in kernels with blocks for less than half "
			      "of the device's multiprocessors"
			    : w->text,
			todo ? todo : m.todo, TFH_REMOVE_NONE);
}

void tfh_explain_compute(struct tfh_wording *w)
{
	if (w->r->steady.cause == TFH_CAUSE_COMPUTE_CONTENTION)
		explain_gpu_contention(w);
	else
		explain_busy(w);
}

static const char *kernel_share(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	char name[TFH_KERNEL_NAME];

	return tfh_phrase(w, "%s takes %.0f %% of the computing, %s per step, %s each%s",
			  tfh_kernel_short(name, r->kernels[0].name, 60),
			  100 * r->kernels[0].share_of_busy,
			  tfh_phrase_calls(w, r->kernels[0].calls_per_step),
			  tfh_phrase_time(w, tfh_kernel_call_s(&r->kernels[0])),
			  tfh_kernel_is_mixed(&r->kernels[0]) ? " on average" : "");
}

/* The ops that take most of the computing on the CPU, or NULL. */
static const char *computing_ops(struct tfh_wording *w)
{
	static const char backward[] = "autograd::engine::evaluate_function: ";
	const struct tfh_code_time *ops = &w->r->found.verdict;
	const char *line = NULL;

	for (uint32_t i = 0; i < ops->n; i++) {
		const char *name = ops->function[i].name;
		double share = ops->function[i].s_per_step / ops->s_per_step;
		if (share < TFH_REPORT_NAMED_SHARE)
			break;
		if (tfh_starts_with(name, backward))
			name += sizeof(backward) - 1;
		line = line ? tfh_phrase(w, "%s, %.0f %% in %s", line, 100 * share, name)
			    : tfh_phrase(w, "%.0f %% of the computing in %s", 100 * share, name);
	}
	return line;
}

/* Without device times no kernel is known, but for a job on the CPU, the computing line or its ops
 * may be. */
static void explain_computing(struct tfh_wording *w)
{
	if (w->r->lead) /* the verdict and its line are about something else */
		return;
	const char *line = w->r->found.cpu_only ? tfh_verdict_line(w) : NULL;
	const char *ops = w->r->found.cpu_only && !line ? computing_ops(w) : NULL;
	if (line)
		tfh_evidence(w, TFH_TELLS_LINE, line);
	else if (ops)
		tfh_evidence(w, TFH_TELLS_OPS, ops);
	bool known = w->r->found.cpu_only && tfh_explain_computed(w, line || ops);
	if (!known && !line && !ops)
		tfh_evidence(w, TFH_TELLS_KERNEL,
			     w->r->found.cpu_only
				     ? "not known: the CPU computes, and nothing shows which op"
				     : "not known: there are no device times");
}

void tfh_explain_kernels(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	bool blamed = r->steady.cls == TFH_CLASS_COMPUTE_BOUND &&
		      r->steady.cause != TFH_CAUSE_COMPUTE_CONTENTION;

	if (r->steady.tier == 'C' || !r->n_kernels || !(r->kernels[0].share_of_busy > 0)) {
		if (blamed)
			explain_computing(w);
		return;
	}
	bool most = (r->n_kernels > 1 || blamed) &&
		    r->kernels[0].share_of_busy > TFH_REPORT_KERNEL_SHARE &&
		    r->kernels[0].share_of_busy * r->breakdown[TFH_PART_COMPUTE].share >=
			    TFH_BLOCKING_SHARE;
	if (!most && !blamed)
		return;
	struct tfh_remedy m = tfh_remedy_of(TFH_CAUSE_COMPUTE_DOMINANT_OP);
	const char *line = kernel_share(w);

	tfh_evidence(w, blamed ? TFH_TELLS_KERNEL : TFH_TELLS_MORE, line);
	/* computing is no cost worth naming where it takes much less than what the verdict is
	 * about */
	if (!most || (!blamed && TFH_VERDICT_ALSO_PART * r->breakdown[TFH_PART_COMPUTE].share <
					 r->verdict.share))
		return;
	tfh_advise(w, m.finding, line, m.todo, TFH_REMOVE_NONE);
}
