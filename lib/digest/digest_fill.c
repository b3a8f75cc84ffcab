/* Fills the tables of a digest other than steps and facts. What can be derived from the rest of a
 * result is left out. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "digest/digest_out.h"
#include "model/symbols/pylines.h"

#define FRAMES 256u /* Python frames of a call */

/* Number of rows in a table that is written as a whole. A longer list is cut. */
static uint32_t at_most(uint64_t n)
{
	return n < TFH_DIGEST_ROWS ? (uint32_t)n : TFH_DIGEST_ROWS;
}

static struct tfh_digest_node node_of(const struct tfh_part_of_run *t)
{
	struct tfh_digest_node n = {.kind = (uint8_t)(t->kind + 1),
				    .parent = t->parent,
				    .count = t->count,
				    .runs = t->runs,
				    .begin_ns = tfh_digest_ns(t->begin_s),
				    .wall_ns = tfh_digest_ns(t->wall_s),
				    .steps = t->steps,
				    .compute_s = t->compute_s,
				    .rest_s = t->steps_s};

	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		n.part_s[c] = t->cause_s[c];
		n.rest_s -= t->cause_s[c];
		if (tfh_cause_part((enum tfh_cause)c) == TFH_PART_COMPUTE)
			n.compute_s -= t->cause_s[c];
	}
	n.rest_s -= n.compute_s;
	return n;
}

static int put_nodes(struct tfh_digest_out *o, const struct tfh_result *r)
{
	uint32_t n = at_most(r->n_tree);
	struct tfh_digest_node *row = calloc(n + 1u, sizeof(*row));

	if (!row)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		row[i] = node_of(&r->tree[i]);
		row[i].name = tfh_digest_add_text(o, r->tree[i].name);
	}
	int rc = tfh_digest_put(o, TFT_DNOD, &tfh_digest_nodes, row, n);
	free(row);
	return rc;
}

struct place_rows {
	struct tfh_digest_place *row;
	uint32_t n;
};

static void add_tree(struct tfh_digest_out *o, struct place_rows *x, uint8_t where,
		     const struct tfh_seen_node *node, uint32_t n)
{
	uint32_t first = x->n;

	for (uint32_t i = 0; i < n && x->n < TFH_DIGEST_ROWS; i++)
		x->row[x->n++] = (struct tfh_digest_place){
			.where = where,
			.parent = node[i].parent < i ? first + node[i].parent + 1 : 0,
			.file = tfh_digest_add_text(o, node[i].file),
			.function = tfh_digest_add_text(o, node[i].function),
			.line = node[i].line,
			.s = node[i].s_per_step,
			.own_s = node[i].own_s,
			.samples = node[i].samples};
}

static void add_start(struct tfh_digest_out *o, struct place_rows *x,
		      const struct tfh_seen_start *start)
{
	for (uint32_t i = 0; i < start->n_line && x->n < TFH_DIGEST_ROWS; i++) {
		const struct tfh_start_line *l = &start->line[i];
		double s = l->share * start->wall_s;
		x->row[x->n++] = (struct tfh_digest_place){
			.where = start->kind == TFH_BRANCH_BEFORE ? TFH_DIGEST_BEFORE
								  : TFH_DIGEST_STARTUP,
			.file = tfh_digest_add_text(o, l->file),
			.function = tfh_digest_add_text(o, l->function),
			.line = l->line,
			.s = s,
			.own_s = s,
			.samples = l->samples};
	}
}

static int put_places(struct tfh_digest_out *o, const struct tfh_result *r)
{
	const struct tfh_findings *f = &r->found;
	struct place_rows x = {calloc(TFH_DIGEST_ROWS, sizeof(*x.row)), 0};

	if (!x.row)
		return -ENOMEM;
	add_tree(o, &x, TFH_DIGEST_STEP, f->node, f->n_node);
	add_tree(o, &x, TFH_DIGEST_WORKER, f->workers.node, f->workers.n_node);
	for (size_t k = 0; k < sizeof(f->start) / sizeof(*f->start); k++)
		if (f->start[k].kind == TFH_BRANCH_BEFORE || f->start[k].kind == TFH_BRANCH_STARTUP)
			add_start(o, &x, &f->start[k]);
	int rc = tfh_digest_put(o, TFT_DPLC, &tfh_digest_places, x.row, x.n);
	free(x.row);
	return rc;
}

static int put_kernels(struct tfh_digest_out *o, const struct tfh_result *r)
{
	uint32_t n = at_most(r->n_kernels);
	struct tfh_digest_kernel *row = calloc(n + 1u, sizeof(*row));

	if (!row)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_kernel *k = &r->kernels[i];
		row[i] = (struct tfh_digest_kernel){.name = tfh_digest_add_text(o, k->name),
						    .calls = k->calls_per_step,
						    .s = k->s_per_step,
						    .median_s = k->median_s};
	}
	int rc = tfh_digest_put(o, TFT_DKRN, &tfh_digest_kernels, row, n);
	free(row);
	return rc;
}

static int put_copies(struct tfh_digest_out *o, const struct tfh_result *r)
{
	uint32_t n = at_most(r->n_transfers);
	struct tfh_digest_copy *row = calloc(n + 1u, sizeof(*row));

	if (!row)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_transfer *t = &r->transfers[i];
		row[i] = (struct tfh_digest_copy){.name = tfh_digest_add_text(o, t->fn),
						  .place = tfh_digest_add_text(o, t->where),
						  .dir = (uint8_t)t->dir,
						  .pageable = (uint8_t)(t->pageable + 1),
						  .calls = t->calls_per_step,
						  .bytes = t->bytes_per_step};
	}
	int rc = tfh_digest_put(o, TFT_DCPY, &tfh_digest_copies, row, n);
	free(row);
	return rc;
}

static int put_meters(struct tfh_digest_out *o, const struct tfh_result *r)
{
	const struct tfh_meter_line *line;
	uint32_t lines = tfh_run_meters(r->run, r->process, &line), n = 0;
	struct tfh_digest_meter *row = calloc(TFH_DIGEST_ROWS, sizeof(*row));

	if (!row)
		return -ENOMEM;
	for (uint32_t i = 0; i < lines; i++) {
		const struct tfh_meter_line *l = &line[i];
		uint32_t name = tfh_digest_add_text(o, tfh_meters[l->meter].value[l->value].name),
			 unit = tfh_digest_add_text(o, tfh_meters[l->meter].value[l->value].unit);
		for (uint32_t k = 0; k < l->n && n < TFH_DIGEST_ROWS; k++) {
			if (isnan((double)l->point[k]))
				continue;
			row[n++] = (struct tfh_digest_meter){
				.name = name,
				.unit = unit,
				.device = (uint32_t)(l->device + 1),
				.begin_ns = (uint64_t)(l->t0 + (int64_t)k * l->width_ns),
				.width_ns = (uint64_t)l->width_ns,
				.mean = (double)l->point[k]};
		}
	}
	int rc = tfh_digest_put(o, TFT_DMTR, &tfh_digest_meters, row, n);
	free(row);
	return rc;
}

static void add_line(struct tfh_digest_out *o, const struct tfh_model_line *frame, uint32_t n,
		     struct tfh_digest_open *out)
{
	if (!n)
		return;
	const struct tfh_model_line *lead = &frame[tfh_place_lead(frame, n)];
	out->file = tfh_digest_add_text(o, lead->file);
	out->function = tfh_digest_add_text(o, lead->function);
	out->line = lead->line;
}

void tfh_digest_fill_open(struct tfh_digest_out *o, struct tfh_run *run,
			  const struct tfh_in_flight *open, uint32_t rank,
			  struct tfh_digest_open *out)
{
	struct tfh_model_line frame[FRAMES];
	uint32_t n = tfh_run_place(run, open->process, open->place, frame, FRAMES);

	*out = (struct tfh_digest_open){.rank = rank,
					.name = tfh_digest_add_text(o, open->fn),
					.detail = tfh_digest_add_text(o, open->detail),
					.begin_ns =
						open->begin_ns > 0 ? (uint64_t)open->begin_ns : 0,
					.open_ns = tfh_digest_ns(open->open_s),
					.look_ns = open->look_ns > 0 ? (uint64_t)open->look_ns : 0,
					.state = open->look_ns ? (uint8_t)open->state : 0};
	add_line(o, frame, n, out);
}

bool tfh_digest_fill_seen(struct tfh_digest_out *o, struct tfh_run *run, uint32_t process,
			  const struct tfh_digest_idle *idle, int64_t until,
			  struct tfh_digest_open *out, uint32_t rank)
{
	struct tfh_model_line line;
	int64_t at_ns;

	if (!tfh_last_seen_line(run, process, &idle->seen, &line, &at_ns))
		return false;
	*out = (struct tfh_digest_open){.rank = rank,
					.name = tfh_digest_add_text(o, ""),
					.detail = tfh_digest_add_text(o, ""),
					.begin_ns = at_ns > 0 ? (uint64_t)at_ns : 0,
					.open_ns = until > at_ns ? (uint64_t)(until - at_ns) : 0};
	add_line(o, &line, 1, out);
	return true;
}

int tfh_digest_fill(struct tfh_digest_out *o, const struct tfh_result *r)
{
	int rc = put_nodes(o, r);

	if (!rc)
		rc = put_places(o, r);
	if (!rc)
		rc = put_kernels(o, r);
	if (!rc)
		rc = put_copies(o, r);
	return rc ? rc : put_meters(o, r);
}

int tfh_digest_fill_inputs(struct tfh_digest_out *o, const struct tfh_inputs *in)
{
	struct tfh_digest_input *row = calloc(in->n + 1u, sizeof(*row));
	int rc;

	if (!row)
		return -ENOMEM;
	for (uint32_t i = 0; i < in->n; i++)
		row[i] = (struct tfh_digest_input){.name = tfh_digest_add_text(o, in->v[i].name),
						   .bytes = in->v[i].bytes,
						   .check = in->v[i].check};
	rc = tfh_digest_put(o, TFT_DINP, &tfh_digest_inputs, row, at_most(in->n));
	free(row);
	return rc;
}
