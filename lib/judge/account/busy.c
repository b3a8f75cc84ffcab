/* What the devices did in training windows: busy time of each engine, kernels by name, how many
 * kernels ran at once, and copies. */
#include <string.h>

#include "base/hash.h"
#include "judge/account/device.h"

static uint64_t blocks(uint64_t grid)
{
	uint64_t x = grid & 0xffffffffu, y = (grid >> 32) & 0xffff, z = grid >> 48;

	return (x ? x : 1) * (y ? y : 1) * (z ? z : 1);
}

/* Index of a kernel's times, TFH_ACCOUNT_KERNELS if there are too many; SIZE_MAX: out of memory. */
static size_t find_kernel(struct tfh_device *d, const char *name)
{
	struct tfh_kernel_time k = {.name = name};
	uint64_t hash = tfh_hash_str(name);
	const uint64_t *known = tfh_map_get(&d->kernel_at, hash);

	if (known || d->kernel.n == TFH_ACCOUNT_KERNELS)
		return known ? *known - 1 : TFH_ACCOUNT_KERNELS;
	uint64_t *at = tfh_map_put(&d->kernel_at, hash, NULL);
	if (!at || TFH_PUSH(d->kernel, k))
		return SIZE_MAX;
	*at = d->kernel.n;
	return *at - 1;
}

static int count_kernel(struct tfh_device *d, const struct tfh_op *op)
{
	struct tfh_near_kernel *near =
		&d->near_kernel[tfh_hash_u64((uintptr_t)op->name) % TFH_ACCOUNT_NEAR_KERNELS];

	if (near->name != op->name) {
		near->at = find_kernel(d, op->name);
		near->name = op->name;
	}
	if (near->at == SIZE_MAX)
		return -ENOMEM;
	if (near->at == TFH_ACCOUNT_KERNELS)
		return 0;
	d->kernel.v[near->at].calls++;
	d->kernel.v[near->at].ns += op->t1 - op->t0;
	tfh_hist_add(&d->kernel.v[near->at].hist, op->t1 - op->t0);
	return 0;
}

/* Counts an op as busy time of its engine. `begin`: when it started its own work; a collective that
 * waits for others keeps no link busy. */
static void count_busy(struct tfh_device *d, uint8_t device, uint8_t work, const struct tfh_op *op,
		       int64_t begin)
{
	int64_t *end = &d->busy_end[device][work];
	int64_t from = begin > *end ? begin : *end;

	if (op->t1 > from) {
		d->busy[device][work] += op->t1 - from;
		*end = op->t1;
	}
}

/* Counts how many kernels a device runs at once. Ops come by start, so all that run at t0 have been
 * counted. */
static void count_side(struct tfh_side *s, int64_t t0, int64_t t1)
{
	int64_t first = t1;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n; i++)
		if (s->end[i] > t0)
			s->end[n++] = s->end[i];
	if (n < TFH_ACCOUNT_SIDE)
		s->end[n++] = t1;
	for (uint32_t i = 0; i < n; i++)
		first = s->end[i] < first ? s->end[i] : first;
	s->n = n;
	s->ns[n] += first - t0;
}

/* Whether an op belongs to training. Ops that a window issues but that run after its end are in the
 * next window; for a checkpoint, those are its copies to the host. */
static bool trains(const struct tfh_device *d, const struct tfh_device_op *x)
{
	const struct tfh_use *use = d->accounts->use;
	size_t w = x->window;

	return use[w].segment == TFH_SEGMENT_TRAIN &&
	       (x->t0 < d->win.v[w].to || w + 1 == d->win.n ||
		use[w + 1].segment != TFH_SEGMENT_CHECKPOINT);
}

int tfh_busy_add(struct tfh_device *d, const struct tfh_op *op, const struct tfh_device_op *x)
{
	struct tfh_lane *l = &d->lane.v[x->lane];
	uint8_t device = x->device, work = x->work;
	int64_t shared = x->shared;

	if (x->window == TFH_NO || !trains(d, x))
		return 0;
	bool waited = shared >= 0 && op->t1 - shared > op->t0;
	count_busy(d, device, work, op, waited ? op->t1 - shared : op->t0);
	if (op->kind == TFH_OP_COPY && op->dir < TFH_ACCOUNT_DIRS) {
		d->copied[op->dir][op->pageable].bytes += op->bytes;
		d->copied[op->dir][op->pageable].ns += op->t1 - op->t0;
		/* Some profilers do not tell a copy's size: it is not known to be small. */
		if (!op->bytes || op->bytes >= TFH_ACCOUNT_SMALL_COPY)
			d->copied[op->dir][op->pageable].large_ns += op->t1 - op->t0;
		else
			d->copied[op->dir][op->pageable].small++;
	}
	if (work != TFH_W_COMPUTE)
		return 0;
	d->compute_ns += op->t1 - op->t0;
	l->mixed |= l->computed && l->thread != x->thread;
	l->thread = x->thread;
	l->computed += op->t1 - op->t0;
	count_side(&d->side[device], op->t0, op->t1);
	/* Kernels that nearly fill the device count as filling it: persistent kernels leave some
	 * multiprocessors to collectives on purpose. */
	uint64_t few = d->gpu.processors ? (d->gpu.processors + TFH_ACCOUNT_FILLED_PART - 1) /
						   TFH_ACCOUNT_FILLED_PART
					 : TFH_ACCOUNT_FEW_BLOCKS;
	if (op->grid && blocks(op->grid) < few)
		d->underfilled += op->t1 - op->t0;
	return count_kernel(d, op);
}
