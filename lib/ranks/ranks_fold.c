/*
 * Sums up the steps of a digest, column by column: a job of many ranks has billions of cells, most
 * of them in a few columns. A step's own time is its length without exchanges, since these end for
 * all ranks at once. A rank's time is divided into intervals, whose width doubles as the run turns
 * out to be longer.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/codec.h"
#include "ranks/ranks_parts.h"

/* Columns of DSTP (FORMAT.md, 2.9). */
enum { GAP = 1, REST = 2, INDEX = 3, RANK = 4, SEGMENT = 5, COMPUTE = 9, CAUSE = 32 };

#define FARTHEST (INT64_MAX / 4) /* units */
#define FIRST_WIDTH_S 0x1p-10
#define USUAL_OF 1024u /* steps that show what is usual */

struct tfh_ranks_folding {
	uint64_t gap[TFT_TABLE_ROWS_MAX], cell[TFT_TABLE_ROWS_MAX], index[TFT_TABLE_ROWS_MAX];
	uint64_t rank[TFT_TABLE_ROWS_MAX], segment[TFT_TABLE_ROWS_MAX];
	int64_t all[TFT_TABLE_ROWS_MAX], own[TFT_TABLE_ROWS_MAX]; /* units */
	/* Of the causes that a slow step may have: their cells, for those that the chunk has. */
	uint64_t part[TFH_CAUSE_COUNT][TFT_TABLE_ROWS_MAX];
	bool has[TFH_CAUSE_COUNT];
	double usual[USUAL_OF];
	struct tfh_ranks_rank *of; /* by number of DRNK */
	const struct tfh_digest_rank *row;
	uint32_t ranks;
	const struct tfh_ranks *job;
	/* By the last byte of its index: whether a step may be one of job->slowest. */
	bool chosen[256];
};

struct tfh_ranks_folding *tfh_ranks_folding_new(const struct tfh_ranks *job)
{
	struct tfh_ranks_folding *x = malloc(sizeof(*x));

	if (!x)
		return NULL;
	x->job = job;
	memset(x->chosen, 0, sizeof(x->chosen));
	for (uint32_t i = 0; i < job->steps_kept; i++)
		x->chosen[job->slowest[i].index % 256] = true;
	return x;
}

/* Reads a column, also if all its values are equal or it is missing. */
static void column(const struct tft_table_view *v, uint8_t id, uint64_t *out)
{
	uint64_t same;

	if (tft_table_values(v, id, out, &same))
		return;
	for (uint32_t i = 0; i < v->rows; i++)
		out[i] = same;
}

static bool is_judged(uint64_t segment)
{
	enum tfh_segment s = (enum tfh_segment)((int)segment - 1);

	return s != TFH_SEGMENT_STARTUP && s != TFH_SEGMENT_WARMUP && s != TFH_SEGMENT_COMPILE;
}

/* ---- intervals ---- */

static void double_width(struct tfh_ranks_rank *r)
{
	for (uint32_t i = 0; i < TFH_RANKS_TIMES / 2; i++) {
		const struct tfh_ranks_time *a = &r->time[i * 2], *b = a + 1;
		r->time[i] = (struct tfh_ranks_time){a->own_s + b->own_s, a->wall_s + b->wall_s,
						     a->steps + b->steps};
	}
	memset(r->time + TFH_RANKS_TIMES / 2, 0, sizeof(r->time) / 2);
	r->width_s *= 2;
}

void tfh_ranks_widen(struct tfh_ranks_rank *r, double width_s)
{
	while (r->width_s < width_s)
		double_width(r);
}

static struct tfh_ranks_time *time_at(struct tfh_ranks_rank *r, double s)
{
	while (s >= r->width_s * TFH_RANKS_TIMES)
		double_width(r);
	return &r->time[(uint32_t)(s / r->width_s)];
}

/* ---- one rank's rows of a chunk ---- */

/* What a usual step of a rank takes, by its first ones. */
static double usual_of(struct tfh_ranks_folding *x, uint32_t from, uint32_t to, double unit)
{
	uint32_t n = 0;

	for (uint32_t i = from; i < to && n < USUAL_OF; i++)
		if (is_judged(x->segment[i]))
			x->usual[n++] = (double)x->own[i] * unit;
	return tfh_ranks_median(x->usual, n);
}

static void add_slow(struct tfh_ranks_folding *x, struct tfh_ranks_rank *r, uint32_t i, double unit,
		     double own_s)
{
	if (r->slow < TFH_RANKS_SLOW)
		r->slow_at[r->slow] = x->index[i];
	r->slow++;
	r->slow_s += own_s - r->usual_s;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (x->has[c])
			r->slow_cause_s[c] += (double)x->part[c][i] * unit;
}

/* Keeps the largest parts of a step's own time. */
static void keep_part(struct tfh_ranks_in_step *s, int part, double part_s)
{
	uint32_t i = TFH_RANKS_PARTS;

	for (; i && part_s > (double)s->part_s[i - 1]; i--)
		if (i < TFH_RANKS_PARTS) {
			s->part[i] = s->part[i - 1];
			s->part_s[i] = s->part_s[i - 1];
		}
	if (i < TFH_RANKS_PARTS) {
		s->part[i] = (uint8_t)part;
		s->part_s[i] = (float)part_s;
	}
}

/* One of the steps whose paths are looked for. */
static void keep_step(const struct tfh_ranks_folding *x, uint32_t number, uint32_t i, int64_t begin,
		      int64_t end)
{
	struct tfh_ranks_in_step *s = NULL;
	double ns = (double)x->row[number].unit, unit = ns * 1e-9, rest;

	for (uint32_t k = 0; k < x->job->steps_kept && !s; k++)
		if (x->job->slowest[k].index == x->index[i])
			s = &x->of[number].in_step[k];
	/* Times beyond any run would overflow as nanoseconds. */
	if (!s || s->wall_s > 0 || (double)end * ns > (double)FARTHEST)
		return;
	s->begin_ns = (int64_t)((double)begin * ns);
	s->end_ns = (int64_t)((double)end * ns);
	s->wall_s = (double)x->all[i] * unit;
	rest = s->own_s = (double)x->own[i] * unit;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		if (!x->has[c] || tfh_cause_part((enum tfh_cause)c) == TFH_PART_COMMUNICATION)
			continue;
		keep_part(s, c, (double)x->part[c][i] * unit);
		rest -= (double)x->part[c][i] * unit;
	}
	keep_part(s, TFH_CAUSE_COUNT, rest);
}

/* -EBADMSG: impossible times. */
static int fold_rows(struct tfh_ranks_folding *x, uint32_t from, uint32_t to, int64_t *end)
{
	uint32_t number = (uint32_t)x->rank[from];
	struct tfh_ranks_rank *r = &x->of[number];
	double unit = (double)x->row[number].unit * 1e-9;

	if (isnan(r->usual_s))
		r->usual_s = usual_of(x, from, to, unit);
	for (uint32_t i = from; i < to; i++) {
		int64_t gap = (int64_t)tft_unzigzag(x->gap[i]);
		if (gap > FARTHEST || gap < -FARTHEST || x->all[i] > FARTHEST ||
		    x->all[i] < -FARTHEST)
			return -EBADMSG;
		int64_t begin = *end + gap;
		*end = begin + x->all[i];
		if (begin < 0 || begin > FARTHEST || *end < begin || *end > FARTHEST)
			return -EBADMSG;
		if (x->chosen[x->index[i] % 256])
			keep_step(x, number, i, begin, *end);
		if (!is_judged(x->segment[i]))
			continue;
		double own_s = (double)x->own[i] * unit, wall_s = (double)x->all[i] * unit;
		struct tfh_ranks_time *t = time_at(r, (double)begin * unit);
		r->first_step = r->steps ? r->first_step : x->index[i];
		r->last_step = x->index[i];
		r->steps++;
		r->own_s += own_s;
		r->wall_s += wall_s;
		t->wall_s += (float)wall_s;
		if (own_s > TFH_RANKS_RARE_TIMES * r->usual_s) {
			add_slow(x, r, i, unit, own_s);
			continue;
		}
		r->steady++;
		r->steady_s += own_s;
		r->square_s += own_s * own_s;
		t->own_s += (float)own_s;
		t->steps++;
	}
	return 0;
}

static void add_causes(struct tfh_ranks_folding *x, uint32_t from, uint32_t to)
{
	uint32_t number = (uint32_t)x->rank[from];
	struct tfh_ranks_rank *r = &x->of[number];
	double unit = (double)x->row[number].unit * 1e-9;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		uint64_t sum = 0;
		for (uint32_t i = from; x->has[c] && i < to; i++)
			sum += is_judged(x->segment[i]) ? x->part[c][i] : 0;
		r->cause_s[c] += (double)sum * unit;
	}
}

/* ---- a chunk ---- */

/* Sums up lengths and own times. Cells of a cause have at most 4 bytes: the sum of all fits. */
static int read_parts(struct tfh_ranks_folding *x, const struct tft_table_view *v)
{
	column(v, REST, x->cell);
	for (uint32_t i = 0; i < v->rows; i++) {
		int64_t rest = (int64_t)tft_unzigzag(x->cell[i]);
		if (rest > FARTHEST || rest < -FARTHEST)
			return -EBADMSG;
		x->all[i] = x->own[i] = rest;
	}
	column(v, COMPUTE, x->cell);
	for (uint32_t i = 0; i < v->rows; i++) {
		x->all[i] += (uint32_t)x->cell[i];
		x->own[i] += (uint32_t)x->cell[i];
	}
	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		bool exchange = tfh_cause_part((enum tfh_cause)c) == TFH_PART_COMMUNICATION;
		uint64_t same;
		x->has[c] = tft_table_values(v, (uint8_t)(CAUSE + c), x->part[c], &same) || same;
		if (!x->has[c])
			continue;
		if (same)
			column(v, (uint8_t)(CAUSE + c), x->part[c]);
		for (uint32_t i = 0; i < v->rows; i++) {
			uint32_t cell = (uint32_t)x->part[c][i];
			x->part[c][i] = cell;
			x->all[i] += cell;
			x->own[i] += exchange ? 0 : cell;
		}
	}
	return 0;
}

static int fold_chunk(void *arg, const struct tft_table_view *v)
{
	struct tfh_ranks_folding *x = arg;
	int64_t end = 0;
	int rc = read_parts(x, v);

	column(v, GAP, x->gap);
	column(v, INDEX, x->index);
	column(v, RANK, x->rank);
	column(v, SEGMENT, x->segment);
	for (uint32_t from = 0, to; from < v->rows && !rc; from = to) {
		for (to = from; to < v->rows && x->rank[to] == x->rank[from];)
			to++;
		rc = x->rank[from] < x->ranks ? fold_rows(x, from, to, &end) : -EBADMSG;
		if (!rc)
			add_causes(x, from, to);
	}
	return rc;
}

int tfh_ranks_fold(struct tfh_ranks_folding *x, struct tfh_run_digest *d,
		   struct tfh_ranks_rank *rank, struct tfh_err *err)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DRNK);

	x->of = rank;
	x->row = p->row;
	x->ranks = p->n;
	for (uint32_t i = 0; i < p->n; i++) {
		rank[i].usual_s = NAN;
		rank[i].width_s = FIRST_WIDTH_S;
	}
	int rc = tfh_digest_each_view(d, TFT_DSTP, fold_chunk, x, err);
	for (uint32_t i = 0; i < p->n; i++) {
		struct tfh_ranks_rank *r = &rank[i];
		double known = 0;
		for (int c = 0; c < TFH_CAUSE_COUNT; c++)
			known += tfh_cause_part((enum tfh_cause)c) == TFH_PART_COMMUNICATION
					 ? 0
					 : r->cause_s[c];
		r->compute_s = r->own_s - known; /* and what is unattributed */
	}
	return rc;
}
