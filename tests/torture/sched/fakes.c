/* What lies below the recorder, made of memory: the run directory, the journal's place, trace
 * files. What is written goes to the check in work.c. */
#include "work.h"

#include <errno.h>
#include <string.h>

#include "base/proc.h"
#include "format/tft_write.h"
#include "record/process/apart.h"
#include "record/ring/journal.h"
#include "record/run/place.h"
#include "record/run/runjson_write.h"
#include "record/write/write.h"

uint8_t tfh_clock_counter;
static struct tft_writer {
	uint64_t bytes;
} writer;

void tfh_clock_init(struct tfh_clock_info *info)
{
	if (info)
		*info = (struct tfh_clock_info){.source = TFH_CLOCK_MONOTONIC,
						.trust = TFH_TRUST_FULL};
}

void tfh_clock_read_pair(struct tfh_clock_pair *pair)
{
	*pair = (struct tfh_clock_pair){sched_now(), (int64_t)sched_now(), (int64_t)sched_now(), 1};
}

int tfh_rundir_plan(struct tfh_rundir *dir, const struct tfh_recorder *p, bool ahead)
{
	(void)p, (void)ahead;
	work_begins();
	dir->opened = false;
	strcpy(dir->path, "/");
	strcpy(dir->prefix, "p");
	return 0;
}

int tfh_rundir_open(struct tfh_rundir *dir, const struct tfh_recorder *p)
{
	(void)p;
	dir->opened = true;
	return 0;
}

enum tfh_reach tfh_rundir_reach(const struct tfh_rundir *dir, const struct tfh_options *options)
{
	(void)dir, (void)options;
	return sched_random(TFH_REACH_UNKNOWN + 1);
}

int tfh_journal_place(const struct tfh_rundir *dir, uint64_t bytes, struct tfh_journal_way way,
		      char *path, size_t size, uint32_t *flags)
{
	(void)dir, (void)bytes, (void)way, (void)path, (void)size, (void)flags;
	return -ENOTSUP; /* plain memory serves */
}

int tfh_journal_name(const struct tfh_rundir *dir, int fd, uint32_t flags, char *path, size_t size)
{
	(void)dir, (void)fd, (void)flags, (void)path, (void)size;
	return -ENOTSUP;
}

void tfh_read_small(const char *path, char *text, size_t size)
{
	(void)path, (void)size;
	text[0] = '\0';
}

uint64_t tfh_process_start(pid_t pid)
{
	return (uint64_t)pid;
}

size_t tfh_main_stack_left(const void *here)
{
	(void)here;
	return 1 << 20;
}

size_t tfh_stack_left(void)
{
	return 1 << 20;
}

/* ---- descriptors: there are none ---- */

static uint64_t flusher;

struct tfh_helper *tfh_apart_begin(bool able, int keep)
{
	(void)able, (void)keep;
	return NULL;
}

void tfh_apart_signals(const sigset_t *job)
{
	(void)job;
}

void tfh_apart_forget(void)
{
	flusher = 0;
}

void tfh_flusher_is(pthread_t thread)
{
	__atomic_store_n(&flusher, (uint64_t)thread, __ATOMIC_RELAXED);
}

bool tfh_on_flusher(void)
{
	return __atomic_load_n(&flusher, __ATOMIC_RELAXED) == (uint64_t)pthread_self();
}

unsigned tfh_apart_threads(void)
{
	return 1;
}

void tfh_apart_over(void)
{
}

void tfh_apart_end(struct tfh_helper *helper, void (*last)(void))
{
	(void)helper, (void)last;
	pthread_detach(pthread_self());
}

bool tfh_apart_decided(void)
{
	return false;
}

bool tfh_is_apart(void)
{
	return false;
}

void tfh_among_job(void (*call)(void *), void *arg)
{
	call(arg);
}

/* ---- segments ---- */

struct tfh_segments tfh_segments;
struct tfh_rundir tfh_dir;

int tfh_disk_check(void)
{
	return 0;
}

int tfh_segment_ready(void)
{
	tfh_segments.writer = &writer;
	return 0;
}

int tfh_segment_close(bool clean)
{
	(void)clean;
	tfh_segments.writer = NULL;
	return 0;
}

int tfh_segment_rotate_if_full(void)
{
	return 0;
}

void tfh_segment_renew(void)
{
}

void tfh_segments_forget(void)
{
	tfh_segments.writer = NULL;
}

/* ---- the writer ---- */

int tft_write_events(struct tft_writer *w, const struct tft_batch *batches, uint32_t n,
		     uint64_t dropped)
{
	(void)dropped;
	w->bytes += 64;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < batches[i].count; k++)
			work_read(&batches[i].records[k], batches[i].thread, batches[i].first + k);
	return 0;
}

int tft_write_loss(struct tft_writer *w, const struct tft_loss *l, uint32_t n, uint64_t dropped)
{
	(void)w, (void)dropped;
	for (uint32_t i = 0; i < n; i++)
		work_lost(l[i].count);
	return 0;
}

int tft_write_clocks(struct tft_writer *w, const struct tft_clock_triple *t, uint32_t n)
{
	(void)w, (void)t, (void)n;
	return 0;
}

int tft_write_chunk(struct tft_writer *w, uint32_t type, const void *payload, uint32_t len)
{
	(void)w, (void)type, (void)payload, (void)len;
	return 0;
}

int tft_write_chunk_at(struct tft_writer *w, uint32_t type, const void *payload, uint32_t len,
		       uint64_t t_first, uint64_t t_last)
{
	(void)w, (void)type, (void)payload, (void)len, (void)t_first, (void)t_last;
	return 0;
}

uint64_t tft_writer_bytes(const struct tft_writer *w)
{
	return w->bytes;
}

int tft_writer_rewind(struct tft_writer *w)
{
	(void)w;
	return 0;
}

void tft_writer_abandon(struct tft_writer *w)
{
	(void)w;
}

size_t tft_head_pack(const struct tft_head *head, void *buf, size_t cap)
{
	(void)head, (void)buf, (void)cap;
	return 1;
}
