#include "cli/start_others.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"
#include "model/start.h"
#include "sampling/moments.h"
#include "sampling/waiting.h"

#define THREADS 64u

/* CPU time of a process without its main thread's; -1: not known. */
static int64_t others_cpu_ns(int32_t pid)
{
	char path[64], text[64];
	clockid_t clock;
	struct timespec all;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, pid);
	tfh_read_small(path, text, sizeof(text));
	if (!*text || clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &all))
		return -1;
	return (int64_t)all.tv_sec * 1000000000 + all.tv_nsec - (int64_t)strtoll(text, NULL, 10);
}

uint8_t tfh_others_ran(struct tfh_others_cpu *last, int32_t pid)
{
	const struct tfh_others_cpu now = {tfh_clock_ns(CLOCK_MONOTONIC), others_cpu_ns(pid)};
	int64_t since = now.at_ns - last->at_ns, ran = now.used_ns - last->used_ns;
	bool known = last->at_ns && now.used_ns >= 0 && last->used_ns >= 0 && since > 0 && ran > 0;

	*last = now;
	if (!known)
		return 0;
	return ran < since ? (uint8_t)(TFH_START_WHOLE_CPU * ran / since) : TFH_START_WHOLE_CPU;
}

static bool state_of(int32_t pid, uint32_t tid, struct tfh_waiting *out)
{
	int fd = tfh_waiting_open(pid, tid);
	int err = fd < 0 ? fd : tfh_waiting_sample(fd, pid, tid, out);

	if (fd >= 0)
		close(fd);
	return !err;
}

/* A thread chosen at random among those that are not the main one; false: there is none. */
static bool choose(struct tfh_py_target *t, uint64_t *random, struct tfh_py_thread *out,
		   uint32_t *n)
{
	struct tfh_py_thread thread[THREADS];
	uint32_t all = tfh_py_threads(t, thread, THREADS), others = 0;

	for (uint32_t i = 0; i < all; i++)
		if (thread[i].tid && thread[i].tid != (uint32_t)t->pid)
			thread[others++] = thread[i];
	*n = others;
	if (others)
		*out = thread[tfh_draw(random) % others];
	return others;
}

void tfh_start_others_take(struct tfh_start_others *o, int32_t pid, const struct tfh_py_outside *py,
			   struct tfh_start_places *places, uint64_t *random,
			   struct tfh_other_sample sample)
{
	struct tfh_py_target t = {.py = &py->py, .pid = pid, .interpreter = py->interpreter};
	const struct tfh_py_frame *frame;
	struct tfh_py_copies *copies;
	struct tfh_py_thread thread;
	struct tfh_waiting seen;
	uint32_t others, n;

	if (o->n == TFH_START_OTHERS || !choose(&t, random, &thread, &others) ||
	    !state_of(pid, thread.tid, &seen))
		return;
	sample.tid = thread.tid;
	sample.state = (uint8_t)seen.state;
	sample.weight_us *= others;
	if (seen.state == TFT_STATE_LOCK || seen.state == TFT_STATE_EVENT) {
		o->sample[o->n++] = sample; /* its share counts, but not its place */
		return;
	}
	t.pthread = thread.pthread;
	t.state = thread.state;
	n = tfh_py_sample_frames(&t, &frame, &copies);
	if (n)
		tfh_py_fetch_codes(&py->py, copies, frame, n);
	sample.place = n ? tfh_start_place(places, &py->py, copies, frame, n) : 0;
	sample.gil = (uint8_t)t.gil;
	o->sample[o->n++] = sample;
}

void tfh_start_others_write(const struct tfh_start_others *o, uint32_t process, struct tfh_json *j)
{
	tfh_json_key(j, "others");
	tfh_json_array(j);
	for (uint32_t i = 0; i < o->n; i++) {
		const struct tfh_other_sample *k = &o->sample[i];
		const uint64_t of[] = {k->us, k->state, k->place, k->weight_us, k->tid, k->gil};
		if (k->process == process)
			tfh_json_u64s(j, of, sizeof(of) / sizeof(*of));
	}
	tfh_json_end(j);
}

void tfh_start_others_forget(struct tfh_start_others *o, uint32_t gone, uint32_t last)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < o->n; i++) {
		struct tfh_other_sample k = o->sample[i];
		if (k.process == gone)
			continue;
		k.process = k.process == last ? gone : k.process;
		o->sample[kept++] = k;
	}
	o->n = kept;
}
