/* See turns.h. A task waits for its turn on a futex of its own; whoever runs hands the turn on. */
#include "turns.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TASKS 32
#define POINTS_MOST 2000000u /* a schedule has some thousands */
#define POINT_NS 40u
#define EARLY_NS (SCHED_SECOND / 10) /* polls may come before their time: others were slow */
#define ROUNDS 4		     /* PTHREAD_DESTRUCTOR_ITERATIONS */
#define MAPS 64
#define PASSED (1u << 21)

enum { FREE, READY, WAITING, GONE };

struct task {
	uint32_t turn; /* futex */
	uint32_t state;
	const uint32_t *word; /* waits for a wake of it; NULL with WAITING: only for the deadline */
	uint64_t deadline;    /* 0: none */
	bool timed_out, signals, joinable, stops;
	uint64_t priority;
	pthread_t thread, number;
	void *(*run)(void *);
	void *arg;
};

void (*sched_failed)(const char *reason);
void (*sched_signal)(void);
void (*sched_exit_handler)(void), (*sched_fork_child)(void);
pid_t sched_pid;

static struct task tasks[TASKS];
static pthread_t numbers;
static uint32_t n_tasks;
static bool active;
static enum { NOBODY, JOINABLE, ALL } waits_for; /* the first task */
static uint64_t state, points, now = SCHED_SECOND, lowest;
static uint32_t coin;	    /* one in so many points is a change */
static bool by_priority;    /* else by coin */
static uint32_t changes[8]; /* points of a change, by priority */
static struct {
	struct task *task; /* NULL: nobody */
	uint32_t points, signal_at, change_at;
} direct;
static pthread_key_t last_key;
static bool have_key;
static struct {
	void *at;
	size_t size;
} maps[MAPS];
static struct passed {
	const char *function, *note;
	int line;
	uint32_t task;
} passed[PASSED];
static __thread struct task *me;

uint64_t sched_random(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state * 0x2545f4914f6cdd1dull >> 20) % below;
}

uint64_t sched_count(void)
{
	return points;
}

uint64_t sched_now(void)
{
	return now;
}

/* ---- turns ---- */

static void hand_over(struct task *next)
{
	struct task *self = me;
	bool last = self->state == GONE; /* its place may be another's as soon as the turn is */

	if (next == self)
		return;
	__atomic_store_n(&next->turn, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &next->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	if (last)
		return;
	while (!__atomic_exchange_n(&self->turn, 0, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &self->turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void fire(struct task *t)
{
	if (t->deadline > now)
		now = t->deadline;
	t->timed_out = true;
	t->state = READY;
}

/* The earliest of those that wait for a moment. */
static struct task *earliest(void)
{
	struct task *first = NULL;

	for (uint32_t i = 0; i < n_tasks; i++)
		if (tasks[i].state == WAITING && tasks[i].deadline &&
		    (!first || tasks[i].deadline < first->deadline))
			first = &tasks[i];
	return first;
}

static uint32_t all_ready(struct task **ready)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_tasks; i++)
		if (tasks[i].state == READY)
			ready[n++] = &tasks[i];
	return n;
}

static struct task *choose(void)
{
	struct task *ready[TASKS], *timer = earliest(), *best;
	uint32_t n;

	if (timer && timer->deadline <= now + EARLY_NS && sched_random(64) == 0)
		fire(timer);
	n = all_ready(ready);
	if (!n) {
		if (!timer)
			sched_failed("all wait for ever");
		fire(timer);
		return timer;
	}
	if (!by_priority)
		return ready[sched_random(n)];
	best = ready[0];
	for (uint32_t i = 1; i < n; i++)
		if (ready[i]->priority > best->priority)
			best = ready[i];
	return best;
}

static bool is_change(void)
{
	if (!by_priority)
		return sched_random(coin) == 0;
	for (uint32_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (changes[i] == points) {
			me->priority = --lowest;
			return true;
		}
	return false;
}

void sched_trace(void)
{
	uint64_t first = points > PASSED ? points - PASSED : 0;

	for (uint64_t i = first; i < points; i++) {
		const struct passed *p = &passed[i % PASSED];

		fprintf(stderr, "%llu task %u %s:%d %s\n", (unsigned long long)i + 1, p->task,
			p->function, p->line, p->note);
	}
}

void sched_note(const char *what)
{
	if (points)
		passed[(points - 1) % PASSED].note = what;
}

void sched_direct(uint32_t signal_at, uint32_t change_at)
{
	by_priority = true;
	memset(changes, 0, sizeof(changes));
	me->priority = 1ull << 42;
	direct.points = 0;
	direct.signal_at = signal_at;
	direct.change_at = change_at;
	direct.task = me;
}

uint32_t sched_direct_end(void)
{
	direct.task = NULL;
	return direct.points;
}

static void direct_point(void)
{
	uint32_t n = ++direct.points;

	if (direct.signal_at && n >= direct.signal_at && me->signals) {
		direct.signal_at = 0;
		me->signals = false;
		sched_signal();
		me->signals = true;
	}
	if (n == direct.change_at)
		sched_pass();
}

void sched_point_in(const char *function, int line)
{
	if (!active || !me)
		return;
	passed[points % PASSED] = (struct passed){function, "", line, (uint32_t)(me - tasks)};
	now += POINT_NS;
	if (++points > POINTS_MOST)
		sched_failed("no end");
	if (me->signals && me != direct.task && sched_random(400) == 0) {
		me->signals = false;
		sched_signal();
		me->signals = true;
	}
	if (me == direct.task)
		direct_point();
	if (is_change())
		hand_over(choose());
}

int sched_pass(void)
{
	if (!active || !me)
		return 0;
	now += POINT_NS;
	if (++points > POINTS_MOST)
		sched_failed("no end");
	me->priority = --lowest;
	hand_over(choose());
	return 0;
}

static bool wait_until(const uint32_t *word, uint64_t deadline)
{
	me->word = word;
	me->deadline = deadline;
	me->timed_out = false;
	me->state = WAITING;
	hand_over(choose());
	return !me->timed_out;
}

void sched_signals(bool on)
{
	me->signals = on;
}

void sched_stops(bool on)
{
	me->stops = on;
}

/* ---- tasks ---- */

/* Tasks that the first one waits for and that are not gone. */
static bool others(void)
{
	for (uint32_t i = 1; i < n_tasks; i++)
		if (tasks[i].state != GONE && (tasks[i].joinable || waits_for == ALL))
			return true;
	return false;
}

static void gone(void)
{
	me->state = GONE;
	if (waits_for && !others())
		tasks[0].state = READY;
	hand_over(choose());
	me = NULL;
}

/* The last destructor of the last round: nothing of the recorder runs after it on this thread. */
static void last_destructor(void *round)
{
	if ((intptr_t)round < ROUNDS)
		pthread_setspecific(last_key, (void *)((intptr_t)round + 1));
	else
		gone();
}

static void *task_main(void *arg)
{
	me = arg;
	while (!__atomic_exchange_n(&me->turn, 0, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &me->turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	me->run(me->arg);
	if (have_key)
		pthread_setspecific(last_key, (void *)1);
	else
		gone();
	return NULL;
}

static int add_task(const pthread_attr_t *attr, pthread_t *thread, void *(*run)(void *), void *arg,
		    bool joinable)
{
	struct task *t = &tasks[n_tasks];

	if (n_tasks == TASKS)
		return EAGAIN;
	memset(t, 0, sizeof(*t));
	t->run = run;
	t->arg = arg;
	t->joinable = joinable;
	t->priority = (1ull << 40) + sched_random(1 << 20);
	t->state = READY;
	t->number = ++numbers;
	n_tasks++;
	if (pthread_create(&t->thread, attr, task_main, t))
		sched_failed("no thread to be had");
	if (thread)
		*thread = t->thread;
	return 0;
}

void sched_task(void *(*run)(void *), void *arg)
{
	add_task(NULL, NULL, run, arg, true);
}

int sched_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			 void *arg)
{
	return add_task(attr, thread, run, arg, false);
}

pthread_t sched_self(void)
{
	return me ? me->number : (pthread_self)();
}

/* The scheduler's key comes behind the recorder's, so that its destructor is the last of a round.
 */
int sched_pthread_key_create(pthread_key_t *key, void (*end)(void *))
{
	int err = pthread_key_create(key, end);

	if (!err && !have_key)
		have_key = !pthread_key_create(&last_key, last_destructor);
	return err;
}

int sched_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	bool named = set && sigismember(set, SIGALRM), blocked = me && !me->signals;

	if (old) {
		sigemptyset(old);
		if (blocked)
			sigaddset(old, SIGALRM);
	}
	if (set && me)
		me->signals = !(how == SIG_SETMASK ? named
				: how == SIG_BLOCK ? blocked || named
						   : blocked && !named);
	return 0;
}

static void seed_with(uint64_t seed)
{
	state = seed * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < 4; i++)
		sched_random(2);
	points = 0;
	lowest = 1ull << 39;
	by_priority = sched_random(2);
	coin = 1u << (1 + sched_random(7));
	for (uint32_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		changes[i] = (uint32_t)sched_random(1u << (6 + sched_random(7)));
}

void sched_begin(uint64_t seed)
{
	seed_with(seed);
	memset(maps, 0, sizeof(maps));
	n_tasks = 1;
	memset(&tasks[0], 0, sizeof(tasks[0]));
	tasks[0].state = READY;
	tasks[0].number = ++numbers;
	tasks[0].priority = 1ull << 41;
	me = &tasks[0];
	waits_for = NOBODY;
	direct.task = NULL;
	active = true;
}

void sched_forked(uint64_t seed)
{
	struct task self = *me;

	seed_with(seed);
	tasks[0] = self;
	me = &tasks[0];
	n_tasks = 1;
	waits_for = NOBODY;
}

static void wait_for_others(int which)
{
	waits_for = which;
	if (others())
		wait_until(NULL, 0);
	waits_for = NOBODY;
}

void sched_join(void)
{
	wait_for_others(JOINABLE);
}

void sched_end(void)
{
	wait_for_others(ALL);
	for (uint32_t i = 1; i < n_tasks; i++)
		if (tasks[i].joinable)
			pthread_join(tasks[i].thread, NULL);
	active = false;
}

/* ---- in the place of others ---- */

static long futex(const uint32_t *word, int op, uint32_t value, const struct timespec *ts)
{
	long woken = 0;

	if ((op & ~FUTEX_PRIVATE_FLAG) == FUTEX_WAIT) {
		uint64_t ns = ts ? (uint64_t)ts->tv_sec * SCHED_SECOND + (uint64_t)ts->tv_nsec : 0;

		sched_point_in(__func__, __LINE__);
		if (*word != value) {
			errno = EAGAIN;
			return -1;
		}
		if (wait_until(word, ts ? now + ns : 0))
			return 0;
		errno = ETIMEDOUT;
		return -1;
	}
	for (uint32_t i = 0; i < n_tasks && woken < (long)value; i++)
		if (tasks[i].state == WAITING && tasks[i].word == word) {
			tasks[i].state = READY;
			woken++;
		}
	sched_point_in(__func__, __LINE__);
	return woken;
}

long sched_syscall(long number, ...)
{
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_getpid && sched_pid)
		return sched_pid;
	if (number ==
	    SYS_tgkill) /* asks whether a thread lives: of this process, whatever getpid says */
		a[0] = getpid();
	if (number == SYS_futex && active && me)
		return futex((const uint32_t *)a[0], (int)a[1], (uint32_t)a[2],
			     (const struct timespec *)a[3]);
	return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int sched_nanosleep(const struct timespec *ts, struct timespec *left)
{
	(void)left;
	if (active && me)
		wait_until(NULL, now + (uint64_t)ts->tv_sec * SCHED_SECOND + (uint64_t)ts->tv_nsec);
	return 0;
}

int sched_clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	now += POINT_NS;
	ts->tv_sec = (time_t)(now / SCHED_SECOND);
	ts->tv_nsec = (long)(now % SCHED_SECOND);
	return 0;
}

static int (*reader)(clockid_t, struct timespec *) = sched_clock_gettime;
int (**sched_clock_read)(clockid_t, struct timespec *) = &reader;

int sched_atfork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
	(void)before, (void)parent;
	sched_fork_child = child;
	return 0;
}

int sched_atexit(void (*handler)(void))
{
	sched_exit_handler = handler;
	return 0;
}

void *sched_mmap(void *at, size_t size, int prot, int flags, int fd, off_t off)
{
	void *map = mmap(at, size, prot, flags, fd, off);

	if (flags & MAP_FIXED && me && me->stops)
		sched_pass();
	for (int i = 0; i < MAPS && map != MAP_FAILED && !(flags & MAP_FIXED); i++)
		if (!maps[i].at) {
			maps[i].at = map;
			maps[i].size = size;
			break;
		}
	return map;
}

int sched_munmap(void *at, size_t size)
{
	for (int i = 0; i < MAPS; i++)
		if (maps[i].at == at)
			maps[i].at = NULL;
	return munmap(at, size);
}

void sched_unmap(size_t size)
{
	for (int i = 0; i < MAPS; i++)
		if (maps[i].at && maps[i].size == size) {
			munmap(maps[i].at, size);
			maps[i].at = NULL;
		}
}

/* Pages are touched as they are needed: a schedule needs few. */
int sched_madvise(void *at, size_t size, int advice)
{
	return advice == 23 /* MADV_POPULATE_WRITE */ ? 0 : madvise(at, size, advice);
}
