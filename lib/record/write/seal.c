/* From the staging area to the trace file: chunks and losses, and what happens when the disk is
 * full. */
#include "record/write/write.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "record/process/log.h"
#include "record/ring/journal.h"
#include "record/run/rundir.h"
#include "record/stacks/pyplaces.h"
#include "record/stacks/stacks.h"
#include "record/watch/samples.h"

#define PAUSE_NS 30000000000ull
#define LOSSES_MAX 256u
#define SEAL_NS 30000000000ull
/* after this time, samples are written without waiting for records */
#define SAMPLES_NS 5000000000ull
#define SAMPLES_IDLE_NS 60000000000ull /* of a process that makes no calls */
#define SEAL_MEMORY_NS 1000000000ull   /* records in plain memory die with the process */

static struct {
	uint64_t pause_until_ns, paused_since_ns; /* 0: not paused */
	bool pause_told;
	uint64_t sealed_ns, samples_ns; /* when records and samples were last written */
} f;

/* Losses not yet written. settle_losses() settles the rings' counters once they are. */
struct losses {
	struct tft_loss loss[LOSSES_MAX];
	struct {
		struct tft_ring *ring;
		uint64_t seen;
	} of[LOSSES_MAX];
	uint64_t beyond;
	uint32_t n;
};
static struct losses losses;

static void add_loss(struct tft_ring *ring, uint64_t count, uint32_t thread, uint32_t cause,
		     uint64_t first, uint64_t last)
{
	struct tft_loss *l = &losses.loss[losses.n];

	*l = (struct tft_loss){
		.thread = thread, .cause = cause, .count = count, .t_first = first, .t_last = last};
	losses.of[losses.n].ring = ring;
	losses.of[losses.n].seen = ring ? ring->drop_seen + count : 0;
	losses.n++;
}

static void ring_loss(struct tft_ring *ring)
{
	uint64_t dropped, last;

	if (losses.n == LOSSES_MAX ||
	    __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) == TFT_RING_FREE)
		return;
	/* acquire: pairs with the release store that follows the bracket */
	dropped = __atomic_load_n(&ring->dropped, __ATOMIC_ACQUIRE);
	if (dropped == ring->drop_seen)
		return;
	last = __atomic_load_n(&ring->drop_last, __ATOMIC_RELAXED);
	add_loss(ring, dropped - ring->drop_seen, ring->thread,
		 f.paused_since_ns ? TFT_LOSS_DISK : TFT_LOSS_RING,
		 __atomic_load_n(&ring->drop_first, __ATOMIC_RELAXED),
		 last ? last : tfh_ticks()); /* 0: the thread has no clock (confined.c) */
}

/* Adds to the journal's count before subtracting from the one in memory, so that a kill in between
 * loses nothing. */
void tfh_take_early_losses(void)
{
	uint64_t early = __atomic_load_n(&tfh_recorder.beyond_early, __ATOMIC_RELAXED);

	if (!early)
		return;
	__atomic_fetch_add(&tfh_journal.head->beyond, early, __ATOMIC_RELEASE);
	__atomic_fetch_sub(&tfh_recorder.beyond_early, early, __ATOMIC_RELAXED);
}

static void collect_losses(void)
{
	struct tfh_journal *j = &tfh_journal;
	uint32_t n = __atomic_load_n(&j->head->slot_count, __ATOMIC_ACQUIRE);
	uint64_t beyond;

	tfh_take_early_losses();
	beyond = __atomic_load_n(&j->head->beyond, __ATOMIC_ACQUIRE);
	losses.n = 0;
	losses.beyond = beyond;
	if (beyond != j->head->beyond_seen)
		add_loss(NULL, beyond - j->head->beyond_seen, 0, TFT_LOSS_THREAD,
			 __atomic_exchange_n(&j->head->beyond_first, 0, __ATOMIC_RELAXED),
			 __atomic_load_n(&j->head->beyond_last, __ATOMIC_RELAXED));
	for (uint32_t i = 0; i < tfh_early_count(); i++) {
		struct tfh_rec *records;
		struct tft_ring *ring = tfh_early_at(i, &records);

		/* Claimed until settled: a thread that moves takes its counts along. */
		if (ring->dropped != ring->drop_seen && tfh_early_claim(ring, false)) {
			uint32_t n_before = losses.n;

			ring_loss(ring);
			if (losses.n == n_before)
				tfh_early_release(ring);
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		struct tft_ring *ring = tfh_journal_ring(j, i);

		if (ring)
			ring_loss(ring);
	}
}

static uint64_t losses_sum(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < losses.n; i++)
		sum += losses.loss[i].count;
	return sum;
}

/* Also called after a failed write, in which case nothing is settled. */
static void release_cold(void)
{
	for (uint32_t i = 0; i < losses.n; i++)
		if (losses.of[i].ring && tfh_ring_is_cold(losses.of[i].ring))
			tfh_early_release(losses.of[i].ring);
}

/* Announces where the LOSS chunk will be, so that a kill right after its write does not count it
 * twice. */
static void announce_losses(void)
{
	uint64_t mark =
		tft_loss_mark(tfh_journal.head->segment, tft_writer_bytes(tfh_segments.writer));

	tfh_journal.head->beyond_mark = mark;
	__atomic_store_n(&tfh_journal.head->beyond_writing, losses.beyond, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < losses.n; i++) {
		if (!losses.of[i].ring)
			continue;
		losses.of[i].ring->drop_mark = mark;
		__atomic_store_n(&losses.of[i].ring->drop_writing, losses.of[i].seen,
				 __ATOMIC_RELEASE);
	}
}

static void settle_losses(void)
{
	for (uint32_t i = 0; i < losses.n; i++)
		if (losses.of[i].ring)
			__atomic_store_n(&losses.of[i].ring->drop_seen, losses.of[i].seen,
					 __ATOMIC_RELEASE);
	release_cold();
	tfh_journal.head->beyond_seen = losses.beyond;
	tfh_journal.head->dropped += losses_sum();
	losses.n = 0;
}

static const char *reason_of(int err)
{
	switch (err) {
	case -ENOSPC:
		return "less than 2 GiB or 5 % of the file system would be left free";
	case -EDQUOT:
		return "too little would be left of this user's or group's disk quota";
	case -EOVERFLOW:
		return "the processes of this run have reached the run's size limit on this host";
	default:
		return strerror(-err);
	}
}

static const char *remedy_of(int err)
{
	switch (err) {
	case -EOVERFLOW:
		return "raise TFHOOK_RUN_SIZE";
	case -ENOSPC:
	case -EDQUOT:
		return "free some space or set TFHOOK_DIR to another file system";
	case -ENOMEM:
		return "raise the limit of address space (ulimit -v)";
	case -EMFILE:
		return "raise the limit of open files (ulimit -n)";
	default:
		return "set TFHOOK_DIR to a directory that lasts as long as the job";
	}
}

/* Stops writing for half a minute. The rings continue until they are full; then losses are
 * counted. */
static void pause_writing(int err, uint64_t now_ns)
{
	f.pause_until_ns = now_ns + PAUSE_NS;
	if (!f.paused_since_ns) {
		f.paused_since_ns = now_ns;
		__atomic_store_n(&tfh_journal.head->paused_ns, now_ns, __ATOMIC_RELAXED);
	}
	if (!f.pause_told) {
		char what[PATH_MAX + 100], remedy[128];

		f.pause_told = true;
		snprintf(what, sizeof(what), "recording to %s paused: %s", tfh_dir.path,
			 reason_of(err));
		snprintf(remedy, sizeof(remedy), "%s; tfhook tries again every 30 s",
			 remedy_of(err));
		tfh_log_failure(what, remedy);
	}
	tfh_log(1, "writing paused: %s", strerror(-err));
}

static void resume_writing(void)
{
	if (!f.paused_since_ns)
		return;
	f.paused_since_ns = f.pause_until_ns = 0;
	__atomic_store_n(&tfh_journal.head->paused_ns, 0, __ATOMIC_RELAXED);
	tfh_log(1, "writing again");
}

static int write_staged(uint64_t dropped)
{
	static struct tft_batch *batches;
	struct tft_staging *s = tfh_journal.staging;
	uint32_t n = s->n_batches;
	uint64_t before = tft_writer_bytes(tfh_segments.writer);
	int err;

	if (!tfh_map_once(&batches, TFT_STAGING_BATCHES * sizeof(*batches)))
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct tft_staged *b = &s->batch[i];

		batches[i] = (struct tft_batch){.records = &tfh_journal.staged[b->offset],
						.count = b->count,
						.thread = b->thread,
						.tid = b->tid,
						.first = b->first};
	}
	err = tft_write_events(tfh_segments.writer, batches, n, dropped);
	if (err)
		return err;
	for (uint32_t i = 0; i < n; i++)
		tft_live_see(&tfh_live, batches[i].thread, batches[i].records, batches[i].count);
	tfh_journal.head->events_written += s->used;
	tfh_journal.head->bytes_written += tft_writer_bytes(tfh_segments.writer) - before;
	/* The write has returned, so the copies here are no longer needed. */
	__atomic_store_n(&s->epoch, s->epoch + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&s->n_batches, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&s->used, 0, __ATOMIC_RELEASE);
	return 0;
}

static int write_all(void)
{
	struct tft_staging *s = tfh_journal.staging;
	struct tft_journal *head = tfh_journal.head;
	uint64_t dropped = head->dropped + losses_sum();
	int err = tfh_segment_ready();

	if (err)
		return err;
	if (s->n_batches) {
		err = write_staged(dropped);
		if (err)
			return err;
	}
	if (losses.n) {
		announce_losses();
		err = tft_write_loss(tfh_segments.writer, losses.loss, losses.n, dropped);
		if (err)
			return err;
		settle_losses();
	}
	err = tfh_clocks_put(tfh_segments.writer);
	if (!err)
		err = tfh_notes_more(tfh_segments.writer);
	if (!err)
		err = tfh_stacks_put(tfh_segments.writer, tfh_segments.opened);
	return err ? err : tfh_sample_write(tfh_segments.writer);
}

void tfh_write_failed(int err, uint64_t now_ns)
{
	if (tfh_segments.writer && tft_writer_rewind(tfh_segments.writer) == -EBADF) {
		/* The job closed all descriptors, as daemons do. The next round opens another
		 * segment. */
		tft_writer_abandon(tfh_segments.writer);
		tfh_segments.writer = NULL;
		return;
	}
	pause_writing(err, now_ns);
}

bool tfh_write_paused(uint64_t now_ns)
{
	return f.pause_until_ns && now_ns < f.pause_until_ns;
}

void tfh_write_retry(void)
{
	f.pause_until_ns = 0;
}

void tfh_write_hold(void)
{
	f.pause_until_ns = TFH_NEVER;
}

bool tfh_seal_due(uint64_t now_ns)
{
	if (now_ns - f.sealed_ns < (tfh_journal.anonymous ? SEAL_MEMORY_NS : SEAL_NS))
		return false;
	f.sealed_ns = now_ns;
	return true;
}

int tfh_seal(void)
{
	uint64_t now_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	int err;

	if (tfh_write_paused(now_ns))
		return -EAGAIN;
	f.sealed_ns = now_ns;
	collect_losses();
	if (!tfh_journal.staging->n_batches && !losses.n)
		return 0;
	tfh_take_clock();
	err = tfh_disk_check();
	if (!err)
		err = write_all();
	if (err) {
		release_cold();
		tfh_write_failed(err, now_ns);
		return err;
	}
	resume_writing();
	return tfh_segment_rotate_if_full();
}

/* Samples wait in the flusher's memory, and die with the process. They are what shows why it was
 * killed: memory, above all. */
static bool samples_due(uint64_t now_ns)
{
	uint64_t after = tfh_journal.staging->n_batches ? SAMPLES_NS : SAMPLES_IDLE_NS;

	if (!f.samples_ns)
		f.samples_ns = now_ns;
	return now_ns - f.samples_ns >= after && now_ns - f.sealed_ns >= after;
}

void tfh_seal_early(void)
{
	uint64_t now_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	bool samples = samples_due(now_ns);
	int err;

	tfh_places_look();
	tfh_stacks_look();
	if (!(samples || tfh_stacks_waiting(tfh_segments.opened)) || tfh_write_paused(now_ns))
		return;
	err = tfh_disk_check();
	if (!err)
		err = tfh_segment_ready();
	if (!err)
		err = tfh_stacks_put(tfh_segments.writer, tfh_segments.opened);
	if (!err && samples) {
		f.samples_ns = now_ns;
		err = tfh_sample_write(tfh_segments.writer);
	}
	if (err)
		tfh_write_failed(err, now_ns);
}

void tfh_seal_forget(void)
{
	memset(&f, 0, sizeof(f));
}
