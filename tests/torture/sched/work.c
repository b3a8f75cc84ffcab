/* See work.h. Every record carries the task's number, a number of its own and a check; a bit for
 * each says whether it was published, and how often it was read. */
#include "points.h"
#include "work.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "record/gpu/gpu.h"
#include "record/ring/journal.h"
#include "record/usual.h"

#define WORKERS 8u
#define RECORDS 1024u
#define CUTS 16
#define FN_TRIGGER TFH_FN_cuLaunchKernel
#define FN_OTHER TFH_FN_cuCtxSynchronize
#define JOURNAL_SIZE (tft_journal_bytes() + (1u << 20))

/* When it was asked for and when it was published, in points; 0: not. */
struct fate {
	uint32_t asked, published;
	uint16_t read;
};

static struct {
	uint64_t seed;
	bool several;
	uint32_t workers, used[WORKERS];
	struct fate fate[WORKERS][RECORDS];
	uint64_t refused;      /* calls that a recording recorder did not take */
	uint64_t refused_free; /* and such as it need not count: a signal within our own code */
	uint64_t lost, damaged;
	uint64_t next[64]; /* by the recorder's thread number: number of the next record */
	/* While the recorder is closed, for an end or an exec, nothing need be recorded. */
	struct {
		uint32_t from, to;
	} cut[CUTS];
	uint32_t cuts;
	bool may_refuse, left, names, triggered, excused, early;
	pid_t children[16];
	uint32_t n_children;
} w;

struct work_sums *work_sums;
static __thread uint32_t my_worker;
static __thread bool inside; /* between a call's two ends */

static uint64_t tft_journal_bytes(void)
{
	uint64_t a, b, c, d;

	return tft_journal_plan(&a, &b, &c, &d);
}

static uint64_t check_of(uint64_t worker, uint64_t i)
{
	return (worker + 1) * 0x9e3779b97f4a7c15ull ^ i * 0x2545f4914f6cdd1dull;
}

void work_begins(void)
{
	memset(w.next, 0, sizeof(w.next));
}

void work_read(const struct tfh_rec *r, uint32_t thread, uint64_t number)
{
	if (thread && thread < 64) {
		if (number != w.next[thread])
			work_failed("thread %u: record %llu where %llu comes next", thread,
				    (unsigned long long)number, (unsigned long long)w.next[thread]);
		w.next[thread] = number + 1;
	}
	if (r->kind != TFT_CALL)
		return;
	if (r->w[0] >= w.workers || r->w[1] >= w.used[r->w[0]] ||
	    r->w[2] != check_of(r->w[0], r->w[1]))
		work_failed("a record that nobody made: %llu %llu", (unsigned long long)r->w[0],
			    (unsigned long long)r->w[1]);
	if (++w.fate[r->w[0]][r->w[1]].read > 1)
		work_failed("record %llu of task %llu twice", (unsigned long long)r->w[1],
			    (unsigned long long)r->w[0]);
}

void work_lost(uint64_t n)
{
	w.lost += n;
}

/* ---- calls ---- */

static void refuse(bool counted)
{
	sched_note(counted ? "refused" : "refused within our own code");
	if (counted)
		w.refused++;
	else
		w.refused_free++;
}

/* Numbers the n records of a call, the first of which it returns. */
static uint32_t numbers(uint32_t n, uint32_t asked)
{
	uint32_t first = w.used[my_worker];

	if (first + n > RECORDS)
		work_failed("the check is too small");
	w.used[my_worker] += n;
	for (uint32_t i = 0; i < n; i++)
		w.fate[my_worker][first + i].asked = asked;
	return first;
}

/* Leaves a call of one record in the usual way of driver calls, if it may be left so. */
static bool left_as_usual(struct tfh_self *self, enum tfh_fn fn, uint64_t begin, uint32_t asked)
{
	uint64_t end = tfh_ticks();
	struct tfh_filling f;
	uint32_t i;

	if (!tfh_alone(self) ||
	    !tfh_leave_usual(self, begin, end, tfh_what((uint16_t)fn, TFT_CALL), 0, 0, &f))
		return false;
	work_sums->usual++;
	i = numbers(1, asked);
	tfh_publish_usual(self, &f, my_worker, i, check_of(my_worker, i));
	w.fate[my_worker][i].published = (uint32_t)sched_count() + 1;
	return true;
}

/* One call of n records (a copy with details has several), as a hook makes it. */
static void call(enum tfh_fn fn, uint32_t n)
{
	uint32_t asked = (uint32_t)sched_count() + 1, me = my_worker;
	bool nested = tfh_self.guard != 0, within = inside;
	struct tfh_self *self;
	struct tfh_rec *rec;
	uint64_t begin, end;

	inside = true;
	w.triggered |= fn == FN_TRIGGER && !nested;
	self = tfh_enter(fn, 1, &begin);
	if (!self) {
		refuse(!nested);
		inside = within;
		return;
	}
	if (n == 1 && fn == FN_TRIGGER && left_as_usual(self, fn, begin, asked)) {
		inside = within;
		return;
	}
	end = tfh_leave_quiet(self, begin);
	rec = end ? tfh_reserve(self, n) : NULL;
	if (!rec) {
		refuse(true);
		inside = within;
		return;
	}
	uint32_t first = numbers(n, asked);

	for (uint32_t i = 0; i < n; i++) {
		rec = tfh_reserved(self, i);
		tfh_fill(self, rec, i, (uint16_t)fn, TFT_CALL, begin, end);
		rec->w[0] = me;
		rec->w[1] = first + i;
		rec->w[2] = check_of(me, first + i);
	}
	tfh_publish(self, n);
	for (uint32_t i = 0; i < n; i++)
		w.fate[me][first + i].published = (uint32_t)sched_count() + 1;
	inside = within;
}

static void signalled(void)
{
	int saved = errno;

	call(w.early ? FN_OTHER : FN_TRIGGER, 1);
	errno = saved;
}

/* ---- what a task may do beside ---- */

static uint32_t cut_begin(void)
{
	uint32_t i = w.cuts++;

	if (i >= CUTS)
		work_failed("the check is too small");
	w.cut[i].from = (uint32_t)sched_count();
	w.cut[i].to = UINT32_MAX;
	return i;
}

static void flush(void)
{
	work_sums->flushes += !tfh_flush_now(3000);
}

static void finish(void)
{
	w.left = true;
	cut_begin();
	if (sched_exit_handler)
		sched_exit_handler();
}

static void exec_fails(void)
{
	uint32_t i;

	if (w.left || w.cuts >= CUTS / 2)
		return;
	work_sums->execs++;
	i = cut_begin();
	tfh_exec_begin(NULL);
	tfh_exec_failed();
	/* Two at once: the later one's end counts for both. One that is not over keeps its own, which the end of the process may be. */
	for (uint32_t k = i; k < w.cuts && !w.left; k++)
		if (k == i || w.cut[k].to != UINT32_MAX)
			w.cut[k].to = (uint32_t)sched_count() + 1;
}

/* As `tfhook ctl` does, which has a mapping of its own that stays: without a point at which the recorder could take this one away. */
static void control(uint64_t bits, bool on)
{
	struct tft_journal *j;

	sched_point();
	j = tfh_recording() ? tfh_journal.head : NULL;
	if (!j)
		return;
	w.may_refuse |= on && bits & TFT_CTL_STOP;
	j->control = on ? j->control | bits : j->control & ~bits;
}

static void name(void)
{
	bool nested = tfh_self.guard != 0;
	uint64_t begin;
	struct tfh_self *self = tfh_enter(FN_OTHER, 0, &begin);
	char text[64] = "name";

	if (!self) {
		refuse(!nested);
		return;
	}
	w.names = true;
	text[0] = (char)('a' + sched_random(4));
	inside = true;
	tfh_text_id(self, TFT_NAME_STRING, text, 4 + sched_random(50));
	tfh_leave_quiet(self, begin);
	inside = false;
}

static void child(uint64_t seed);

static void forks(void)
{
	uint64_t seed = sched_random(1ull << 40);
	pid_t pid;

	if (!w.several || w.n_children >= 4)
		return;
	sched_signals(false);
	pid = fork();
	if (!pid)
		child(seed);
	sched_signals(w.seed % 3 == 0);
	work_sums->forks++;
	if (pid > 0)
		w.children[w.n_children++] = pid;
}

static void took(uint64_t since, const char *what)
{
	uint64_t ns = sched_now() - since;

	if (ns > SCHED_SECOND && !w.excused)
		work_failed("%s took %llu ms", what, (unsigned long long)(ns / 1000000));
}

static void act(void)
{
	uint64_t since = sched_now();
	char text[16];
	uint32_t what = (uint32_t)sched_random(100);

	if (what < 45)
		call(FN_TRIGGER, 1);
	else if (what < 55)
		call(FN_OTHER, 1);
	else if (what < 70)
		for (uint64_t i = 2 + sched_random(8); i; i--)
			call(FN_TRIGGER, 1 + (uint32_t)sched_random(9));
	else if (what < 74)
		name();
	else if (what < 80)
		flush();
	else if (what < 83)
		control(TFT_CTL_FLUSH, true);
	else if (what < 86)
		control(TFT_CTL_STOP, sched_random(2));
	else if (what < 88) {
		w.may_refuse = true;
		tfh_pause();
	} else if (what < 90)
		tfh_resume();
	else if (what < 93)
		exec_fails();
	else if (what < 97)
		forks();
	else if (what < 98)
		finish();
	else
		sched_pass();
	snprintf(text, sizeof(text), "action %u", what);
	took(since, text);
}

/* Between two calls none is shown as open. */
static void check_closed(void)
{
	const struct tfh_self *self = &tfh_self;

	for (uint32_t i = 0; i < TFT_OPEN_SLOTS && tfh_own_ring(self) && !self->depth; i++)
		if (self->ring->open[i].fn)
			work_failed("call %u of task %u stays open", i, my_worker);
}

static void *worker(void *arg)
{
	my_worker = (uint32_t)(uintptr_t)arg;
	sched_signals(w.seed % 3 == 0);
	for (uint64_t i = 1 + sched_random(8); i; i--)
		act();
	sched_signals(false);
	check_closed();
	return NULL;
}

/* ---- the check ---- */

static bool in_a_cut(const struct fate *f)
{
	for (uint32_t i = 0; i < w.cuts; i++)
		if (f->published >= w.cut[i].from && f->asked <= w.cut[i].to)
			return true;
	return false;
}

static void check(void)
{
	bool started = tfh_recorder.start_state == TFH_START_DONE;

	work_sums->points += sched_count();
	work_sums->refused += w.refused;
	work_sums->lost += w.lost;
	for (uint32_t t = 0; t < w.workers; t++)
		for (uint32_t i = 0; i < w.used[t]; i++) {
			const struct fate *f = &w.fate[t][i];

			work_sums->published += f->published != 0;
			work_sums->read += f->read;

			/* A process that never launches or copies leaves nothing behind. */
			if (!f->read && f->published && started && !in_a_cut(f))
				work_failed("record %u of task %u, asked for at %u, published at "
					    "%u: not written",
					    i, t, f->asked, f->published);
		}
	if (w.cuts == 1 && w.triggered && !started && !w.excused)
		work_failed("never began to record");
	if (w.cuts == 1 && !w.may_refuse && !w.excused && started && w.lost < w.refused && !w.left)
		work_failed("%llu calls were refused, %llu told as lost",
			    (unsigned long long)w.refused, (unsigned long long)w.lost);
	if (!w.names && w.lost > w.refused + w.refused_free)
		work_failed("%llu told as lost, %llu were", (unsigned long long)w.lost,
			    (unsigned long long)(w.refused + w.refused_free));
}

static void end_of_process(void)
{
	uint64_t since = sched_now();
	bool left = w.left;

	/* As at a regular end, once all threads are joined: the exit handler, then the destructor.
	 */
	finish();
	tfh_finish(true);
	w.left = left;
	took(since, "the end");
	sched_end(); /* the flusher's, too */
	check();
}

static void forget(uint64_t seed, bool several)
{
	for (uint32_t t = 0; t < WORKERS; t++)
		memset(w.fate[t], 0, w.used[t] * sizeof(w.fate[t][0]));
	memset(&w.used, 0, sizeof(w.used));
	memset(&w.next, 0, sizeof(w.next));
	w.seed = seed;
	w.several = several;
	w.refused = w.refused_free = w.lost = w.damaged = 0;
	w.workers = w.cuts = w.n_children = 0;
	w.may_refuse = w.left = w.names = w.triggered = w.excused = w.early = false;
}

/* ---- schedules ---- */

/* Each in a thread of its own, so that nothing of an earlier schedule is left in it. */
static void run_workers(uint32_t n)
{
	w.workers = n;
	for (uint32_t i = 0; i < n; i++)
		sched_task(worker, (void *)(uintptr_t)i);
	sched_join();
}

static void child(uint64_t seed)
{
	bool open = inside, closed = tfh_mode == TFH_MODE_DEAD || tfh_mode == TFH_MODE_HOLD;

	sched_forked(seed);
	sched_pid = getpid();
	sched_fork_child();
	forget(seed, true);
	w.n_children = 4;   /* no grandchildren */
	w.excused = closed; /* a child of a process that is closed stays so */
	/* A call that was open goes on in the child and is not recorded there; others are. */
	if (open)
		tfh_self.depth = 0;
	run_workers(1 + (uint32_t)sched_random(2));
	end_of_process();
	_exit(0);
}

static void wait_for_children(void)
{
	for (uint32_t i = 0; i < w.n_children; i++) {
		int status;

		if (waitpid(w.children[i], &status, 0) != w.children[i] || status)
			work_failed("a child ended with %x", status);
	}
}

static void begin(uint64_t seed, bool several)
{
	forget(seed, several);
	if (several || !sched_pid)
		sched_pid = getpid();
	if (tfh_recorder.pid != sched_pid) /* this process was forked by the fuzzer itself */
		sched_fork_child();
	sched_signal = signalled;
	sched_begin(seed);
}

void work_run(uint64_t seed, bool several)
{
	begin(seed, several);
	run_workers(2 + (uint32_t)sched_random(3));
	end_of_process();
	wait_for_children();
}

/* ---- pairs ---- */

static void one_call(void)
{
	call(FN_TRIGGER, 1);
}

/* Before the recording begins: the call is kept in memory. */
static void early_call(void)
{
	call(FN_OTHER, 1);
}

static void pause_and_resume(void)
{
	w.may_refuse = true;
	tfh_pause();
	tfh_resume();
}

/* Others go on when the old recording's memory is gone, and nothing of a new one is there. */
static void exec_fails_slowly(void)
{
	sched_stops(true);
	exec_fails();
	sched_stops(false);
}

static const struct {
	const char *name;
	void (*run)(void);
} actions[] = {{"early", early_call},
	       {"call", one_call},
	       {"name", name},
	       {"flush", flush},
	       {"pause", pause_and_resume},
	       {"exec", exec_fails},
	       {"slow-exec", exec_fails_slowly},
	       {"exit", finish}};

static struct {
	uint32_t first, second, signal_at, change_at, points;
} pair;

const char *work_action(uint32_t i)
{
	return i < sizeof(actions) / sizeof(actions[0]) ? actions[i].name : NULL;
}

static void do_one(uint32_t i)
{
	uint64_t since = sched_now();

	actions[i].run();
	took(since, actions[i].name);
}

static void *second_of_pair(void *arg)
{
	(void)arg;
	my_worker = 1;
	one_call();
	do_one(pair.second);
	one_call(); /* after a failed exec, recording begins again */
	check_closed();
	return NULL;
}

static void *first_of_pair(void *arg)
{
	(void)arg;
	my_worker = 0;
	w.early = actions[pair.first].run == early_call;
	if (w.early) {
		early_call();
	} else {
		one_call();
		flush(); /* it records */
	}
	sched_task(second_of_pair, NULL);
	sched_signals(true);
	sched_direct(pair.signal_at, pair.change_at);
	do_one(pair.first);
	pair.points = sched_direct_end();
	sched_signals(false);
	one_call();
	check_closed();
	return NULL;
}

uint32_t work_pair(uint32_t first, uint32_t second, uint32_t signal_at, uint32_t change_at)
{
	begin(1, false);
	w.workers = 2;
	pair.first = first;
	pair.second = second;
	pair.signal_at = signal_at;
	pair.change_at = change_at;
	sched_task(first_of_pair, NULL);
	sched_join();
	end_of_process();
	return pair.points;
}

void work_reset(void)
{
	size_t journal = JOURNAL_SIZE;

	__atomic_store_n(&tfh_epoch->generation, 0, __ATOMIC_RELAXED);
	if (sched_fork_child) {
		sched_pid++;
		sched_fork_child();
	}
	tfh_mode = TFH_MODE_COLD;
	sched_unmap(journal);
}
