/*
 * Calls into CUPTI and the driver. They use the job's descriptors, so the flusher has its helper
 * make them (apart.h). A call may never return; a thread that waits for the flusher can see that it
 * is inside one.
 */
#include "record/gpu/gpu.h"
#include "record/process/apart.h"
#include "record/process/recorder.h"
#include "record/process/requests.h"

#define PAIR_TRIES 16

static void foreign(void (*call)(void *), void *arg)
{
	bool flusher = tfh_on_flusher();

	if (flusher)
		__atomic_store_n(&tfh_requests.foreign_ns, (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC),
				 __ATOMIC_RELAXED);
	tfh_among_job(call, arg);
	if (flusher)
		__atomic_store_n(&tfh_requests.foreign_ns, 0, __ATOMIC_RELAXED);
}

struct ask {
	const struct tfh_gpu_source *source;
	uint64_t now_ns;
	bool last, done;
	int err;
	struct tft_table_pair pair;
};

static void start(void *arg)
{
	struct ask *a = arg;

	a->err = a->source->start();
}

int tfh_foreign_start(const struct tfh_gpu_source *source)
{
	struct ask a = {.source = source};

	foreign(start, &a);
	return a.err;
}

static void rest(void *arg)
{
	((struct ask *)arg)->source->rest();
}

void tfh_foreign_rest(const struct tfh_gpu_source *source)
{
	struct ask a = {.source = source};

	foreign(rest, &a);
}

static void flush(void *arg)
{
	struct ask *a = arg;

	a->done = a->source->flush(a->last);
}

bool tfh_foreign_flush(const struct tfh_gpu_source *source, bool last)
{
	struct ask a = {.source = source, .last = last};

	foreign(flush, &a);
	return a.done;
}

static void second(void *arg)
{
	struct ask *a = arg;

	a->source->second(a->now_ns);
}

void tfh_foreign_second(const struct tfh_gpu_source *source, uint64_t now_ns)
{
	struct ask a = {.source = source, .now_ns = now_ns};

	foreign(second, &a);
}

static void read_clock(void *arg)
{
	struct ask *a = arg;
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < PAIR_TRIES; i++) {
		struct tft_table_pair p;
		uint64_t before = tfh_ticks(), after;

		if (!a->source->clock(&p.ns))
			return;
		after = tfh_ticks();
		p.ticks = before + (after - before) / 2;
		if (after - before < width) {
			width = after - before;
			a->pair = p;
		}
	}
	a->done = true;
}

bool tfh_foreign_clock(const struct tfh_gpu_source *source, struct tft_table_pair *best)
{
	struct ask a = {.source = source};

	foreign(read_clock, &a);
	*best = a.pair;
	return a.done;
}
