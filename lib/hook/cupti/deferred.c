/*
 * Buffers waiting for delivery to the job's profiler. The profiler's callbacks run only on threads
 * of the job. They may be Python code, whose interpreter ends before the process does, and a thread
 * of ours that entered it then would end the process. So buffers that CUPTI returns while the
 * flusher flushes are kept here and delivered by the next thread of the job that runs a callback or
 * flushes.
 */
#include "hook/cupti/cupti.h"

#include <string.h>
#include <sys/mman.h>

#include "record/gpu/gpu.h"
#include "record/process/apart.h"

#define MOST (64u << 20) /* for copies; more are counted as dropped */

struct parcel {
	struct parcel *next;
	struct tfh_deferred what;
	size_t mapped;
	uint8_t copy[];
};

static struct parcel *newest; /* atomic: pushed by the flusher; other threads take the whole list */
static size_t held;	      /* atomic: bytes of all copies */

bool tfh_deferred_add(const struct tfh_deferred *what, bool copied)
{
	size_t copy = copied ? what->valid : 0, mapped = sizeof(struct parcel) + copy;
	struct parcel *p;

	if (__atomic_load_n(&held, __ATOMIC_RELAXED) + copy > MOST)
		return false;
	p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	p->what = *what;
	p->mapped = mapped;
	if (copied) {
		memcpy(p->copy, what->buffer, copy);
		p->what.buffer = p->copy;
	}
	p->what.copied = copied;
	__atomic_fetch_add(&held, copy, __ATOMIC_RELAXED);
	p->next = __atomic_load_n(&newest, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&newest, &p->next, p, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	return true;
}

void tfh_deferred_deliver(void (*deliver)(const struct tfh_deferred *what))
{
	struct parcel *list, *oldest = NULL, *next;

	if (!__atomic_load_n(&newest, __ATOMIC_RELAXED) || tfh_on_flusher())
		return;
	list = __atomic_exchange_n(&newest, NULL, __ATOMIC_ACQUIRE);
	for (; list; list = next) {
		next = list->next;
		list->next = oldest;
		oldest = list;
	}
	for (; oldest; oldest = next) {
		next = oldest->next;
		deliver(&oldest->what);
		if (oldest->what.copied)
			__atomic_fetch_sub(&held, oldest->what.valid, __ATOMIC_RELAXED);
		munmap(oldest, oldest->mapped);
	}
}
