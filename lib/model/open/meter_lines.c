/* Collects readings of the machine's meters into lines of bounded length. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/meters.h"
#include "format/sample.h"

#include "model/open/opening.h"

#define LONGEST_NS 4e18 /* 126 years, ns: a limit, since a file may hold any number */

/* The previous reading of a row, from which rates are computed. */
struct tfh_meter_before {
	int64_t t;
	uint64_t value[2];
	bool seen;
};

/* The row and the device that an entry is about; -1 if unknown. */
static int find_meter(uint32_t number, int *device)
{
	*device = -1;
	if ((number & 0xFFFF) >= TFH_METER_OF_DEVICE) {
		*device = (int)(number >> 16);
		number &= 0xFFFF;
	}
	if (*device >= TFH_METER_DEVICES)
		return -1;
	for (int i = 0; i < TFH_METER_COUNT; i++)
		if (tfh_meters[i].number == number)
			return i;
	return -1;
}

static struct tfh_meter_line *line_of(struct tfh_model_proc *p, enum tfh_meter meter, int device,
				      uint32_t value)
{
	struct tfh_meter_line *l;

	for (uint32_t i = 0; i < p->n_meter; i++)
		if (p->meter[i].meter == meter && p->meter[i].device == device &&
		    p->meter[i].value == value)
			return &p->meter[i];
	if (tfh_room_for((void **)&p->meter, &p->cap_meter, p->n_meter, sizeof(*p->meter)))
		return NULL;
	l = &p->meter[p->n_meter++];
	*l = (struct tfh_meter_line){.meter = meter,
				     .value = value,
				     .device = device,
				     .least = INFINITY,
				     .most = -INFINITY};
	return l;
}

/* Doubles the width of a line's points: two neighbours become their mean. */
static void widen(struct tfh_meter_line *l)
{
	for (uint32_t i = 0; i < l->n; i += 2) {
		float a = l->point[i], b = i + 1 < l->n ? l->point[i + 1] : NAN;
		l->point[i / 2] = isnan(a) ? b : isnan(b) ? a : (a + b) / 2;
	}
	l->n = (l->n + 1) / 2;
	l->width_ns *= 2;
}

/* Adds a value that was valid from t0 to t1. */
static int add(struct tfh_meter_line *l, int64_t t0, int64_t t1, double v)
{
	double s = ((double)t1 - (double)t0) / 1e9;

	if ((double)t1 - (double)(l->n ? l->t0 : t0) > LONGEST_NS)
		return 0;
	if (!l->n) {
		l->t0 = t0;
		l->width_ns = t1 - t0;
	}
	while ((t1 - l->t0 - 1) / l->width_ns >= TFH_METER_POINTS)
		widen(l);
	uint32_t from = (uint32_t)((t0 - l->t0) / l->width_ns);
	uint32_t last = (uint32_t)((t1 - l->t0 - 1) / l->width_ns);
	while (l->n <= last) {
		if (tfh_room_for((void **)&l->point, &l->cap, l->n, sizeof(*l->point)))
			return -ENOMEM;
		l->point[l->n++] = NAN;
	}
	/* Of several readings in one point, a later one weighs as much as all earlier ones
	 * together. The points are only drawn; nothing is decided by them. */
	for (uint32_t i = from; i <= last; i++)
		l->point[i] = isnan(l->point[i]) ? (float)v : (l->point[i] + (float)v) / 2;
	l->time_s += s;
	l->mean += (v - l->mean) * s / l->time_s;
	l->least = fmin(l->least, v);
	l->most = fmax(l->most, v);
	return 0;
}

int tfh_run_add_reading(struct tfh_model_proc *p, int64_t t, const struct tft_sample_thread *entry)
{
	int device, meter = find_meter(entry->tid, &device), rc = 0;
	uint64_t now[2] = {entry->run_ns, entry->delay_ns};
	struct tfh_meter_before *before;

	if (meter < 0)
		return 0;
	if (!p->meter_before &&
	    !(p->meter_before =
		      calloc((size_t)TFH_METER_COUNT * (TFH_METER_DEVICES + 1), sizeof(*before))))
		return -ENOMEM;
	before = &p->meter_before[meter + TFH_METER_COUNT * (device + 1)];
	for (uint32_t i = 0; i < 2 && !rc && before->seen && t > before->t; i++) {
		double v = (double)now[i] * tfh_meters[meter].value[i].scale;
		struct tfh_meter_line *l;
		if (now[i] == UINT64_MAX)
			continue;
		if (tfh_meters[meter].kind == TFH_METER_RATE) {
			/* A counter that decreased was reset, or belongs to another container. */
			if (before->value[i] == UINT64_MAX || now[i] < before->value[i])
				continue;
			v = (double)(now[i] - before->value[i]) * tfh_meters[meter].value[i].scale /
			    (((double)t - (double)before->t) / 1e9);
		}
		l = line_of(p, (enum tfh_meter)meter, device, i);
		rc = l ? add(l, before->t, t, v) : -ENOMEM;
	}
	if (t > before->t || !before->seen)
		*before = (struct tfh_meter_before){t, {now[0], now[1]}, true};
	return rc;
}

static int by_table(const void *a, const void *b)
{
	const struct tfh_meter_line *x = a, *y = b;

	if (x->device != y->device)
		return (x->device > y->device) - (x->device < y->device);
	return x->meter != y->meter ? (x->meter > y->meter) - (x->meter < y->meter)
				    : (x->value > y->value) - (x->value < y->value);
}

void tfh_run_sort_meters(struct tfh_model_proc *p)
{
	if (p->n_meter)
		qsort(p->meter, p->n_meter, sizeof(*p->meter), by_table);
}

void tfh_run_free_meters(struct tfh_model_proc *p)
{
	for (uint32_t i = 0; i < p->n_meter; i++)
		free(p->meter[i].point);
	free(p->meter);
	free(p->meter_before);
}
