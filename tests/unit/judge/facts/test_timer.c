/*
 * A thread that waits in asyncio's loop before a batch is copied sleeps if the loop's next timer ended the wait; it waits for data
 * if there is no timer, a far one, or one that ticks again and again, and outside of a loop. Either way the line is that of the
 * coroutine that goes on.
 */
#include "../analyze_gen.h"

#define STD "/usr/lib/python3.11/"

enum { AT_LOOP = 1, AT_COPY, AT_POLL };

#define RUN_ONCE STD "asyncio/base_events.py", "BaseEventLoop._run_once", 1898, true
#define SERVES "/job/serve.py", "<module>", 48, false

static const gen_stack stacks[] = {
	[AT_LOOP] = {{STD "selectors.py", "EpollSelector.select", 468, true}, {RUN_ONCE}, {SERVES}},
	[AT_COPY] = {{"/job/serve.py", "infer", 31, false},
		     {"/job/serve.py", "batcher", 39, false},
		     {STD "asyncio/events.py", "Handle._run", 84, true},
		     {RUN_ONCE},
		     {SERVES}},
	[AT_POLL] = {{STD "selectors.py", "EpollSelector.select", 468, true}, {SERVES}},
};

/* Steps of 14 ms that begin with a poll of 12 ms, or with several, with that time-out. */
static struct tfh_result *judge(uint32_t timeout_ms, uint32_t place)
{
	struct gen *g = gen_new();
	double t = 100, cpu = 0;

	GEN_STACKS(&g->feed, stacks);
	for (int i = 0; i < 200; i++, t += 14) {
		struct tfh_event *ev =
			gen_sample(g, 0, t + 0.1 + fmod(i * 6.18, 11.8), TFT_STATE_POLL, place, 10);
		ev->w[0] = timeout_ms ? timeout_ms + 1 : 0;
		ev->w[1] = 232 | 0xffffffffull << 32;
		gen_cpu(g, 0, t + 12, cpu += 0.02, AT_COPY);
		gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t + 12, t + 12.1, 4096, false);
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t + 12.11, t + 12.12)->w[0] = 1;
		gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 12.13, t + 13.98);
		gen_cpu(g, 0, t + 13.98, cpu += 0.1, AT_COPY);
	}
	return gen_judge(g);
}

static void test_timers(void **state)
{
	static const struct {
		uint32_t timeout_ms, place;
		enum tfh_cause cause;
		uint32_t line;
	} row[] = {
		{12, AT_LOOP, TFH_CAUSE_HOST_SLEEP, 39},       /* the timer */
		{0, AT_LOOP, TFH_CAUSE_INPUT_UNKNOWN, 39},     /* none */
		{20000, AT_LOOP, TFH_CAUSE_INPUT_UNKNOWN, 39}, /* a ping, later */
		{1, AT_LOOP, TFH_CAUSE_INPUT_UNKNOWN, 39},     /* ticks */
		{12, AT_POLL, TFH_CAUSE_INPUT_UNKNOWN, 48},    /* its time-out says nothing */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct tfh_result *r = judge(row[i].timeout_ms, row[i].place);
		if (r->verdict.cause != row[i].cause || r->found.line.line != row[i].line)
			fail_msg("row %zu: %s at %u", i, tfh_cause_name(r->verdict.cause),
				 r->found.line.line);
		tfh_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_timers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
