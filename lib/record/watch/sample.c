/* Once a second, more often at first: how much of the machine the job got. */
#include "record/watch/samples.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/meters.h"
#include "format/sample.h"
#include "format/tft_write.h"
#include "record/ring/journal.h"
#include "record/watch/nvml_thread.h"

#define THREADS_MAX 256u
#define EXTRAS 5u
#define BUFFER_BYTES (256u << 10)
#define FAULT_PAGES 64u
#define FAULT_BATCH 8u

static uint8_t *buffer; /* [BUFFER_BYTES] */
static uint32_t used;

/* Run time and run delay. Returns false if the thread no longer exists. The kernel is queried for
 * that, because /proc may not be mounted, and the ring of a live thread must not go to another
 * one. */
static bool thread_times(uint32_t tid, struct tft_sample_thread *t)
{
	char path[64], text[128], *end;

	snprintf(path, sizeof(path), "/proc/self/task/%u/schedstat", tid);
	tfh_read_small(path, text, sizeof(text));
	if (!text[0])
		return !syscall(SYS_tgkill, tfh_recorder.pid, tid, 0) || errno != ESRCH;
	t->run_ns = strtoull(text, &end, 10);
	t->delay_ns = strtoull(end, NULL, 10);
	return true;
}

static uint32_t sample_threads(struct tft_sample_thread *out)
{
	struct tfh_journal *j = &tfh_journal;
	uint32_t slots = __atomic_load_n(&j->head->slot_count, __ATOMIC_ACQUIRE), n = 0;

	for (uint32_t i = 0; i < slots && n < THREADS_MAX; i++) {
		struct tft_ring *ring = tfh_journal_ring(j, i);
		uint32_t state = TFT_RING_ACTIVE;

		if (!ring || __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) != TFT_RING_ACTIVE)
			continue;
		out[n] =
			(struct tft_sample_thread){ring->thread, ring->tid, UINT64_MAX, UINT64_MAX};
		if (thread_times(ring->tid, &out[n]))
			n++;
		else /* it ended without running its destructors */
			__atomic_compare_exchange_n(&ring->state, &state, TFT_RING_RETIRED, false,
						    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
	return n;
}

/*
 * The time that the kernel takes to hand out a new page, measured by touching some. It is the
 * minimum of eight measurements of eight pages, as the thread may be preempted. Faults of threads
 * that contend take longer. 0: not known.
 */
static uint64_t fault_ns(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = FAULT_PAGES * page;
	int64_t best = INT64_MAX;
	volatile char *at =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return 0;
	madvise((void *)at, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < FAULT_PAGES; i += FAULT_BATCH) {
		int64_t begin = tfh_clock_ns(CLOCK_MONOTONIC);
		for (size_t k = 0; k < FAULT_BATCH; k++)
			at[(i + k) * page] = 1;
		int64_t took = tfh_clock_ns(CLOCK_MONOTONIC) - begin;
		best = took < best ? took : best;
	}
	munmap((void *)at, bytes);
	return (uint64_t)best / FAULT_BATCH;
}

/* Page faults, kernel time and memory of the process. */
static uint32_t sample_memory(struct tft_sample_thread *out)
{
	static uint64_t cost = UINT64_MAX;
	struct rusage usage;
	char text[128], *end;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (cost == UINT64_MAX)
		cost = fault_ns();
	if (getrusage(RUSAGE_SELF, &usage))
		return 0;
	out[0] = (struct tft_sample_thread){TFT_SAMPLE_NO_THREAD, TFT_SAMPLE_FAULTS,
					    (uint64_t)usage.ru_minflt, (uint64_t)usage.ru_majflt};
	out[1] = (struct tft_sample_thread){TFT_SAMPLE_NO_THREAD, TFT_SAMPLE_SYSTEM,
					    (uint64_t)usage.ru_stime.tv_sec * 1000000000 +
						    (uint64_t)usage.ru_stime.tv_usec * 1000,
					    cost};
	tfh_read_small("/proc/self/statm", text, sizeof(text));
	strtoull(text, &end, 10);
	out[2] = (struct tft_sample_thread){TFT_SAMPLE_NO_THREAD, TFT_SAMPLE_MEMORY,
					    text[0] ? strtoull(end, NULL, 10) * page : UINT64_MAX,
					    page};
	return 3;
}

/* Fills in what the kernel counts of the process' input and output, and appends the entries for it;
 * returns their number. */
static uint32_t sample_io(struct tft_sample *s, struct tft_sample_thread *out)
{
	char text[512];

	tfh_read_small("/proc/self/io", text, sizeof(text));
	s->read_bytes = tfh_number_of_line(text, "read_bytes: ");
	s->write_bytes = tfh_number_of_line(text, "write_bytes: ");
	out[0] = (struct tft_sample_thread){TFT_SAMPLE_NO_THREAD, TFT_SAMPLE_IO_BYTES,
					    tfh_number_of_line(text, "rchar: "),
					    tfh_number_of_line(text, "wchar: ")};
	out[1] = (struct tft_sample_thread){TFT_SAMPLE_NO_THREAD, TFT_SAMPLE_IO_CALLS,
					    tfh_number_of_line(text, "syscr: "),
					    tfh_number_of_line(text, "syscw: ")};
	return 2;
}

void tfh_sample(void)
{
	struct tft_sample_thread threads[3 * THREADS_MAX + EXTRAS + TFH_METER_COUNT +
					 TFH_DEVICES_MOST * TFH_DEVICE_ENTRIES];
	struct tft_sample s = {.ticks = tfh_ticks()};
	uint32_t bytes, own;
	cpu_set_t cpus;

	s.threads = own = sample_threads(threads);
	s.threads += sample_memory(threads + s.threads);
	s.threads += sample_io(&s, threads + s.threads);
	s.threads += tfh_machine_read(threads, own, threads + s.threads);
	s.threads += tfh_devices_take(threads + s.threads);
	s.cpu_ns = (uint64_t)tfh_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	s.flusher_ns = (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	s.cpus = sched_getaffinity(0, sizeof(cpus), &cpus) ? 0 : (uint32_t)CPU_COUNT(&cpus);
	bytes = (uint32_t)(sizeof(s) + s.threads * sizeof(threads[0]));
	if (used + bytes > BUFFER_BYTES) /* writing is paused */
		return;
	if (!tfh_memory(&buffer, BUFFER_BYTES, "the job's share of the machine"))
		return;
	memcpy(buffer + used, &s, sizeof(s));
	memcpy(buffer + used + sizeof(s), threads, s.threads * sizeof(threads[0]));
	used += bytes;
}

int tfh_sample_write(struct tft_writer *w)
{
	int err = 0;

	if (used)
		err = tft_write_chunk(w, TFT_SAMP, buffer, used);
	if (!err)
		used = 0;
	return err;
}

void tfh_sample_forget(void)
{
	used = 0;
}
