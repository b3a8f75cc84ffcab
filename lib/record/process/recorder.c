#include "record/process/recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "record/process/settings.h"

struct tfh_recorder tfh_recorder = {.generation = 2, .rank.rank = -1};
uint32_t tfh_mode = TFH_MODE_COLD;
__thread struct tfh_self tfh_self
	__attribute__((tls_model("initial-exec"))) = {.seen.generation = TFH_NO_RING};
uint64_t tfh_long_ticks = TFH_NEVER;
uint64_t tfh_notable_ticks = TFH_NEVER;

static struct tfh_epoch none; /* used until the page exists: 0 never equals a ring's generation */
struct tfh_epoch *tfh_epoch = &none;

static uint64_t hz; /* atomic */

pid_t tfh_raw_getpid(void)
{
	return (pid_t)syscall(SYS_getpid);
}

bool tfh_recording(void)
{
	/* The order matters: in a job that records nothing, tfhook makes no system call, which a
	 * sandbox might answer with a signal. */
	return __atomic_load_n(&tfh_recorder.start_state, __ATOMIC_ACQUIRE) == TFH_START_DONE &&
	       tfh_raw_getpid() == tfh_recorder.pid;
}

int64_t tfh_setting(enum tfh_option id)
{
	return tfh_opt_int(&tfh_recorder.options, id);
}

const char *tfh_setting_text(enum tfh_option id)
{
	return tfh_opt_str(&tfh_recorder.options, id);
}

uint64_t tfh_tick_hz(void)
{
	return __atomic_load_n(&hz, __ATOMIC_RELAXED);
}

void tfh_notable_from(uint64_t ticks)
{
	if (ticks < tfh_peek(&tfh_notable_ticks))
		tfh_poke(&tfh_notable_ticks, ticks);
}

bool tfh_tick_hz_set(const struct tft_clock_triple *a, const struct tft_clock_triple *b)
{
	uint64_t ns = b->monotonic_ns - a->monotonic_ns;
	uint64_t value;

	if (ns < 1000000 || ns > 1ull << 40 ||
	    b->ticks <= a->ticks) /* below 1 ms the reading is too coarse */
		return false;
	value = (uint64_t)((double)(b->ticks - a->ticks) * 1e9 / (double)ns);
	__atomic_store_n(&hz, value, __ATOMIC_RELAXED);
	__atomic_store_n(&tfh_long_ticks, value / 5000, __ATOMIC_RELAXED); /* 200 us */
	tfh_notable_from(value / 5000);
	return true;
}
