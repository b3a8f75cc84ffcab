/* Judges a run and writes its digest: each rank's steps while its result is in memory, then the
 * tables about the whole run. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "digest/digest.h"
#include "digest/digest_out.h"
#include "format/codec.h"
#include "judge/generations.h"
#include "judge/judge.h"
#include "tfhook/version.h"

/* Step times are stored in units of at most this fraction of the median step. */
#define UNITS 8192.0

static uint8_t stored(int member)
{
	return (uint8_t)(member + 1);
}

static uint64_t unit_of(const struct tfh_result *r)
{
	double ns = r->steps.median_s * 1e9 / UNITS;
	uint64_t unit = 1;

	while (ns >= (double)(unit * 2) && unit < 1ull << 40)
		unit *= 2;
	return unit;
}

/* ---- steps ---- */

static int64_t in_units(double s, double unit_s)
{
	return llround(s / unit_s);
}

/* The next part of a step: the increase of the rounded sum, so that rounding errors do not add
 * up. */
static uint32_t next_part(double s, double unit_s, double *sum, int64_t *at)
{
	int64_t was = *at;

	*sum += s > 0 ? s : 0;
	*at = in_units(*sum, unit_s);
	return *at - was < UINT32_MAX ? (uint32_t)(*at - was) : UINT32_MAX;
}

static void pack_step(const struct tfh_result *r, size_t i, double unit_s, int64_t *end,
		      struct tfh_digest_step *out)
{
	const struct tfh_step *s = &r->step[i];
	int64_t begin = in_units(s->start_s, unit_s), at = 0, known = 0;
	double sum = 0;

	*out = (struct tfh_digest_step){.gap = tft_zigzag((uint64_t)(begin - *end)),
					.index = s->index,
					.segment = stored(s->segment),
					.cls = stored(s->cls),
					.cause = stored(s->cause),
					.tier = (uint8_t)s->tier};
	double compute = (double)s->breakdown[TFH_PART_COMPUTE];
	for (int c = 0; c < TFH_CAUSE_COUNT;
	     c++) /* causes of computing have columns of their own */
		if (tfh_cause_part((enum tfh_cause)c) == TFH_PART_COMPUTE)
			compute -= (double)r->step_cause[i][c];
	out->compute = next_part(compute, unit_s, &sum, &at);
	known += out->compute;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		out->part[c] = next_part((double)r->step_cause[i][c], unit_s, &sum, &at);
		known += out->part[c];
	}
	*end = in_units(s->start_s + s->dur_s, unit_s);
	out->rest = tft_zigzag((uint64_t)(*end - begin - known));
}

static int write_steps(struct tfh_digest_out *o, const struct tfh_result *r, uint32_t number,
		       uint64_t unit)
{
	double unit_s = (double)unit * 1e-9;
	struct tfh_digest_step *row = calloc(TFH_DIGEST_STEPS_AT_ONCE, sizeof(*row));
	uint32_t n = 0;
	int64_t end = 0;
	int rc = row ? 0 : -ENOMEM;

	for (uint64_t i = 0; i < r->n_step && !rc; i++) {
		if (!n)
			end = 0;
		pack_step(r, i, unit_s, &end, &row[n]);
		row[n++].rank = number;
		if (n < TFH_DIGEST_STEPS_AT_ONCE && i + 1 < r->n_step)
			continue;
		rc = tfh_digest_put(o, TFT_DSTP, &tfh_digest_steps, row, n);
		n = 0;
	}
	free(row);
	return rc;
}

/* ---- one rank ---- */

struct digest_run {
	struct tfh_digest_out out;
	const struct tfh_process *process;
	uint32_t n_process;
	struct tfh_generations generations;
	struct tfh_digest_rank *rank;
	uint32_t n_rank;
	struct tfh_digest_idle *idle; /* [n_rank] */
	struct tfh_slow_steps *slow;  /* [n_rank] */
	struct tfh_digest_gone *gone; /* of all ranks */
	uint32_t n_gone;
};

static int add_gone(struct digest_run *x, const struct tfh_result *r, uint32_t rank)
{
	uint32_t room = TFH_DIGEST_ROWS - x->n_gone,
		 n = r->n_discarded < room ? r->n_discarded : room;
	struct tfh_digest_gone *grown = realloc(x->gone, (x->n_gone + n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	x->gone = grown;
	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_discarded *d = &r->discarded[i];
		x->gone[x->n_gone++] =
			(struct tfh_digest_gone){.rank = rank,
						 .begin_ns = tfh_digest_ns(d->start_s),
						 .end_ns = tfh_digest_ns(d->end_s),
						 .steps = d->steps,
						 .counted = !d->estimated,
						 .mean_s = d->mean_s,
						 .median_s = d->median_s,
						 .records = d->events,
						 .launches = d->launches};
	}
	return 0;
}

/* Processes that had this rank one after another, as after a restart. */
static uint32_t processes_of(const struct digest_run *x, const struct tfh_process *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->n_process; i++)
		n += p->rank >= 0 && x->process[i].rank == p->rank && x->process[i].has_gpu;
	return n;
}

/* By the host's times, as those of the calls of collectives. */
static int add_slow(struct digest_run *x, const struct tfh_result *r)
{
	struct tfh_slow_steps *grown = realloc(x->slow, (x->n_rank + 1) * sizeof(*grown)), *slow;

	if (!grown)
		return -ENOMEM;
	x->slow = grown;
	slow = &x->slow[x->n_rank];
	slow->n = 0;
	for (uint64_t i = 0; i < r->n_step; i++) {
		const struct tfh_step *s = &r->step[i];
		const struct tfh_slow_step step = {s->index, s->dur_s, s->host_t0, s->host_t1};
		if (s->segment != TFH_SEGMENT_STARTUP && s->segment != TFH_SEGMENT_WARMUP &&
		    s->segment != TFH_SEGMENT_COMPILE)
			tfh_slow_steps_add(slow, TFH_SLOW_STEPS, &step);
	}
	tfh_slow_steps_sort(slow);
	return 0;
}

static uint8_t state_of(const struct tfh_process *p)
{
	return (uint8_t)((p->clean_end ? TFH_DIGEST_CLOSED : 0) |
			 (p->live ? TFH_DIGEST_RECORDING : 0));
}

static uint32_t generation_of(const struct digest_run *x, uint32_t process)
{
	uint32_t of = x->generations.of[process];

	return x->generations.n < 2 || of == TFH_NO_GENERATION ? 0 : of + 1;
}

static int add_rank(void *arg, const struct tfh_result *r, struct tfh_err *err)
{
	struct digest_run *x = arg;
	uint64_t unit = unit_of(r);
	const struct tfh_process *p = &x->process[r->process];
	struct tfh_digest_rank *grown = realloc(x->rank, (x->n_rank + 1) * sizeof(*grown));

	if (!grown)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	x->rank = grown;
	x->rank[x->n_rank] = (struct tfh_digest_rank){
		.number = x->n_rank,
		.rank = p->rank >= 0 ? (uint32_t)p->rank + 1 : 0,
		.pid = p->pid,
		.host = r->process, /* becomes its text when the table is written */
		.cls = stored(r->verdict.cls),
		.cause = stored(r->verdict.cause),
		.tier = (uint8_t)r->verdict.tier,
		.confidence = stored(r->verdict.confidence),
		.share = r->verdict.share,
		.unit = unit,
		.steps = r->n_step,
		.late_s = NAN,
		.held_s = NAN,
		.local = p->local >= 0 ? (uint32_t)p->local + 1 : 0,
		.processes = processes_of(x, p),
		.end = p->end_known ? stored(p->end) : 0,
		.code = p->end_known ? p->end_code : 0,
		.state = state_of(p),
		.heard_ns = p->heard_ns > 0 ? (uint64_t)p->heard_ns : 0,
		.exchanges = r->exchanges,
		.begin_ns = p->start_ns > 0 ? (uint64_t)p->start_ns : 0,
		.world = p->world > 0 ? (uint32_t)p->world : 0,
		.generation = generation_of(x, r->process)};
	int rc = add_gone(x, r, x->n_rank);
	if (!rc)
		rc = add_slow(x, r);
	if (!rc)
		rc = write_steps(&x->out, r, x->n_rank, unit);
	x->n_rank++;
	return rc ? tfh_err_set(err, rc, "digest: %s", strerror(-rc)) : 0;
}

/* Must run before `host` becomes a text: until then it is the process. */
static int write_anchors(struct digest_run *x, const struct tfh_result *r)
{
	int rc = 0;

	x->idle = calloc(x->n_rank + 1u, sizeof(*x->idle));
	if (!x->idle)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->n_rank && !rc; i++)
		if (x->rank[i].rank)
			rc = tfh_digest_put_anchors(&x->out, r->run, x->rank[i].host, i,
						    x->rank[i].steps, &x->slow[i], &x->idle[i]);
	return rc ? rc
		  : tfh_digest_put(&x->out, TFT_DCOM, &tfh_digest_comms, x->out.comm, x->out.comms);
}

static bool has_failed(const struct tfh_digest_rank *row)
{
	return row->end && row->code;
}

/* Where a rank was that stopped outside calls. */
static bool is_idle(const struct digest_run *x, uint32_t i, struct tfh_in_flight *out)
{
	const struct tfh_digest_idle *idle = &x->idle[i];

	*out = (struct tfh_in_flight){.fn = "",
				      .detail = "",
				      .process = x->rank[i].host,
				      .thread = idle->thread,
				      .begin_ns = idle->begin,
				      .open_s = (double)(idle->sample - idle->begin) * 1e-9,
				      .look_ns = idle->sample,
				      .place = idle->place,
				      .state = idle->state};
	return idle->sample && (has_failed(&x->rank[i]) || !(x->rank[i].state & TFH_DIGEST_CLOSED));
}

/* Writes the calls that were open at the end. Must also run before `host` becomes a text. */
static int write_opens(struct digest_run *x, const struct tfh_result *r)
{
	const struct tfh_in_flight *open;
	uint32_t n = tfh_run_in_flight(r->run, &open), rows = 0;
	struct tfh_digest_open *row = calloc(TFH_DIGEST_ROWS, sizeof(*row));

	for (uint32_t i = 0; row && i < x->n_rank; i++) {
		struct tfh_in_flight idle;
		bool calls = false;
		for (uint32_t k = 0; k < n && rows < TFH_DIGEST_ROWS; k++) {
			if (open[k].process != x->rank[i].host)
				continue;
			calls = true;
			tfh_digest_fill_open(&x->out, r->run, &open[k], i, &row[rows++]);
		}
		if (calls || rows == TFH_DIGEST_ROWS)
			continue;
		if (is_idle(x, i, &idle))
			tfh_digest_fill_open(&x->out, r->run, &idle, i, &row[rows++]);
		else if (has_failed(&x->rank[i]))
			rows += tfh_digest_fill_seen(&x->out, r->run, x->rank[i].host, &x->idle[i],
						     (int64_t)x->rank[i].heard_ns, &row[rows], i);
	}
	int rc = row ? tfh_digest_put(&x->out, TFT_DOPN, &tfh_digest_opens, row, rows) : -ENOMEM;
	free(row);
	return rc;
}

static void add_place(struct digest_run *x, struct tfh_digest_rank *row,
		      const struct tfh_process *p)
{
	const struct tfh_device_at *at = p->device;

	if (!p->n_device)
		return;
	row->bus = tfh_digest_add_text(&x->out, at->bus);
	row->pcie = tfh_digest_add_text(&x->out, at->pcie);
	row->nic = tfh_digest_add_text(&x->out, at->nic);
	row->fabric = tfh_digest_add_text(&x->out, at->fabric);
	row->links = at->links >= 0 && at->links < 255 ? (uint8_t)(at->links + 1) : 0;
}

static int write_ranks(struct digest_run *x, const struct tfh_result *r)
{
	for (uint32_t i = 0; i < x->n_rank; i++) {
		uint32_t process = x->rank[i].host;
		add_place(x, &x->rank[i], &x->process[process]);
		x->rank[i].host = tfh_digest_add_text(&x->out, x->process[process].host);
		for (uint32_t k = 0; k < r->n_rank; k++) {
			if (r->rank[k].process != process)
				continue;
			x->rank[i].late_s = r->rank[k].late_s;
			x->rank[i].held_s = r->rank[k].held_s;
		}
	}
	return tfh_digest_put(&x->out, TFT_DRNK, &tfh_digest_ranks, x->rank, x->n_rank);
}

/* ---- the file ---- */

static int write_whole(struct digest_run *x, const struct tfh_result *r,
		       const struct tfh_inputs *in)
{
	uint32_t critical = 0;

	while (critical + 1 < x->n_rank && x->rank[critical].host != r->process)
		critical++;
	int rc = write_anchors(x, r);
	if (!rc)
		rc = write_opens(x, r);
	if (!rc)
		rc = write_ranks(x, r);
	if (!rc)
		rc = tfh_digest_put(&x->out, TFT_DGON, &tfh_digest_gones, x->gone, x->n_gone);
	if (!rc)
		rc = tfh_digest_fill(&x->out, r);
	if (!rc)
		rc = tfh_digest_fill_inputs(&x->out, in);
	if (!rc)
		rc = tfh_digest_put_result(&x->out, r);
	/* Written last: only a complete file has facts. */
	return rc ? rc : tfh_digest_fill_facts(&x->out, r, critical);
}

static int begin_file(struct digest_run *x, struct tfh_run *run, int fd)
{
	static const struct tfh_fn_info none = {.name = ""};
	const char *const *argv;
	struct tft_head head = {.rank = -1,
				.world = -1,
				.local_rank = -1,
				.host = tfh_run_host(run),
				.exe = "",
				.boot_id = "",
				.job = "",
				.journal_path = "",
				.tfhook_version = TFHOOK_VERSION,
				.start_realtime_ns = (uint64_t)tfh_run_start_realtime_ns(run),
				.tick_hz = 1000000000,
				.ticks_are_ns = true,
				.fn = &none,
				.fn_count = 1};

	head.command = tfh_run_command(run, &argv) ? argv[0] : "";
	x->n_process = tfh_run_processes(run, &x->process);
	int rc = tfh_generations_find(x->process, x->n_process, &x->generations);
	if (!rc)
		return tft_writer_on(fd, &head, &x->out.w);
	close(fd);
	return rc;
}

int tfh_digest_write(struct tfh_run *run, const struct tfh_inputs *in, int fd, struct tfh_err *err)
{
	struct digest_run x = {.n_rank = 0};
	struct tfh_result *r = NULL;
	int rc = begin_file(&x, run, fd);

	if (rc) {
		tfh_generations_free(&x.generations);
		return tfh_err_set(err, rc, "digest: %s", strerror(-rc));
	}
	rc = tfh_analyze_ranks(run, add_rank, &x, &r, err);
	if (!rc && (rc = write_whole(&x, r, in)))
		tfh_err_set(err, rc, "digest: %s", strerror(-rc));
	int end = tft_writer_finish(x.out.w, !rc);
	if (!rc && (rc = end))
		tfh_err_set(err, rc, "digest: %s", strerror(-rc));
	tfh_result_free(r);
	tfh_digest_out_free(&x.out);
	tfh_generations_free(&x.generations);
	free(x.rank);
	free(x.idle);
	free(x.slow);
	free(x.gone);
	return rc;
}
