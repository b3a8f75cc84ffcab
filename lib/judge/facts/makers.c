#include "judge/facts/makers.h"

#include <string.h>

#include "base/text.h"
#include "judge/facts/facts.h"

/* Whether a worker process or a thread begins with this function. The frames outside it are those
 * in which a worker was forked (its parent's own lines). */
static bool begins(const struct tfh_model_line *f)
{
	return (tfh_ends_with(f->file, "multiprocessing/process.py") &&
		tfh_ends_with(f->function, "_bootstrap")) ||
	       (tfh_ends_with(f->file, "/threading.py") &&
		(tfh_ends_with(f->function, ".run") || strstr(f->function, "_bootstrap")));
}

/* Processes that multiprocessing keeps besides the workers. They wake up now and then, and make
 * nothing; a worker that was forked there begins further in. */
static bool is_helper(const struct tfh_model_line *frame, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (tfh_ends_with(frame[i].file, "multiprocessing/forkserver.py") ||
		    tfh_ends_with(frame[i].file, "multiprocessing/resource_tracker.py"))
			return true;
	return false;
}

/* The number of frames of its own work; *program: one of them is in a file of the program. */
static uint32_t own_frames(const struct tfh_model_line *frame, uint32_t n, bool *program)
{
	uint32_t own = 0;

	for (*program = false; own < n && !begins(&frame[own]); own++)
		*program |= !frame[own].library && *frame[own].file != '<'; /* "<string>" */
	return own;
}

static bool works(int state)
{
	return state == TFT_STATE_RUNNING || state == TFT_STATE_READ || state == TFT_STATE_WRITE ||
	       state == TFT_STATE_NAMES || state == TFT_STATE_PAGE || state == TFT_STATE_MEMORY;
}

static bool is_pipe(const struct tfh_model_line *f)
{
	return tfh_ends_with(f->file, "multiprocessing/connection.py");
}

/* Whether a child process waits at its own end of a pipe for what the program sends to it, as
 * simulators wait for actions. Queues and pools, whose frames call those of a pipe, hand out work
 * in advance. */
static bool is_told(const struct tfh_child_sample *sample, bool woken,
		    const struct tfh_model_line *frame, uint32_t n)
{
	bool receives = false;
	uint32_t i = 0;

	if (sample->thread || (sample->state == TFT_STATE_RUNNING && !woken))
		return false;
	for (; i < n && is_pipe(&frame[i]); i++)
		receives |= strstr(frame[i].function, "recv") != NULL;
	return receives && i < n && !strstr(frame[i].file, "/multiprocessing/");
}

/* Whether a thread is busy. One of the program that waits for another thread has no work; one that
 * sleeps or waits for a socket waits for what it reads. Threads without a line of the program are a
 * library's helpers. */
static bool is_busy(const struct tfh_child_sample *sample, bool program)
{
	bool lock = sample->state == TFT_STATE_LOCK || sample->state == TFT_STATE_EVENT;

	return program ? !lock : !sample->thread && works(sample->state);
}

/* Whether it runs in a function that only waits: it was just woken, or has no CPU to go on. */
static bool is_woken(const struct tfh_child_sample *sample, const struct tfh_model_line *innermost)
{
	return TFH_DETECT_WOKEN && sample->state == TFT_STATE_RUNNING && tfh_place_waits(innermost);
}

static enum tfh_cause cause_of(const struct tfh_child_sample *sample, const struct tfh_maker *m,
			       bool program)
{
	bool runs = sample->state == TFT_STATE_RUNNING || sample->state == TFT_STATE_GIL;

	if (m->role == TFH_ROLE_READ || m->role == TFH_ROLE_DECODE || m->role == TFH_ROLE_MAP ||
	    m->role == TFH_ROLE_BATCH)
		return tfh_role_cause(m->role);
	if (sample->state == TFT_STATE_READ || sample->state == TFT_STATE_NAMES ||
	    sample->state == TFT_STATE_PAGE)
		return TFH_CAUSE_INPUT_READ;
	return runs && program ? TFH_CAUSE_INPUT_MAP : TFH_CAUSE_INPUT_UNKNOWN;
}

bool tfh_maker_of(const struct tfh_child_sample *sample, uint32_t n, struct tfh_maker *out)
{
	bool program;

	out->n = own_frames(out->frame, n, &program);
	if (!out->n || (out->n == n && is_helper(out->frame, n)))
		return false;
	out->outside = out->n == n && n < TFH_VERDICT_FRAMES;
	bool woken = is_woken(sample, &out->frame[0]);
	out->told = is_told(sample, woken, out->frame, out->n);
	out->busy = !out->told && !woken && is_busy(sample, program);
	out->role = tfh_place_role(out->frame, out->n, TFH_ORDER_UNKNOWN);
	out->cause = cause_of(sample, out, program);
	return true;
}

bool tfh_maker_at(const struct tfh_facts *facts, const struct tfh_child_sample *sample,
		  struct tfh_maker *out)
{
	if (!tfh_maker_of(sample, tfh_frames_at(facts, sample->place, out->frame), out))
		return false;
	if (facts->answers && !sample->thread && tfh_awaits_sender(sample->state)) {
		out->told = true;
		out->busy = false;
	}
	return true;
}

static bool of_pipeline(const struct tfh_maker *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (tfh_in_script_ops(m->frame[i].file))
			return true;
	return false;
}

bool tfh_is_called(const struct tfh_facts *facts, uint32_t place)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t n = place ? tfh_frames_at(facts, place, frame) : 0;

	return n && tfh_in_script_ops(frame[n - 1].file);
}

/* The time and number of samples that show something, and the time of the others. */
struct votes {
	double ns, other_ns;
	uint32_t n;
};

static void count(struct votes *of, bool shows, double ns)
{
	*(shows ? &of->ns : &of->other_ns) += ns;
	of->n += shows;
}

void tfh_find_makers(struct tfh_facts *facts)
{
	struct votes feeds = {0}, logs = {0}, called = {0}, told = {0};
	uint32_t busy = 0, busy_children = 0, busy_threads = 0;
	struct tfh_maker m;

	for (size_t i = 0; i < facts->child.n; i++) {
		const struct tfh_child_sample *sample = &facts->child.v[i];
		if (!tfh_maker_at(facts, sample, &m))
			continue;
		bool pipeline = facts->consumers && of_pipeline(&m);
		busy += m.busy;
		if (!sample->thread) {
			busy_children += m.busy;
			count(&told, m.told, sample->ns);
			continue;
		}
		if (sample->state == TFT_STATE_RUNNING) {
			count(&feeds, pipeline, sample->ns);
			count(&logs, m.role == TFH_ROLE_LOG, sample->ns);
		}
		if (m.busy)
			count(&called, m.outside && !pipeline, sample->ns);
		busy_threads += m.busy && !m.outside && sample->state != TFT_STATE_SLEEP;
	}
	facts->lock_feeds = TFH_DETECT_LOCK_FEEDS && feeds.ns > feeds.other_ns;
	facts->lock_logs = TFH_DETECT_LOCK_LOGS && logs.ns > logs.other_ns;
	facts->calls_back = TFH_DETECT_LOCK_CALLS_BACK && called.ns > called.other_ns &&
			    called.n >= TFH_VERDICT_LINE_SAMPLES;
	facts->makers = busy >= TFH_VERDICT_LINE_SAMPLES;
	facts->workers = busy_children >= TFH_VERDICT_LINE_SAMPLES;
	facts->threads = busy_threads >= TFH_VERDICT_LINE_SAMPLES;
	facts->told = TFH_DETECT_TOLD && told.n >= TFH_VERDICT_LINE_SAMPLES &&
		      told.ns >= TFH_BLOCKING_SHARE * (told.ns + told.other_ns);
}
