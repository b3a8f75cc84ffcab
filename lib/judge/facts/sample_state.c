/* What a sample of a thread shows: its state, and more where the file or the lock tells more. */
#include <string.h>

#include "format/waits.h"
#include "judge/facts/sample_groups.h"

/* File name endings of logs. */
static bool is_log(const char *path)
{
	static const char *const ends[] = {".log", ".txt", ".csv",  ".tsv", ".json", ".jsonl",
					   ".out", ".err", ".html", ".md",  ".db",   ".wandb"};
	size_t n = strlen(path);

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (n > strlen(ends[i]) && !strcmp(path + n - strlen(ends[i]), ends[i]))
			return true;
	return strstr(path, "tfevents") != NULL;
}

/* The wait of a thread for a lock. Python's own locks are semaphores. */
static uint8_t lock_of(const struct tfh_event *ev)
{
	switch (tft_wait_of(ev->w[1])) {
	case TFT_WAIT_MUTEX:
		return TFH_SEEN_MUTEX;
	case TFT_WAIT_SIGNAL:
		return ev->stack ? TFT_STATE_LOCK : TFH_SEEN_SIGNAL;
	case TFT_WAIT_END:
		return TFH_SEEN_END;
	default:
		return TFT_STATE_LOCK;
	}
}

uint8_t tfh_sample_state(const struct tfh_stack_samples *l, const struct tfh_event *ev)
{
	uint8_t state = ev->result < TFT_STATE_COUNT ? (uint8_t)ev->result : 0;
	int32_t fd = (int32_t)(ev->w[1] >> 32);

	if (state == TFT_STATE_TERMINAL_OUT ||
	    (state == TFT_STATE_PIPE_FULL && (fd == 1 || fd == 2)))
		return TFH_SEEN_LOG;
	if (state == TFT_STATE_LOCK)
		return lock_of(ev);
	if (state != TFT_STATE_WRITE)
		return state;
	if (fd == 1 || fd == 2 ||
	    (ev->stream && is_log(l->feed->name(l->feed->arg, l->process, TFT_NAME_STRING,
						ev->stream, NULL, NULL))))
		return TFH_SEEN_LOG;
	return state;
}
