/*
 * Fuzzed input: a digest. Whatever its bytes, opening it, reading all its rows, `info`, `verify` and the comparison with
 * itself must neither crash nor hang nor take memory beyond the bounds; a file equals itself.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/digests.h"
#include "diff/diff.h"
#include "fuzz.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	return tfh_fuzz_mutate_tft(data, size, max, seed);
}

static int take_step(void *arg, const struct tfh_digest_row *row)
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
	++*(uint64_t *)arg;
	return row->rank > UINT32_MAX - 1;
}

/* Every text of the places, whose offsets are the file's. */
static void read_texts(const struct tfh_run_digest *d)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DPLC);
	const struct tfh_digest_place *place = p->row;
	volatile size_t all = 0;

	for (uint32_t i = 0; i < p->n; i++)
		all += strlen(tfh_digest_text(p, place[i].file)) +
		       strlen(tfh_digest_text(p, place[i].function));
}

static void compare(struct tfh_run_digest *d)
{
	struct tfh_run_diff *x = calloc(1, sizeof(*x));
	struct tfh_err err = {0};
	char *text = NULL;
	size_t size = 0;

	for (int k = 0; x && k < 2; k++)
		x->side[k] = (struct tfh_diff_side){
			.digest = &d, .n = 1, .to_s = INFINITY, .name = "a digest"};
	int rc = x ? tfh_diff_make(x, &err) : -ENOMEM;
	if (rc) {
		if (x)
			tfh_fuzz_refused(&err);
		free(x);
		return;
	}
	if (x->step.found || x->n_fact)
		abort();
	FILE *out = open_memstream(&text, &size);
	tfh_diff_text(out, x, 80, true);
	fclose(out);
	tfh_fuzz_said(text, size, 0);
	free(text);
	out = open_memstream(&text, &size);
	tfh_diff_json(out, x);
	fclose(out);
	tfh_fuzz_is_json(text, size);
	free(text);
	free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *place = tfh_fuzz_place();
	double begin = tfh_fuzz_clock();
	struct tfh_run_digest *d;
	struct tfh_err err = {0};
	uint64_t rows = 0;
	char path[128];

	if (!place)
		return 0;
	snprintf(path, sizeof(path), "%s/digest.tft", place);
	tfh_fuzz_write("digest.tft", data, size);
	if (tfh_digest_open(path, &d, &err)) {
		tfh_fuzz_refused(&err);
		return 0;
	}
	if (tfh_digest_each_step(d, take_step, &rows, &err) < 0 ||
	    tfh_digest_each_anchor(d, take_anchor, &rows, &err) < 0)
		tfh_fuzz_refused(&err);
	read_texts(d);
	compare(d);
	tfh_digest_close(d);
	tfh_digest_check(path);
	tfh_fuzz_bound(begin, size);
	return 0;
}
