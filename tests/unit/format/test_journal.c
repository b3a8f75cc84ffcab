/* The journal of a dead process is read exactly once: records of rings and staging that are in no
 * segment yet become one more segment, with the calls in flight and the unpublished sums. A second
 * salvage finds nothing. The journal and the segments are not changed. */
#include "journal_fake.h"

#include <signal.h>
#include <sys/wait.h>

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

static void write_segment(const char *name, const struct tft_batch *b, uint32_t n)
{
	char file[8300];

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	struct tft_writer *w = new_file(file);
	assert_int_equal(tft_write_events(w, b, n, 0), 0);
	assert_int_equal(tft_writer_finish(w, false), 0);
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

/* Killed after the last record was written, and before what had been lost: each loss is counted once. */
static void test_losses_alone(void **state)
{
	uint64_t lost = 0, want = 0;
	struct tft_salvaged got;
	struct tft_reader *r;
	struct tfh_err err;
	struct fake f;

	(void)state;
	clear_dir();
	make_journal(&f);
	put_records(&f, 0, 50);
	struct tft_batch b = {truth[0], 50, 1, 100, 0};
	write_segment("r3.node7.4711.0.tft", &b, 1);
	f.ring[0]->dropped = f.j->beyond = 7;
	f.ring[0]->drop_seen = f.ring[0]->drop_writing = f.j->beyond_seen = 4;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), 0);
		assert_int_equal(got.records, 0);
		if (!got.path[0] || tft_open(got.path, &r, &err))
			continue;
		for (uint32_t c = 0; c < tft_chunk_count(r); c++) {
			const void *data;
			size_t len;

			if (tft_chunk(r, c)->type == TFT_LOSS &&
			    !tft_chunk_payload(r, c, &data, &len, &err))
				lost += ((const struct tft_loss *)data)->count;
		}
		tft_close(r);
		want = 3 + 3;
		assert_int_equal(lost, want);
	}
	assert_int_equal(want, 6);
	munmap(f.map, f.size);
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
	assert_int_equal(tft_writer_create(file, NULL, &other, &w), 0);
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
	assert_int_equal(tft_view_set_control(v, TFT_CTL_STOP, 0, 0, &err), -EMLINK);
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

/* What was checked is what is written to, whatever its name stands for by then. */
static void test_replaced(void **state)
{
	char victim[8300];
	struct tfh_err err;
	struct tft_view *v;
	struct fake f;
	uint64_t word;

	(void)state;
	clear_dir();
	make_journal(&f);
	snprintf(victim, sizeof(victim), "%s/victim", dir);
	int fd = open(victim, O_RDWR | O_CREAT, 0600);
	assert_int_equal(pwrite(fd, f.map, 8192, 0), 8192);
	assert_int_equal(tft_view_open(path, &v, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(victim, path), 0);
	assert_int_equal(tft_view_set_control(v, TFT_CTL_STOP, 0, 0, &err), -EMLINK);
	assert_int_equal(pread(fd, &word, 8, offsetof(struct tft_journal, control)), 8);
	assert_int_equal(word, 0);
	tft_view_close(v);
	assert_int_equal(tft_view_open(path, &v, &err), -ELOOP);
	close(fd);
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
				tft_view_set_control(v, 0, TFT_CTL_STOP, 0, NULL);
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
		cmocka_unit_test(test_losses_alone),
		cmocka_unit_test(test_same_name_other_process),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_changing),
		cmocka_unit_test(test_hostile),
	};

	return RUN_JOURNAL_TESTS(tests);
}
