/*
 * Fuzzed input: two digests, the first one behind its length (u32). Whatever their bytes, reading and comparing them must
 * neither crash nor hang nor take memory beyond the bounds, and what is said of them must be fit for a terminal, or JSON. So must
 * the report that is printed from one. A digest equals itself.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/digests.h"
#include "diff/diff.h"
#include "digest/digest_restore.h"
#include "fuzz.h"
#include "judge/result.h"
#include "model/model.h"
#include "ranks/ranks.h"

#define LENGTH 4u

static size_t first_of(const uint8_t *data, size_t size)
{
	uint32_t n;

	memcpy(&n, data, LENGTH);
	return n < size - LENGTH ? n : size - LENGTH;
}

/* One of them is changed; now and then both become the same. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	if (size < LENGTH || max < LENGTH)
		return LLVMFuzzerMutate(data, size, max);
	size_t a = first_of(data, size), b = size - LENGTH - a;
	uint8_t *all = calloc(1, 2 * max);
	if (!all)
		return size;
	memcpy(all, data + LENGTH, a);
	if (seed % 16 == 0) {
		b = a;
		memcpy(all + a, all, a);
	} else if (seed % 2) {
		a = tfh_fuzz_mutate_tft(all, a, max - LENGTH, seed / 2);
		memcpy(all + a, data + size - b, b);
	} else {
		memcpy(all + a, data + size - b, b);
		b = tfh_fuzz_mutate_tft(all + a, b, max - LENGTH, seed / 2);
	}
	a = a < max - LENGTH ? a : max - LENGTH;
	b = b < max - LENGTH - a ? b : max - LENGTH - a;
	uint32_t length = (uint32_t)a;
	memcpy(data, &length, LENGTH);
	memcpy(data + LENGTH, all, a + b);
	free(all);
	return LENGTH + a + b;
}

static int take_row(void *arg, const struct tfh_digest_row *row)
{
	double sum = row->compute_s + row->rest_s;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		sum += row->cause_s[c];
	/* Parts add up to the step, and all are times. */
	if (!isfinite(row->dur_s) || row->dur_s < 0 || row->start_s < 0 ||
	    fabs(sum - row->dur_s) > 1e-9 * (1 + fabs(row->rest_s) + row->dur_s))
		abort();
	++*(uint64_t *)arg;
	return 0;
}

static int take_anchor(void *arg, const struct tfh_digest_anchor *row)
{
	*(uint64_t *)arg += row->number;
	return 0;
}

/* Every text of the places, whose offsets are the file's. */
static size_t read_texts(const struct tfh_run_digest *d)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DPLC);
	const struct tfh_digest_place *place = p->row;
	size_t all = 0;

	for (uint32_t i = 0; i < p->n; i++)
		all += strlen(tfh_digest_text(p, place[i].file)) +
		       strlen(tfh_digest_text(p, place[i].function));
	return all;
}

/* The report of a recording that is gone. */
static void report(struct tfh_run_digest *d)
{
	struct tfh_result *result;
	struct tfh_run *run;
	struct tfh_err err = {0};

	if (tfh_digest_restore(d, &run, &result, &err)) {
		tfh_fuzz_refused(&err);
		return;
	}
	if (!tfh_fuzz_leaves_out())
		tfh_fuzz_forms(result);
	tfh_result_free(result);
	tfh_run_close(run);
}

static struct tfh_run_digest *open_digest(const char *name, const void *data, size_t size)
{
	struct tfh_run_digest *d;
	struct tfh_err err = {0};
	uint64_t rows = 0;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", tfh_fuzz_place(), name);
	tfh_fuzz_write(name, data, size);
	if (tfh_digest_open(path, &d, &err)) {
		tfh_fuzz_refused(&err);
		return NULL;
	}
	if (tfh_digest_each_step(d, take_row, &rows, &err) < 0)
		tfh_fuzz_refused(&err);
	err = (struct tfh_err){0};
	if (tfh_digest_each_anchor(d, take_anchor, &rows, &err) < 0)
		tfh_fuzz_refused(&err);
	if (read_texts(d) > (uint64_t)TFH_DIGEST_ROWS * 2 * TFH_DIGEST_TEXT)
		abort();
	tfh_digest_check(path);
	report(d);
	return d;
}

typedef void (*check_fn)(const char *text, size_t size);

static void print(const struct tfh_run_diff *d, int form)
{
	static const unsigned columns[] = {0, 40, 200};
	check_fn check = tfh_fuzz_is_text;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	if (form == 3) {
		check = tfh_fuzz_is_json;
		if (tfh_diff_json(out, d))
			abort();
	} else {
		tfh_diff_text(out, d, columns[form], form);
	}
	fclose(out);
	check(text, size);
	free(text);
}

/* `same`: two intervals of the first one. */
static void compare(struct tfh_run_digest *a, struct tfh_run_digest *b, bool same)
{
	struct tfh_run_diff *d = calloc(1, sizeof(*d));
	struct tfh_diff_limit limit;
	struct tfh_err err = {0};

	if (!d)
		return;
	d->side[0] = (struct tfh_diff_side){
		.digest = &a, .n = 1, .to_s = same ? 0.5 : INFINITY, .name = "a"};
	d->side[1] = (struct tfh_diff_side){
		.digest = &b, .n = 1, .from_s = same ? 0.5 : 0, .to_s = INFINITY, .name = "b"};
	d->same_run = same;
	int rc = tfh_diff_make(d, &err);
	if (rc)
		tfh_fuzz_refused(&err);
	if (!rc && a == b && !same && (d->step.found || d->n_fact))
		abort();
	for (int form = 0; !rc && form < 4; form++)
		print(d, form);
	if (!rc && !tfh_diff_limit_parse("step>+5%", &limit, &err))
		tfh_diff_limit_check(d, &limit);
	free(d);
}

/* Both as the digests of two hosts of one job. */
static void join(const uint64_t *step)
{
	char a[128], b[128], *paths[] = {a, b}, *text = NULL;
	const struct tfh_ranks_style style = {.all = true};
	struct tfh_ranks *job;
	struct tfh_err err = {0};
	size_t size = 0;

	snprintf(a, sizeof(a), "%s/a.tft", tfh_fuzz_place());
	snprintf(b, sizeof(b), "%s/b.tft", tfh_fuzz_place());
	if (tfh_ranks_find(paths, 2, step, &job, &err)) {
		tfh_fuzz_refused(&err);
		return;
	}
	for (int form = 0; form < 3; form++) {
		FILE *out = open_memstream(&text, &size);
		if (!out)
			break;
		if (form == 2 && tfh_ranks_json(out, job))
			abort();
		if (form == 1 && step)
			tfh_ranks_step_text(out, job, &style);
		else if (form == 1)
			tfh_ranks_table(out, job);
		if (!form)
			tfh_ranks_text(out, job, &style);
		fclose(out);
		(form == 2 ? tfh_fuzz_is_json : tfh_fuzz_is_text)(text, size);
		free(text);
	}
	tfh_ranks_free(job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	double begin = tfh_fuzz_clock();
	const uint64_t step = size % 16;
	struct tfh_run_digest *a, *b;

	if (size < LENGTH || !tfh_fuzz_place())
		return 0;
	size_t n = first_of(data, size);
	a = open_digest("a.tft", data + LENGTH, n);
	b = open_digest("b.tft", data + LENGTH + n, size - LENGTH - n);
	if (a && b)
		compare(a, b, false);
	join(NULL);
	join(&step);
	if (a) {
		compare(a, a, false);
		compare(a, a, true);
	}
	tfh_digest_close(a);
	tfh_digest_close(b);
	tfh_fuzz_bound(begin, size);
	return 0;
}
