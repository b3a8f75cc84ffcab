/* Trace files of this process, one after the other. */
#include "record/write/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "format/tft_read.h"
#include "record/process/apart.h"
#include "record/process/log.h"
#include "record/ring/journal.h"
#include "record/ring/staging.h"
#include "record/run/rundir.h"

#define SEGMENT_BYTES (256ull << 20)

struct tfh_segments tfh_segments;

static void segment_name(char *name, size_t size, uint32_t n)
{
	snprintf(name, size, "%.*s.%u.tft", (int)sizeof(tfh_dir.prefix), tfh_dir.prefix, n);
}

/* What a segment of this process takes on disk, as the budget counts it (run/budget.c), in bytes; 0
 * if there is none. Whole pages, if the file system has not allocated blocks yet. */
static uint64_t taken_by(int dir, const char *name)
{
	struct stat st;
	uint64_t blocks, pages;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	blocks = (uint64_t)st.st_blocks * 512;
	pages = ((uint64_t)st.st_size + TFH_PAGE - 1) & -TFH_PAGE;
	return blocks > pages ? blocks : pages;
}

/* Removes a segment of this process. Returns what it took. */
static uint64_t remove_segment(const char *name)
{
	int dir = tfh_rundir_fd(&tfh_dir);
	uint64_t bytes;

	if (dir < 0)
		return 0;
	bytes = taken_by(dir, name);
	if (unlinkat(dir, name, 0))
		bytes = 0;
	tfh_close(dir);
	return bytes;
}

static int make_segment(void)
{
	struct tfh_segments *s = &tfh_segments;
	int dir = tfh_rundir_fd(&tfh_dir), fd, err;
	struct tft_head head;

	if (dir < 0)
		return dir;
	segment_name(s->name, sizeof(s->name), s->next);
	fd = tfh_make_file(dir, s->name, &tfh_dir.access);
	if (fd >= 0) {
		tfh_head_fill(&head, s->next);
		err = tft_writer_on(tfh_raise_fd(fd), &head, &s->writer);
		if (err)
			unlinkat(dir, s->name, 0);
	} else {
		err = fd;
	}
	tfh_close(dir);
	return err;
}

/* Writes the job's live objects, so that this segment can be read alone. */
static int repeat_live(void)
{
	size_t bytes = TFT_MAX_EVENTS * sizeof(struct tfh_rec);
	struct tfh_rec *r =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = 0;
	uint32_t n;
	int err = 0;

	if (r == MAP_FAILED)
		return -ENOMEM;
	while (!err && (n = tft_live_copy(&tfh_live, &at, r, TFT_MAX_EVENTS)) > 0) {
		struct tft_batch batch = {.records = r, .count = n, .first = tfh_own_numbers(n)};

		for (uint32_t i = 0; i < n; i++)
			r[i].seq = (uint32_t)(batch.first + i);
		err = tft_write_events(tfh_segments.writer, &batch, 1, tfh_journal.head->dropped);
	}
	munmap(r, bytes);
	return err;
}

int tfh_segment_ready(void)
{
	struct tfh_segments *s = &tfh_segments;
	struct tft_journal *journal = tfh_journal.head;
	int err = -EEXIST;

	if (s->writer)
		return 0;
	/* An earlier process with the same pid, or this one before a failed exec, may have left
	 * segments. */
	for (int i = 0; err == -EEXIST && i < 10000; i++) {
		err = make_segment();
		if (err == -EEXIST)
			s->next++;
	}
	if (err) {
		s->writer = NULL;
		return err;
	}
	if (!s->any)
		s->first = s->oldest_middle = s->next;
	s->any = true;
	__atomic_store_n(&journal->segment, s->next, __ATOMIC_RELAXED);
	__atomic_store_n(&journal->segments, journal->segments + 1, __ATOMIC_RELEASE);
	s->next++;
	tft_writer_level(s->writer, (int)tfh_opt_int(&tfh_recorder.options, TFH_OPT_LEVEL));
	if (!tfh_clocks_waiting())
		tfh_take_clock();
	s->opened++;
	err = journal->segments > 1 ? repeat_live() : tfh_notes_write(s->writer);
	s->opened_bytes = tft_writer_bytes(s->writer);
	return err;
}

void tfh_segment_renew(void)
{
	struct tfh_segments *s = &tfh_segments;

	if (!s->writer)
		return;
	if (tft_writer_bytes(s->writer) != s->opened_bytes) {
		tfh_segment_close(false);
		return;
	}
	tft_writer_abandon(s->writer);
	s->writer = NULL;
	if (!remove_segment(s->name))
		return;
	s->next--;
	s->any = s->next != s->first;
	tfh_journal.head->segments--;
}

int tfh_segment_close(bool clean)
{
	struct tfh_segments *s = &tfh_segments;
	int err, dir;

	if (!s->writer)
		return 0;
	err = tft_writer_finish(s->writer, clean);
	s->writer = NULL;
	dir = tfh_rundir_fd(&tfh_dir);
	if (dir >= 0) {
		s->closed_bytes += taken_by(dir, s->name);
		tfh_close(dir);
	}
	return err;
}

static int keep_sketches(const char *path)
{
	struct tft_reader *r;
	struct tfh_err text;
	int err;

	if (tft_open(path, &r, &text))
		return 0; /* unreadable: there is nothing to keep */
	err = tft_write_digest(tfh_segments.writer, r);
	tft_close(r);
	return err;
}

/* Copies the sketches of a segment's event chunks into the open segment and deletes its file. */
static int drop_segment(uint32_t n)
{
	struct tfh_segments *s = &tfh_segments;
	char name[300], path[PATH_MAX + 300];
	uint64_t bytes;
	int err;

	segment_name(name, sizeof(name), n);
	snprintf(path, sizeof(path), "%s/%s", tfh_dir.path, name);
	if (access(path, F_OK))
		return 0;
	err = keep_sketches(path);
	if (err)
		return err;
	bytes = remove_segment(name);
	s->closed_bytes -= s->closed_bytes < bytes ? s->closed_bytes : bytes;
	tfh_log(1, "segment %u deleted to keep to TFHOOK_MAX_SIZE or TFHOOK_RUN_SIZE", n);
	return 0;
}

/* The open segment may grow to `most`. The first segment and the one closed last are kept. */
static int keep_to(uint64_t limit, uint64_t most)
{
	struct tfh_segments *s = &tfh_segments;
	int err = 0;

	while (!err && s->closed_bytes + most > limit && s->oldest_middle + 2 < s->next) {
		if (s->oldest_middle != s->first)
			err = drop_segment(s->oldest_middle);
		if (!err)
			s->oldest_middle++;
	}
	return err;
}

static uint64_t own_bytes(void)
{
	return tfh_segments.closed_bytes +
	       (tfh_segments.writer ? tft_writer_bytes(tfh_segments.writer) : 0);
}

/* Returns the size limit of a segment, and in `limit` that of all segments of this process. */
static uint64_t size_limit(uint64_t *limit)
{
	uint64_t most = tfh_budget_segment(own_bytes(), limit);

	return most < SEGMENT_BYTES ? most : SEGMENT_BYTES;
}

int tfh_segment_rotate_if_full(void)
{
	struct tfh_segments *s = &tfh_segments;
	uint64_t limit, most = size_limit(&limit);
	struct rlimit files;
	int err = 0;

	if (!getrlimit(RLIMIT_FSIZE, &files) && files.rlim_cur / 2 < most)
		most = files.rlim_cur / 2;
	if (!s->writer || tft_writer_bytes(s->writer) + TFH_CHUNK_BYTES / 4 < most)
		return 0;
	tfh_segment_close(false);
	err = tfh_segment_ready();
	return err ? err : keep_to(limit, most);
}

/* Deletes middle segments beyond this process's share. Returns whether there were any. */
static bool shrink(void)
{
	uint64_t limit, most = size_limit(&limit), before = tfh_segments.closed_bytes;

	if (tfh_segments.writer)
		keep_to(limit, most);
	return tfh_segments.closed_bytes != before;
}

int tfh_disk_check(void)
{
	int err = tfh_budget_check(own_bytes());

	if (err != -EOVERFLOW || !shrink())
		return err;
	tfh_budget_freed();
	return tfh_budget_check(own_bytes());
}

void tfh_segments_forget(void)
{
	/* The parent process goes on writing to it, perhaps in a table that the child does not
	 * have. */
	if (tfh_segments.writer && !tfh_is_apart())
		tft_writer_abandon(tfh_segments.writer);
	memset(&tfh_segments, 0, sizeof(tfh_segments));
}
