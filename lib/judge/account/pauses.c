/* Finds the functions in which pauses and waiting calls were spent. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
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
	/* By name: the windows in which it has time, and the number of the last one, from 1. */
	struct in_windows {
		uint64_t n, last;
	} * in;
	uint64_t windows;
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
	if (!(p->in = calloc(c->names + 1, sizeof(*p->in)))) {
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
	free(p->in);
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
	if (!p)
		return;
	p->windows += counts;
	for (size_t i = 0; counts && i < p->pending.n; i++) {
		const struct part *x = &p->pending.v[i];
		struct in_windows *in = &p->in[x->name];
		p->site[x->kind][x->name] += x->ns;
		in->n += in->last != p->windows;
		in->last = p->windows;
	}
	p->pending.n = 0;
}

void tfh_pauses_add(struct tfh_pauses *p, const struct tfh_pauses *more)
{
	for (uint32_t i = 0; p && more && i < p->cover->names; i++) {
		for (int kind = 0; kind < KINDS; kind++)
			p->site[kind][i] += more->site[kind][i];
		p->in[i].n += more->in[i].n;
	}
	if (p && more)
		p->windows += more->windows;
}

/* A name, or several that differ only in the number at their end. */
struct name_time {
	const char *text;
	size_t base; /* bytes of the text without its number */
	int64_t ns;
	uint64_t windows; /* sum over the names */
};

static int by_base(const void *a, const void *b)
{
	const struct name_time *x = a, *y = b;
	size_t least = x->base < y->base ? x->base : y->base;
	int order = memcmp(x->text, y->text, least);

	return order ? order : (x->base > y->base) - (x->base < y->base);
}

static int by_time(const void *a, const void *b)
{
	const struct name_time *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : strcmp(x->text, y->text);
}

/* The names with time, in any order; NULL: none, or no memory. */
static struct name_time *name_times(const struct tfh_accounts *accounts, const int64_t *site,
				    size_t *n)
{
	const struct tfh_feed *f = accounts->facts->feed;
	const uint32_t names = accounts->pauses->cover->names;
	struct name_time *v = calloc(names + 1u, sizeof(*v));

	*n = 0;
	for (uint32_t i = 1; v && i < names; i++) {
		if (site[i] <= 0)
			continue;
		const char *text =
			f->name(f->arg, accounts->facts->process, TFT_NAME_STRING, i, NULL, NULL);
		if (text)
			v[(*n)++] = (struct name_time){text, tfh_unnumbered(text, strlen(text)),
						       site[i], accounts->pauses->in[i].n};
	}
	return v;
}

/* Ranges that the program numbers by its steps ("load batch 17") are one place: no two of them are
 * in the same window. Other names that are alike ("conv1", "conv2") are different places. Returns
 * the new number of names. */
static size_t join_numbered(const struct tfh_accounts *accounts, struct name_time *v, size_t n)
{
	size_t kept = 0;

	qsort(v, n, sizeof(*v), by_base);
	for (size_t i = 0, end; i < n; i = end) {
		struct name_time all = {v[i].text, v[i].base, 0, 0};
		for (end = i; end < n && !by_base(&v[i], &v[end]); end++) {
			all.ns += v[end].ns;
			all.windows += v[end].windows;
		}
		while (all.base && strchr(" #_-:", all.text[all.base - 1]))
			all.base--;
		if (end - i > 1 && all.base && all.windows <= accounts->pauses->windows) {
			all.text = tfh_arena_text(accounts->facts->arena, "%.*s", (int)all.base,
						  all.text);
			v[kept++] = all;
			continue;
		}
		memmove(v + kept, v + i, (end - i) * sizeof(*v));
		kept += end - i;
	}
	return kept;
}

uint32_t tfh_pauses_sites(const struct tfh_accounts *accounts, enum tfh_cause cause,
			  struct tfh_pause_site out[TFH_CODE_FUNCTIONS])
{
	const struct tfh_pauses *p = accounts->pauses;
	size_t all = 0;
	struct name_time *v = p ? name_times(accounts, p->site[kind_of(cause)], &all) : NULL;
	uint32_t n = 0;

	if (v) {
		all = join_numbered(accounts, v, all);
		qsort(v, all, sizeof(*v), by_time);
	}
	for (; n < all && n < TFH_CODE_FUNCTIONS; n++)
		out[n] = (struct tfh_pause_site){v[n].text, v[n].ns};
	free(v);
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
