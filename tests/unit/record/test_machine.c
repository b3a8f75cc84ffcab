/* What must hold: readings of the machine take at most 1/2000 of a processor, 0.05 %, and 5 ms once, whatever one of them costs, and come at
 * most once a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/meters.h"
#include "format/sample.h"
#include "record/watch/samples.h"

#define SHARE 2000u
#define ONCE_NS 5000000u
#define FOR_NS 2500000000ull
#define LEAST_NS 900000000ull
#define NAP_US 20000u
#define THREADS 20u
#define AROUND_NS 20000u /* of the measuring itself, for each reading */

static struct tft_sample_thread out[TFH_METER_COUNT + 2 * THREADS];

static uint64_t now(clockid_t clock)
{
	return (uint64_t)tfh_clock_ns(clock);
}

static void readings_have_a_share(void **state)
{
	struct tft_sample_thread thread[THREADS];
	uint64_t begin = now(CLOCK_MONOTONIC), last = 0, used = 0, before = 0, n = 0;

	(void)state;
	/* as dear as in a job of many threads */
	for (uint32_t i = 0; i < THREADS; i++)
		thread[i] = (struct tft_sample_thread){i, (uint32_t)getpid(), 0, 0};
	while (now(CLOCK_MONOTONIC) - begin < FOR_NS) {
		uint64_t at = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
		if (tfh_machine_read(thread, THREADS, out)) {
			if (n++) {
				assert_true(at - last >= LEAST_NS);
				/* what all before this one took, in the time until it */
				assert_true(used - before <=
					    ONCE_NS + (at - begin) / SHARE + n * AROUND_NS);
			}
			before = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
			used += before;
			last = at;
		}
		usleep(NAP_US);
	}
	printf("%llu readings, the last took %.0f us\n", (unsigned long long)n,
	       (double)before / 1e3);
	assert_true(n > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(readings_have_a_share)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
