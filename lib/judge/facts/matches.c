/*
 * Matches collectives over the ranks of one host and the devices of one process. All participants
 * of a collective end at about the same time, but each begins when its device gets there. The
 * shortest participant is the last to arrive: its duration is the exchange, and the time by which
 * the others exceed it is their wait for it (NVIDIA's Megatron-Bridge guide, jitter).
 *
 * If NCCL's calls were recorded, they show which kernels belong to one collective. Other
 * collectives (in graphs, or of a library with its own NCCL) are matched by their order. So are
 * those of a job on the CPU (gloo, MPI), by the ranges that PyTorch names after them.
 */
#include <stdlib.h>
#include <string.h>

#include "judge/facts/matches.h"
#include "judge/stats.h"
#include "base/hash.h"
#include "model/ops/collectives.h"

#define HOST UINT32_MAX /* instead of a device: exchanges of a job on the CPU */

struct party {
	uint32_t process, device;
	TFH_VEC(struct tfh_collective) at;
	/* Sum over matched collectives: how long after the first participant it arrived. */
	int64_t late;
	int64_t held; /* and, if it was the last, how long after the second-last */
	uint64_t matched;
	/* Over all matched ones, also the first: their number, and how long after the first
	 * participant it ended. */
	uint64_t shared;
	int64_t spread;
};

struct tfh_matches {
	TFH_VEC(struct party) party;
};

static struct party *party_of(struct tfh_matches *m, uint32_t process, uint32_t device)
{
	struct party p = {.process = process, .device = device};

	for (size_t i = 0; i < m->party.n; i++)
		if (m->party.v[i].process == process && m->party.v[i].device == device)
			return &m->party.v[i];
	return TFH_PUSH(m->party, p) ? NULL : &m->party.v[m->party.n - 1];
}

/* Reads the NCCL calls of a process. */
static int read_calls(struct tfh_collectives *c, const struct tfh_feed *f, uint32_t process,
		      struct tfh_err *err)
{
	struct tfh_event ev;
	int rc = f->rewind(f->arg, process, err);

	while (!rc && f->next(f->arg, &ev))
		rc = tfh_collectives_add(c, &ev);
	return rc ? rc : f->error(f->arg, err);
}

/* Finds the collective of each kernel by those calls. */
static void name_sets(struct tfh_matches *m, struct tfh_collectives *c, uint32_t process)
{
	for (size_t i = 0; i < m->party.n; i++) {
		struct party *p = &m->party.v[i];
		uint64_t last = 0, nth = 0;
		for (size_t k = 0; k < p->at.n && p->process == process; k++) {
			struct tfh_collective *x = &p->at.v[k];
			uint64_t id = tfh_collective_at(c, (uint32_t)x->set, x->shared);
			/* A group may have been launched as several kernels. */
			nth = id == last ? nth + 1 : 0;
			last = id;
			x->set = id ? tfh_hash_add(id, nth) | 1 : 0;
			x->shared = -1;
		}
	}
}

static int read_ops(struct tfh_matches *m, const struct tfh_feed *f, uint32_t process,
		    struct tfh_err *err)
{
	struct tfh_op op;
	int rc = f->rewind_ops(f->arg, process, err);

	while (!rc && f->next_op(f->arg, &op)) {
		if (tfh_work_of(&op) != TFH_W_COMM)
			continue;
		struct party *p = party_of(m, process, op.device);
		if (!p)
			rc = -ENOMEM;
		else if (p->at.n < TFH_FACTS_COLLECTIVES)
			rc = TFH_PUSH_BIG(p->at, ((struct tfh_collective){.t0 = op.t0,
									  .t1 = op.t1,
									  .shared = op.issue0,
									  .set = op.thread}));
	}
	return rc ? rc : f->ops_error(f->arg, err);
}

/* Messages from one rank to another have no counterpart in the others. */
static bool is_message(const struct tfh_feed *f, const struct tfh_event *ev)
{
	const char *s =
		f->name(f->arg, ev->process, TFT_NAME_STRING, (uint32_t)ev->w[0], NULL, NULL);

	return s && (strstr(s, ":send") || strstr(s, ":recv"));
}

static int by_begin(const void *a, const void *b, void *arg)
{
	const struct tfh_collective *x = a, *y = b;

	(void)arg;
	return x->t0 != y->t0 ? (x->t0 < y->t0 ? -1 : 1) : 0;
}

/* Reads the exchanges of a process on the CPU. */
static int read_exchanges(struct tfh_matches *m, const struct tfh_feed *f, uint32_t process,
			  struct tfh_err *err)
{
	struct party *p = NULL;
	struct tfh_event ev;
	int rc = f->rewind(f->arg, process, err);

	while (!rc && f->next(f->arg, &ev)) {
		if (ev.kind != TFT_RANGE || ev.w[1] != TFT_RANGE_EXCHANGE)
			continue;
		p = p ? p : party_of(m, process, HOST);
		if (!p)
			rc = -ENOMEM;
		else if (p->at.n < TFH_FACTS_COLLECTIVES)
			rc = TFH_PUSH_BIG(p->at,
					  ((struct tfh_collective){.t0 = ev.t0,
								   .t1 = ev.t1,
								   .shared = -1,
								   .set = is_message(f, &ev)}));
	}
	if (p && p->at.n)
		tfh_sort(p->at.v, p->at.n, sizeof(*p->at.v), by_begin, NULL);
	return rc ? rc : f->error(f->arg, err);
}

/* Whether there can be a counterpart: not for collectives of the only device of a single
 * process. */
static bool can_match(const struct tfh_feed *f, uint32_t process, bool alone)
{
	struct tfh_gpu_info gpu = {.source = TFH_GPU_NONE};

	if (!f->rewind_ops)
		return false;
	if (f->gpu)
		f->gpu(f->arg, process, &gpu);
	if (f->gpu && gpu.source == TFH_GPU_NONE)
		return false;
	return !gpu.devices || (gpu.collectives && !(alone && gpu.devices == 1));
}

int tfh_matches_add(struct tfh_matches *m, const struct tfh_feed *f, uint32_t process, bool alone,
		    struct tfh_err *err)
{
	if (f->processes[process].torch && !f->processes[process].has_gpu && !f->imported)
		return read_exchanges(m, f, process, err);
	if (!can_match(f, process, alone))
		return 0;
	struct tfh_collectives *c = tfh_collectives_new();
	/* Calls are read first: during that pass, ops are joined with their calls. */
	int rc = c ? read_calls(c, f, process, err) : -ENOMEM;
	if (!rc)
		rc = read_ops(m, f, process, err);
	if (!rc)
		name_sets(m, c, process);
	tfh_collectives_free(c);
	return rc == -ENODATA ? 0 : rc;
}

/* ---- matching by NCCL's calls ---- */

struct named {
	uint64_t set;
	uint32_t party;
	uint32_t at;
};

static int by_set(const void *a, const void *b, void *arg)
{
	const struct named *x = a, *y = b;

	(void)arg;
	return x->set < y->set ? -1 : x->set > y->set;
}

/* The participants of a collective seen so far. */
struct arrivals {
	int64_t first, before_last, last; /* times of begin */
	int64_t end, shared;		  /* end: the first one; shared: the shortest duration */
};

#define NOBODY                                                                                     \
	{                                                                                          \
		INT64_MAX, INT64_MIN, INT64_MIN, INT64_MAX, INT64_MAX                              \
	}

static void arrive(struct arrivals *a, const struct tfh_collective *x)
{
	a->first = x->t0 < a->first ? x->t0 : a->first;
	if (x->t0 > a->last) {
		a->before_last = a->last;
		a->last = x->t0;
	} else if (x->t0 > a->before_last) {
		a->before_last = x->t0;
	}
	a->end = x->t1 < a->end ? x->t1 : a->end;
	a->shared = x->t1 - x->t0 < a->shared ? x->t1 - x->t0 : a->shared;
}

static void settle(const struct arrivals *a, struct party *p, struct tfh_collective *x)
{
	x->shared = a->shared;
	x->alone = x->t0 == a->last && a->before_last > INT64_MIN ? a->last - a->before_last : 0;
	p->shared++;
	p->spread += x->t1 - a->end;
	/* Ranks start at different times, and the first one may wait for seconds: leaves out as
	 * many collectives as there may be warm-up steps. */
	size_t cold = p->at.n / TFH_WARMUP_PART;
	if (!cold && p->at.n > TFH_FACTS_COLD_FEWEST)
		cold = 1;
	if (x < p->at.v + cold)
		return;
	p->late += x->t0 - a->first;
	p->held += x->alone;
	p->matched++;
}

static void match_one(struct tfh_matches *m, const struct named *v, size_t n)
{
	struct arrivals a = NOBODY;

	for (size_t i = 0; i < n; i++)
		arrive(&a, &m->party.v[v[i].party].at.v[v[i].at]);
	for (size_t i = 0; i < n && n > 1; i++) {
		struct party *p = &m->party.v[v[i].party];
		settle(&a, p, &p->at.v[v[i].at]);
	}
}

static int match_named(struct tfh_matches *m)
{
	TFH_VEC(struct named) v = {0};
	int rc = 0;

	for (size_t i = 0; i < m->party.n; i++)
		for (size_t k = 0; k < m->party.v[i].at.n && !rc && m->party.v[i].device != HOST;
		     k++) {
			uint64_t set = m->party.v[i].at.v[k].set;
			if (set)
				rc = TFH_PUSH_BIG(v, (struct named){set, (uint32_t)i, (uint32_t)k});
		}
	if (!rc && v.n)
		tfh_sort(v.v, v.n, sizeof(*v.v), by_set, NULL);
	for (size_t i = 0, end; i < v.n && !rc; i = end) {
		for (end = i; end < v.n && v.v[end].set == v.v[i].set;)
			end++;
		match_one(m, v.v + i, end - i);
	}
	tfh_big_free(v.v);
	return rc;
}

/* ---- matching by order ---- */

/* Matches the first collective of every list. If they do not overlap in time, the one that ended
 * first has no counterpart (a lost record, or a group of fewer ranks) and is skipped. */
static bool match(struct tfh_matches *m, size_t *head, bool host)
{
	struct arrivals a = NOBODY;
	size_t first = 0;

	for (size_t i = 0; i < m->party.n; i++) {
		const struct party *p = &m->party.v[i];
		if ((p->device == HOST) != host)
			continue;
		while (head[i] < p->at.n && p->at.v[head[i]].set)
			head[i]++;
		if (head[i] == p->at.n)
			return false;
		const struct tfh_collective *x = &p->at.v[head[i]];
		if (x->t1 < a.end)
			first = i;
		arrive(&a, x);
	}
	if (a.last >= a.end) {
		head[first]++;
		return true;
	}
	for (size_t i = 0; i < m->party.n; i++) {
		struct party *p = &m->party.v[i];
		if ((p->device == HOST) == host)
			settle(&a, p, &p->at.v[head[i]++]);
	}
	return a.end != INT64_MAX;
}

int tfh_matches_find(struct tfh_matches *m)
{
	size_t *head;
	int rc;

	if (m->party.n < 2)
		return 0;
	head = calloc(m->party.n, sizeof(*head));
	rc = head ? match_named(m) : -ENOMEM;
	if (rc) {
		free(head);
		return rc;
	}
	while (match(m, head, false) || match(m, head, true))
		;
	free(head);
	return 0;
}

struct tfh_matches *tfh_matches_new(void)
{
	return calloc(1, sizeof(struct tfh_matches));
}

void tfh_matches_free(struct tfh_matches *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->party.n; i++)
		tfh_big_free(m->party.v[i].at.v);
	free(m->party.v);
	free(m);
}

/* Duration of the shortest participant of a device's n-th collective, ns; -1 unknown. */
int64_t tfh_matches_shared(const struct tfh_matches *m, uint32_t process, uint32_t device,
			   uint64_t n)
{
	for (size_t i = 0; m && i < m->party.n; i++)
		if (m->party.v[i].process == process && m->party.v[i].device == device)
			return n < m->party.v[i].at.n ? m->party.v[i].at.v[n].shared : -1;
	return -1;
}

const struct tfh_collective *tfh_matches_exchanges(const struct tfh_matches *m, uint32_t process,
						   size_t *n)
{
	for (size_t i = 0; m && i < m->party.n; i++)
		if (m->party.v[i].process == process && m->party.v[i].device == HOST) {
			*n = m->party.v[i].at.n;
			return m->party.v[i].at.v;
		}
	*n = 0;
	return NULL;
}

static double mean_of(const struct tfh_matches *m, uint32_t process, bool held)
{
	double most = 0;

	for (size_t i = 0; m && i < m->party.n; i++) {
		const struct party *p = &m->party.v[i];
		double sum = (double)(held ? p->held : p->late);
		if (p->process == process && p->matched && sum / (double)p->matched > most)
			most = sum / (double)p->matched;
	}
	return most;
}

/* How long a process arrives after the first participant, mean over its collectives, ns. */
double tfh_matches_late(const struct tfh_matches *m, uint32_t process)
{
	return mean_of(m, process, false);
}

/* How long all others waited for this process alone, mean over its collectives, ns. */
double tfh_matches_held(const struct tfh_matches *m, uint32_t process)
{
	return mean_of(m, process, true);
}

static const struct party *on_host(const struct tfh_matches *m, uint32_t process)
{
	for (size_t i = 0; i < m->party.n; i++)
		if (m->party.v[i].process == process && m->party.v[i].device == HOST)
			return &m->party.v[i];
	return NULL;
}

bool tfh_matches_all(const struct tfh_matches *m, uint32_t process)
{
	const struct party *p = on_host(m, process);
	uint64_t n = 0;

	for (size_t i = 0; p && i < p->at.n; i++)
		n += !p->at.v[i].set;
	if (n < TFH_FACTS_SHARED_EXCHANGES)
		return false;
	double span = (double)(p->at.v[p->at.n - 1].t1 - p->at.v[0].t0);

	return (double)p->shared >= TFH_CYCLE_SURE_SHARE * (double)n &&
	       (double)p->spread <= TFH_FACTS_EXCHANGE_SPREAD * span;
}
