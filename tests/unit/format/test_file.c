/* A file that was cut anywhere still yields every complete chunk; 64 damaged bytes cost exactly the
 * chunks they touch; false lengths and numbers are rejected safely; foreign files, newer versions
 * and missing ones each get their own error; repair keeps every complete chunk; ticks become
 * nanoseconds along the clock readings. */
#include "format_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "format/clocks.h"
#include "format/journal_view.h"

#define CHUNKS 40
#define PER_CHUNK 200

static char path[4096], damaged[4096], third[4096];
static uint8_t *whole;
static size_t whole_size;
static struct tfh_rec truth[CHUNKS][PER_CHUNK], got[TFT_MAX_EVENTS];

static void write_file(const char *name, const void *data, size_t size)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	close(fd);
}

static void read_file(const char *name, uint8_t **data, size_t *size)
{
	struct stat st;
	int fd = open(name, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	*size = (size_t)st.st_size;
	*data = malloc(*size + 1);
	assert_int_equal(read(fd, *data, *size), *size);
	close(fd);
}

static int set_up(void **state)
{
	uint64_t t = 5000;

	(void)state;
	test_path(path, sizeof(path), "file.tft");
	test_path(damaged, sizeof(damaged), "damaged.tft");
	test_path(third, sizeof(third), "third.tft");
	struct tft_writer *w = new_file(path);
	for (uint32_t c = 0; c < CHUNKS; c++) {
		struct tft_batch b = {truth[c], PER_CHUNK, 1, 10, c * PER_CHUNK};
		for (uint32_t i = 0; i < PER_CHUNK; i++)
			call_record(&truth[c][i], &t, c * PER_CHUNK + i);
		assert_int_equal(tft_write_events(w, &b, 1, 0), 0);
	}
	assert_int_equal(tft_writer_finish(w, true), 0);
	read_file(path, &whole, &whole_size);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	unlink(damaged);
	unlink(third);
	free(whole);
	return 0;
}

/* Which of the chunks can be read; each must hold the truth. Returns how many. */
static uint32_t readable(const char *name, bool found[CHUNKS])
{
	struct tft_reader *r;
	uint32_t n = 0;

	memset(found, 0, CHUNKS * sizeof(*found));
	if (tft_open(name, &r, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		struct tft_events *ev;
		if (tft_chunk(r, i)->type != TFT_EVNT || tft_events_open(r, i, &ev, NULL) < 0)
			continue;
		uint64_t c = tft_run(ev, 0)->first / PER_CHUNK;
		tft_events_close(ev);
		assert_true(c < CHUNKS && !found[c]);
		assert_int_equal(read_chunk(r, i, got), PER_CHUNK);
		assert_memory_equal(got, truth[c], sizeof(truth[c]));
		found[c] = true;
		n++;
	}
	tft_close(r);
	return n;
}

/* Ends of all chunks: [0] is HEAD's, then the event chunks'. */
static void chunk_ends(uint64_t ends[CHUNKS + 1])
{
	struct tft_reader *r;

	assert_int_equal(tft_open(path, &r, NULL), 0);
	assert_true(tft_clean_end(r) && tft_closed(r));
	assert_int_equal(tft_chunk_count(r), CHUNKS + 2);
	for (uint32_t i = 0; i <= CHUNKS; i++)
		ends[i] = tft_chunk(r, i + 1)->offset;
	tft_close(r);
}

static void test_truncation(void **state)
{
	uint64_t ends[CHUNKS + 1];
	bool found[CHUNKS];

	(void)state;
	chunk_ends(ends);
	for (uint32_t i = 0; i < 300; i++) {
		size_t cut = below(whole_size);
		uint32_t expected = 0;
		struct tft_reader *r;

		write_file(damaged, whole, cut);
		while (expected < CHUNKS && ends[expected + 1] <= cut)
			expected++;
		assert_int_equal(readable(damaged, found), expected);
		for (uint32_t c = 0; c < expected; c++)
			assert_true(found[c]);
		if (tft_open(damaged, &r, NULL) == 0) {
			assert_false(tft_clean_end(r));
			assert_int_equal(tft_bad_chunks(r), 0);
			if (expected < CHUNKS)
				assert_int_equal(tft_tail_bytes(r), cut - ends[expected]);
			tft_close(r);
		}
	}
}

static void test_corruption(void **state)
{
	uint64_t ends[CHUNKS + 1];
	bool found[CHUNKS];

	(void)state;
	chunk_ends(ends);
	for (uint32_t i = 0; i < 300; i++) {
		size_t at = below(whole_size - 64);
		uint8_t *copy = malloc(whole_size);

		memcpy(copy, whole, whole_size);
		for (size_t k = 0; k < 64; k++)
			copy[at + k] ^= (uint8_t)(1 + below(255));
		/* every other time without the index */
		write_file(damaged, copy, i % 2 ? whole_size : ends[CHUNKS]);
		free(copy);
		readable(damaged, found);
		for (uint32_t c = 0; c < CHUNKS; c++) {
			bool touched = at < ends[c + 1] && at + 64 > ends[c];
			assert_int_equal(found[c], !touched);
		}
		struct tft_repaired done;
		unlink(third);
		assert_int_equal(tft_repair(damaged, third, &done, NULL), 0);
		bool again[CHUNKS];
		readable(third, again);
		assert_memory_equal(found, again, sizeof(found));
	}
}

/* The header of chunk i (from 0 = HEAD) of `copy`, to be changed and sealed again. */
static uint8_t *head_of(uint8_t *copy, uint32_t i)
{
	struct tft_chunk_head h;
	uint64_t at = 0;

	for (;; i--) {
		memcpy(&h, copy + at, sizeof(h));
		if (i == 0)
			return copy + at;
		at += h.zstd_length + 8 + h.packed_bytes;
	}
}

static void seal(uint8_t *at)
{
	struct tft_chunk_head h;

	memcpy(&h, at, sizeof(h));
	h.header_crc = 0;
	memcpy(at, &h, sizeof(h));
	h.header_crc = tfh_crc32c(0, at, h.zstd_length + 8);
	memcpy(at, &h, sizeof(h));
}

/* Every field of a header in turn takes hostile values, with a right checksum. */
static void test_lies(void **state)
{
	static const uint64_t lies[] = {0,	  1,	     95,	 96,	     1u << 16,
					1u << 20, INT32_MAX, UINT32_MAX, 1ull << 33, UINT64_MAX};
	static const uint32_t fields[] = {4, 16, 20, 28, 32, 40, 80, 84, 88};

	(void)state;
	for (size_t f = 0; f < sizeof(fields) / sizeof(*fields); f++) {
		for (size_t l = 0; l < sizeof(lies) / sizeof(*lies); l++) {
			uint8_t *copy = malloc(whole_size + 8);
			bool found[CHUNKS];
			memcpy(copy, whole, whole_size);
			uint8_t *h = head_of(copy, 5);
			/* a longer header could not be sealed */
			if (fields[f] != 4 || lies[l] < 100) {
				memcpy(h + fields[f], &lies[l],
				       fields[f] == 32 || fields[f] == 40 ? 8 : 4);
				seal(h);
			}
			write_file(damaged, copy, l % 2 ? whole_size - 40 : whole_size);
			free(copy);
			readable(damaged, found);
			for (uint32_t c = 0; c < CHUNKS; c++)
				if (c != 4)
					assert_true(found[c]);
		}
	}
}

/* Payloads that unpack to anything: the cursor must stay in bounds. */
static void test_hostile_payload(void **state)
{
	uint8_t *payload = malloc(1 << 20);
	struct tft_reader *r;
	const void *data;
	size_t len;

	(void)state;
	assert_int_equal(tft_open(path, &r, NULL), 0);
	for (uint32_t round = 0; round < 400; round++) {
		assert_int_equal(tft_chunk_payload(r, 1 + round % CHUNKS, &data, &len, NULL), 0);
		memcpy(payload, data, len);
		/* directory first: that is where it hurts */
		uint32_t hits = 1 + (uint32_t)below(4);
		for (uint32_t k = 0; k < hits; k++)
			payload[below(round % 2 ? 200 : len)] = (uint8_t)(below(3) ? rnd() : 0xff);
		/* an ordinary chunk carries it; then the type and run table of a real event chunk
		 * are put on */
		struct tft_writer *w = new_file(damaged);
		assert_int_equal(tft_write_chunk(w, TFT_SAMP, payload, (uint32_t)len), 0);
		assert_int_equal(tft_writer_finish(w, true), 0);
		uint8_t *file, *real = head_of(whole, 1 + round % CHUNKS);
		size_t size;
		read_file(damaged, &file, &size);
		struct tft_chunk_head fake, made;
		memcpy(&fake, head_of(file, 1), sizeof(fake));
		memcpy(&made, real, sizeof(made));
		size_t header = made.zstd_length + 8, head_size = (size_t)(head_of(file, 1) - file);
		uint64_t packed = fake.packed_bytes;
		made.packed_bytes = packed;
		made.raw_bytes = fake.raw_bytes;
		made.payload_crc = fake.payload_crc;
		uint8_t *out = malloc(head_size + header + packed);
		memcpy(out, file, head_size);
		memcpy(out + head_size, real, header);
		memcpy(out + head_size, &made, sizeof(made));
		memcpy(out + head_size + header, head_of(file, 1) + fake.zstd_length + 8, packed);
		seal(out + head_size);
		write_file(damaged, out, head_size + header + packed);
		free(out);
		free(file);
		struct tft_reader *q;
		struct tft_events *ev;
		assert_int_equal(tft_open(damaged, &q, NULL), 0);
		assert_int_equal(tft_chunk_count(q), 2);
		if (tft_events_open(q, 1, &ev, NULL) == 0) {
			struct tft_cursor c;
			for (uint32_t k = 0; k < tft_run_count(ev); k++) {
				tft_cursor_init(&c, ev, k);
				while (tft_next(&c, &got[0]))
					;
			}
			tft_events_close(ev);
		}
		tft_close(q);
	}
	tft_close(r);
	free(payload);
}

static void test_foreign(void **state)
{
	struct tft_reader *r;
	struct tfh_err err;
	uint8_t junk[5000];

	(void)state;
	assert_int_equal(tft_open("/nonexistent/x.tft", &r, &err), -ENOENT);
	assert_int_equal(tft_open(test_dir(), &r, &err), -EISDIR);
	write_file(damaged, "", 0);
	assert_int_equal(tft_open(damaged, &r, &err), -ENOMSG);
	assert_non_null(strstr(err.text, "empty"));
	write_file(damaged, "{\"traceEvents\": []}\n", 20);
	assert_int_equal(tft_open(damaged, &r, &err), -ENOMSG);
	assert_non_null(strstr(err.text, "not a tfhook trace"));
	write_file(damaged, whole, 50);
	assert_int_equal(tft_open(damaged, &r, &err), -EBADMSG);
	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (uint8_t)rnd();
	write_file(damaged, junk, sizeof(junk));
	assert_int_equal(tft_open(damaged, &r, &err), -ENOMSG);
	/* a newer major version, with a sound checksum */
	uint8_t *copy = malloc(whole_size);
	memcpy(copy, whole, whole_size);
	for (uint32_t i = 0; i < CHUNKS + 1; i++) {
		uint16_t version = 2;
		memcpy(head_of(copy, i) + offsetof(struct tft_chunk_head, version), &version, 2);
		seal(head_of(copy, i));
	}
	write_file(damaged, copy, whole_size - 200);
	assert_int_equal(tft_open(damaged, &r, &err), -EPROTO);
	assert_non_null(strstr(err.text, "newer"));
	free(copy);
}

/* A file may be nearly all hole: what lies behind one is found at once, and a hole costs nothing.
 */
static void test_holes(void **state)
{
	const uint64_t far = 1ull << 38, size = 1ull << 40;
	struct tft_repaired done;
	struct tft_reader *r;
	struct tfh_err err;

	(void)state;
	write_file(damaged, "", 0);
	int fd = open(damaged, O_RDWR);
	if (fd < 0 || ftruncate(fd, (off_t)size) || lseek(fd, 0, SEEK_DATA) >= 0) {
		close(fd);
		skip(); /* the file system knows of no holes, or its files are smaller */
	}
	assert_int_equal(tft_open(damaged, &r, &err), -ENOMSG);
	assert_int_equal(pwrite(fd, whole, whole_size, 0), whole_size);
	assert_int_equal(tft_open(damaged, &r, &err), 0);
	assert_int_equal(tft_chunk_count(r), CHUNKS + 2);
	assert_int_equal(tft_bad_chunks(r), 0);
	assert_true(tft_tail_bytes(r) > size - whole_size - 1);
	tft_close(r);
	assert_int_equal(pwrite(fd, whole, whole_size, (off_t)far + 7), whole_size);
	assert_int_equal(tft_open(damaged, &r, &err), 0);
	assert_int_equal(tft_chunk_count(r), 2 * (CHUNKS + 2));
	assert_int_equal(tft_bad_chunks(r), 1);
	tft_close(r);
	unlink(third);
	assert_int_equal(tft_repair(damaged, third, &done, &err), 0);
	assert_int_equal(done.bad, 1);
	unlink(third);
	close(fd);
	unlink(damaged);
}

/* A second reader of a file that has lost its name since, as one that its process gave up. */
static void test_again(void **state)
{
	struct tft_reader *r, *again;
	struct tfh_err err;

	(void)state;
	write_file(damaged, whole, whole_size);
	assert_int_equal(tft_open(damaged, &r, &err), 0);
	unlink(damaged);
	assert_int_equal(tft_open_again(r, &again, &err), 0);
	tft_close(r);
	assert_int_equal(tft_chunk_count(again), CHUNKS + 2);
	assert_int_equal(read_chunk(again, 1, got), PER_CHUNK);
	tft_close(again);
}

static void test_head(void **state)
{
	struct tft_head want = sample_head();
	struct tft_reader *r;

	(void)state;
	assert_int_equal(tft_open(path, &r, NULL), 0);
	const struct tft_head *h = tft_head(r);
	assert_int_equal(h->pid, want.pid);
	assert_int_equal(h->rank, want.rank);
	assert_int_equal(h->local_rank, -1);
	assert_int_equal(h->segment, want.segment);
	assert_string_equal(h->command, want.command);
	assert_string_equal(h->journal_path, want.journal_path);
	assert_int_equal(h->start_realtime_ns, want.start_realtime_ns);
	assert_int_equal(h->journal_start, want.journal_start);
	assert_int_equal(h->fn_count, TFH_FN_COUNT);
	for (uint32_t i = 0; i < h->fn_count; i++) {
		assert_string_equal(h->fn[i].name, tfh_fn_table[i].name);
		assert_int_equal(h->fn[i].family, tfh_fn_table[i].family);
		assert_int_equal(h->fn[i].props, tfh_fn_table[i].props);
	}
	tft_close(r);
}

/* Chunks that failed to be written leave no trace; a segment that is deleted leaves its sketches.
 */
static void test_rewind_and_digest(void **state)
{
	struct tft_reader *from, *r;
	const struct tft_sketch *s;
	const struct tft_run *runs;
	uint32_t n;

	(void)state;
	struct tft_writer *w = new_file(damaged);
	uint64_t size = tft_writer_bytes(w);
	int fd = open(damaged, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "half a chunk", 12), 12);
	close(fd);
	assert_int_equal(tft_writer_rewind(w), 0);
	assert_int_equal(tft_writer_bytes(w), size);
	assert_int_equal(tft_open(path, &from, NULL), 0);
	assert_int_equal(tft_write_digest(w, from), 0);
	tft_close(from);
	assert_int_equal(tft_writer_finish(w, false), 0);
	assert_int_equal(tft_open(damaged, &r, NULL), 0);
	assert_false(tft_clean_end(r));
	assert_true(tft_closed(r));
	assert_int_equal(tft_chunk_count(r), CHUNKS + 2);
	for (uint32_t c = 0; c < CHUNKS; c++) {
		assert_int_equal(tft_chunk(r, c + 1)->type, TFT_DGST);
		assert_int_equal(tft_chunk(r, c + 1)->events, PER_CHUNK);
		assert_int_equal(tft_chunk(r, c + 1)->t_last, truth[c][PER_CHUNK - 1].t_end);
		assert_int_equal(tft_chunk_sketch(r, c + 1, &s, NULL), 0);
		assert_true(s->n_fn > 0);
		assert_int_equal(tft_chunk_runs(r, c + 1, &runs, &n, NULL), 0);
		assert_int_equal(n, 1);
		assert_int_equal(runs[0].first, c * PER_CHUNK);
	}
	tft_close(r);
	/* the stock tool finds nothing wrong with it, where there is one */
	char command[9000];
	snprintf(command, sizeof(command),
		 "zstd --version >/dev/null 2>&1 || exit 0; zstd -tq %s && zstd -tq %s", path,
		 damaged);
	assert_int_equal(system(command), 0);
}

static void test_clocks(void **state)
{
	struct tft_clocks c = {.tick_hz = 2000000000};
	struct tft_clock_triple t[5];
	const uint64_t mono = 1000000000000, real = 1700000000000000000;

	(void)state;
	/* 2.6 GHz, 30 s apart, the fourth 50 us late, REALTIME set back by 2 s before the last */
	for (uint32_t i = 0; i < 5; i++) {
		t[i].ticks = 1ull << 40 | i * 78000000000ull;
		t[i].monotonic_ns = mono + i * 30000000000ull + (i == 3 ? 50000 : 0);
		t[i].realtime_ns = real + i * 30000000000ull - (i == 4 ? 2000000000 : 0);
	}
	/* one triple: the estimated rate */
	assert_int_equal(tft_clocks_add(&c, &t[0], 1), 0);
	tft_clocks_finish(&c);
	assert_int_equal(tft_clocks_monotonic(&c, t[0].ticks + 2000000000), mono + 1000000000);
	assert_int_equal(tft_clocks_realtime(&c, t[0].ticks - 2000000000), real - 1000000000);
	/* out of order, one twice */
	assert_int_equal(tft_clocks_add(&c, &t[3], 2), 0);
	assert_int_equal(tft_clocks_add(&c, &t[0], 3), 0);
	tft_clocks_finish(&c);
	assert_int_equal(c.n, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(tft_clocks_monotonic(&c, t[i].ticks), t[i].monotonic_ns);
		assert_int_equal(tft_clocks_realtime(&c, t[i].ticks), t[i].realtime_ns);
	}
	assert_int_equal(tft_clocks_monotonic(&c, t[0].ticks + 26), mono + 10);
	assert_int_equal(tft_clocks_monotonic(&c, t[0].ticks - 2600), mono - 1000);
	assert_int_equal(tft_clocks_realtime(&c, t[2].ticks - 2600), t[2].realtime_ns - 1000);
	assert_int_equal(tft_clocks_residual_ns(&c), 50000);
	/* as many as a day has seconds: thinned, still right */
	for (uint32_t i = 0; i < 86400; i++) {
		struct tft_clock_triple d = {i * 1000ull, i * 500ull, i * 500ull};
		assert_int_equal(tft_clocks_add(&c, &d, 1), 0);
		if (i == 0)
			c.n = 1, c.t[0] = d;
	}
	tft_clocks_finish(&c);
	assert_true(c.n <= TFT_CLOCKS_MAX);
	assert_int_equal(tft_clocks_monotonic(&c, 86000500), 43000250);
	tft_clocks_free(&c);
	assert_int_equal(tft_clocks_monotonic(&c, 123), 123);
}

/* Triples that lie microseconds apart, the second 10 ns off, say nothing of the rate: times beyond them are as good as
 * others, at both ends of a file and in its middle. */
static void test_close_clocks(void **state)
{
	static const uint64_t at_us[] = {0, 2, 28000, 72000, 72003, 100000, 100003};
	struct tft_clocks c = {.tick_hz = 1000000000};

	(void)state;
	for (uint32_t i = 0; i < sizeof(at_us) / sizeof(*at_us); i++) {
		uint64_t ns = at_us[i] * 1000;
		struct tft_clock_triple t = {ns * 2, ns + (i & 1) * 10, ns};
		assert_int_equal(tft_clocks_add(&c, &t, 1), 0);
	}
	tft_clocks_finish(&c);
	for (uint64_t ns = 0; ns < 125000000; ns += 1000000)
		assert_in_range(tft_clocks_monotonic(&c, ns * 2), ns, ns + 50);
	tft_clocks_free(&c);
	/* All of a short file: the first and the last give the rate. */
	for (uint32_t i = 0; i < 4; i++) {
		struct tft_clock_triple t = {i * 2000000, i * 1000000 + (i & 1) * 100, 0};
		assert_int_equal(tft_clocks_add(&c, &t, 1), 0);
	}
	tft_clocks_finish(&c);
	assert_int_equal(c.n, 2);
	assert_in_range(tft_clocks_monotonic(&c, 5000000), 2500000, 2500100);
	tft_clocks_free(&c);
}

/* The smallest file of format 1.0 in the tree: readers of all times must read it. */
static void test_golden(void **state)
{
	const char *src = getenv("TFH_SRC");
	struct tft_reader *r;
	char name[4096];
	uint64_t t = 1ull << 40;

	(void)state;
	snprintf(name, sizeof(name), "%s/tests/golden/format-1.0.tft", src ? src : ".");
	assert_int_equal(tft_open(name, &r, NULL), 0);
	assert_true(tft_clean_end(r));
	assert_string_equal(tft_head(r)->command, "python3 train.py --epochs 3");
	assert_int_equal(tft_monotonic_ns(r, (1ull << 40) + 2600), 5001000);
	fixture_seed = 42;
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		if (tft_chunk(r, i)->type != TFT_EVNT)
			continue;
		assert_int_equal(read_chunk(r, i, got), 60);
		for (uint32_t k = 0; k < 60; k++) {
			struct tfh_rec want;
			if (k % 20 == 19)
				random_record(&want, k);
			else
				call_record(&want, &t, k);
			assert_memory_equal(&want, &got[k], sizeof(want));
		}
	}
	tft_close(r);
}

/* `test_file golden FILE` writes the golden file anew. */
static int write_golden(const char *name)
{
	struct tft_head head = sample_head();
	struct tft_clock_triple c = {1ull << 40, 5000000, 1700000000000000000};
	struct tft_batch b = {got, 60, 1, 10, 0};
	struct tft_writer *w;
	uint64_t t = 1ull << 40;

	head.fn_count = 12;
	fixture_seed = 42;
	for (uint32_t k = 0; k < 60; k++)
		if (k % 20 == 19)
			random_record(&got[k], k);
		else
			call_record(&got[k], &t, k);
	return tft_writer_create(name, NULL, &head, &w) || tft_write_clocks(w, &c, 1) ||
	       tft_write_events(w, &b, 1, 0) || tft_writer_finish(w, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncation), cmocka_unit_test(test_corruption),
		cmocka_unit_test(test_lies),	   cmocka_unit_test(test_hostile_payload),
		cmocka_unit_test(test_foreign),	   cmocka_unit_test(test_head),
		cmocka_unit_test(test_again),	   cmocka_unit_test(test_rewind_and_digest),
		cmocka_unit_test(test_clocks),	   cmocka_unit_test(test_close_clocks),
		cmocka_unit_test(test_golden),	   cmocka_unit_test(test_holes),
	};

	if (argc == 3 && strcmp(argv[1], "golden") == 0)
		return write_golden(argv[2]);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
