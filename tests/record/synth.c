/*
 * A producer of known records, for the tests that kill it: N threads, each publishing CALL records
 *whose words are (thread number of the producer, sequence number, check), through the recorder's
 *own API.
 *
 *	synth THREADS EVENTS RATE [PAGE]
 *
 * EVENTS per thread, RATE events a second of all threads together (0 = flat out). PAGE: a file that
 *holds, per thread, how many records were published and how many found no room: what a reader must
 *find, also after SIGKILL. It prints "drops N" at a regular end.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "record/record.h"

/* One cache line per thread, so that counting costs the producer nothing. `trying` is set before a
 * record is asked for, so that a kill in between is known. */
struct count {
	_Atomic uint64_t published, dropped, trying;
	uint64_t pad[5];
};

static struct count *counts;
static uint64_t events, rate;
static unsigned threads;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void one(struct count *c, uint64_t id, uint64_t i)
{
	uint64_t begin;
	struct tfh_self *self = tfh_enter(TFH_FN_cuLaunchKernel, i, &begin);
	struct tfh_rec *rec;

	atomic_store_explicit(&c->trying, i + 1, memory_order_relaxed);
	if (!self) { /* no ring to be had: counted as lost by the recorder */
		atomic_fetch_add_explicit(&c->dropped, 1, memory_order_relaxed);
		return;
	}
	rec = tfh_leave(self, begin, TFH_FN_cuLaunchKernel, TFT_CALL);
	if (!rec) {
		atomic_fetch_add_explicit(&c->dropped, 1, memory_order_relaxed);
		return;
	}
	rec->w[0] = id;
	rec->w[1] = i;
	rec->w[2] = i * 0x9e3779b97f4a7c15ull + id;
	tfh_publish(self, 1);
	atomic_store_explicit(&c->published, c->published + 1, memory_order_release);
}

static void *produce(void *arg)
{
	uint64_t id = (uint64_t)(uintptr_t)arg;
	struct count *c = &counts[id];
	uint64_t start = now_ns();
	/* Bursts of about a millisecond's worth. */
	uint64_t burst = rate ? rate / threads / 1000 + 1 : 1024;

	for (uint64_t i = 0; i < events; i++) {
		one(c, id, i);
		if (rate && (i + 1) % burst == 0) {
			uint64_t due =
				start + (uint64_t)((double)(i + 1) * 1e9 * threads / (double)rate);
			uint64_t now = now_ns();

			if (due > now) {
				struct timespec ts = {(time_t)((due - now) / 1000000000u),
						      (long)((due - now) % 1000000000u)};
				nanosleep(&ts, NULL);
			}
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t *thread;
	uint64_t drops = 0;
	size_t bytes;

	if (argc < 4)
		return 2;
	threads = (unsigned)atoi(argv[1]);
	events = strtoull(argv[2], NULL, 0);
	rate = strtoull(argv[3], NULL, 0);
	bytes = threads * sizeof(*counts);
	if (argc > 4) {
		int fd = open(argv[4], O_RDWR | O_CREAT | O_TRUNC, 0600);

		if (fd < 0 || ftruncate(fd, (off_t)bytes))
			return 2;
		counts = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	} else {
		counts = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			      0);
	}
	thread = calloc(threads, sizeof(*thread));
	if (counts == MAP_FAILED || !thread)
		return 2;
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, produce, (void *)(uintptr_t)i))
			return 2;
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		drops += counts[i].dropped;
	}
	printf("drops %llu\n", (unsigned long long)drops);
	free(thread);
	return 0;
}
