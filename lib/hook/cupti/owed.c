/*
 * What the job's profiler is owed. Its functions are called on threads of the job only: they may be
 * Python, whose interpreter ends before the process does, and a thread of ours that enters it then
 * ends the process. So what CUPTI gives back while the flusher flushes is kept here, and handed
 * over on the next thread of the job that comes by in a callback, or that flushes.
 */
#include "hook/cupti/cupti.h"

#include <string.h>
#include <sys/mman.h>

#include "record/gpu.h"

#define MOST (64u << 20) /* of copies; what comes beyond is counted as dropped */

struct parcel {
	struct parcel *next;
	struct tfh_owed what;
	size_t mapped;
	uint8_t copy[];
};

static struct parcel *newest; /* atomic: pushed by the flusher, taken as a whole by others */
static size_t held;	      /* atomic: bytes of all copies */

bool tfh_owed_keep(const struct tfh_owed *what, bool copied)
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

void tfh_owed_pay(void (*pay)(const struct tfh_owed *what))
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
		pay(&oldest->what);
		if (oldest->what.copied)
			__atomic_fetch_sub(&held, oldest->what.valid, __ATOMIC_RELAXED);
		munmap(oldest, oldest->mapped);
	}
}
