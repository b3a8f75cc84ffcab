/*
 * Finds the stage of the input pipeline that is too slow, by capacity. Goes upstream from the
 * training loop: a synchronous stage costs its self time; an asynchronous one is only to blame if
 * its consumer waited in it while its own thread was not waiting for input. So neither Prefetch nor
 * a ParallelMap without input is ever named.
 */
#include <string.h>

#include "base/text.h"
#include "judge/account/account.h"

static bool has_type(const struct tfh_stage_use *s, const char *word)
{
	return strstr(s->type, word) != NULL;
}

static bool has_child(const struct tfh_accounts *accounts, int32_t at, const char *word)
{
	for (size_t i = 0; i < accounts->facts->stage.n; i++)
		if (accounts->facts->stage.v[i].parent == at &&
		    has_type(&accounts->facts->stage.v[i], word))
			return true;
	return false;
}

/*
 * Whether a Generator only relays. For replicas, TensorFlow puts an iterator on each device, a
 * Prefetch over a Generator, which fetches from the host's iterator over the program's own
 * pipeline. Such a Generator waits for that pipeline and is never slow itself. A generator of the
 * program itself is below a FlatMap.
 */
static bool relays(const struct tfh_accounts *accounts, int32_t at)
{
	int32_t up = accounts->facts->stage.v[at].parent;

	return !strcmp(accounts->facts->stage.v[at].type, "Generator") && up >= 0 &&
	       !has_type(&accounts->facts->stage.v[up], "FlatMap");
}

/* The root of the program's own pipeline if stage `at`, the first of a device's iterator, only
 * prefetches from it; else `at`. */
static int32_t relayed_to(const struct tfh_accounts *accounts, int32_t at)
{
	bool relay = false;

	for (size_t i = 0; at >= 0 && i < accounts->facts->stage.n; i++)
		relay |= accounts->facts->stage.v[i].parent == at && relays(accounts, (int32_t)i);
	for (size_t i = 0; relay && i < accounts->facts->stage.n; i++)
		if (accounts->facts->stage.v[i].parent == accounts->facts->stage.v[at].parent &&
		    !strcmp(accounts->facts->stage.v[i].type, "Root"))
			return (int32_t)i;
	return at;
}

/* The stage that the training loop calls. */
static int32_t first_stage(const struct tfh_accounts *accounts)
{
	int32_t best = -1;

	if (accounts->loops->train_group >= 0) {
		uint32_t member = accounts->loops->group.v[accounts->loops->train_group].series;
		best = accounts->facts->series.v[member].root;
	}
	for (size_t i = 0; best < 0 && i < accounts->facts->stage.n; i++)
		if (accounts->facts->stage.v[i].time.calls)
			best = (int32_t)i;
	return relayed_to(accounts, best);
}

/* Whether a stage is a relaying Generator, or has only such stages below it. Pipelines share one
 * root. */
static bool on_device(const struct tfh_accounts *accounts, int32_t at, int depth)
{
	bool found = relays(accounts, at);

	if (found || accounts->facts->stage.v[at].parent < 0 || depth > TFH_ACCOUNT_STAGE_DEPTH ||
	    !strcmp(accounts->facts->stage.v[at].type, "Root"))
		return found;
	for (size_t i = 0; i < accounts->facts->stage.n; i++) {
		if (accounts->facts->stage.v[i].parent != at)
			continue;
		if (!on_device(accounts, (int32_t)i, depth + 1))
			return false;
		found = true;
	}
	return found;
}

static const struct tfh_stage_time *time_of(const struct tfh_accounts *accounts, int32_t at,
					    bool steps)
{
	return steps ? &accounts->stage[at].with_between : &accounts->facts->stage.v[at].time;
}

/* The stage that takes longest, of a synchronous stage and those it calls on the same thread; for
 * an asynchronous one, the time waiting in it counts. `host`: only stages of the program's own
 * pipeline, in training steps and between loops; otherwise all stages, over the whole run. */
static int32_t slowest_below(const struct tfh_accounts *accounts, int32_t top, bool host)
{
	int32_t best = top;
	int64_t most = time_of(accounts, top, host)->self;

	for (size_t i = 0; i < accounts->facts->stage.n; i++) {
		const struct tfh_stage_use *s = &accounts->facts->stage.v[i];
		int32_t up = s->parent;
		while (up >= 0 && up != top && !accounts->facts->stage.v[up].async)
			up = accounts->facts->stage.v[up].parent;
		if (up != top || (int32_t)i == top)
			continue;
		const struct tfh_stage_time *t = time_of(accounts, (int32_t)i, host);
		int64_t cost = s->async ? t->total : t->self;
		if (cost > most && !(host && on_device(accounts, (int32_t)i, 0))) {
			most = cost;
			best = (int32_t)i;
		}
	}
	return best;
}

bool tfh_input_async(const struct tfh_accounts *accounts)
{
	int32_t at = first_stage(accounts);

	if (accounts->facts->restarts) /* nothing is made ahead */
		return false;
	if (at < 0)
		return accounts->facts->loader && !accounts->asker_works &&
		       strstr(accounts->facts->loader, "MultiProcess");
	return accounts->facts->stage.v[slowest_below(accounts, at, false)].async;
}

/* Whether the stage that feeds this one was recorded. */
static bool is_fed(const struct tfh_facts *facts, size_t at)
{
	TFH_EACH (i, facts->stage.n)
		if (facts->stage.v[i].parent == (int32_t)at && facts->stage.v[i].time.calls)
			return true;
	return false;
}

int64_t tfh_input_work(const struct tfh_accounts *accounts)
{
	const struct tfh_facts *facts = accounts->facts;
	int64_t ns = 0;

	TFH_EACH (i, facts->stage.n) {
		const struct tfh_stage_use *s = &facts->stage.v[i];
		bool prefetch = has_type(s, "Prefetch");
		if (prefetch ? !is_fed(facts, i) : s->async)
			return INT64_MAX;
		ns += prefetch ? 0 : s->time.self;
	}
	return facts->stage.n && facts->batch.n ? ns / (int64_t)facts->batch.n : INT64_MAX;
}

static int32_t starved_by(const struct tfh_accounts *accounts, int32_t at)
{
	int32_t best = -1;

	for (size_t i = 0; i < accounts->facts->stage.n; i++)
		if (accounts->facts->stage.v[i].parent == at &&
		    !on_device(accounts, (int32_t)i, 0) &&
		    (best < 0 || accounts->stage[i].waited > accounts->stage[best].waited))
			best = (int32_t)i;
	return best;
}

/*
 * Whether an asynchronous stage waits for the input of the asynchronous stage `up` that feeds it: a
 * parallel map for the files of a parallel interleave, which has hardly any work of its own.
 * Buffers between the two hide part of that from the map's threads, and part of the map's work from
 * the interleave's. So it is the reader if the interleave's threads were in it for most of the
 * loop's waiting, and for longer than the map takes without its own waiting for the interleave.
 */
static bool starved_beyond(const struct tfh_accounts *accounts, int32_t at, int32_t up,
			   int64_t waited)
{
	int32_t input = accounts->facts->stage.v[up].async ? starved_by(accounts, up) : -1;
	int64_t own = time_of(accounts, at, true)->total - time_of(accounts, up, true)->total;

	return input >= 0 && !has_type(&accounts->facts->stage.v[up], "Prefetch") &&
	       (double)accounts->stage[input].waited >=
		       TFH_ACCOUNT_STARVED_SHARE * (double)waited &&
	       time_of(accounts, input, true)->total > own;
}

/* The stage that does the work counted for stage `at`: skip() and shard() fetch elements that they
 * drop, and TensorFlow counts that as their own time. */
static int32_t maker_of(const struct tfh_accounts *accounts, int32_t at)
{
	int32_t up = at;

	while (up >= 0 && (has_type(&accounts->facts->stage.v[up], "Skip") ||
			   has_type(&accounts->facts->stage.v[up], "Shard"))) {
		at = up;
		up = starved_by(accounts, at);
	}
	return up >= 0 ? up : at;
}

/*
 * Cause of a slow stage, by the first matching word of its type. A stage's self time is that of the
 * function it calls, if any. That includes a flat_map's; but if its function only creates readers,
 * the time is opening files and counts as reading.
 */
static enum tfh_cause cause_of(const struct tfh_accounts *accounts, int32_t at)
{
	static const struct {
		const char *word;
		enum tfh_cause cause;
	} table[] = {
		{"Generator", TFH_CAUSE_INPUT_GENERATOR},
		{"DataService", TFH_CAUSE_INPUT_REMOTE},
		{"FlatMap", TFH_CAUSE_INPUT_MAP},
		{"Map", TFH_CAUSE_INPUT_MAP},
		{"Filter", TFH_CAUSE_INPUT_MAP},
		{"Scan", TFH_CAUSE_INPUT_MAP},
		{"TakeWhile", TFH_CAUSE_INPUT_MAP},
		{"GroupBy", TFH_CAUSE_INPUT_MAP},
		{"ParseExample", TFH_CAUSE_INPUT_DECODE},
		{"Interleave", TFH_CAUSE_INPUT_READ},
		{"Record", TFH_CAUSE_INPUT_READ},
		{"TextLine", TFH_CAUSE_INPUT_READ},
		{"Snapshot", TFH_CAUSE_INPUT_READ},
		{"Load", TFH_CAUSE_INPUT_READ},
		{"CSV", TFH_CAUSE_INPUT_READ},
		{"Sql", TFH_CAUSE_INPUT_READ},
		{"LMDB", TFH_CAUSE_INPUT_READ},
		{"Batch", TFH_CAUSE_INPUT_BATCH},
		/* into elements, which a batch joins again */
		{"TensorSlice", TFH_CAUSE_INPUT_BATCH},
		{"Shuffle", TFH_CAUSE_INPUT_SHUFFLE},
		{"Cache", TFH_CAUSE_INPUT_CACHE},
	};
	static const char *const readers[] = {"Record", "TextLine", "CSV",
					      "Sql",	"LMDB",	    "Snapshot"};
	const struct tfh_stage_use *s;

	at = maker_of(accounts, at);
	s = &accounts->facts->stage.v[at];
	if (has_type(s, "FlatMap") && has_child(accounts, at, "Generator"))
		return TFH_CAUSE_INPUT_GENERATOR;
	for (size_t i = 0; has_type(s, "FlatMap") && i < sizeof(readers) / sizeof(*readers); i++)
		if (has_child(accounts, at, readers[i]))
			return TFH_CAUSE_INPUT_READ;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (has_type(s, table[i].word))
			return table[i].cause;
	return TFH_CAUSE_INPUT_UNKNOWN;
}

static bool is_in(const struct tfh_accounts *accounts, enum tfh_segment kind, int64_t t,
		  size_t *window)
{
	*window = tfh_window_of(accounts->loops, t, *window);
	return *window != SIZE_MAX && accounts->loops->window.v[*window].segment == kind;
}

/* Whether a sample of another thread or a child process shows it making batches in a window of that
 * kind; `m`: how. */
static bool works_in(const struct tfh_accounts *accounts, enum tfh_segment kind,
		     const struct tfh_child_sample *k, size_t *window, struct tfh_maker *m)
{
	return is_in(accounts, kind, k->t, window) && tfh_maker_at(accounts->facts, k, m) &&
	       m->busy;
}

/* Whether a worker is still starting: one that is spawned imports what the program imports. */
static bool imports(const struct tfh_maker *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (tfh_is_import(&m->frame[i]))
			return true;
	return false;
}

/* Adds what a loader's worker processes were doing, by cause. */
static void add_workers(const struct tfh_accounts *accounts, enum tfh_segment kind,
			double seen[TFH_CAUSE_COUNT])
{
	const struct tfh_facts *facts = accounts->facts;
	struct tfh_maker m;
	size_t window = SIZE_MAX;

	for (size_t i = 0; i < facts->child.n; i++) {
		const struct tfh_child_sample *k = &facts->child.v[i];
		if (k->thread || !works_in(accounts, kind, k, &window, &m))
			continue;
		bool starts = imports(&m);
		enum tfh_role role =
			starts ? TFH_ROLE_LOADER : tfh_loader_role(m.frame, m.n, k->state);
		if (starts || role != TFH_ROLE_LOADER)
			seen[tfh_role_cause(role)] += k->ns;
	}
}

/* The same for the threads that ask for batches. */
static void add_askers(const struct tfh_accounts *accounts, enum tfh_segment kind,
		       double seen[TFH_CAUSE_COUNT])
{
	const struct tfh_facts *facts = accounts->facts;
	size_t window = SIZE_MAX;

	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		enum tfh_cause cause = tfh_sample_cause(facts, k.at, k.feeds);
		if (is_in(accounts, kind, k.t, &window) &&
		    tfh_cause_class(cause) == TFH_CLASS_INPUT_BOUND)
			seen[cause] += k.ns;
	}
}

static enum tfh_cause most_of(const double seen[TFH_CAUSE_COUNT])
{
	int best = TFH_CAUSE_INPUT_DATALOADER;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		best = seen[c] > seen[best] ? c : best;
	return (enum tfh_cause)best;
}

/* Whether the thread that asks for batches spends most of that time on work of its own: a sampler
 * runs in it however many workers there are, and they wait for the indices. */
static bool makes_itself(const double askers[TFH_CAUSE_COUNT], enum tfh_cause asked)
{
	double all = 0;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		all += askers[c];
	return asked != TFH_CAUSE_INPUT_DATALOADER && asked != TFH_CAUSE_INPUT_UNKNOWN &&
	       2 * askers[asked] > all;
}

/* Whether a thread at this place waits for a batch that a worker makes. */
static bool awaits_batch(const struct tfh_facts *facts, uint32_t place)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t n = tfh_frames_at(facts, place, frame);

	for (uint32_t i = 0; i < n; i++)
		if (strstr(frame[i].file, "/queues.py") || strstr(frame[i].file, "/queue.py"))
			return tfh_starts_with(frame[i].function, "Queue.get") ||
			       !strcmp(frame[i].function, "get");
	return false;
}

/* Whether the beginnings and ends of epochs mostly start and end the loader's workers, rather than
 * wait for what these make: there, the thread that asks for batches is in the loader's own code. */
static bool remakes_workers(const struct tfh_accounts *accounts)
{
	const struct tfh_facts *facts = accounts->facts;
	double all = 0, own = 0;
	size_t window = SIZE_MAX;

	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		if (!is_in(accounts, TFH_SEGMENT_BETWEEN, k.t, &window))
			continue;
		bool loads = tfh_sample_cause(facts, k.at, k.feeds) == TFH_CAUSE_INPUT_DATALOADER;
		all += k.ns;
		own += loads && !awaits_batch(facts, k.place) ? k.ns : 0;
	}
	return 2 * own > all;
}

/* The cause of a loader's time in windows of a kind, by samples of its worker processes or, if it
 * has none, of the thread that asks for batches: other child processes do not make them. */
static enum tfh_cause loader_cause(struct tfh_accounts *accounts, enum tfh_segment kind)
{
	double workers[TFH_CAUSE_COUNT] = {0}, askers[TFH_CAUSE_COUNT] = {0};
	bool alone = strstr(accounts->facts->loader, "SingleProcess") != NULL;

	if (TFH_DETECT_REMAKES && kind == TFH_SEGMENT_BETWEEN && !alone &&
	    remakes_workers(accounts))
		return TFH_CAUSE_INPUT_DATALOADER;
	add_workers(accounts, kind, workers);
	add_askers(accounts, kind, askers);
	enum tfh_cause made = most_of(workers), asked = most_of(askers);
	bool works = TFH_DETECT_ASKERS && !alone && makes_itself(askers, asked);
	bool asks = alone ? askers[asked] > 0 : works || !(workers[made] > 0);
	if (kind == TFH_SEGMENT_TRAIN)
		accounts->asker_works = works;
	if (kind == TFH_SEGMENT_BETWEEN && !(asks ? askers[asked] > 0 : workers[made] > 0))
		return accounts->input_cause;
	return asks ? asked : made;
}

/* If neither a pipeline nor a loader is known: the cause of most of the time of the thread or
 * process that makes the batches. */
static enum tfh_cause maker_cause(const struct tfh_accounts *accounts)
{
	const struct tfh_facts *facts = accounts->facts;
	double seen[TFH_CAUSE_COUNT] = {0}, all = 0;
	struct tfh_maker m;
	size_t window = SIZE_MAX, n = 0;

	for (size_t i = 0; i < facts->child.n; i++) {
		const struct tfh_child_sample *k = &facts->child.v[i];
		if (!works_in(accounts, TFH_SEGMENT_TRAIN, k, &window, &m))
			continue;
		seen[m.cause] += k->ns;
		all += k->ns;
		n++;
	}
	for (int c = 0; c < TFH_CAUSE_COUNT && n >= TFH_VERDICT_LINE_SAMPLES; c++)
		if (2 * seen[c] > all)
			return (enum tfh_cause)c;
	return TFH_CAUSE_INPUT_UNKNOWN;
}

/* The cause if every batch starts the pipeline anew: no stage is slow. If half of what goes into a
 * shuffle's buffer never leaves it, filling the buffer is what takes long. */
static enum tfh_cause restart_cause(const struct tfh_accounts *accounts)
{
	const struct tfh_facts *facts = accounts->facts;

	for (size_t i = 0; i < facts->stage.n; i++) {
		int32_t up = facts->stage.v[i].parent;
		if (up >= 0 && has_type(&facts->stage.v[up], "Shuffle") &&
		    accounts->stage[up].time.calls &&
		    accounts->stage[i].time.calls >= 2 * accounts->stage[up].time.calls)
			return TFH_CAUSE_INPUT_SHUFFLE;
	}
	return TFH_CAUSE_INPUT_UNKNOWN;
}

/* The slow stage, searched upstream from the first stage: a stage that only passes on what a stage
 * upstream of it delivers late is not the slow one. */
static int32_t slow_stage(const struct tfh_accounts *accounts, int32_t at, int64_t waited)
{
	for (int depth = 0; at >= 0 && depth < TFH_ACCOUNT_STAGES_UP; depth++) {
		if (!accounts->facts->stage.v[at].async) {
			int32_t slow = slowest_below(accounts, at, true);
			if (slow == at || !accounts->facts->stage.v[slow].async)
				return slow;
			at = slow;
			continue;
		}
		int32_t up = starved_by(accounts, at);
		bool starved = up >= 0 && ((double)accounts->stage[up].waited >=
						   TFH_ACCOUNT_STARVED_SHARE * (double)waited ||
					   starved_beyond(accounts, at, up, waited));
		if (!starved && !has_type(&accounts->facts->stage.v[at], "Prefetch"))
			return at;
		at = up;
	}
	return at;
}

/* Whether the stage feeds a shuffle(), which gives nothing before its buffer is full. */
static bool fills_buffer(const struct tfh_facts *facts, int32_t at)
{
	for (int depth = 0; at >= 0 && depth < TFH_ACCOUNT_STAGES_UP && TFH_DETECT_BUFFERS;
	     depth++) {
		at = facts->stage.v[at].parent;
		if (at >= 0 && has_type(&facts->stage.v[at], "Shuffle"))
			return true;
	}
	return false;
}

/* Whether loops wait at their beginnings only because a shuffle's buffer is filled then: while
 * their steps run, there is time enough to make what is waited for. */
static bool could_hide(const struct tfh_accounts *accounts, int64_t steps, int64_t between)
{
	double scale = accounts->judged_steps
			       ? (double)accounts->train_steps / (double)accounts->judged_steps
			       : 0;

	return (double)between < scale * (double)(accounts->train_ns - steps);
}

void tfh_input_judge(struct tfh_accounts *accounts)
{
	const struct tfh_others *between = &accounts->other[TFH_SEGMENT_BETWEEN];
	int64_t steps = accounts->cause_ns[TFH_CAUSE_INPUT_UNKNOWN];
	int64_t waited = steps + between->sum.cause[TFH_CAUSE_INPUT_UNKNOWN];
	int32_t at = accounts->facts->restarts ? -1 : first_stage(accounts);

	accounts->guilty = -1;
	accounts->input_cause = accounts->between_cause = TFH_CAUSE_INPUT_UNKNOWN;
	if (waited > 0)
		at = slow_stage(accounts, at, waited);
	if (accounts->facts->restarts)
		accounts->input_cause = restart_cause(accounts);
	else if (at < 0 && waited)
		accounts->input_cause = accounts->facts->loader
						? loader_cause(accounts, TFH_SEGMENT_TRAIN)
						: maker_cause(accounts);
	else if (at >= 0 && waited)
		accounts->input_cause = cause_of(accounts, at);
	accounts->between_cause =
		at < 0 && accounts->facts->loader ? loader_cause(accounts, TFH_SEGMENT_BETWEEN)
		: fills_buffer(accounts->facts, at) && could_hide(accounts, steps, waited - steps)
			? TFH_CAUSE_INPUT_SHUFFLE
			: accounts->input_cause;
	if (!waited)
		return;
	/* A stage is only named if the waiting for it could decide the class. */
	if (at >= 0 &&
	    (double)waited >= TFH_BLOCKING_SHARE * (double)(accounts->train_ns + between->ns))
		accounts->guilty = at;
	accounts->cause_ns[TFH_CAUSE_INPUT_UNKNOWN] = 0;
	accounts->cause_ns[accounts->input_cause] += steps;
}
