/* A digest whose chunks are whole but whose numbers are hostile is refused or read without harm: units, ranks, times and texts
 * beyond their bounds, members of vocabularies that do not exist, tables that are too long, files without their last chunk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "digest_fixture.h"
#include "diff/diff.h"
#include "digest/digest_out.h"
#include "format/codec.h"

static char path[] = "/tmp/tfhook-digest-XXXXXX";

struct made {
	struct tfh_digest_rank rank;
	struct tfh_digest_step step[40];
	struct tfh_digest_anchor anchor;
	uint32_t steps;
	bool facts, finished;
	uint32_t text;	    /* offset of a fact's value, 0: as it should be */
	const char *kernel; /* name of as many kernels as there may be, NULL: none */
};

static void sound(struct made *m)
{
	memset(m, 0, sizeof(*m));
	m->rank = (struct tfh_digest_rank){.unit = 1024, .steps = 40, .tier = 'A'};
	m->steps = 40;
	m->facts = m->finished = true;
	for (uint32_t i = 0; i < m->steps; i++) {
		m->step[i] = (struct tfh_digest_step){
			.index = i, .compute = 1000 + i % 7, .segment = TFH_SEGMENT_TRAIN + 1};
		m->step[i].part[TFH_CAUSE_INPUT_MAP] = 500;
	}
}

static void put_kernels(struct tfh_digest_out *o, const char *name)
{
	struct tfh_digest_kernel *row = calloc(TFH_DIGEST_ROWS, sizeof(*row));
	uint32_t at = tfh_digest_add_text(o, name);

	for (uint32_t i = 0; i < TFH_DIGEST_ROWS; i++)
		row[i] = (struct tfh_digest_kernel){.name = at, .calls = 1, .s = NAN};
	assert_int_equal(tfh_digest_put(o, TFT_DKRN, &tfh_digest_kernels, row, TFH_DIGEST_ROWS), 0);
	free(row);
}

static void write_made(const struct made *m)
{
	struct tfh_digest_out o = {.w = NULL};
	struct tfh_digest_key key;

	unlink(path);
	assert_int_equal(tft_writer_create(path, NULL, &empty_head, &o.w), 0);
	assert_int_equal(tfh_digest_put(&o, TFT_DSTP, &tfh_digest_steps, m->step, m->steps), 0);
	assert_int_equal(tfh_digest_put(&o, TFT_DRNK, &tfh_digest_ranks, &m->rank, 1), 0);
	assert_int_equal(tfh_digest_put(&o, TFT_DCOL, &tfh_digest_anchors, &m->anchor, 1), 0);
	if (m->facts) {
		key.name = tfh_digest_add_text(&o, "digest");
		key.value = tfh_digest_add_text(&o, "tfhook.digest/1");
		key.value = m->text ? m->text : key.value;
		assert_int_equal(tfh_digest_put(&o, TFT_DKEY, &tfh_digest_keys, &key, 1), 0);
	}
	if (m->kernel)
		put_kernels(&o, m->kernel);
	tfh_digest_out_free(&o);
	off_t size = (off_t)tft_writer_bytes(o.w);
	assert_int_equal(tft_writer_finish(o.w, true), 0);
	if (!m->finished)
		assert_int_equal(truncate(path, size), 0);
}

static int count(void *arg, const struct tfh_digest_row *row)
{
	++*(uint64_t *)arg;
	assert_true(row->dur_s >= 0 && row->start_s >= 0 && isfinite(row->dur_s));
	assert_true(row->segment >= -1 && row->segment < TFH_SEGMENT_COUNT);
	assert_true(row->cause >= -1 && row->cause < TFH_CAUSE_COUNT);
	return 0;
}

static int take_anchor(void *arg, const struct tfh_digest_anchor *row)
{
	(void)arg;
	assert_int_equal(row->rank, 0);
	return 0;
}

/* How opening, or else reading, it ends. */
static int ends(const struct made *m, uint64_t *rows)
{
	struct tfh_run_digest *d;
	struct tfh_err err = {0};

	*rows = 0;
	write_made(m);
	int rc = tfh_digest_open(path, &d, &err);
	if (!rc) {
		rc = tfh_digest_each_step(d, count, rows, &err);
		if (!rc)
			rc = tfh_digest_each_anchor(d, take_anchor, NULL, &err);
		tfh_digest_close(d);
	}
	assert_true(!rc || *err.text);
	return rc;
}

static void whole(void **state)
{
	struct made m;
	uint64_t rows;

	(void)state;
	sound(&m);
	assert_int_equal(ends(&m, &rows), 0);
	assert_int_equal(rows, 40);
	m.step[3].cause = m.step[3].segment = m.step[3].cls = 250; /* of a newer version */
	assert_int_equal(ends(&m, &rows), 0);
}

static void unfinished(void **state)
{
	struct made m;
	uint64_t rows;

	(void)state;
	sound(&m);
	m.finished = false;
	assert_int_equal(ends(&m, &rows), -EBADMSG);
	sound(&m);
	m.facts = false;
	assert_int_equal(ends(&m, &rows), -EBADMSG);
	sound(&m);
	m.text = 4000000000u;
	assert_int_equal(ends(&m, &rows), -EPROTO);
}

static void beyond(void **state)
{
	static const uint64_t far[] = {UINT64_MAX, UINT64_MAX - 1, INT64_MAX,
				       1ull << 63, 1ull << 62,	   (1ull << 62) - 2};
	struct made m;
	uint64_t rows;

	(void)state;
	for (int unit = 0; unit < 3; unit++) {
		sound(&m);
		m.rank.unit = unit == 0 ? 0 : unit == 1 ? UINT64_MAX : (1ull << 40) + 1;
		assert_int_equal(ends(&m, &rows), -EBADMSG);
	}
	sound(&m);
	m.step[0].rank = 1;
	assert_int_equal(ends(&m, &rows), -EBADMSG);
	sound(&m);
	m.anchor.rank = 1;
	assert_int_equal(ends(&m, &rows), -EBADMSG);
	for (size_t i = 0; i < sizeof(far) / sizeof(*far); i++) {
		sound(&m);
		m.step[5].gap = far[i];
		int rc = ends(&m, &rows);
		assert_true(rc == -EBADMSG || !rc);
		sound(&m);
		m.step[5].rest = far[i];
		rc = ends(&m, &rows);
		assert_true(rc == -EBADMSG || !rc);
	}
	sound(&m);
	memset(m.step[7].part, 0xff, sizeof(m.step[7].part));
	assert_int_equal(ends(&m, &rows), 0);
}

/* Two such files compare without harm, and changes add up. */
static void compared(void **state)
{
	struct tfh_run_digest *digest[2];
	struct tfh_run_diff *d = calloc(1, sizeof(*d));
	struct made m;
	double sum = 0;

	(void)state;
	for (int k = 0; k < 2; k++) {
		sound(&m);
		for (uint32_t i = 0; i < m.steps; i++)
			m.step[i].part[TFH_CAUSE_INPUT_MAP] += (uint32_t)k * 100 + i % 5;
		write_made(&m);
		assert_int_equal(tfh_digest_open(path, &digest[k], NULL), 0);
		d->side[k] = (struct tfh_diff_side){
			.digest = &digest[k], .n = 1, .to_s = INFINITY, .name = "x"};
	}
	assert_int_equal(tfh_diff_make(d, NULL), 0);
	assert_true(d->step.found && d->part[0].part == TFH_CAUSE_INPUT_MAP && d->part[0].found);
	assert_true(fabs(d->step.delta_s - 100 * 1024e-9) < 1e-9);
	for (uint32_t i = 0; i < d->n_part; i++)
		sum += d->part[i].delta_s;
	assert_true(fabs(sum - d->step.delta_s) < 1e-9);
	for (int k = 0; k < 2; k++)
		tfh_digest_close(digest[k]);
	free(d);
}

/* One side with too few steps: nothing says how sure the change is, and nothing is found. */
static void too_few(void **state)
{
	struct tfh_run_digest *digest[2];
	struct tfh_run_diff *d = calloc(1, sizeof(*d));
	struct made m;

	(void)state;
	for (int k = 0; k < 2; k++) {
		sound(&m);
		m.steps = k ? 40 : 3;
		write_made(&m);
		assert_int_equal(tfh_digest_open(path, &digest[k], NULL), 0);
		d->side[k] = (struct tfh_diff_side){
			.digest = &digest[k], .n = 1, .to_s = INFINITY, .name = "x"};
	}
	assert_int_equal(tfh_diff_make(d, NULL), 0);
	assert_false(tfh_diff_is_measured(d));
	assert_false(d->step.found || d->mean.found || d->part[0].found);
	for (int k = 0; k < 2; k++)
		tfh_digest_close(digest[k]);
	free(d);
}

/* Names that differ in their last byte, in as many rows as there may be, are no work by the square of these. */
static void many_names(void **state)
{
	struct tfh_run_digest *digest[2];
	struct tfh_run_diff *d = calloc(1, sizeof(*d));
	char name[TFH_DIGEST_TEXT + 1];
	clock_t begin = clock();
	struct made m;

	(void)state;
	memset(name, 'k', sizeof(name));
	name[TFH_DIGEST_TEXT] = '\0';
	for (int k = 0; k < 2; k++) {
		sound(&m);
		name[TFH_DIGEST_TEXT - 1] = (char)('0' + k);
		m.kernel = name;
		write_made(&m);
		assert_int_equal(tfh_digest_open(path, &digest[k], NULL), 0);
		assert_int_equal(tfh_digest_named(digest[k], TFT_DKRN, name), 0);
		d->side[k] = (struct tfh_diff_side){
			.digest = &digest[k], .n = 1, .to_s = INFINITY, .name = "x"};
	}
	assert_int_equal(tfh_diff_make(d, NULL), 0);
	assert_int_equal(d->n_kernel, TFH_DIFF_ITEMS);
	double took = (double)(clock() - begin) / CLOCKS_PER_SEC;
	print_message("%.2f s of processor time\n", took);
	if (!getenv("TFH_SAN") || !*getenv("TFH_SAN"))
		assert_true(took < 2);
	for (int k = 0; k < 2; k++)
		tfh_digest_close(digest[k]);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),   cmocka_unit_test(unfinished),
		cmocka_unit_test(beyond),  cmocka_unit_test(compared),
		cmocka_unit_test(too_few), cmocka_unit_test(many_names),
	};
	int fd = mkstemp(path);

	if (fd >= 0)
		close(fd);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
