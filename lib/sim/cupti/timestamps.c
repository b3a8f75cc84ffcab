/*
 * Time of records. Without a clock of the client's, CUPTI's time is CLOCK_REALTIME, shifted by the
 * settings; its offset to CLOCK_MONOTONIC is determined once, so that a test can compute it. With a
 * client's clock, device times are converted along the line through the first and the newest
 * reading.
 */
#include "sim/cupti/sim_cupti.h"

typedef uint64_t (*clock_fn)(void);

struct clock_reading {
	uint64_t mono, client;
};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static clock_fn client_clock;
static struct clock_reading first, newest;
static uint64_t base_mono;
static int64_t base_distance;

/* Without a driver there are no device times, so any clock will do. */
static uint64_t mono_now(void)
{
	const struct sim_tools_table *driver = sim_cupti_driver();
	struct timespec t;
	if (driver)
		return driver->now();
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void set_base(void)
{
	struct timespec t;
	base_mono = mono_now();
	clock_gettime(CLOCK_REALTIME, &t);
	base_distance = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - (int64_t)base_mono;
	base_distance += (int64_t)(sim_cupti_config()->clock_offset_us * 1e3);
}

static uint64_t own(uint64_t mono)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, set_base);
	double drift = sim_cupti_config()->clock_drift_ppm * 1e-6 *
		       (double)((int64_t)mono - (int64_t)base_mono);
	return (uint64_t)((int64_t)mono + base_distance + (int64_t)drift);
}

void sim_cupti_clock_sample(void)
{
	clock_fn f = __atomic_load_n(&client_clock, __ATOMIC_ACQUIRE);
	if (!f)
		return;
	/* Takes the shortest of several readings, as the thread may be preempted during one. */
	struct clock_reading r = {0, 0};
	for (uint64_t best = UINT64_MAX, n = 0; n < 8 && best > 2000; n++) {
		uint64_t before = mono_now(), client = f(), width = mono_now() - before;
		if (width >= best)
			continue;
		best = width;
		r = (struct clock_reading){before + width / 2, client};
	}
	pthread_mutex_lock(&mu);
	if (!first.mono)
		first = r;
	newest = r;
	pthread_mutex_unlock(&mu);
}

uint64_t sim_cupti_time(uint64_t mono)
{
	if (!mono)
		return 0;
	if (!__atomic_load_n(&client_clock, __ATOMIC_ACQUIRE))
		return own(mono);
	pthread_mutex_lock(&mu);
	struct clock_reading a = first, b = newest;
	pthread_mutex_unlock(&mu);
	double slope = 1;
	/* Over a shorter distance, the noise of two readings would be amplified. */
	if (b.mono - a.mono > 1000000)
		slope = (double)(b.client - a.client) / (double)(b.mono - a.mono);
	return (uint64_t)((int64_t)b.client +
			  (int64_t)(slope * (double)((int64_t)mono - (int64_t)b.mono)));
}

uint64_t sim_cupti_now(void)
{
	clock_fn f = __atomic_load_n(&client_clock, __ATOMIC_ACQUIRE);
	return f ? f() : own(mono_now());
}

bool sim_cupti_clock_broken(void)
{
	int set = sim_cupti_config()->zero_times;
	uint32_t version = sim_cupti_version();
	if (!__atomic_load_n(&client_clock, __ATOMIC_ACQUIRE))
		return false;
	/* CUDA 12.6 Update 2 to 13.0 */
	return set < 0 ? version >= 24 && version < 130100 : set;
}

CUPTI_API(cuptiActivityRegisterTimestampCallback, (clock_fn f), (f))
{
	if (!f)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&mu);
	first = newest = (struct clock_reading){0, 0};
	pthread_mutex_unlock(&mu);
	__atomic_store_n(&client_clock, f, __ATOMIC_RELEASE);
	sim_cupti_clock_sample();
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiGetTimestamp, (uint64_t * t), (t))
{
	if (!t)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*t = sim_cupti_now();
	return CUPTI_SUCCESS;
}
