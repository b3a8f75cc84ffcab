#include "diff/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Steps that a block keeps to find its middle half. Of a longer block, this many are drawn at
 * random. */
#define KEPT 4096u

struct kept_step {
	float part_s[TFH_DIFF_PARTS];
};

struct block_pass {
	struct tfh_step_blocks *out;
	double from_s, to_s;
	uint32_t rank, block;
	uint64_t at, total; /* total 0: steps are only counted */
	uint64_t in;	    /* steps of this block */
	struct kept_step *kept;
	uint32_t n;
};

static int by_length(const void *a, const void *b)
{
	float x = ((const struct kept_step *)a)->part_s[TFH_DIFF_STEP],
	      y = ((const struct kept_step *)b)->part_s[TFH_DIFF_STEP];

	return x < y ? -1 : x > y;
}

static void close_block(struct block_pass *x)
{
	uint32_t cut = x->n / 4;
	double *usual = x->out->usual_s[x->block], *mean = x->out->mean_s[x->block];

	qsort(x->kept, x->n, sizeof(*x->kept), by_length);
	for (int p = 0; p < TFH_DIFF_PARTS && x->n; p++) {
		for (uint32_t i = cut; i < x->n - cut; i++)
			usual[p] += (double)x->kept[i].part_s[p] / (x->n - 2 * cut);
		mean[p] /= (double)x->in;
	}
	x->in = x->n = 0;
}

/* Computing on the CPU that samples saw is one row with the other computing. */
static double part_of(const struct tfh_digest_row *row, int part)
{
	return part == TFH_DIFF_STEP	  ? row->dur_s
	       : part == TFH_DIFF_REST	  ? row->rest_s
	       : part == TFH_DIFF_COMPUTE ? row->compute_s + row->cause_s[TFH_CAUSE_COMPUTE_CPU]
	       : part == TFH_CAUSE_COMPUTE_CPU ? 0
					       : row->cause_s[part];
}

static void add_step(struct block_pass *x, const struct tfh_digest_row *row)
{
	uint64_t k;

	x->in++;
	/* Reservoir sampling (Vitter 1985). A hash of the step's number replaces the random number,
	 * so that two reads keep the same steps. */
	if (x->n < KEPT)
		k = x->n++;
	else
		k = tfh_hash_u64(row->index + 1) % x->in;
	for (int p = 0; p < TFH_DIFF_PARTS; p++) {
		double s = part_of(row, p);
		x->out->mean_s[x->block][p] += s;
		if (k < KEPT)
			x->kept[k].part_s[p] = (float)s;
	}
}

static int take_step(void *arg, const struct tfh_digest_row *row)
{
	struct block_pass *x = arg;

	if (row->rank != x->rank || row->segment != TFH_SEGMENT_TRAIN || row->start_s < x->from_s ||
	    row->start_s + row->dur_s > x->to_s)
		return 0;
	if (x->total) {
		uint32_t blocks = x->out->n ? x->out->n : 1;
		uint32_t b = (uint32_t)((double)x->at * blocks / (double)x->total);
		b = b < blocks ? b : blocks - 1;
		if (b != x->block) {
			close_block(x);
			x->block = b;
		}
		add_step(x, row);
	}
	x->at++;
	return 0;
}

static uint32_t blocks_of(uint64_t steps)
{
	uint64_t n = steps;

	if (n > TFH_DIFF_BLOCKS)
		n = TFH_DIFF_BLOCKS;
	return n < TFH_DIFF_FEWEST_BLOCKS ? 0 : (uint32_t)n;
}

int tfh_blocks_read(struct tfh_run_digest *d, double from_s, double to_s,
		    struct tfh_step_blocks *out, struct tfh_err *err)
{
	double critical = tfh_digest_number(d, "critical");
	struct block_pass x = {.out = out,
			       .from_s = from_s,
			       .to_s = to_s,
			       .rank = critical >= 0 && critical < 1e9 ? (uint32_t)critical : 0};
	int rc = tfh_digest_each_step(d, take_step, &x, err);

	memset(out, 0, sizeof(*out));
	if (rc || !x.at)
		return rc;
	out->steps = x.total = x.at;
	out->n = blocks_of(out->steps);
	x.at = 0;
	x.kept = calloc(KEPT, sizeof(*x.kept));
	if (!x.kept)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	rc = tfh_digest_each_step(d, take_step, &x, err);
	close_block(&x);
	free(x.kept);
	return rc;
}
