/* Finds the functions in which pauses and waiting calls were spent. */
#include <stdlib.h>
#include <string.h>

#include "judge/account/account.h"

/* The causes that are distinguished. */
enum place_kind { CODE, INPUT, SYNC, ALLOC, COMPILE, SAVE, LOG, IDLE, OTHERS, KINDS };

struct part {
	int64_t ns;
	uint32_t name;
	uint8_t kind; /* enum place_kind */
};

struct tfh_pauses {
	const struct tfh_cover *cover;
	int64_t *site[KINDS]; /* ns by name */
	TFH_VEC(struct part) pending;
};

static enum place_kind kind_of(enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_PYTHON		 ? CODE
	       : cause == TFH_CAUSE_HOST_CODE		 ? CODE
	       : cause == TFH_CAUSE_HOST_SYNC		 ? SYNC
	       : cause == TFH_CAUSE_HOST_ALLOC		 ? ALLOC
	       : cause == TFH_CAUSE_HOST_COMPILE	 ? COMPILE
	       : cause == TFH_CAUSE_HOST_CHECKPOINT	 ? SAVE
	       : cause == TFH_CAUSE_HOST_LOGGING	 ? LOG
	       : cause == TFH_CAUSE_HOST_SLEEP		 ? IDLE
	       : cause == TFH_CAUSE_HOST_LOCK		 ? IDLE
	       : cause == TFH_CAUSE_HOST_WAIT		 ? IDLE
	       : tfh_cause_part(cause) == TFH_PART_INPUT ? INPUT
							 : OTHERS;
}

bool tfh_pauses_know(const struct tfh_pauses *p)
{
	return p && p->cover->python;
}

struct tfh_pauses *tfh_pauses_new(const struct tfh_cover *c)
{
	struct tfh_pauses *p = c ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return NULL;
	p->cover = c;
	for (int i = 0; i < KINDS; i++)
		if (!(p->site[i] = calloc(c->names + 1, sizeof(**p->site)))) {
			tfh_pauses_free(p);
			return NULL;
		}
	return p;
}

void tfh_pauses_free(struct tfh_pauses *p)
{
	if (!p)
		return;
	for (int i = 0; i < KINDS; i++)
		free(p->site[i]);
	free(p->pending.v);
	free(p);
}

void tfh_pauses_count(struct tfh_pauses *p, uint32_t thread, int64_t t0, int64_t t1,
		      enum tfh_cause cause)
{
	const struct tfh_cover *c = p ? p->cover : NULL;
	enum place_kind kind = kind_of(cause);

	if (!c || thread >= c->facts->feed->n_threads || t1 <= t0)
		return;
	for (size_t i = tfh_cover_at(c, thread, t0);
	     i < c->first[thread + 1] && c->part.v[i].t0 < t1; i++) {
		const struct tfh_cover_part *x = &c->part.v[i];
		int64_t a = x->t0 > t0 ? x->t0 : t0, b = x->t1 < t1 ? x->t1 : t1;
		bool pause = kind == CODE || kind == OTHERS; /* and not a call that waits */
		struct part part = {b - a, x->name, (uint8_t)kind};
		if (pause)
			part.kind = (uint8_t)kind_of(tfh_part_cause(c->facts, x, cause));
		if (x->name < c->names && TFH_PUSH(p->pending, part))
			return; /* out of memory: this function's time is not counted */
	}
}

void tfh_pauses_settle(struct tfh_pauses *p, bool counts)
{
	for (size_t i = 0; p && counts && i < p->pending.n; i++) {
		const struct part *x = &p->pending.v[i];
		p->site[x->kind][x->name] += x->ns;
	}
	if (p)
		p->pending.n = 0;
}

void tfh_pauses_add(struct tfh_pauses *p, const struct tfh_pauses *more)
{
	for (uint32_t i = 0; p && more && i < p->cover->names; i++)
		for (int kind = 0; kind < KINDS; kind++)
			p->site[kind][i] += more->site[kind][i];
}

uint32_t tfh_pauses_sites(const struct tfh_accounts *accounts, enum tfh_cause cause,
			  struct tfh_pause_site out[TFH_CODE_FUNCTIONS])
{
	const struct tfh_pauses *p = accounts->pauses;
	const struct tfh_feed *f = accounts->facts->feed;
	const int64_t *site = p ? p->site[kind_of(cause)] : NULL;
	uint32_t top[TFH_CODE_FUNCTIONS] = {0}, n = 0;

	for (uint32_t i = 1; site && i < p->cover->names; i++) {
		uint32_t at = n;
		while (at > 0 && site[i] > site[top[at - 1]])
			at--;
		if (site[i] <= 0 || at >= TFH_CODE_FUNCTIONS)
			continue;
		n += n < TFH_CODE_FUNCTIONS;
		memmove(top + at + 1, top + at, (n - at - 1) * sizeof(*top));
		top[at] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		out[i].ns = site[top[i]];
		out[i].name = f->name(f->arg, accounts->facts->process, TFT_NAME_STRING, top[i],
				      NULL, NULL);
	}
	return n;
}

int64_t tfh_pauses_ns(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	const struct tfh_pauses *p = accounts->pauses;
	int64_t ns = 0;

	for (uint32_t i = 1; p && i < p->cover->names; i++)
		ns += p->site[kind_of(cause)][i];
	return ns;
}
