#include "record/process/requests.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull

struct tfh_requests tfh_requests;

bool tfh_futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / SECOND_NS),
			      .tv_nsec = (long)(ns % SECOND_NS)};

	return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &ts, NULL, 0) &&
	       errno == ETIMEDOUT;
}

void tfh_futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void tfh_flusher_wake(void)
{
	struct tfh_requests *r = &tfh_requests;
	int saved = errno;

	/* acq_rel: only one thread wakes it, and the flusher sees what was stored before */
	if (__atomic_load_n(&r->asleep, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&r->asleep, 0, __ATOMIC_ACQ_REL))
		tfh_futex_wake(&r->asleep);
	errno = saved;
}

bool tfh_flusher_asked(void)
{
	const struct tfh_requests *r = &tfh_requests;

	return __atomic_load_n(&r->flush_asked, __ATOMIC_SEQ_CST) !=
		       __atomic_load_n(&r->flush_done, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&r->finish_asked, __ATOMIC_SEQ_CST);
}

bool tfh_flusher_sleep(uint64_t ns)
{
	uint32_t *asleep = &tfh_requests.asleep;
	bool over = false;

	__atomic_store_n(asleep, 1, __ATOMIC_SEQ_CST);
	if (!tfh_flusher_asked())
		over = tfh_futex_wait(asleep, 1, ns);
	__atomic_store_n(asleep, 0, __ATOMIC_SEQ_CST);
	return over;
}

bool tfh_flusher_closed(void)
{
	return __atomic_load_n(&tfh_requests.finish_done, __ATOMIC_ACQUIRE);
}
