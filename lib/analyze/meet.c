/*
 * Where ranks meet: collectives of the same communication, matched over the ranks of one host and
 * the devices of a process. All participants of a collective leave it at about the same time, but
 * each begins when it gets there: the shortest participant is the last to come, what it takes is
 * the exchange, and what the others take beyond that is waiting for it (NVIDIA's Megatron-Bridge
 * guide, jitter).
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/device.h"

/* Remembered per participant: 24 bytes each. */
#define MAX_MEETINGS (1u << 20)

struct meeting {
	int64_t t0, t1, shared;
};

struct party {
	uint32_t process, device;
	TFH_VEC(struct meeting) at;
	int64_t late; /* sum over matched collectives of coming after the first */
	uint64_t matched;
};

struct tfh_meet {
	TFH_VEC(struct party) party;
};

static struct party *party_of(struct tfh_meet *m, uint32_t process, uint32_t device)
{
	struct party p = {.process = process, .device = device};

	for (size_t i = 0; i < m->party.n; i++)
		if (m->party.v[i].process == process && m->party.v[i].device == device)
			return &m->party.v[i];
	return TFH_PUSH(m->party, p) ? NULL : &m->party.v[m->party.n - 1];
}

int tfh_meet_add(struct tfh_meet *m, const struct tfh_feed *f, uint32_t process,
		 struct tfh_err *err)
{
	struct tfh_op op;
	int rc = f->rewind_ops ? f->rewind_ops(f->arg, process, err) : -ENODATA;

	if (rc)
		return rc == -ENODATA ? 0 : rc;
	while (!rc && f->next_op(f->arg, &op)) {
		if (tfh_work_of(&op) != TFH_W_COMM)
			continue;
		struct party *p = party_of(m, process, op.device);
		if (!p)
			rc = -ENOMEM;
		else if (p->at.n < MAX_MEETINGS)
			rc = TFH_PUSH(p->at, (struct meeting){op.t0, op.t1, -1});
	}
	return rc ? rc : f->ops_error(f->arg, err);
}

/* Matches what stands at the head of every list; where they do not overlap, what ended first has no
 * counterpart (a drop, a group of fewer ranks) and is passed over. */
static bool match(struct tfh_meet *m, size_t *head)
{
	int64_t begin = INT64_MAX, last_begin = INT64_MIN, end = INT64_MAX, shared = INT64_MAX;
	size_t first = 0;

	for (size_t i = 0; i < m->party.n; i++) {
		const struct party *p = &m->party.v[i];
		if (head[i] == p->at.n)
			return false;
		const struct meeting *x = &p->at.v[head[i]];
		begin = x->t0 < begin ? x->t0 : begin;
		last_begin = x->t0 > last_begin ? x->t0 : last_begin;
		if (x->t1 < end) {
			end = x->t1;
			first = i;
		}
		shared = x->t1 - x->t0 < shared ? x->t1 - x->t0 : shared;
	}
	if (last_begin >= end) {
		head[first]++;
		return true;
	}
	for (size_t i = 0; i < m->party.n; i++) {
		struct party *p = &m->party.v[i];
		struct meeting *x = &p->at.v[head[i]++];
		x->shared = shared;
		p->late += x->t0 - begin;
		p->matched++;
	}
	return true;
}

int tfh_meet_match(struct tfh_meet *m)
{
	size_t *head;

	if (m->party.n < 2)
		return 0;
	head = calloc(m->party.n, sizeof(*head));
	if (!head)
		return -ENOMEM;
	while (match(m, head))
		;
	free(head);
	return 0;
}

struct tfh_meet *tfh_meet_new(void)
{
	return calloc(1, sizeof(struct tfh_meet));
}

void tfh_meet_free(struct tfh_meet *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->party.n; i++)
		free(m->party.v[i].at.v);
	free(m->party.v);
	free(m);
}

/* How long the shortest participant of the n-th collective took, -1 unknown. */
int64_t tfh_meet_shared(const struct tfh_meet *m, uint32_t process, uint32_t device, uint64_t n)
{
	for (size_t i = 0; m && i < m->party.n; i++)
		if (m->party.v[i].process == process && m->party.v[i].device == device)
			return n < m->party.v[i].at.n ? m->party.v[i].at.v[n].shared : -1;
	return -1;
}

/* Mean nanoseconds by which a process comes to its collectives after the first one there. */
double tfh_meet_late(const struct tfh_meet *m, uint32_t process)
{
	double late = 0;

	for (size_t i = 0; m && i < m->party.n; i++) {
		const struct party *p = &m->party.v[i];
		if (p->process == process && p->matched &&
		    (double)p->late / (double)p->matched > late)
			late = (double)p->late / (double)p->matched;
	}
	return late;
}
