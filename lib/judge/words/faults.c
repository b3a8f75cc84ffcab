/*
 * Memory that the job gives back to the kernel and takes again, page by page: glibc's arenas do
 * that beside threads that allocate much at a time. Samples count the page faults of the process,
 * and the recorder has measured what one takes at least. That is processor time, of whichever
 * thread; what a step loses by it only a run without it tells.
 */
#include "judge/words/remedy.h"
#include "judge/words/text.h"

/* Of a step; what is less is not worth a line. */
#define WORTH_A_REMARK 0.05
/* Fewer samples, one a second, say nothing. */
#define FEWEST_SAMPLES 2
/* Where so much of the pages stays in use, memory grows and is not taken again. */
#define GROWS 0.5

struct use {
	double wall_s, cost_s, system_s, faults, kept, page;
	uint32_t samples;
};

/* Over the samples that lie between the first step and the last. */
static void add_up(const struct tfh_accounts *accounts, struct use *u)
{
	const struct tfh_sample *s = NULL;
	uint32_t n = accounts->facts->feed->samples
			     ? accounts->facts->feed->samples(accounts->facts->feed->arg,
							      accounts->facts->process, &s)
			     : 0;
	int64_t t0 = accounts->loops->window.v[0].t0,
		t1 = accounts->loops->window.v[accounts->loops->window.n - 1].t1;

	for (uint32_t i = 1; i < n; i++) {
		if (s[i - 1].t < t0 || s[i].t > t1 || s[i].fault_s <= 0)
			continue;
		u->wall_s += (double)(s[i].t - s[i - 1].t) / 1e9;
		u->faults += (double)s[i].faults;
		u->cost_s += (double)s[i].faults * s[i].fault_s;
		u->system_s += s[i].system_s;
		u->kept += (double)s[i].resident_bytes - (double)s[i - 1].resident_bytes;
		u->page = (double)s[i].page_bytes;
		u->samples++;
	}
}

void tfh_tell_faults(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct use u = {0};
	double step_s;

	if (!accounts->loops->window.n || !r->steps.count)
		return;
	step_s = r->steps.total_s / (double)r->steps.count;
	add_up(accounts, &u);
	if (u.system_s < u.cost_s) /* the kernel's clock ticks slowly on some machines */
		u.cost_s = u.system_s;
	if (u.samples < FEWEST_SAMPLES || u.cost_s < WORTH_A_REMARK * u.wall_s ||
	    u.kept > GROWS * u.faults * u.page)
		return;
	tfh_remark(r,
		   tfh_text(accounts->facts->arena,
			    "in a step of %.3g ms the job takes %.0f pages of memory anew from the "
			    "kernel and gives them back, at least %.2g ms of processor time: glibc "
			    "keeps them with MALLOC_TOP_PAD_=64000000 in the environment, or use "
			    "another allocator",
			    step_s * 1e3, u.faults / u.wall_s * step_s,
			    u.cost_s / u.wall_s * step_s * 1e3));
}
