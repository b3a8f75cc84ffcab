/*
 * Device memory that CUPTI takes for its records of graph nodes. CUPTI's own limit bounds only its
 * record buffers (cupti.c); graphs have been seen to cost a gigabyte beyond that (parcagpu, issue
 * 23).
 *
 * Free memory is queried inside a graph launch of the job, at most once a second: a context is
 * current then, and the query costs about as much as a few launches. The flusher compares two
 * readings. The decrease, less what the job's own calls allocated in between, is growth. Intervals
 * with calls of unknown size (loading a module, instantiating a graph) are ignored. So is a single
 * jump, which may come from another process on the device: only growth over several intervals
 * counts.
 */
#include "hook/cupti/cupti.h"

#include "hook/driver/note.h"
#include "record/gpu/gpu.h"

#define DEVICES 32u
#define RISES 3u /* seconds of growth, at least */

uint32_t tfh_memory_due;
uint32_t tfh_memory_watched; /* atomic */

enum { NOBODY, ASKING, THERE };
/* Owned by the thread that set `turn` to ASKING, then by the flusher. */
static struct memory_reading {
	int device;
	size_t free;
	uint64_t taken, changes, unknown; /* tfh_memory_calls, just before */
} answer;
static uint32_t turn; /* atomic */

static struct device {
	struct memory_reading last;
	bool seen, quiet; /* quiet: no call of unknown size in the previous interval */
	uint32_t rises;
	uint64_t grown;
} devices[DEVICES];

/* Called on a thread of the job, right after its launch. Does nothing while any thread captures a
 * stream. */
void tfh_memory_query(void)
{
	tfh_ask_MEMORY ask = TFH_ASK(MEMORY);
	tfh_ask_CTX_DEVICE ask_device = TFH_ASK(CTX_DEVICE);
	tfh_ask_CAPTURE_MODE exchange = TFH_ASK(CAPTURE_MODE);
	uint32_t nobody = NOBODY;
	struct memory_reading r = {0};
	size_t total;
	int mode = 2; /* relaxed: forbids nothing */

	if (__atomic_load_n(&tfh_captures, __ATOMIC_ACQUIRE) || !ask || !ask_device || !exchange ||
	    !__atomic_compare_exchange_n(&turn, &nobody, ASKING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&tfh_memory_due, 0, __ATOMIC_RELAXED);
	r.taken = __atomic_load_n(&tfh_memory_calls.taken, __ATOMIC_RELAXED);
	r.changes = __atomic_load_n(&tfh_memory_calls.changes, __ATOMIC_RELAXED);
	r.unknown = __atomic_load_n(&tfh_memory_calls.unknown, __ATOMIC_RELAXED);
	bool exchanged = !exchange(&mode);
	bool told = exchanged && !ask_device(&r.device) && !ask(&r.free, &total);
	if (exchanged)
		exchange(&mode);
	answer = r;
	__atomic_store_n(&turn, told ? THERE : NOBODY, __ATOMIC_RELEASE);
}

/* Decrease of free memory since the last reading, less what the job allocated; negative: it rose.
 */
static int64_t fallen(const struct memory_reading *before, const struct memory_reading *now)
{
	return (int64_t)(before->free - now->free) - (int64_t)(now->taken - before->taken);
}

static void judge(struct device *d, const struct memory_reading *now)
{
	bool quiet = d->seen && now->unknown == d->last.unknown;

	if (quiet && d->quiet) {
		int64_t more = fallen(&d->last, now);
		if (more > 0) {
			d->grown += (uint64_t)more;
			d->rises++;
		} else if (now->changes == d->last.changes) {
			d->grown -= (uint64_t)-more < d->grown ? (uint64_t)-more : d->grown;
		}
	}
	d->last = *now;
	d->quiet = quiet;
	d->seen = true;
}

uint64_t tfh_memory_grown(void)
{
	uint64_t most = 0;

	if (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) == THERE) {
		if (answer.device >= 0 && answer.device < (int)DEVICES)
			judge(&devices[answer.device], &answer);
		__atomic_store_n(&turn, NOBODY, __ATOMIC_RELEASE);
	}
	for (unsigned i = 0; i < DEVICES; i++)
		if (devices[i].rises >= RISES && devices[i].grown > most)
			most = devices[i].grown;
	__atomic_store_n(&tfh_memory_watched, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&tfh_memory_due, 1, __ATOMIC_RELAXED);
	return most;
}

void tfh_memory_rest(void)
{
	__atomic_store_n(&tfh_memory_due, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < DEVICES; i++)
		devices[i].seen = devices[i].quiet = false;
}
