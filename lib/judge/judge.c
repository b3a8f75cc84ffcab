/*
 * The order of things: which process, survey, steps, attribution, verdict, explanation.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/remark.h"
#include "judge/words/text.h"

/* A result and the memory its strings live in. */
struct owned {
	struct tfh_result r; /* first: the address is the same */
	struct tfh_arena arena;
};

/* The process that did most of what can be judged. */
static uint32_t critical(const struct tfh_feed *f)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < f->n_processes; i++) {
		const struct tfh_process *p = &f->processes[i];
		if ((p->has_gpu || p->has_tf) &&
		    (best == UINT32_MAX || p->events > f->processes[best].events))
			best = i;
	}
	return best;
}

/* Steps from one checkpoint to the next, NAN: there are no two. */
static double checkpoints_apart(const struct tfh_job *job)
{
	uint64_t n = 0, at = 0, first = 0, last = 0;

	TFH_EACH (i, job->loops->window.n) {
		const struct tfh_window *w = &job->loops->window.v[i];
		uint8_t segment = job->use[i].segment;
		at += segment != TFH_SEGMENT_EVAL ? w->steps : 0;
		if (segment != TFH_SEGMENT_CHECKPOINT)
			continue;
		first = n++ ? first : at;
		last = at;
	}
	return n > 1 ? (double)(last - first) / (double)(n - 1) : NAN;
}

static void fill_segments(const struct tfh_job *job, struct tfh_result *r)
{
	int64_t ns[TFH_SEGMENT_COUNT];
	uint32_t n[TFH_SEGMENT_COUNT];

	memcpy(ns, job->loops->segment_ns, sizeof(ns));
	memcpy(n, job->loops->segment_n, sizeof(n));
	/* Windows that turned out to be something else than training. */
	TFH_EACH (i, job->loops->window.n) {
		const struct tfh_window *w = &job->loops->window.v[i];
		uint8_t segment = job->use[i].segment;
		if (segment != TFH_SEGMENT_CHECKPOINT && segment != TFH_SEGMENT_COMPILE &&
		    segment != TFH_SEGMENT_STALL)
			continue;
		int64_t took = (int64_t)(job->step.v[i].dur_s * 1e9);
		ns[TFH_SEGMENT_TRAIN] -= took;
		n[TFH_SEGMENT_TRAIN] -= w->steps;
		ns[segment] += took;
		n[segment]++;
	}
	for (int k = 0; k < TFH_SEGMENT_COUNT; k++) {
		if (!n[k])
			continue;
		struct tfh_segment_sum *s = &r->segments[r->n_segments++];
		s->kind = k;
		s->count = n[k];
		s->total_s = (double)ns[k] / 1e9;
		s->every_steps = k == TFH_SEGMENT_CHECKPOINT ? checkpoints_apart(job) : NAN;
	}
}

/* The eight stages of training, as far as host times tell: what of them is exposed. */
static void fill_stages(const struct tfh_job *job, struct tfh_result *r)
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
	double steps = job->judged_steps ? (double)job->judged_steps : NAN;

	for (int s = 0; s < TFH_STAGE_COUNT; s++)
		r->stages[s].hidden_s = NAN;
	for (size_t i = 0; i < sizeof(map) / sizeof(*map); i++)
		r->stages[map[i].stage].exposed_s +=
			(double)job->cause_ns[map[i].cause] / 1e9 / steps;
	r->stages[TFH_STAGE_COMPUTE].exposed_s = (double)job->compute_ns / 1e9 / steps;
	r->stages[TFH_STAGE_COMMUNICATION].exposed_s = NAN;
}

static void free_job(struct tfh_job *job)
{
	tfh_big_free(job->use);
	free(job->stage);
	if (!job->step_given)
		tfh_big_free(job->step.v);
	free(job->copy.v);
	free(job->kernel.v);
	tfh_pauses_free(job->pauses);
	tfh_device_free(job->device);
}

static const char *gpu_times(const struct tfh_job *job)
{
	if (!job->device || job->device->gpu.source == TFH_GPU_NONE)
		return "none";
	return job->device->gpu.source == TFH_GPU_CUPTI ? "cupti" : "imported";
}

static void fill_quality(const struct tfh_job *job, struct tfh_result *r)
{
	double waited = tfh_crowd(job->facts);

	r->quality.events = job->facts->events;
	r->quality.gpu_times = gpu_times(job);
	if (job->device && job->device->gpu.graphs && *job->device->gpu.graphs)
		r->quality.graphs = job->device->gpu.graphs;
	r->quality.unattributed_share = r->breakdown[TFH_PART_UNATTRIBUTED].share;
	r->quality.overhead_share =
		job->facts->last > job->facts->first
			? (double)job->facts->events * TFH_HOOK_NS /
				  (double)tfh_seen_ns(job->facts, job->facts->first,
						      job->facts->last)
			: NAN;
	r->quality.clock_residual_s = NAN;
	/* The machine's own samples tell it; none, or hardly any, tell nothing. */
	r->quality.run_delay_share = waited > 0 ? waited : NAN;
	r->quality.crowded = waited > TFH_CROWDED_SHARE;
}

/* After the passes: everything that the result says. */
static int conclude(struct tfh_job *job, struct tfh_result *r)
{
	int rc;

	TFH_EACH (i, job->loops->window.n)
		if (job->use[i].segment == TFH_SEGMENT_TRAIN)
			job->train_steps += job->loops->window.v[i].steps;
	tfh_input_judge(job);
	rc = tfh_classify(job, r);
	if (!rc)
		rc = tfh_fill_tables(job, r);
	if (!rc && tfh_tier(job) != 'C')
		rc = tfh_device_tables(job->device, r);
	if (!rc)
		rc = tfh_fill_input(job, r);
	if (rc)
		return rc;
	tfh_find_supply(job, r);
	tfh_whatif(job, r);
	for (int k = 0; k < TFH_REMOVE_COUNT; k++)
		r->need_s[k] = NAN;
	for (int k = 0; k < TFH_XPROF_COUNT; k++)
		r->xprof[k] = NAN;
	if (tfh_tier(job) != 'C') {
		tfh_device_whatif(job->device, r);
		tfh_xprof_fill(job->device, r->xprof);
		rc = tfh_prefer_gain(job, r);
		if (rc)
			return rc;
	}
	r->jitter_s = job->judged_steps ? (double)job->cause_ns[TFH_CAUSE_COMMUNICATION_JITTER] /
						  1e9 / (double)job->judged_steps
					: 0;
	r->heap = job->facts->heap;
	if (job->device) {
		/* Without device times it is not known how many devices: one, if that is enough. */
		uint64_t memory = job->device->gpu.memory;
		uint32_t one = !job->device->n_device && r->heap.peak <= memory;
		r->heap.capacity = memory * (job->device->n_device + one);
	}
	tfh_fill_last(job, r);
	fill_segments(job, r);
	fill_stages(job, r);
	if (tfh_tier(job) != 'C')
		tfh_device_stages(job->device, r);
	tfh_explain(job, r);
	tfh_tell_stalls(job, r);
	tfh_find_periodic(job, r);
	tfh_find_patterns(job, r);
	tfh_tell_alike_loops(job, r);
	tfh_fill_startup(job, r);
	rc = tfh_fill_given_up(job, r);
	if (rc)
		return rc;
	fill_quality(job, r);
	return 0;
}

/* One chunk of windows in memory: what predictions are made from. */
static int sample(struct tfh_device *d)
{
	tfh_xprof_add(d);
	return tfh_replay(d);
}

/* Where the time of each window went. */
static int account(struct tfh_job *job, struct tfh_err *err)
{
	const struct tfh_loops *loops = job->loops;
	int rc;

	job->use = tfh_big_array(loops->window.n + 1, sizeof(*job->use));
	job->stage = calloc(job->facts->stage.n + 1, sizeof(*job->stage));
	job->pauses = tfh_pauses_new(job->cover);
	if (!job->use || !job->stage || (job->cover && !job->pauses))
		return tfh_err_set(err, -ENOMEM, "out of memory");
	TFH_EACH (i, loops->window.n)
		job->use[i].segment = loops->window.v[i].segment;
	tfh_find_stalls(job, false);
	rc = tfh_attribute(job, err);
	return rc ? rc : tfh_device_judge(job, sample, err);
}

/* The phases, one after the other: each takes the results of the earlier ones as they are. */
static int run_phases(struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_cover **cover,
		      const struct tfh_meet *meet, struct tfh_result *r, struct tfh_err *err)
{
	struct tfh_job job = {.facts = facts, .loops = loops, .meet = meet, .guilty = -1};
	int rc = tfh_find_loops(facts, loops, err);

	job.input_cause = TFH_CAUSE_INPUT_UNKNOWN;
	if (!rc)
		rc = tfh_cover_find(facts, cover, err);
	job.cover = *cover;
	if (!rc)
		rc = account(&job, err);
	if (!rc && (rc = conclude(&job, r)))
		tfh_err_set(err, rc, "out of memory");
	free_job(&job);
	return rc;
}

/* Judges one process. */
static int judge(const struct tfh_feed *feed, uint32_t process, const struct tfh_meet *meet,
		 struct tfh_result **out, struct tfh_err *err)
{
	struct owned *o = calloc(1, sizeof(*o));
	struct tfh_facts *facts = calloc(1, sizeof(*facts));
	struct tfh_loops loops = {0};
	struct tfh_cover *cover = NULL;
	int rc = o && facts ? 0 : tfh_err_set(err, -ENOMEM, "out of memory");

	*out = NULL;
	if (!rc) {
		tfh_arena_init(&o->arena, 0);
		o->r.process = process;
		rc = tfh_find_facts(feed, process, &o->arena, facts, err);
		if (!rc)
			rc = run_phases(facts, &loops, &cover, meet, &o->r, err);
		tfh_cover_free(cover);
		tfh_loops_free(&loops);
		tfh_facts_free(facts);
	}
	free(facts);
	if (rc)
		tfh_result_free(o ? &o->r : NULL);
	else
		*out = &o->r;
	return rc;
}

static int judge_ranks(const struct tfh_feed *f, const uint32_t *process, uint32_t n,
		       struct tfh_result **out, struct tfh_err *err)
{
	struct tfh_meet *meet = tfh_meet_new();
	struct tfh_result **r = calloc(n, sizeof(*r));
	int rc = meet && r ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && !rc; i++)
		rc = tfh_meet_add(meet, f, process[i], n == 1, err);
	if (!rc)
		rc = tfh_meet_match(meet);
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = judge(f, process[i], meet, &r[i], err);
	if (!rc)
		rc = tfh_join_ranks(f, meet, r, n, out);
	if (rc == -ENOMEM)
		tfh_err_set(err, rc, "out of memory");
	for (uint32_t i = 0; r && i < n; i++)
		if (r[i] != *out)
			tfh_result_free(r[i]);
	free(r);
	tfh_meet_free(meet);
	return rc;
}

/* Part of the calls of the process that is judged which make another one as important. */
#define ALIKE 4

/* Several processes that do about as much, and no ranks: they may be ranks of one job that wait for
 * each other, and only one of them is judged. */
static void tell_others(const struct tfh_feed *f, uint32_t top, struct tfh_result *r)
{
	const size_t room = 240;
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n_processes; i++) {
		const struct tfh_process *p = &f->processes[i];
		n += i != top && p->events * ALIKE >= f->processes[top].events &&
		     (p->has_gpu || !f->processes[top].has_gpu) && (p->has_gpu || p->has_tf);
	}
	char *text = n ? tfh_result_alloc(r, room, 1) : NULL;
	if (!text)
		return;
	snprintf(text, room,
		 "this is process %u, and %u more did about as much: not known to be ranks of one "
		 "job, they are not judged; TFHOOK_RANK, or variables of a launcher, would tell",
		 f->processes[top].pid, n);
	tfh_remark(r, text);
}

void tfh_remark(struct tfh_result *r, const char *text)
{
	if (r->n_remark < sizeof(r->remark) / sizeof(r->remark[0]))
		r->remark[r->n_remark++] = text;
}

void *tfh_result_alloc(struct tfh_result *r, size_t n, size_t size)
{
	return tfh_arena_array(&((struct owned *)r)->arena, n, size);
}

int tfh_analyze_feed(const struct tfh_feed *feed, struct tfh_result **out, struct tfh_err *err)
{
	uint32_t process[TFH_MAX_RANKS], n = tfh_ranks_of(feed, process), top = critical(feed);

	*out = NULL;
	uint64_t cut = 0;
	for (uint32_t i = 0; i < feed->n_processes; i++)
		cut += feed->processes[i].tail_bytes + feed->processes[i].bad_chunks;
	if (top == UINT32_MAX && cut)
		return tfh_err_set(
			err, -ENODATA,
			"nothing to analyse: what is left of the recording holds no GPU or "
			"TensorFlow call; its files are damaged or cut off, `tfhook verify` "
			"says where");
	if (top == UINT32_MAX)
		return tfh_err_set(err, -ENODATA,
				   "nothing to analyse: no GPU or TensorFlow call was recorded in "
				   "%u process(es); "
				   "`tfhook doctor` tells what is hooked",
				   feed->n_processes);
	if (n > 1)
		return judge_ranks(feed, process, n, out, err);
	int rc = judge_ranks(feed, &top, 1, out, err);
	if (!rc && !n)
		tell_others(feed, top, *out);
	return rc;
}

void tfh_result_free(struct tfh_result *r)
{
	struct owned *o = (struct owned *)r;

	if (!r)
		return;
	tfh_big_free(r->step);
	tfh_arena_free(&o->arena);
	free(o);
}
