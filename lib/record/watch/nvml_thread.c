#include "record/watch/nvml_thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"
#include "record/process/apart.h"
#include "record/process/thread.h"
#include "record/record.h"
#include "record/watch/software.h"

#define ENTRIES (TFH_DEVICES_MOST * TFH_DEVICE_ENTRIES)
#define COST_SHARE 2000u      /* of one CPU: readings take at most 1 / 2000 */
#define LEAST_NS 900000000ull /* once a second; samples come more often at first */
#define SOFTWARE_BYTES (16u << 10)
#define PLACES_BYTES (TFH_DEVICES_MOST * 256u)
#define HOLD_NS 20000000
#define HOLD_NAPS 10 /* counted, because another preload may make the clock stand still */
#define HUNG_NS 200000000ull
#define INSIDE 1u /* bit of `gate`; the rest counts the threads that hold it closed */
#define HOLDER 2u

enum { NONE, IDLE, ASKED, READY, END, REFUSED };

static tfh_devices_reader reader;
static uint32_t used;	/* atomic: mask of ordinals */
static uint64_t nodes;	/* atomic: mask of memory nodes */
static uint32_t state;	/* atomic, futex: whose turn it is */
static uint32_t gate;	/* atomic, futex */
static uint64_t inside; /* atomic: CLOCK_MONOTONIC ns at which the call under way began */
static pthread_t thread;
static struct {
	uint64_t next_ns;
	uint32_t n, filters;
	int status_fd; /* shows the system call filters */
	struct tft_sample_thread entry[ENTRIES];
	char software[SOFTWARE_BYTES], places[PLACES_BYTES];
	char taken[SOFTWARE_BYTES + PLACES_BYTES]; /* owned by the flusher */
} * reading;

static uint64_t now_ns(void)
{
	return (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
}

static void wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void wait_on(uint32_t *word, uint32_t value, const struct timespec *most)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, most, NULL, 0);
}

/* ---- the gate ---- */

bool tfh_devices_enter(void)
{
	uint32_t old;

	__atomic_store_n(&inside, now_ns(), __ATOMIC_RELAXED);
	while ((old = __atomic_fetch_or(&gate, INSIDE, __ATOMIC_SEQ_CST)) & ~INSIDE) {
		tfh_devices_leave();
		if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == END)
			return false;
		wait_on(&gate, old & ~INSIDE, NULL);
		__atomic_store_n(&inside, now_ns(), __ATOMIC_RELAXED);
	}
	return true;
}

void tfh_devices_leave(void)
{
	if (__atomic_and_fetch(&gate, ~INSIDE, __ATOMIC_SEQ_CST))
		wake(&gate);
}

/* Returns true if no call is under way and none will begin. */
static bool hold(void)
{
	const struct timespec nap = {.tv_nsec = HOLD_NS / HOLD_NAPS};
	uint32_t value = __atomic_add_fetch(&gate, HOLDER, __ATOMIC_SEQ_CST);

	if (value & INSIDE && now_ns() - __atomic_load_n(&inside, __ATOMIC_RELAXED) > HUNG_NS)
		return false;
	for (int i = 0; i < HOLD_NAPS && value & INSIDE; i++) {
		wait_on(&gate, value, &nap);
		value = __atomic_load_n(&gate, __ATOMIC_ACQUIRE);
	}
	return !(value & INSIDE);
}

void tfh_devices_hold(void)
{
	int saved = errno;

	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != NONE)
		hold();
	else
		__atomic_add_fetch(&gate, HOLDER, __ATOMIC_SEQ_CST);
	errno = saved;
}

void tfh_devices_go_on(void)
{
	int saved = errno;

	__atomic_sub_fetch(&gate, HOLDER, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != NONE)
		wake(&gate);
	errno = saved;
}

void tfh_devices_forked(void)
{
	state = NONE;
	gate = used = 0;
}

/* ---- the thread ---- */

/* Reading a directory may be slow, too. As with calls, nobody waits for it. */
static void read_software(void)
{
	if (!tfh_devices_enter())
		return;
	tfh_software_read(reading->software, sizeof(reading->software));
	tfh_devices_leave();
}

/* What devices the job uses; a job without any is not a reason to open the library. Returns the CPU
 * time that it took, without that of opening the library (10 ms), which is needed once. */
static uint64_t read_devices(bool *opened)
{
	uint32_t mask = __atomic_load_n(&used, __ATOMIC_RELAXED);
	uint64_t cpu = (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	reading->n = mask ? reader(mask, reading->entry) : 0;
	cpu = *opened ? (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu : 0;
	*opened |= mask != 0;
	return cpu;
}

static void *serve(void *arg)
{
	uint32_t turn;
	bool opened = false;

	tfh_thread_begin("tfhook-device");
	while ((turn = __atomic_load_n(&state, __ATOMIC_ACQUIRE)) != END) {
		uint32_t asked = ASKED;
		uint64_t cpu;

		if (turn != ASKED) {
			wait_on(&state, turn, NULL);
			continue;
		}
		read_software();
		cpu = COST_SHARE * read_devices(&opened);
		reading->next_ns = now_ns() + (cpu > LEAST_NS ? cpu : LEAST_NS);
		__atomic_compare_exchange_n(&state, &asked, READY, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED);
	}
	tfh_thread_end();
	return arg;
}

/* Created among the job's descriptors: the library may be the job's, too, and then has its own
 * descriptors there. */
static void make_thread(void *arg)
{
	*(int *)arg = tfh_thread_start(&thread, serve, NULL);
}

static uint32_t start(void)
{
	int err = 1;

	if (!tfh_memory(&reading, sizeof(*reading), "the state of the devices"))
		return REFUSED;
	reading->next_ns = 0;
	reading->status_fd = tfh_call_filters_open();
	reading->filters = tfh_call_filters(reading->status_fd);
	reading->software[0] = reading->places[0] = reading->taken[0] = '\0';
	__atomic_store_n(&state, IDLE, __ATOMIC_RELEASE);
	tfh_among_job(make_thread, &err);
	return err ? REFUSED : IDLE;
}

uint32_t tfh_devices_take(struct tft_sample_thread *out)
{
	uint32_t turn = __atomic_load_n(&state, __ATOMIC_ACQUIRE), n = 0;

	if (turn == NONE && reader)
		__atomic_store_n(&state, turn = start(), __ATOMIC_RELEASE);
	if (turn == READY) {
		n = reading->n;
		memcpy(out, reading->entry, n * sizeof(*out));
		snprintf(reading->taken, sizeof(reading->taken), "%s%s", reading->software,
			 reading->places);
	}
	if (turn != IDLE && turn != READY)
		return n;
	/* Opening and querying a device are calls that a sandbox may not have foreseen. */
	turn = now_ns() >= reading->next_ns &&
			       tfh_call_filters(reading->status_fd) == reading->filters
		       ? ASKED
		       : IDLE;
	__atomic_store_n(&state, turn, __ATOMIC_RELEASE);
	if (turn == ASKED)
		wake(&state);
	return n;
}

const char *tfh_devices_notes(void)
{
	return reading ? reading->taken : "";
}

unsigned tfh_devices_threads(void)
{
	uint32_t turn = __atomic_load_n(&state, __ATOMIC_ACQUIRE);

	return turn != NONE && turn != REFUSED;
}

void tfh_devices_last(void)
{
	if (!tfh_devices_threads())
		return;
	__atomic_store_n(&state, END, __ATOMIC_SEQ_CST);
	wake(&state);
	if (!hold())
		exit(0);
	wake(&gate);
	pthread_join(thread, NULL);
}

void tfh_devices_told(const char *line, int node)
{
	if (node >= 0 && node < 64)
		__atomic_fetch_or(&nodes, 1ull << node, __ATOMIC_RELAXED);
	size_t n = strlen(reading->places);

	if (n + strlen(line) < sizeof(reading->places))
		strcpy(reading->places + n, line);
}

uint64_t tfh_devices_nodes(void)
{
	return __atomic_load_n(&nodes, __ATOMIC_RELAXED);
}

void tfh_devices_attach(tfh_devices_reader r)
{
	reader = r;
}

void tfh_devices_used(int ordinal)
{
	if (ordinal >= 0 && ordinal < (int)TFH_DEVICES_MOST)
		__atomic_fetch_or(&used, 1u << ordinal, __ATOMIC_RELAXED);
}
