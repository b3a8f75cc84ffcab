/* The made-up job of digests.c: how long every rank works in each step, when its exchanges begin and end, what the clocks of the hosts
 * show, and what each planted defect changes. */
#ifndef TFH_TEST_MADE_JOB_H
#define TFH_TEST_MADE_JOB_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "digest/digest_out.h"

#define RACK 16u     /* hosts */
#define UNIT 32768u  /* ns */
#define COMPUTE 0.36 /* seconds of a step */
#define INPUT 0.006
#define HOST 0.012
#define LAUNCH 0.009
#define TENSOR 0.03
#define DATA 0.045
#define WORLD 0.004
#define WARMUP 10u  /* steps */
#define EVERY 500u  /* steps between checkpoints */
#define TENSORS 64u /* collectives of `tensor` in a step */
#define PROCESSES 2u
#define START 1790000000000000000ull

static const char *const defects[] = {"host",	    "device",  "rail",	"switch",  "loader",
				      "checkpoint", "halfway", "clock", "missing", "hung",
				      "pcie",	    "domain",  "links", "stall",   "jam",
				      "days",	    "version"};
enum defect {
	D_HOST,
	D_DEVICE,
	D_RAIL,
	D_SWITCH,
	D_LOADER,
	D_CHECKPOINT,
	D_HALFWAY,
	D_CLOCK,
	D_MISSING,
	D_HUNG,
	ALL, /* that "all" plants */
	D_PCIE = ALL,
	D_DOMAIN,
	D_LINKS,
	D_STALL,   /* one step of a rank */
	D_JAM,	   /* one exchange of a rank's data group */
	D_DAYS,	   /* a clock that is three days ahead */
	D_VERSION, /* a host with another version of tfhook */
	DEFECTS
};

#define DOMAIN 4u /* hosts of an NVLink domain */
#define BELOW 2u  /* ranks below a PCIe switch */
/* Not among those whose exchanges all digests have anyway. */
#define STALLED (job.steps / 8 * 4 + 1)
#define JAMMED (job.steps / 16 * 4 + 2)

static struct {
	const char *dir;
	uint32_t hosts, per_host, ranks, steps, racks;
	uint64_t seed;
	bool has[DEFECTS];
	uint32_t at[DEFECTS]; /* host, rank, place or rack */
	uint32_t done;	      /* steps that all ranks finished */
	double *enter_world;  /* [steps] when the last rank did */
	double *enter_data;   /* [racks * per_host * steps]: when the last one of these did */
	double *begin;	      /* [steps + 1] */
	struct tfh_slow_steps slow;
} job;

/* ---- what each rank does ---- */

static double drawn(uint64_t what, uint64_t a, uint64_t b)
{
	return (double)(tfh_hash_u64(job.seed ^ tfh_hash_u64(what + 1) ^
				     tfh_hash_u64(a * 0x9e3779b97f4a7c15u + b)) >>
			11) *
	       0x1p-53;
}

static bool hit(enum defect d, uint32_t at)
{
	return job.has[d] && job.at[d] == at;
}

struct work {
	double compute, input, host, launch, checkpoint;
};

static struct work work_of(uint32_t rank, uint32_t step)
{
	uint64_t bits = tfh_hash_u64(job.seed ^ tfh_hash_u64(((uint64_t)rank << 32 | step) + 99));
	double a = (double)(bits & 0xffff) / 65536 - 0.5,
	       b = (double)(bits >> 16 & 0xffff) / 65536 - 0.5,
	       c = (double)(bits >> 32 & 0xffff) / 65536 - 0.5;
	struct work w = {COMPUTE * (1 + 0.01 * a), INPUT * (1 + 0.2 * b), HOST * (1 + 0.1 * c),
			 LAUNCH, 0};

	if (bits >> 48 < 2) /* of 65,536 */
		w.host += 0.3;
	w.host += hit(D_HOST, rank / job.per_host) ? 0.04 : 0;
	w.compute *= hit(D_DEVICE, rank) ? 1.13 : 1;
	w.input += hit(D_LOADER, rank) ? 0.03 : 0;
	w.input += hit(D_STALL, rank) && step == STALLED ? 2 : 0;
	w.compute *= hit(D_HALFWAY, rank) && step >= job.steps / 2 ? 1.15 : 1;
	w.compute *= job.has[D_PCIE] && job.at[D_PCIE] / BELOW == rank / BELOW ? 1.12 : 1;
	w.compute *= hit(D_DOMAIN, rank / job.per_host / DOMAIN) ? 1.1 : 1;
	if (job.has[D_CHECKPOINT] && !rank && step % EVERY == EVERY - 1)
		w.checkpoint = 3;
	return w;
}

static double own(const struct work *w)
{
	return w->compute + w->input + w->host + w->launch + w->checkpoint;
}

static double tensor_s(uint32_t host, uint32_t step)
{
	return TENSOR * (1 + 0.02 * drawn(1, host, step));
}

static double data_s(uint32_t rack, uint32_t place, uint32_t step)
{
	double s = DATA * (1 + 0.04 * drawn(2, rack * 64 + place, step));

	bool jam = job.has[D_JAM] && step == JAMMED &&
		   job.at[D_JAM] / job.per_host / RACK == rack &&
		   job.at[D_JAM] % job.per_host == place;

	return s * (hit(D_RAIL, place) ? 2 : 1) * (hit(D_SWITCH, rack) ? 1.8 : 1) + (jam ? 1.5 : 0);
}

/* When each rank of a host has done its work, and the host's exchange begins; since the step's begin. */
static double work_of_host(uint32_t host, uint32_t step, struct work *w)
{
	double last = 0;

	for (uint32_t i = 0; i < job.per_host; i++) {
		w[i] = work_of(host * job.per_host + i, step);
		last = fmax(last, own(&w[i]));
	}
	return last;
}

static double *data_enters(uint32_t rack, uint32_t place)
{
	return job.enter_data + ((size_t)rack * job.per_host + place) * job.steps;
}

/* The first pass: who is last in every exchange, all ranks considered. */
static void find_last_ranks(void)
{
	struct work w[64];

	job.begin[0] = 20;
	for (uint32_t s = 0; s < job.steps; s++) {
		double last = 0;
		for (uint32_t h = 0; h < job.hosts; h++) {
			double t = work_of_host(h, s, w) + tensor_s(h, s);
			for (uint32_t i = 0; i < job.per_host; i++) {
				double *at = data_enters(h / RACK, i) + s;
				*at = fmax(*at, t);
			}
		}
		for (uint32_t r = 0; r < job.racks; r++)
			for (uint32_t i = 0; i < job.per_host; i++)
				last = fmax(last, data_enters(r, i)[s] + data_s(r, i, s));
		job.enter_world[s] = last;
		job.begin[s + 1] = job.begin[s] + last + WORLD;
		const struct tfh_slow_step step = {s, last, s, s + 1};
		if (s >= WARMUP)
			tfh_slow_steps_add(&job.slow, TFH_SLOW_STEPS, &step);
	}
	tfh_slow_steps_sort(&job.slow);
}

/* ---- one host ---- */

struct host_clock {
	double offset, drift; /* of the host's clock against the true one */
	double began;	      /* true time of the run's start on the host */
};

static struct host_clock clock_of(uint32_t host)
{
	struct host_clock c = {(drawn(3, host, 0) - 0.5) * 2e-3, (drawn(4, host, 0) - 0.5) * 2e-6,
			       1 + drawn(5, host, 0)};

	if (hit(D_CLOCK, host)) {
		c.offset = 3.2;
		c.drift = 40e-6;
	}
	c.offset += hit(D_DAYS, host) ? 3 * 86400 : 0;
	return c;
}

/* ns since the run's start, as the host's clock shows it. */
static uint64_t shown(const struct host_clock *c, double t)
{
	return (uint64_t)llround((t - c->began) * (1 + c->drift) * 1e9);
}

static int64_t units(double s)
{
	return llround(s * 1e9 / UNIT);
}

#endif
