#include "record/process/apart.h"

#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/refused.h"
#include "record/process/thread.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2u
#endif

#define DECIDE_NS 100000000
#define DECIDE_NAPS 10

enum { UNDECIDED, APART, TOGETHER };
enum { ASKED = 1, DONE, END };

static struct {
	uint32_t how;		/* atomic, futex: UNDECIDED, APART, TOGETHER */
	uint64_t flusher;	/* atomic: its pthread_self(); 0: none yet */
	uint64_t helper_thread; /* atomic: the helper's pthread_self(); 0: none */
	struct tfh_helper *helper;
	sigset_t signals; /* of the job */
} apart;

static void wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void wait_while(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

bool tfh_is_apart(void)
{
	return __atomic_load_n(&apart.how, __ATOMIC_ACQUIRE) == APART;
}

void tfh_apart_signals(const sigset_t *job)
{
	apart.signals = *job;
}

void tfh_flusher_is(pthread_t thread)
{
	__atomic_store_n(&apart.flusher, (uint64_t)thread, __ATOMIC_RELAXED);
}

static bool is_self(const uint64_t *thread)
{
	return __atomic_load_n(thread, __ATOMIC_RELAXED) == (uint64_t)pthread_self();
}

bool tfh_on_flusher(void)
{
	return is_self(&apart.flusher) || is_self(&apart.helper_thread);
}

unsigned tfh_apart_threads(void)
{
	return __atomic_load_n(&apart.helper_thread, __ATOMIC_RELAXED) ? 2 : 1;
}

void tfh_apart_forget(void)
{
	memset(&apart, 0, sizeof(apart));
}

/* ---- the helper ---- */

static void pass_turn(struct tfh_helper *h, uint32_t to)
{
	__atomic_store_n(&h->turn, to, __ATOMIC_RELEASE);
	wake(&h->turn);
}

static void serve(struct tfh_helper *h)
{
	uint32_t turn;

	while ((turn = __atomic_load_n(&h->turn, __ATOMIC_ACQUIRE)) != END) {
		if (turn != ASKED) {
			wait_while(&h->turn, turn);
			continue;
		}
		h->call(h->arg);
		pass_turn(h, DONE);
	}
}

static void *helper_main(void *arg)
{
	struct tfh_helper h;

	tfh_thread_begin("tfhook-helper");
	serve(arg);
	memcpy(&h, arg, sizeof(h));
	munmap(arg, sizeof(h));
	pthread_join(h.flusher, NULL);
	tfh_thread_end();
	if (h.last) {
		pthread_sigmask(SIG_SETMASK, &h.signals, NULL);
		h.last();
	}
	return NULL;
}

/* Its memory is neither on the flusher's stack nor in `apart`, which may be reused before it has
 * ended. */
static struct tfh_helper *make_helper(void)
{
	struct tfh_helper *h =
		mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	int err;

	if (h == MAP_FAILED)
		return NULL;
	h->flusher = pthread_self();
	h->signals = apart.signals;
	err = tfh_thread_start(&thread, helper_main, h);
	if (err) {
		munmap(h, sizeof(*h));
		return NULL;
	}
	pthread_detach(thread);
	__atomic_store_n(&apart.helper_thread, (uint64_t)thread, __ATOMIC_RELAXED);
	return h;
}

void tfh_among_job(void (*call)(void *), void *arg)
{
	struct tfh_helper *h = apart.helper;

	/* If this is another thread, the flusher may be gone. */
	if (!tfh_is_apart() || !is_self(&apart.flusher)) {
		call(arg);
		return;
	}
	h->call = call;
	h->arg = arg;
	pass_turn(h, ASKED);
	wait_while(&h->turn, ASKED);
}

/* ---- leaving the job's table ---- */

/* The kernel makes a temporary copy, as for a fork. Closing that copy affects neither the job's
 * files nor its locks, which belong to its own table. */
static bool leave(int keep)
{
	if (!tfh_may_call(TFH_CALL_TABLE))
		return false;
	if (keep < 0)
		return !syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE);
	if (syscall(SYS_close_range, (unsigned)keep + 1, ~0u, CLOSE_RANGE_UNSHARE))
		return false;
	if (keep > 0)
		syscall(SYS_close_range, 0u, (unsigned)keep - 1, 0u);
	return true;
}

struct tfh_helper *tfh_apart_begin(bool able, int keep)
{
	struct tfh_helper *h = able ? make_helper() : NULL;

	apart.helper = h;
	able = h && leave(keep);
	__atomic_store_n(&apart.how, able ? APART : TOGETHER, __ATOMIC_RELEASE);
	wake(&apart.how);
	return h;
}

void tfh_apart_over(void)
{
	__atomic_store_n(&apart.how, TOGETHER, __ATOMIC_RELEASE);
	__atomic_store_n(&apart.helper_thread, 0, __ATOMIC_RELAXED);
}

void tfh_apart_end(struct tfh_helper *h, void (*last)(void))
{
	if (h) {
		h->last = last;
		pass_turn(h, END);
		return;
	}
	pthread_detach(pthread_self());
	if (last) {
		pthread_sigmask(SIG_SETMASK, &apart.signals, NULL);
		last();
	}
}

bool tfh_apart_decided(void)
{
	const struct timespec nap = {0, DECIDE_NS / DECIDE_NAPS};

	for (int i = 0; i < DECIDE_NAPS && !__atomic_load_n(&apart.how, __ATOMIC_ACQUIRE); i++)
		syscall(SYS_futex, &apart.how, FUTEX_WAIT_PRIVATE, UNDECIDED, &nap, NULL, 0);
	return tfh_is_apart();
}
