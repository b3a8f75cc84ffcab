/*
 * A row in short tells what its launches tell one by one, whichever rows a reader takes and whichever it has split, in
 * the first pass and in later ones, and with any number of threads that decode.
 */
#include "../../format/format_fixture.h"

#include <sys/stat.h>

#include "model/opened.h"

#define CHUNKS 12
#define CALLS 3000
#define THREADS 3

static char dir[240];
static uint64_t seed;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % below;
}

/* Mostly launches of a few kernels, one behind another; some overlap, wait, or take long; a second thread in some
 * chunks lies between the first one's. */
static void write_chunk(struct tft_writer *w, uint32_t number, uint64_t *t, uint64_t *seq)
{
	static struct tfh_rec rec[THREADS][CALLS];
	struct tft_batch b[THREADS];
	uint32_t threads = number % 3 == 2 ? THREADS : 1;
	uint64_t start = *t, last = start;

	memset(rec, 0, sizeof(rec));
	for (uint32_t k = 0; k < threads; k++) {
		uint64_t at = start;
		for (uint32_t i = 0; i < CALLS; i++) {
			struct tfh_rec *r = &rec[k][i];
			uint32_t odd = draw(number % 4 == 1 ? 8 : 1000);
			at += draw(3000) * (odd == 1 ? 100 : 1);
			r->t_begin = at;
			at += 1 + draw(5000) * (odd == 2 ? 500 : 1);
			r->t_end = at;
			r->fn = odd == 3 ? TFH_FN_cuCtxSynchronize : TFH_FN_cuLaunchKernel;
			r->kind = TFT_CALL;
			r->depth = odd == 4;
			r->stream = 7 + (odd == 5 || number == 6 ? draw(2) : 0);
			r->w[0] = 1 + draw(number % 2 ? 3 : 1);
			r->seq = (uint32_t)(seq[k] + i);
			if (odd == 6)
				at -= draw(2);
		}
		b[k] = (struct tft_batch){rec[k], CALLS, k + 1, 4711 + k, seq[k]};
		seq[k] += CALLS;
		last = at > last ? at : last;
	}
	*t = last;
	assert_int_equal(tft_write_events(w, b, threads, 0), 0);
}

static void write_run(void)
{
	struct tft_clock_triple clock[2] = {{0, 7, 1700000000000000000ull},
					    {1ull << 33, (1ull << 33) + 7, 1700000008589934592ull}};
	struct tft_head h = sample_head();
	uint64_t t = 1000, seq[THREADS] = {0};
	struct tft_writer *w;
	char path[300];

	h.pid = 4711;
	h.segment = 0;
	h.start_ticks = 0;
	h.tick_hz = 1000000000;
	h.ticks_are_ns = true;
	snprintf(path, sizeof(path), "%s/p.node7.4711.0.tft", dir);
	assert_int_equal(tft_writer_create(path, NULL, &h, &w), 0);
	assert_int_equal(tft_write_clocks(w, clock, 2), 0);
	for (uint32_t i = 0; i < CHUNKS; i++)
		write_chunk(w, i, &t, seq);
	assert_int_equal(tft_writer_finish(w, true), 0);
}

struct list {
	struct tfh_event *v;
	uint32_t n;
};

static void read_single(struct tfh_run *run, struct list *out)
{
	struct tfh_err err = {0};
	struct tfh_merge *m;

	out->v = calloc(CHUNKS * CALLS * THREADS, sizeof(*out->v));
	out->n = 0;
	assert_int_equal(tfh_merge_open(run, 0, &m, &err), 0);
	while (tfh_merge_next(m, &out->v[out->n]))
		out->n++;
	tfh_merge_close(m);
}

static void check_row(const struct tfh_merge *m, const struct tfh_launch_row *r,
		      const struct tfh_event *ev, uint32_t left)
{
	int64_t t0[TFH_LAUNCH_ROW], t1[TFH_LAUNCH_ROW];
	int64_t ns = 0, apart = 0, longest = 0;
	uint32_t k = 0;

	assert_true(r->n && r->n <= left && r->n <= TFH_LAUNCH_ROW);
	assert_true(r->t0 == ev[0].t0 && r->first == ev[0].t1 && r->t1 == ev[r->n - 1].t1);
	tfh_merge_row_times(m, t0, t1);
	for (uint32_t p = 0; p < r->parts; p++)
		for (uint32_t i = 0; i < r->part[p].n; i++, k++) {
			assert_true(ev[k].thread == r->thread && tfh_is_plain_launch(&ev[k]));
			assert_true(ev[k].w[0] == r->part[p].ev->w[0]);
			assert_true(ev[k].t0 == t0[k] && ev[k].t1 == t1[k]);
			assert_true(ev[k].stream == r->part[p].ev->stream &&
				    ev[k].stream == ev[0].stream);
			assert_true(!k || ev[k].t0 >= ev[k - 1].t1);
			ns += ev[k].t1 - ev[k].t0;
			longest = ev[k].t1 - ev[k].t0 > longest ? ev[k].t1 - ev[k].t0 : longest;
			if (k && ev[k].t1 - ev[k - 1].t1 > apart)
				apart = ev[k].t1 - ev[k - 1].t1;
		}
	assert_true(k == r->n && ns == r->ns && apart == r->apart && longest == r->longest);
}

/* Asks for a row with one chance in `ask`, and takes it with one in `take`; returns how many were taken. */
static uint32_t read_rows(struct tfh_run *run, const struct list *all, uint32_t ask, uint32_t take)
{
	const struct tfh_launch_row *r;
	const struct tfh_event *ev;
	struct tfh_err err = {0};
	struct tfh_merge *m;
	uint32_t at = 0, rows = 0;

	assert_int_equal(tfh_merge_open(run, 0, &m, &err), 0);
	for (;;) {
		if (!draw(ask) && (r = tfh_merge_row(m))) {
			check_row(m, r, &all->v[at], all->n - at);
			if (!draw(take)) {
				at += r->n;
				rows++;
				tfh_merge_take_row(m);
				continue;
			}
		}
		ev = tfh_merge_borrow(m);
		if (!ev)
			break;
		const struct tfh_event *x = &all->v[at++];
		assert_true(at <= all->n && ev->t0 == x->t0 && ev->t1 == x->t1);
		assert_true(ev->number == x->number && ev->thread == x->thread && ev->fn == x->fn);
		assert_true(ev->w[0] == x->w[0] && ev->stream == x->stream &&
			    ev->depth == x->depth);
	}
	assert_int_equal(tfh_merge_error(m, &err), 0);
	assert_int_equal(at, all->n);
	tfh_merge_close(m);
	return rows;
}

static void test_rows(void **state)
{
	(void)state;
	static const uint32_t threads[] = {1, 2, 3, 7};
	const char *path = dir;
	struct tfh_err err = {0};
	struct tfh_run *run;
	struct list all;

	seed = 1;
	mkdir(dir, 0755);
	write_run();
	for (uint32_t i = 0; i < sizeof(threads) / sizeof(*threads); i++) {
		assert_int_equal(tfh_run_open(&path, 1, &run, &err), 0);
		tfh_run_decoders(run, threads[i]);
		read_single(run, &all);
		assert_true(all.n > CHUNKS * CALLS);
		for (int pass = 0; pass < 6; pass++) {
			uint32_t rows = read_rows(run, &all, 1 + pass % 3, 1 + pass / 2);
			assert_true(rows > 100 || pass);
			if (pass % 2)
				tfh_unpacked_free(run);
		}
		free(all.v);
		tfh_run_close(run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
	};

	char command[300];

	test_path(dir, sizeof(dir), "rows");
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) ? 1 : rc;
}
