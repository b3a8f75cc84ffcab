/*
 * What one recorded call costs its thread, in the recorder alone: from tfh_enter to tfh_publish
 * with nothing in between, beside two readings of the clock, which is what no recorder can do
 * without. And what it costs while off.
 *
 * Everything is taken in turns inside one process: bursts of 4,096 calls, between which the flusher
 * empties the ring, 301 rounds; printed are medians over the rounds and the 10th and 90th
 * percentile, per call, loop included. Clock readings of neighbouring calls overlap in the
 * processor, so a recorded call may cost hardly more than its two.
 *
 * usage: hook_cost [kernel]    kernel: the kernel's clock, as on a machine whose counter cannot be trusted; also what to expect where
 *                              reading the counter takes as long
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/record.h"

#define BURST 4096
#define ROUNDS 301

static volatile uint64_t sink;

static void two_clocks(int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++) {
		uint64_t a = tfh_ticks();

		__asm__ volatile("" ::: "memory");
		sum += tfh_ticks() - a;
	}
	sink = sum;
}

__attribute__((noinline)) static void call(uint64_t i)
{
	uint64_t begin;
	struct tfh_self *self = tfh_enter(TFH_FN_cuLaunchKernel, i, &begin);
	struct tfh_rec *rec;

	if (!self)
		return;
	__asm__ volatile("" ::: "memory"); /* the real call */
	self = tfh_back(self, TFH_FN_cuLaunchKernel, begin);
	rec = self ? tfh_leave(self, begin, TFH_FN_cuLaunchKernel, TFT_CALL) : NULL;
	if (rec) {
		rec->w[0] = i;
		tfh_publish(self, 1);
	}
}

static void recorded(int n)
{
	for (int i = 0; i < n; i++)
		call((uint64_t)i);
}

/* With the id of one of 40 functions, as a launch has. */
__attribute__((noinline)) static void named_call(uint64_t i)
{
	uint64_t begin;
	struct tfh_self *self = tfh_enter(TFH_FN_cuLaunchKernel, i, &begin);
	uint64_t handle = 0x7f0000001000 + i % 40 * 4096;
	struct tfh_rec *rec;
	uint32_t id;

	if (!self)
		return;
	id = tfh_handle_known(self, TFT_NAME_FUNCTION, handle);
	if (!id)
		id = tfh_handle_new(self, TFT_NAME_FUNCTION, handle, 0, "kernel", 6);
	rec = tfh_leave(self, begin, TFH_FN_cuLaunchKernel, TFT_CALL);
	if (rec) {
		rec->w[0] = id;
		tfh_publish(self, 1);
	}
}

static void named(int n)
{
	for (int i = 0; i < n; i++)
		named_call((uint64_t)i);
}

/* With the id of a text, as TFE_Execute has. */
__attribute__((noinline)) static void text_call(uint64_t i)
{
	static const char *const names[] = {"MatMul", "__inference_train_step_1234",
					    "AssignAddVariableOp", "Mul"};
	static const size_t lengths[] = {6, 27, 19, 3};
	uint64_t begin;
	struct tfh_self *self = tfh_enter(TFH_FN_TFE_Execute, i, &begin);
	struct tfh_rec *rec;
	uint32_t id;

	if (!self)
		return;
	id = tfh_text_id(self, TFT_NAME_OP, names[i & 3], lengths[i & 3]);
	rec = tfh_leave(self, begin, TFH_FN_TFE_Execute, TFT_CALL);
	if (rec) {
		rec->w[0] = id;
		tfh_publish(self, 1);
	}
}

static void texts(int n)
{
	for (int i = 0; i < n; i++)
		text_call((uint64_t)i);
}

/* A short get-next: counted, not recorded. */
__attribute__((noinline)) static void agg_call(uint64_t i)
{
	uint64_t begin;
	struct tfh_self *self = tfh_enter(TFH_FN_tf_stage_getnext, i, &begin);

	if (self) {
		uint64_t end = tfh_leave_quiet(self, begin);

		tfh_agg_add(self, 1 + (i & 7), begin, end, end - begin);
	}
}

static void aggregated(int n)
{
	for (int i = 0; i < n; i++)
		agg_call((uint64_t)i);
}

static void off(int n)
{
	uint32_t mode = tfh_mode;

	tfh_mode = TFH_MODE_OFF;
	for (int i = 0; i < n; i++)
		call((uint64_t)i);
	tfh_mode = mode;
}

__attribute__((noinline)) static void nothing_call(uint64_t i)
{
	__asm__ volatile("" ::"r"(i) : "memory");
}

static void nothing(int n)
{
	for (int i = 0; i < n; i++)
		nothing_call((uint64_t)i);
}

static struct {
	const char *name;
	void (*run)(int n);
	double ns[ROUNDS];
} cases[] = {
	{"two clock readings", two_clocks, {0}},    {"recorded call", recorded, {0}},
	{"recorded, function id", named, {0}},	    {"recorded, text id", texts, {0}},
	{"aggregated stage call", aggregated, {0}}, {"switched off", off, {0}},
	{"empty function", nothing, {0}},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static int by_value(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return d < 0 ? -1 : d > 0;
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/tfhook-bench-XXXXXX", command[64];
	struct tfh_clock_pair a, b;
	double ns_per_tick, clocks;

	if (!mkdtemp(dir))
		return 1;
	if (chdir(dir)) /* the run directory is made here */
		return 1;
	call(0); /* which chooses the clock */
	if (argc > 1 && !strcmp(argv[1], "kernel"))
		tfh_clock_counter = 0;
	tfh_clock_read_pair(&a);
	named(100);
	texts(100);
	aggregated(100);
	usleep(100000);
	for (int r = 0; r < ROUNDS; r++)
		for (size_t c = 0; c < CASES; c++) {
			uint64_t t;

			tfh_flush_now(1000);
			cases[c].run(64);
			t = tfh_ticks();
			cases[c].run(BURST);
			cases[c].ns[r] = (double)(tfh_ticks() - t) / BURST;
		}
	tfh_clock_read_pair(&b);
	ns_per_tick = tfh_clock_ns_per_tick(&a, &b);
	for (size_t c = 0; c < CASES; c++)
		qsort(cases[c].ns, ROUNDS, sizeof(double), by_value);
	clocks = cases[0].ns[ROUNDS / 2] * ns_per_tick;
	printf("%-24s %8s %8s %8s %12s\n", "ns per call", "median", "p10", "p90", "over clocks");
	for (size_t c = 0; c < CASES; c++) {
		double median = cases[c].ns[ROUNDS / 2] * ns_per_tick;

		printf("%-24s %8.2f %8.2f %8.2f", cases[c].name, median,
		       cases[c].ns[ROUNDS / 10] * ns_per_tick,
		       cases[c].ns[ROUNDS * 9 / 10] * ns_per_tick);
		if (c >= 1 && c <= 4)
			printf(" %12.2f", median - clocks);
		printf("\n");
	}
	printf("records that found no room: %llu\n", (unsigned long long)tfh_self.ring->dropped);
	tfh_finish(true);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) != 0;
}
