/* What a dead process left in its journal is read back exactly once: records of rings and staging
 * that are in no segment yet become one more segment, with the calls in flight and the sums not yet
 * published; a second salvage finds nothing; the journal and the segments stay as they are. A
 * living process is left alone.
 */
#include "format_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "format/journal.h"

#define RINGS 2

static char dir[4096], path[4200];

struct fake {
	uint8_t *map;
	size_t size;
	struct tft_journal *j;
	struct tft_staging *staging;
	struct tfh_rec *staged;
	struct tft_ring *ring[RINGS];
	uint64_t t;
};

static struct tfh_rec truth[RINGS][4000];

static void put_records(struct fake *f, uint32_t ring, uint32_t n)
{
	struct tft_ring *r = f->ring[ring];
	struct tfh_rec *records = (struct tfh_rec *)(f->map + r->records_off);

	for (uint32_t i = 0; i < n; i++, r->head++) {
		call_record(&records[r->head & r->mask], &f->t, (uint32_t)r->head);
		truth[ring][r->head] = records[r->head & r->mask];
	}
}

static struct tft_staged *stage(struct fake *f, uint32_t ring, uint32_t n, bool move_tail)
{
	struct tft_ring *r = f->ring[ring];
	struct tfh_rec *records = (struct tfh_rec *)(f->map + r->records_off);
	struct tft_staged *b = &f->staging->batch[f->staging->n_batches++];

	*b = (struct tft_staged){r->tail, r->thread, r->tid, f->staging->used, n};
	for (uint32_t i = 0; i < n; i++)
		f->staged[f->staging->used++] = records[(r->tail + i) & r->mask];
	if (move_tail)
		r->tail += n;
	return b;
}

/* A journal as a recorder lays it out, of a process that is dead. */
static void make_journal(struct fake *f)
{
	uint64_t slots, head, staging, records;
	uint64_t size = tft_journal_plan(&slots, &head, &staging, &records);
	uint64_t rings = size;
	struct tft_head h = sample_head();
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	int boot = open("/proc/sys/kernel/random/boot_id", O_RDONLY);

	memset(f, 0, sizeof(*f));
	f->size = size + RINGS * (TFT_RING_HEADER + TFT_RING_SMALL);
	assert_int_equal(ftruncate(fd, (off_t)f->size), 0);
	f->map = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(f->map, MAP_FAILED);
	close(fd);
	f->j = (struct tft_journal *)f->map;
	*f->j = (struct tft_journal){.version = TFT_JOURNAL_VERSION,
				     .header_bytes = TFT_JOURNAL_HEADER,
				     .slots_off = slots,
				     .head_off = head,
				     .staging_off = staging,
				     .pid = 0x7ffffff0,
				     .process_start = 1,
				     .flags = TFT_JF_LOCKED,
				     .tick_hz = 1000000000,
				     .start = {1000, 2000, 3000},
				     .state = TFT_JOURNAL_RUNNING,
				     .slot_count = RINGS + 1,
				     .heartbeat_ns = 10000000,
				     .clock_n = 1,
				     .clock = {{9000000, 9001000, 9002000}, {0}},
				     .prefix = "r3.node7.4711"};
	snprintf(f->j->run_dir, sizeof(f->j->run_dir), "%s", dir);
	ssize_t n = boot < 0 ? 0 : read(boot, f->j->boot_id, 36);
	f->j->boot_id[n > 0 ? n : 0] = '\0';
	close(boot);
	f->j->head_bytes = (uint32_t)tft_head_pack(&h, f->map + head, TFT_JOURNAL_HEAD_CAP);
	assert_true(f->j->head_bytes <= TFT_JOURNAL_HEAD_CAP);
	f->staging = (struct tft_staging *)(f->map + staging);
	f->staging->records_off = records;
	f->staging->capacity = TFT_STAGING_RECORDS;
	f->staged = (struct tfh_rec *)(f->map + records);
	struct tft_slot *slot = (struct tft_slot *)(f->map + slots);
	for (uint32_t i = 0; i < RINGS; i++) {
		f->ring[i] = (struct tft_ring *)(f->map + rings);
		slot[i] = (struct tft_slot){rings, TFT_RING_HEADER + TFT_RING_SMALL};
		f->ring[i]->records_off = rings + TFT_RING_HEADER;
		f->ring[i]->mask = TFT_RING_SMALL / sizeof(struct tfh_rec) - 1;
		f->ring[i]->thread = i + 1;
		f->ring[i]->tid = 100 + i;
		f->ring[i]->state = TFT_RING_ACTIVE;
		rings += TFT_RING_HEADER + TFT_RING_SMALL;
	}
	slot[RINGS] = (struct tft_slot){f->size - 64, 1}; /* one that lies */
	f->t = 5000;
	f->j->magic = TFT_JOURNAL_MAGIC;
}

static void write_segment(const char *name, const struct tft_batch *b, uint32_t n)
{
	char file[8300];

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	struct tft_writer *w = new_file(file);
	assert_int_equal(tft_write_events(w, b, n, 0), 0);
	assert_int_equal(tft_writer_finish(w, false), 0);
}

static void clear_dir(void)
{
	char file[8300];
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		snprintf(file, sizeof(file), "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.')
			unlink(file);
	}
	if (d)
		closedir(d);
}

static uint64_t hash_file(const char *name)
{
	FILE *f = fopen(name, "r");
	uint64_t h = 1;

	assert_non_null(f);
	for (int c; (c = getc(f)) != EOF;)
		h = h * 31 + (uint64_t)c;
	fclose(f);
	return h;
}

/* A process that has the journal to itself, as one that salvages it, for a moment. */
static pid_t other_salvage(void)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct flock lock = {.l_type = F_WRLCK, .l_start = 1, .l_len = 1};
		int fd = open(path, O_RDWR), rc = fcntl(fd, F_SETLK, &lock);

		if (write(ready[1], "", 1) == 1)
			usleep(200000);
		_exit(rc);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void test_exactly_once(void **state)
{
	struct fake f;
	struct tft_salvaged got;
	struct tfh_err err;
	char first[8300];

	(void)state;
	clear_dir();
	make_journal(&f);
	/* thread 1: 0..299 written; 200..449 staged; 350..1299 in the ring, around its end; thread
	 * 2: all written */
	put_records(&f, 0, 900);
	put_records(&f, 1, 50);
	struct tft_batch b[2] = {{truth[0], 300, 1, 100, 0}, {truth[1], 50, 2, 101, 0}};
	write_segment("r3.node7.4711.0.tft", b, 1);
	write_segment("r3.node7.4711.1.tft", b + 1, 1);
	f.ring[0]->tail = 200;
	stage(&f, 0, 150, true);
	stage(&f, 0, 100, false);
	put_records(&f, 0, 400);
	f.ring[1]->dropped = 7;
	f.ring[1]->drop_seen = 4;
	f.ring[0]->open[0] =
		(struct tft_open_slot){.t_begin = 4000, .arg = 77, .stage = 3, .fn = 5};
	f.ring[1]->open[1] = (struct tft_open_slot){.t_begin = 6000, .fn = 6};
	f.ring[1]->agg[9] = (struct tft_agg_slot){4, 12, 100, 900, 500, 300, 90};
	uint64_t before = hash_file(path);
	snprintf(first, sizeof(first), "%s/r3.node7.4711.0.tft", dir);
	uint64_t segment_before = hash_file(first);

	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), 0);
	assert_int_equal(got.records, 1000 + 2 + 1);
	assert_int_equal(got.torn, 1); /* the slot that lies */
	assert_int_equal(got.open, 2);
	assert_int_equal(got.known, 100 + 50);
	assert_non_null(strstr(got.path, "r3.node7.4711.2.tft"));
	assert_int_equal(hash_file(path), before);
	assert_int_equal(hash_file(first), segment_before);

	/* the union of all segments holds every record once */
	static uint8_t seen[RINGS][4000];
	uint32_t open = 0, agg = 0, losses = 0;
	memset(seen, 0, sizeof(seen));
	for (uint32_t k = 0; k < 3; k++) {
		struct tft_reader *r;
		char name[8300];
		snprintf(name, sizeof(name), "%s/r3.node7.4711.%u.tft", dir, k);
		assert_int_equal(tft_open(name, &r, &err), 0);
		assert_false(tft_clean_end(r));
		for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
			struct tft_events *ev;
			struct tft_cursor c;
			struct tfh_rec rec;
			losses += tft_chunk(r, i)->type == TFT_LOSS;
			if (tft_chunk(r, i)->type != TFT_EVNT)
				continue;
			assert_int_equal(tft_events_open(r, i, &ev, &err), 0);
			for (uint32_t q = 0; q < tft_run_count(ev); q++) {
				const struct tft_run *run = tft_run(ev, q);
				uint64_t number = run->first;
				tft_cursor_init(&c, ev, q);
				for (; tft_next(&c, &rec); number++) {
					if (rec.kind == TFT_OPEN) {
						assert_int_equal(run->thread, TFT_THREAD_SALVAGE);
						assert_int_equal(rec.w[1], 99 + rec.ctx);
						assert_int_equal(rec.t_end, 9000000 + 999000);
						open++;
						continue;
					}
					if (rec.kind == TFT_AGG) {
						assert_int_equal(number, 50);
						assert_int_equal(rec.stream, 4);
						assert_int_equal(rec.ctx, 12);
						assert_int_equal(rec.w[0], 500);
						agg++;
						continue;
					}
					assert_memory_equal(&rec, &truth[run->thread - 1][number],
							    sizeof(rec));
					assert_int_equal(seen[run->thread - 1][number]++, 0);
				}
			}
			tft_events_close(ev);
		}
		tft_close(r);
	}
	for (uint32_t i = 0; i < 1300; i++)
		assert_int_equal(seen[0][i], 1);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(seen[1][i], 1);
	assert_int_equal(open, 2);
	assert_int_equal(agg, 1);
	assert_int_equal(losses, 1);

	/* another process is at it: waited for */
	pid_t other = other_salvage();
	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), 0);
	assert_int_equal(got.records, 0);
	assert_string_equal(got.path, "");
	int ended;
	assert_int_equal(waitpid(other, &ended, 0), other);
	assert_int_equal(ended, 0);
	assert_int_equal(tft_salvage(path, NULL, TFT_SALVAGE_UNLINK, &got, &err), 0);
	assert_int_equal(access(path, F_OK), -1);
	munmap(f.map, f.size);
}

static void test_without_segments_or_head(void **state)
{
	struct fake f;
	struct tft_salvaged got;
	struct tfh_err err;
	struct tft_reader *r;

	(void)state;
	clear_dir();
	make_journal(&f);
	put_records(&f, 0, 10);
	/* one record was half written when the machine went down */
	((struct tfh_rec *)(f.map + f.ring[0]->records_off))[4].seq = 99;
	f.j->head_bytes = 0;
	snprintf(f.j->host, sizeof(f.j->host), "node7");
	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), 0);
	assert_int_equal(got.records, 9);
	assert_int_equal(got.torn, 1 + 1);
	assert_int_equal(tft_open(got.path, &r, &err), 0);
	assert_string_equal(tft_head(r)->host, "node7");
	tft_close(r);
	/* set-up and finished journals hold nothing */
	clear_dir();
	f.j->state = TFT_JOURNAL_FINISHED;
	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), 0);
	assert_string_equal(got.path, "");
	f.j->magic = 0;
	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), -EAGAIN);
	f.j->magic = TFT_JOURNAL_MAGIC;
	f.j->version = 9;
	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), -EPROTO);
	munmap(f.map, f.size);
}

/* A living process, whose lock is of one or the other kind, until a byte comes through `end`. */
static pid_t living(const char *file, int kind, int end[2])
{
	int ready[2];
	char c;

	assert_int_equal(pipe(ready) | pipe(end), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
		int fd = open(file, O_RDWR), own = open(file, O_RDONLY);
		/* and it reads its own journal, as a job that copies its run directory does */
		if (fcntl(fd, kind, &lock) < 0 || own < 0 || (kind == F_OFD_SETLK && close(own)) ||
		    write(ready[1], "x", 1) != 1 || read(end[0], &c, 1) != 1)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_life(pid_t pid, int end[2])
{
	assert_int_equal(write(end[1], "x", 1), 1);
	close(end[0]);
	close(end[1]);
	waitpid(pid, NULL, 0);
}

static void test_lock_of_a_description(void **state)
{
	struct fake f;
	struct tft_view *v;
	struct tfh_err err;
	int end[2];

	(void)state;
	clear_dir();
	make_journal(&f);
	pid_t pid = living(path, F_OFD_SETLK, end);
	assert_int_equal(tft_view_open(path, &v, &err), 0);
	assert_int_equal(tft_view_life(v), TFT_ALIVE);
	end_life(pid, end);
	assert_int_equal(tft_view_life(v), TFT_DEAD);
	tft_view_close(v);
	munmap(f.map, f.size);
}

static void test_life(void **state)
{
	struct fake f;
	struct tft_salvaged got;
	struct tfh_err err;
	struct tft_view *v;
	int end[2];
	char other[8300];

	(void)state;
	clear_dir();
	make_journal(&f);
	put_records(&f, 0, 10);
	pid_t pid = living(path, F_SETLK, end);
	assert_int_equal(tft_view_open(path, &v, &err), 0);
	assert_int_equal(tft_view_life(v), TFT_ALIVE);
	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), -EBUSY);
	assert_int_equal(tft_salvage(path, NULL, TFT_SALVAGE_SNAPSHOT, &got, &err), -EINVAL);
	snprintf(other, sizeof(other), "%s", test_dir());
	assert_int_equal(tft_salvage(path, other, TFT_SALVAGE_SNAPSHOT, &got, &err), 0);
	assert_int_equal(got.records, 10);
	unlink(got.path);
	assert_int_equal(tft_view_steer(v, TFT_CTL_STOP | TFT_CTL_FLUSH, 0, 20, &err), 0);
	assert_int_equal(f.j->control, 20ull << 32 | TFT_CTL_STOP | TFT_CTL_FLUSH);
	assert_int_equal(tft_view_steer(v, 0, TFT_CTL_STOP, 0, &err), 0);
	assert_int_equal(f.j->control, 20ull << 32 | TFT_CTL_FLUSH);
	end_life(pid, end);
	assert_int_equal(tft_view_life(v), TFT_DEAD);
	/* without locks: pid and start time, then the heartbeat */
	f.j->flags = 0;
	tft_view_close(v);
	assert_int_equal(tft_view_open(path, &v, &err), 0);
	assert_int_equal(tft_view_life(v), TFT_DEAD);
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	f.j->heartbeat_ns = (uint64_t)ts.tv_sec * 1000000000ull;
	assert_int_equal(tft_view_life(v), TFT_ALIVE);
	/* another boot */
	f.j->boot_id[0] ^= 1;
	tft_view_close(v);
	assert_int_equal(tft_view_open(path, &v, &err), 0);
	assert_int_equal(tft_view_life(v), TFT_ELSEWHERE);
	snprintf(f.j->host, sizeof(f.j->host), "some-other-host");
	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), -EXDEV);
	assert_non_null(strstr(err.text, "some-other-host"));
	tft_view_close(v);
	munmap(f.map, f.size);
}

static void try_sweep(void *arg, const struct tft_found *found)
{
	*(bool *)arg |= tft_view_sweep(found->view);
}

static bool sweep(void)
{
	bool gone = false;

	tft_journals_in(dir, try_sweep, &gone);
	return gone;
}

/* A kill during set-up leaves a file that says so in its first bytes and nothing else; it goes,
 * unless its owner lives, or may just have made it and not locked it yet. Files that say nothing
 * may be anybody's, whatever they are called. */
static void test_sweep(void **state)
{
	const uint64_t magic = TFT_JOURNAL_SETUP_MAGIC;
	const struct timespec old[2] = {{.tv_sec = time(NULL) - 60}, {.tv_sec = time(NULL) - 60}};
	char name[8300], second[8300];
	struct tft_view *v;
	struct fake f;
	int end[2];

	(void)state;
	clear_dir();
	snprintf(name, sizeof(name), "%s/p.node7.1.journal", dir);
	snprintf(second, sizeof(second), "%s/second", dir);
	make_journal(&f);
	assert_int_equal(rename(path, name), 0);
	assert_false(sweep());
	munmap(f.map, f.size);
	assert_int_equal(truncate(name, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, name, old, 0), 0);
	assert_false(sweep()); /* empty */
	assert_int_equal(truncate(name, 1 << 20), 0);
	assert_int_equal(utimensat(AT_FDCWD, name, old, 0), 0);
	assert_false(sweep()); /* zeros */
	int fd = open(name, O_RDWR);
	assert_int_equal(pwrite(fd, &magic, 8, 0), 8);
	assert_false(sweep()); /* young */
	assert_int_equal(tft_view_open(name, &v, NULL), -EAGAIN);
	assert_null(v);
	assert_int_equal(utimensat(AT_FDCWD, name, old, 0), 0);
	pid_t child = living(name, F_SETLK, end);
	assert_false(sweep()); /* locked */
	end_life(child, end);
	assert_int_equal(link(name, second), 0);
	assert_false(sweep()); /* a file of somebody's, who gave it a second name */
	assert_int_equal(unlink(second), 0);
	assert_true(sweep());
	assert_int_equal(access(name, F_OK), -1);
	close(fd);
}

/* A container that is started anew has the host name and the process numbers of the one before it:
 * segments count as a process' own by what their HEAD says, never by their name. */
static void test_same_name_other_process(void **state)
{
	struct tft_head other = sample_head();
	struct tft_salvaged got;
	struct tfh_err err;
	struct tft_writer *w;
	char file[8300];
	struct fake f;

	(void)state;
	clear_dir();
	make_journal(&f);
	put_records(&f, 0, 900);
	other.start_realtime_ns += 60000000000ull;
	other.start_ticks += 60000000000ull;
	snprintf(file, sizeof(file), "%s/r3.node7.4711.0.tft", dir);
	assert_int_equal(tft_writer_create(file, &other, &w), 0);
	struct tft_batch b = {truth[0], 900, 1, 100, 0};
	assert_int_equal(tft_write_events(w, &b, 1, 0), 0);
	assert_int_equal(tft_writer_finish(w, false), 0);
	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), 0);
	assert_int_equal(got.records, 900);
	assert_int_equal(got.known, 0);
	assert_non_null(strstr(got.path, "r3.node7.4711.1.tft"));
	munmap(f.map, f.size);
}

/* Links, names with a slash or control characters, records that two rings claim, staging that is
 * listed twice: refused or left out, and never more memory than the file has bytes. */
static void test_refused(void **state)
{
	struct tft_salvaged got;
	struct tfh_err err;
	struct tft_view *v;
	struct fake f;
	char name[8300];

	(void)state;
	clear_dir();
	make_journal(&f);
	put_records(&f, 0, 600);
	snprintf(name, sizeof(name), "%s/l.journal", dir);
	assert_int_equal(symlink(path, name), 0);
	assert_int_equal(tft_view_open(name, &v, &err), -ELOOP);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(link(path, name), 0);
	assert_int_equal(tft_view_open(name, &v, &err), 0);
	assert_int_equal(tft_view_steer(v, TFT_CTL_STOP, 0, 0, &err), -EMLINK);
	assert_int_equal(f.j->control, 0);
	tft_view_close(v);
	assert_int_equal(unlink(name), 0);
	static const char *const names[] = {"", ".r3", "../r3", "r3\033[31m", "r3\n"};
	for (size_t i = 0; i < 5; i++) {
		snprintf(f.j->prefix, sizeof(f.j->prefix), "%s", names[i]);
		assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), -EBADMSG);
	}
	snprintf(f.j->prefix, sizeof(f.j->prefix), "r3.node7.4711");
	struct tft_slot *slot = (struct tft_slot *)(f.map + f.j->slots_off);
	for (uint32_t i = 0; i < TFT_JOURNAL_SLOTS; i++)
		slot[i] = slot[0];
	f.j->slot_count = TFT_JOURNAL_SLOTS;
	f.ring[1]->records_off = f.ring[0]->records_off;
	for (uint32_t i = 0; i < 100; i++)
		f.staging->batch[i] = (struct tft_staged){0, 10 + i, 1, 0, TFT_STAGING_RECORDS};
	f.staging->n_batches = 100;
	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), 0);
	assert_int_equal(got.records, 600);
	munmap(f.map, f.size);
}

/* A journal whose numbers change, or which is cut off, while it is read: what was checked is what
 * is used, and the end is an error or a segment, not a signal. */
static void test_changing(void **state)
{
	struct tft_salvaged got;
	struct tft_view *v;
	struct fake f;

	(void)state;
	for (int cut = 0; cut < 2; cut++) {
		clear_dir();
		make_journal(&f);
		put_records(&f, 0, 600);
		f.staging->n_batches = 1000;
		for (uint32_t i = 0; i < 1000; i++)
			f.staging->batch[i] = (struct tft_staged){0, 1, 1, i % 2 * 1000, 1};
		pid_t pid = fork();
		if (!pid) {
			int fd = open(path, O_RDWR);
			for (;;) {
				__atomic_store_n(&f.staging->capacity, 1, __ATOMIC_RELAXED);
				__atomic_store_n(&f.ring[0]->mask, 0, __ATOMIC_RELAXED);
				__atomic_store_n(&f.j->head_bytes, 16, __ATOMIC_RELAXED);
				if (cut &&
				    (ftruncate(fd, 20480) || usleep(100) ||
				     ftruncate(fd, (off_t)f.size) || pwrite(fd, f.map, 1, 0) < 0))
					_exit(1);
				if (cut)
					continue;
				__atomic_store_n(&f.staging->capacity, 65536, __ATOMIC_RELAXED);
				__atomic_store_n(&f.ring[0]->mask, 1023, __ATOMIC_RELAXED);
				__atomic_store_n(&f.j->head_bytes, 4000, __ATOMIC_RELAXED);
			}
		}
		for (int i = 0; i < 200; i++) {
			clear_dir();
			tft_salvage(path, NULL, 0, &got, NULL);
			if (!tft_view_open(path, &v, NULL)) {
				tft_view_steer(v, 0, TFT_CTL_STOP, 0, NULL);
				tft_view_close(v);
			}
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		munmap(f.map, f.size);
	}
}

/* Every byte of the header pages may lie. */
static void test_hostile(void **state)
{
	struct fake f;
	struct tft_salvaged got;

	(void)state;
	for (uint32_t i = 0; i < 60; i++) {
		clear_dir();
		make_journal(&f);
		put_records(&f, 0, 600);
		put_records(&f, 1, 40);
		stage(&f, 0, 100, true);
		uint8_t *at[] = {f.map + 16, (uint8_t *)f.ring[0], (uint8_t *)f.staging,
				 f.map + f.j->slots_off, f.map + f.j->head_off};
		for (uint32_t k = 0; k < 6; k++) {
			uint64_t lie = below(4) ? rnd() >> below(64) : UINT64_MAX;
			memcpy(at[below(5)] + below(24) * 8, &lie, 8);
		}
		f.j->flags = TFT_JF_LOCKED;
		f.j->version = TFT_JOURNAL_VERSION;
		f.j->header_bytes = TFT_JOURNAL_HEADER;
		f.j->state = TFT_JOURNAL_RUNNING;
		tft_salvage(path, dir, 0, &got, NULL);
		munmap(f.map, f.size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exactly_once),
		cmocka_unit_test(test_without_segments_or_head),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_lock_of_a_description),
		cmocka_unit_test(test_sweep),
		cmocka_unit_test(test_same_name_other_process),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_changing),
		cmocka_unit_test(test_hostile),
	};

	test_path(dir, sizeof(dir), "journal.d");
	test_path(path, sizeof(path), "journal");
	mkdir(dir, 0755);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	clear_dir();
	rmdir(dir);
	unlink(path);
	return failed;
}
