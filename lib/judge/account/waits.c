/* Converts samples of threads during pauses to causes. */
#include <string.h>

#include "base/bisect.h"
#include "judge/account/account.h"

/* Cause of each kind of wait. Waiting before a batch is copied to the device is waiting for the
 * batch, if it may be another thread, process or machine that makes it. */
static const struct row {
	enum tfh_cause cause, feeding;
	bool plain; /* no evidence against the cause that the pause's position suggests */
} rows[TFH_SEEN_COUNT] = {
	[0] = {TFH_CAUSE_HOST_UNKNOWN, TFH_CAUSE_HOST_UNKNOWN, true},
	[TFT_STATE_RUNNING] = {TFH_CAUSE_HOST_PYTHON, TFH_CAUSE_HOST_PYTHON, true},
	[TFT_STATE_GIL] = {TFH_CAUSE_HOST_GIL, TFH_CAUSE_HOST_GIL, false},
	[TFT_STATE_LOCK] = {TFH_CAUSE_HOST_LOCK, TFH_CAUSE_INPUT_UNKNOWN, true},
	[TFT_STATE_SLEEP] = {TFH_CAUSE_HOST_SLEEP, TFH_CAUSE_HOST_SLEEP, true},
	[TFT_STATE_READ] = {TFH_CAUSE_INPUT_READ, TFH_CAUSE_INPUT_READ, false},
	[TFT_STATE_WRITE] = {TFH_CAUSE_HOST_CHECKPOINT, TFH_CAUSE_HOST_CHECKPOINT, false},
	[TFT_STATE_NAMES] = {TFH_CAUSE_INPUT_READ, TFH_CAUSE_INPUT_READ, false},
	[TFT_STATE_PIPE] = {TFH_CAUSE_HOST_WAIT, TFH_CAUSE_INPUT_UNKNOWN, true},
	[TFT_STATE_PIPE_FULL] = {TFH_CAUSE_HOST_WAIT, TFH_CAUSE_HOST_WAIT, true},
	[TFT_STATE_SOCKET] = {TFH_CAUSE_HOST_WAIT, TFH_CAUSE_INPUT_UNKNOWN, true},
	[TFT_STATE_SOCKET_FULL] = {TFH_CAUSE_HOST_WAIT, TFH_CAUSE_HOST_WAIT, true},
	[TFT_STATE_DEVICE] = {TFH_CAUSE_HOST_UNKNOWN, TFH_CAUSE_HOST_UNKNOWN, true},
	[TFT_STATE_CHILD] = {TFH_CAUSE_HOST_WAIT, TFH_CAUSE_HOST_WAIT, true},
	[TFT_STATE_POLL] = {TFH_CAUSE_HOST_WAIT, TFH_CAUSE_INPUT_UNKNOWN, true},
	[TFT_STATE_EVENT] = {TFH_CAUSE_HOST_LOCK, TFH_CAUSE_INPUT_UNKNOWN, true},
	[TFT_STATE_PAGE] = {TFH_CAUSE_INPUT_READ, TFH_CAUSE_INPUT_READ, false},
	[TFT_STATE_MEMORY] = {TFH_CAUSE_HOST_PYTHON, TFH_CAUSE_HOST_PYTHON, true},
	[TFT_STATE_OTHER] = {TFH_CAUSE_HOST_UNKNOWN, TFH_CAUSE_HOST_UNKNOWN, true},
	[TFT_STATE_TERMINAL] = {TFH_CAUSE_HOST_WAIT, TFH_CAUSE_HOST_WAIT, true},
	[TFT_STATE_TERMINAL_OUT] = {TFH_CAUSE_HOST_LOGGING, TFH_CAUSE_HOST_LOGGING, false},
	[TFH_SEEN_LOG] = {TFH_CAUSE_HOST_LOGGING, TFH_CAUSE_HOST_LOGGING, false},
	[TFH_SEEN_MUTEX] = {TFH_CAUSE_HOST_LOCK, TFH_CAUSE_HOST_LOCK, true},
	[TFH_SEEN_SIGNAL] = {TFH_CAUSE_HOST_LOCK, TFH_CAUSE_INPUT_UNKNOWN, true},
	[TFH_SEEN_END] = {TFH_CAUSE_HOST_LOCK, TFH_CAUSE_INPUT_UNKNOWN, true},
	[TFH_SEEN_TIMER] = {TFH_CAUSE_HOST_SLEEP, TFH_CAUSE_HOST_SLEEP, true},
};

static bool seen_of(const struct tfh_facts *facts, uint32_t thread, int64_t t0, int64_t t1,
		    struct tfh_seen *out)
{
	if (thread != TFH_ANY_THREAD)
		return tfh_stack_samples_divide(facts->samples, thread, t0, t1, out);
	for (uint32_t i = 0; i < facts->feed->n_threads; i++)
		if (facts->thread[i].drives &&
		    tfh_stack_samples_divide(facts->samples, i, t0, t1, out))
			return true;
	return false;
}

enum tfh_cause tfh_plain_cause(int at)
{
	return at < TFH_SEEN_COUNT ? rows[at].cause : tfh_role_cause(tfh_at_role(at));
}

/* The other thread that this one waited for is known, and that time is charged to it. Only this
 * thread's own time remains. Returns the part of it for which the thread had waited for a lock
 * before, and could have done the same but for the lock. */
static double take_own(struct tfh_seen *seen)
{
	double own = 0, held = seen->part[TFH_SEEN_MUTEX];

	for (int i = 0; i < TFH_AT_COUNT; i++) {
		enum tfh_cause cause = tfh_plain_cause(i);
		if (cause == TFH_CAUSE_HOST_LOCK || cause == TFH_CAUSE_HOST_WAIT)
			seen->part[i] = 0;
		own += seen->part[i];
	}
	for (int i = 0; i < TFH_AT_COUNT && own > 0; i++)
		seen->part[i] /= own;
	if (own <= 0)
		seen->part[TFT_STATE_RUNNING] = 1;
	return !TFH_DETECT_HELD || held <= 0 ? 0 : held < own ? held / own : 1;
}

static enum tfh_cause cause_of_writing(const struct tfh_facts *facts)
{
	return facts->writes == TFH_WRITES_BYTES ? TFH_CAUSE_HOST_CHECKPOINT
						 : TFH_CAUSE_HOST_LOGGING;
}

/* The cause of what the program was seen to do. `cause`: by the place alone; the rest of the run
 * may show another one. */
static enum tfh_cause cause_at_place(const struct tfh_facts *facts, enum tfh_role role,
				     enum tfh_cause cause)
{
	switch (role) {
	case TFH_ROLE_FIRST:
		return facts->much_kernel ? TFH_CAUSE_INPUT_READ : cause;
	case TFH_ROLE_MAP:
		return facts->much_kernel && facts->loader && !facts->feed->imported
			       ? TFH_CAUSE_INPUT_READ
			       : cause;
	case TFH_ROLE_WRITE:
		return facts->writes ? cause_of_writing(facts) : cause;
	case TFH_ROLE_LATER:
		return facts->writes && facts->much_kernel ? cause_of_writing(facts) : cause;
	case TFH_ROLE_REWRITE:
		/* No kernel was compiled in the second half of the launches, so rewriting there is
		 * part of dispatch. */
		return facts->launches_loaded * 2 < facts->launches ? TFH_CAUSE_HOST_LAUNCH : cause;
	case TFH_ROLE_QUEUE:
		/* A queue of the program itself, in addition to a pipeline that delivers its
		 * batches. */
		return facts->told	  ? TFH_CAUSE_HOST_WAIT
		       : facts->consumers ? TFH_CAUSE_HOST_LOCK
					  : cause;
	case TFH_ROLE_SENT:
		return facts->consumers || facts->told ? TFH_CAUSE_HOST_WAIT : cause;
	case TFH_ROLE_MADE:
		/* No other thread or process was seen at work. */
		return facts->consumers || !facts->makers ? TFH_CAUSE_HOST_LOCK : cause;
	case TFH_ROLE_GIVEN:
		return facts->consumers || !facts->workers || facts->threads ? TFH_CAUSE_HOST_LOCK
									     : cause;
	case TFH_ROLE_AWAIT:
		/* One of the program's own threads works: it may be that one. */
		return facts->makers && !facts->workers ? TFH_CAUSE_HOST_LOCK : cause;
	default:
		return cause;
	}
}

/* Unpacking an answer, or waiting for one in a library's function, is not making a batch. */
static enum tfh_cause cause_of_answer(int at, enum tfh_cause cause)
{
	if (tfh_cause_part(cause) != TFH_PART_INPUT)
		return cause;
	return tfh_role_waits(tfh_at_role(at)) ? TFH_CAUSE_HOST_WAIT : TFH_CAUSE_HOST_PYTHON;
}

enum tfh_cause tfh_sample_cause(const struct tfh_facts *facts, int at, enum tfh_feeds feeds)
{
	enum tfh_role role = tfh_at_role(at);
	bool place = at >= TFH_SEEN_COUNT;
	/* Data received from outside after results were fetched, and before the next copy to the
	 * device, is no batch if another process does the same work (it sends its results) or
	 * answers this one. */
	bool back =
		feeds == TFH_FEEDS_BACK && ((TFH_DETECT_PEERS && facts->peer) || facts->answers);
	bool exchange = back && !place && rows[at].cause == TFH_CAUSE_HOST_WAIT;
	/* If results were fetched before, a thread whose end is waited for may have worked on these
	 * instead of making a batch. */
	bool ended = feeds == TFH_FEEDS_BACK && at == TFH_SEEN_END;
	bool loads = feeds != TFH_FEEDS_NOT && !facts->consumers && !place && !exchange && !ended;
	enum tfh_cause cause = loads ? rows[at].feeding : tfh_plain_cause(at);

	if (tfh_awaits_work(at) && cause == TFH_CAUSE_HOST_LOCK && facts->others_run &&
	    !tfh_stack_samples_python(facts->samples))
		return TFH_CAUSE_HOST_CODE;

	/* No thread or process of the job was seen making batches, so they come from another
	 * machine. */
	if (TFH_DETECT_OVER_SOCKET && at == TFT_STATE_SOCKET && loads && !facts->makers &&
	    !facts->workers)
		cause = TFH_CAUSE_INPUT_REMOTE;
	if (at == TFT_STATE_GIL && facts->lock_feeds)
		cause = TFH_CAUSE_INPUT_UNKNOWN;
	else if (at == TFT_STATE_GIL && facts->lock_logs)
		cause = TFH_CAUSE_HOST_LOGGING;
	cause = cause_at_place(facts, role, cause);
	if (place && feeds == TFH_FEEDS_BACK && facts->answers)
		cause = cause_of_answer(at, cause);
	if (cause == TFH_CAUSE_HOST_LOCK && facts->others_launch && at != TFH_SEEN_MUTEX)
		cause = TFH_CAUSE_HOST_LAUNCH;
	if (cause == TFH_CAUSE_HOST_LOCK && facts->calls_back && role != TFH_ROLE_QUEUE)
		cause = TFH_CAUSE_HOST_CALLBACK;
	return cause == TFH_CAUSE_HOST_PYTHON && !tfh_stack_samples_python(facts->samples)
		       ? TFH_CAUSE_HOST_CODE
		       : cause;
}

enum tfh_cause tfh_seen_cause(const struct tfh_accounts *accounts, const struct tfh_seen_sample *k)
{
	enum tfh_cause cause = tfh_sample_cause(accounts->facts, k->at, k->feeds), exchange;
	int64_t until;

	exchange = tfh_exposed_at(accounts->exposed, k->t, k->t + 1, &until);
	return exchange != TFH_CAUSE_NONE && tfh_may_exchange(cause) ? exchange : cause;
}

static bool is_plain(const struct tfh_facts *facts, int at)
{
	if (at < TFH_SEEN_COUNT)
		return rows[at].plain;
	switch (tfh_at_role(at)) {
	case TFH_ROLE_FIRST:
	case TFH_ROLE_LATER:
		return !facts->much_kernel;
	case TFH_ROLE_WRITE:
		return !facts->writes;
	case TFH_ROLE_LOCK:
	case TFH_ROLE_WAIT:
	case TFH_ROLE_TAKE:
	case TFH_ROLE_RECEIVE:
	case TFH_ROLE_QUEUE:
	case TFH_ROLE_MADE:
	case TFH_ROLE_SENT:
	case TFH_ROLE_GIVEN:
		return true;
	default:
		return false;
	}
}

bool tfh_sample_compiles(const struct tfh_facts *facts, int at)
{
	return tfh_role_compiles(tfh_at_role(at)) &&
	       tfh_sample_cause(facts, at, TFH_FEEDS_NOT) == TFH_CAUSE_HOST_COMPILE;
}

void tfh_find_compiling_steps(struct tfh_accounts *accounts)
{
	const struct tfh_loops *loops = accounts->loops;
	size_t at = SIZE_MAX;
	uint32_t train = 0, compile = 0, evaluate = 0;

	for (size_t i = 0; i < tfh_stack_samples_count(accounts->facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(accounts->facts->samples, i);
		bool evaluates = tfh_at_role(k.at) == TFH_ROLE_EVALUATE;
		if (!evaluates && !tfh_sample_compiles(accounts->facts, k.at))
			continue;
		at = tfh_window_of(loops, k.t, at);
		if (at == SIZE_MAX || loops->window.v[at].segment == TFH_SEGMENT_WARMUP)
			continue;
		evaluate += evaluates;
		compile += !evaluates;
		train += !evaluates && loops->window.v[at].segment == TFH_SEGMENT_TRAIN;
	}
	accounts->compiles = train >= TFH_ACCOUNT_COMPILING_SAMPLES;
	accounts->evaluates = evaluate >= TFH_ACCOUNT_COMPILING_SAMPLES && evaluate > compile;
}

int64_t tfh_compiles_in(const struct tfh_accounts *accounts, uint32_t thread, int64_t t0,
			int64_t t1)
{
	const struct tfh_facts *facts = accounts->facts;
	const struct tfh_stack_samples *s = facts->samples;
	size_t n = tfh_samples_within_count(s);
	double all = 0, compiling = 0;

	if (!accounts->compiles)
		return 0;
	for (size_t i = TFH_BISECT(k, 0, n, tfh_samples_within_at(s, k).t < t0); i < n; i++) {
		struct tfh_seen_sample k = tfh_samples_within_at(s, i);
		struct tfh_model_line frame[TFH_VERDICT_FRAMES];
		if (k.t >= t1)
			break;
		if (k.thread != thread)
			continue;
		enum tfh_role role = tfh_place_role(frame, tfh_frames_at(facts, k.place, frame),
						    TFH_ORDER_UNKNOWN);
		all += k.ns;
		compiling += tfh_role_compiles(role) ? k.ns : 0;
	}
	return all > 0 ? (int64_t)(compiling / all * (double)(t1 - t0)) : 0;
}

/* Samples of short pauses are pooled over the whole run. Compiling that was seen only at its
 * beginning, and in no training step, is not part of the steps' time: removes it. False if hardly
 * anything else remains. */
static bool leave_compiling(const struct tfh_facts *facts, struct tfh_seen *seen)
{
	double compiling = 0;

	for (int i = TFH_SEEN_COUNT; i < TFH_AT_COUNT; i++)
		if (tfh_sample_compiles(facts, i)) {
			compiling += seen->part[i];
			seen->part[i] = 0;
		}
	for (int i = 0; i < TFH_AT_COUNT && compiling < 1; i++)
		seen->part[i] /= 1 - compiling;
	return compiling < TFH_ACCOUNT_MOSTLY;
}

/* Whether no place of the program was seen: a thread of a library. */
static bool is_library_thread(const struct tfh_seen *seen)
{
	for (int i = TFH_SEEN_COUNT; i < TFH_AT_COUNT; i++)
		if (seen->part[i] > 0)
			return false;
	return true;
}

/* A compiler lets other threads work and wait: what these do meanwhile is part of compiling.
 * Returns the share of [t0, t1) in which another thread of the program compiles. */
static double others_compile(const struct tfh_facts *facts, uint32_t thread, int64_t t0, int64_t t1)
{
	struct tfh_seen seen;
	double most = 0;

	for (uint32_t i = 0; i < facts->feed->n_threads; i++) {
		double share = 0;
		if (i == thread || !facts->thread[i].drives ||
		    !tfh_stack_samples_divide(facts->samples, i, t0, t1, &seen))
			continue;
		for (int at = TFH_SEEN_COUNT; at < TFH_AT_COUNT; at++)
			share += tfh_sample_compiles(facts, at) ? seen.part[at] : 0;
		most = share > most ? share : most;
	}
	return most;
}

bool tfh_pause_causes(const struct tfh_accounts *accounts, uint32_t thread, int64_t t0, int64_t t1,
		      bool handed, enum tfh_cause usual, double share[TFH_CAUSE_COUNT])
{
	const struct tfh_facts *facts = accounts->facts;
	struct tfh_seen seen;
	double held = 0;

	memset(share, 0, TFH_CAUSE_COUNT * sizeof(*share));
	if (!facts->samples || !seen_of(facts, thread, t0, t1, &seen))
		return false;
	double compiling = TFH_DETECT_OTHERS_COMPILE && accounts->compiles &&
					   thread != TFH_ANY_THREAD && is_library_thread(&seen)
				   ? others_compile(facts, thread, t0, t1)
				   : 0;
	if (!accounts->compiles && !leave_compiling(facts, &seen))
		return false;
	if (handed)
		held = take_own(&seen);
	for (int i = 0; i < TFH_AT_COUNT; i++) {
		bool place_tells = usual == TFH_CAUSE_HOST_CALLBACK && is_plain(facts, i);
		share[place_tells ? usual : tfh_sample_cause(facts, i, seen.feeds)] +=
			seen.part[i] * (1 - compiling);
	}
	share[TFH_CAUSE_HOST_COMPILE] += compiling;
	share[TFH_CAUSE_HOST_LOCK] += share[TFH_CAUSE_HOST_CODE] * held;
	share[TFH_CAUSE_HOST_CODE] *= 1 - held;
	return true;
}

enum tfh_cause tfh_part_cause(const struct tfh_facts *facts, const struct tfh_cover_part *part,
			      enum tfh_cause usual)
{
	if (!part->at || (usual == TFH_CAUSE_HOST_CALLBACK && is_plain(facts, part->at)))
		return usual;
	return tfh_sample_cause(facts, part->at, TFH_FEEDS_NOT);
}

bool tfh_cover_causes(const struct tfh_accounts *accounts, enum tfh_covered by, uint32_t thread,
		      int64_t t0, int64_t t1, enum tfh_cause usual, double share[TFH_CAUSE_COUNT])
{
	const struct tfh_cover *c = accounts->cover;
	int64_t all = 0;

	memset(share, 0, TFH_CAUSE_COUNT * sizeof(*share));
	if (by != TFH_COVERED_CODE && by != TFH_COVERED_OTHER)
		return false;
	for (size_t i = tfh_cover_at(c, thread, t0);
	     i < c->first[thread + 1] && c->part.v[i].t0 < t1; i++) {
		const struct tfh_cover_part *x = &c->part.v[i];
		int64_t ns = (x->t1 < t1 ? x->t1 : t1) - (x->t0 > t0 ? x->t0 : t0);
		if (tfh_cover_part_is(x) != by)
			continue;
		share[tfh_part_cause(accounts->facts, x, usual)] += (double)ns;
		all += ns;
	}
	for (int i = 0; i < TFH_CAUSE_COUNT && all; i++)
		share[i] /= (double)all;
	return all && share[usual] < 1;
}
