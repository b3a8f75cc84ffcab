/*
 * How fast the input pipeline can deliver, from what the run shows (the producer's period of
 * operational bounds). There are three kinds of evidence: a synchronous pipeline works only while
 * it is called; a consumer that waits for one batch after another receives batches as fast as they
 * are made; and if the consumer paused with an empty buffer and then found some batches ready until
 * it had to wait again, the batches made in that time can be counted. Without any of these the rate
 * is unknown.
 */
#include <math.h>
#include <string.h>

#include "judge/predict/predict.h"

/* Get-nexts of the training loop in order of time. `end` marks the first one of an epoch, which
 * waits for a pipeline that starts again. */
struct gets {
	TFH_VEC(struct tfh_boundary) v;
	double usual; /* usual time from batch to batch, ns */
};

/* Whether the loop waited for this batch. */
static bool waited(const struct gets *g, size_t i)
{
	double ns = (double)(g->v.v[i].t1 - g->v.v[i].t0);
	return ns > TFH_PREDICT_WAITED_SHARE * g->usual && ns > (double)TFH_GAP_NS;
}

static int gather(const struct tfh_accounts *accounts, struct gets *g)
{
	uint32_t series = UINT32_MAX;
	double *gap;
	int rc = 0;

	for (size_t i = 0; i < accounts->facts->batch.n && !rc; tfh_big_pass(++i)) {
		struct tfh_boundary t = accounts->facts->batch.v[i];
		if ((int32_t)accounts->loops->group_of[t.series] != accounts->loops->train_group ||
		    t.t1 < accounts->loops->window.v[0].t0)
			continue;
		if (t.end) {
			series = UINT32_MAX;
			continue;
		}
		t.end = t.series != series;
		series = t.series;
		rc = TFH_PUSH_BIG(g->v, t);
	}
	gap = tfh_big_array(g->v.n, sizeof(*gap));
	for (size_t i = 1; gap && i < g->v.n; tfh_big_pass(++i))
		gap[i - 1] = (double)(g->v.v[i].t1 - g->v.v[i - 1].t1);
	g->usual = gap && g->v.n > 1 ? tfh_quantile(gap, g->v.n - 1, 0.5) : 0;
	tfh_big_free(gap);
	return gap ? rc : -ENOMEM;
}

/* The number of steps that stalled (unusual.c): that many of the longest gaps are not the time of a
 * batch. With device times a step is not the time from batch to batch, so gaps are selected by
 * duration. */
static size_t pauses(const struct tfh_accounts *accounts)
{
	size_t n = 0;

	TFH_EACH (i, accounts->loops->window.n)
		n += accounts->use[i].segment == TFH_SEGMENT_STALL;
	return n;
}

/* Mean interval of batches within an epoch that were waited for, many in succession. */
static double starved(const struct tfh_accounts *accounts, const struct gets *g, size_t *count)
{
	double ns = 0;
	size_t n = 0, left = pauses(accounts);

	for (size_t i = 0, j; i < g->v.n; tfh_big_pass(i = j > i ? j : i + 1)) {
		for (j = i; j < g->v.n && waited(g, j) && (j == i || !g->v.v[j].end);)
			tfh_big_pass(++j);
		if (j - i < TFH_PREDICT_WAITED_BATCHES)
			continue;
		for (size_t k = i + 1; k < j; tfh_big_pass(++k)) {
			double gap = (double)tfh_recorded_ns(accounts->facts, g->v.v[k - 1].t1,
							     g->v.v[k].t1);
			if (gap > TFH_PREDICT_PAUSE_STEPS * g->usual && left) {
				left--;
				continue;
			}
			ns += gap;
			n++;
		}
	}
	*count = n;
	return n ? ns / (double)n : NAN;
}

/*
 * Between two batches that were waited for, the buffer was empty at both ends, so the batches
 * between were made in that time, if the producer never had to stop. The period is at most that. In
 * some bursts the buffer was full for a while, which makes their period too long; takes the median
 * over all bursts.
 */
static double bursts(const struct gets *g, uint64_t *depth, size_t *count)
{
	double *v = tfh_big_array(g->v.n, sizeof(*v)), best = NAN;
	size_t last = SIZE_MAX, n = 0;

	TFH_EACH (i, v ? g->v.n : 0) {
		if (g->v.v[i].end)
			last = SIZE_MAX;
		if (!waited(g, i))
			continue;
		size_t ready = last == SIZE_MAX ? 0 : i - last - 1;
		if (ready > *depth)
			*depth = ready;
		if (ready)
			v[n++] = (double)(g->v.v[i].t1 - g->v.v[last].t1) / (double)(i - last);
		last = i;
	}
	*count = n;
	if (v && n >= TFH_PREDICT_FEWEST_BURSTS)
		best = tfh_quantile(v, n, 0.5);
	tfh_big_free(v);
	return best;
}

bool tfh_on_request(const struct tfh_accounts *accounts)
{
	for (size_t i = 0; i < accounts->facts->stage.n; i++)
		if (accounts->facts->stage.v[i].async)
			return false;
	return accounts->facts->stage.n ||
	       (accounts->facts->loader && strstr(accounts->facts->loader, "SingleProcess"));
}

static double mean_get(const struct tfh_accounts *accounts, const struct gets *g)
{
	double ns = 0;
	size_t n = 0, left = pauses(accounts);

	for (size_t i = 1; i < g->v.n; tfh_big_pass(++i)) {
		double get = (double)(g->v.v[i].t1 - g->v.v[i].t0);
		if (get > TFH_PREDICT_PAUSE_STEPS * g->usual && left) {
			left--;
			continue;
		}
		ns += get;
		n++;
	}
	return n ? ns / (double)n : NAN;
}

/* The usual time from one batch to the request for the next. */
static double usual_rest(const struct gets *g)
{
	double *rest = tfh_big_array(g->v.n, sizeof(*rest)), usual = NAN;

	for (size_t i = 1; rest && i < g->v.n; tfh_big_pass(++i))
		rest[i - 1] = (double)(g->v.v[i].t0 - g->v.v[i - 1].t1);
	if (rest && g->v.n > 1)
		usual = tfh_quantile(rest, g->v.n - 1, 0.5);
	tfh_big_free(rest);
	return usual;
}

static void judge(const struct tfh_accounts *accounts, struct tfh_supply *s, struct gets *g)
{
	size_t n = 0;

	if (tfh_on_request(accounts)) {
		double get = mean_get(accounts, g);
		s->period_s = get / 1e9;
		/* Steps are as uneven as batches, so their median is not what all of them need. */
		g->usual = get + usual_rest(g);
		s->basis = TFH_SUPPLY_ON_REQUEST;
		return;
	}
	if (!tfh_input_async(accounts))
		return;
	s->period_s = starved(accounts, g, &n) / 1e9;
	if (n) {
		s->basis = TFH_SUPPLY_WAITED;
		s->seen = n;
		return;
	}
	s->period_s = bursts(g, &s->buffer, &n) / 1e9;
	if (s->period_s > 0) {
		s->basis = TFH_SUPPLY_BURSTS;
		s->seen = n;
	}
}

void tfh_find_supply(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_supply *s = &r->supply;
	struct gets g = {0};

	*s = (struct tfh_supply){.period_s = NAN, .headroom = NAN};
	/* The thread that holds the GIL usually makes the batches; the training loop, which also
	 * needs the GIL, slows it down, so its rate is no capacity. */
	if ((double)accounts->cause_ns[TFH_CAUSE_HOST_GIL] >
	    TFH_BLOCKING_SHARE * (double)accounts->train_ns)
		return;
	/* If one call fetches several batches, they come when the graph requests them, not the
	 * loop. */
	if (accounts->loops->clock == TFH_STEP_CLOCK_ITERATOR && !accounts->loops->grouped &&
	    accounts->loops->window.n && !gather(accounts, &g) &&
	    g.v.n > TFH_PREDICT_WAITED_BATCHES)
		judge(accounts, s, &g);
	if (s->period_s > 0)
		s->headroom = fmax(1, g.usual / 1e9 / s->period_s);
	tfh_big_free(g.v.v);
}
