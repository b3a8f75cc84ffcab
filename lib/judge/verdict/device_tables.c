/* The tables that need device times: kernels and their families, the rate of copies, devices, and
 * what is hidden of copies and collectives. */
#include <stdlib.h>

#include "judge/verdict/verdict.h"

void tfh_device_stages(const struct tfh_device *d, struct tfh_result *r)
{
	static const struct {
		enum tfh_stage stage;
		enum tfh_work work;
	} map[] = {{TFH_STAGE_H2D, TFH_W_H2D},
		   {TFH_STAGE_D2H, TFH_W_D2H},
		   {TFH_STAGE_COMMUNICATION, TFH_W_COMM}};
	double steps = tfh_timed_steps(d);

	r->stages[TFH_STAGE_COMMUNICATION].exposed_s =
		r->breakdown[TFH_PART_COMMUNICATION].s_per_step;
	r->stages[TFH_STAGE_COMPUTE].hidden_s = 0;
	for (size_t i = 0; i < sizeof(map) / sizeof(*map); i++) {
		struct tfh_job_stage *s = &r->stages[map[i].stage];
		double busy = (double)d->busy[d->critical][map[i].work] / 1e9 / steps;
		s->hidden_s = busy > s->exposed_s ? busy - s->exposed_s : 0;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct tfh_kernel *x = a, *y = b;
	return x->s_per_step > y->s_per_step ? -1 : x->s_per_step < y->s_per_step;
}

static int by_family_time(const void *a, const void *b)
{
	const struct tfh_family_time *x = a, *y = b;

	return x->s_per_step > y->s_per_step ? -1 : x->s_per_step < y->s_per_step;
}

/* Kernels without a name of their own belong to no family. */
static void fill_families(struct tfh_result *r)
{
	struct tfh_family_time all[TFH_FAMILY_COUNT] = {0};

	for (uint32_t i = 0; i < r->n_kernels; i++) {
		struct tfh_family_time *f = &all[tfh_kernel_family(r->kernels[i].name)];
		f->kernels++;
		f->s_per_step += r->kernels[i].s_per_step;
		f->share_of_busy += r->kernels[i].share_of_busy;
	}
	r->n_families = 0;
	for (int i = 0; i < TFH_FAMILY_COUNT; i++) {
		all[i].family = (enum tfh_kernel_family)i;
		if (all[i].kernels)
			r->families[r->n_families++] = all[i];
	}
	qsort(r->families, r->n_families, sizeof(*r->families), by_family_time);
}

static int by_number(const void *a, const void *b)
{
	const struct tfh_device_time *x = a, *y = b;

	return x->device < y->device ? -1 : x->device > y->device;
}

/* How long each device computes. */
static int fill_devices(const struct tfh_device *d, struct tfh_result *r, double steps)
{
	r->devices =
		tfh_arena_array(d->accounts->facts->arena, d->n_device + 1, sizeof(*r->devices));
	if (!r->devices)
		return -ENOMEM;
	r->n_devices = 0;
	for (uint32_t i = 0; i < d->n_device; i++)
		if (d->busy[i][TFH_W_COMPUTE])
			r->devices[r->n_devices++] = (struct tfh_device_time){
				d->id[i], (double)d->busy[i][TFH_W_COMPUTE] / 1e9 / steps};
	qsort(r->devices, r->n_devices, sizeof(*r->devices), by_number);
	return 0;
}

int tfh_device_tables(const struct tfh_device *d, struct tfh_result *r)
{
	const struct tfh_accounts *accounts = d->accounts;
	double steps = tfh_timed_steps(d);

	for (uint32_t i = 0; i < r->n_transfers; i++) {
		struct tfh_transfer *t = &r->transfers[i];
		if ((unsigned)t->dir < TFH_ACCOUNT_DIRS &&
		    d->copied[t->dir][t->pageable == 1].ns > 0)
			t->bytes_per_s = (double)d->copied[t->dir][t->pageable == 1].bytes * 1e9 /
					 (double)d->copied[t->dir][t->pageable == 1].ns;
	}
	if (fill_devices(d, r, steps))
		return -ENOMEM;
	if (!d->kernel.n)
		return 0;
	r->kernels = tfh_arena_array(accounts->facts->arena, d->kernel.n, sizeof(*r->kernels));
	if (!r->kernels)
		return -ENOMEM;
	r->n_kernels = 0;
	for (size_t i = 0; i < d->kernel.n; i++) {
		const struct tfh_kernel_time *k = &d->kernel.v[i];
		r->kernels[r->n_kernels++] = (struct tfh_kernel){
			.name = *k->name ? k->name : "graph",
			.calls_per_step = (double)k->calls / steps,
			.median_s = tfh_hist_median(&k->hist, k->ns) / 1e9,
			.s_per_step = (double)k->ns / 1e9 / steps,
			.share_of_busy = (double)k->ns / (double)d->compute_ns,
		};
	}
	qsort(r->kernels, r->n_kernels, sizeof(*r->kernels), by_time);
	fill_families(r);
	return 0;
}
