/* Readings of the tick counter together with the kernel's clocks, one a second. */
#include "record/ring/journal.h"
#include "record/write/write.h"

#define CLOCKS_MAX 128

static struct tft_clock_triple clocks[CLOCKS_MAX]; /* not yet in the file */
static uint32_t n_clocks;

void tfh_take_clock(void)
{
	struct tfh_clock_pair pair;
	struct tft_clock_triple t;
	struct tft_journal *head = tfh_journal.head;

	tfh_clock_read_pair(&pair);
	t.ticks = pair.ticks;
	t.monotonic_ns = (uint64_t)pair.mono_ns;
	t.realtime_ns = (uint64_t)pair.real_ns;
	head->clock[head->clock_n & 1] = t;
	__atomic_store_n(&head->clock_n, head->clock_n + 1, __ATOMIC_RELEASE);
	if (n_clocks == CLOCKS_MAX) /* writing is paused: every second reading is enough */
		for (n_clocks = 0; n_clocks < CLOCKS_MAX / 2; n_clocks++)
			clocks[n_clocks] = clocks[n_clocks * 2];
	clocks[n_clocks++] = t;
	if (tfh_tick_hz_set(&tfh_recorder.first, &t))
		head->tick_hz = tfh_tick_hz();
}

bool tfh_clocks_waiting(void)
{
	return n_clocks;
}

int tfh_clocks_put(struct tft_writer *w)
{
	int err = n_clocks ? tft_write_clocks(w, clocks, n_clocks) : 0;

	if (!err)
		n_clocks = 0;
	return err;
}

void tfh_clocks_forget(void)
{
	n_clocks = 0;
}
