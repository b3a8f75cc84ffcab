/*
 * Which iterator is the training loop's. Every epoch has new iterator objects, so they are first
 * grouped by the function that their batches feed and by their pipeline. The group that owns most
 * time, from a batch to the next batch of any group, is the training loop: a run spends most of its
 * time on its purpose.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "judge/loops/step_clock.h"
#include "judge/stats.h"

/* The usual time of a function's execution. The first one traces and compiles it. */
static double usual_ns(const struct tfh_facts *facts, uint32_t name)
{
	const struct tfh_tag *tag = &facts->tag.v[facts->tag_of.v[name]];

	return tag->count > 1 ? (double)(tag->ns - tag->first_ns) / (double)(tag->count - 1)
			      : (double)tag->ns;
}

/* The function with the most time after this iterator's batches: its name without the number at its
 * end. A function that ran once while others ran several times is not what batches go to: it sets
 * up what comes next, and its time is that of tracing it. */
static const char *tag_text(const struct tfh_facts *facts, const struct tfh_series *s,
			    uint32_t *name)
{
	double most = 0, ns;
	bool several = false;

	*name = 0;
	for (size_t i = 0; i < TFH_FACTS_SERIES_TAGS; i++)
		several |= s->tag[i].ns && s->tag[i].calls > 1;
	for (size_t i = 0; i < TFH_FACTS_SERIES_TAGS; i++) {
		if (!s->tag[i].ns || (several && s->tag[i].calls <= 1))
			continue;
		ns = s->tag[i].calls * usual_ns(facts, s->tag[i].name);
		*name = ns > most ? s->tag[i].name : *name;
		most = fmax(most, ns);
	}
	return *name ? facts->feed->name(facts->feed->arg, facts->process, TFT_NAME_OP, *name, NULL,
					 NULL)
		     : "";
}

static size_t base_length(const char *text)
{
	return tfh_unnumbered(text, strlen(text));
}

/* Signature of the pipeline below a root: the count of each stage type. Only ids below this root
 * count, which are those between this root's and the next root's, as a new iterator gets new stage
 * names. */
static uint64_t pipeline_key(const struct tfh_facts *facts, const struct tfh_series *s)
{
	uint64_t key = s->loop | (uint64_t)s->tests << 1 | (uint64_t)s->skipped << 2;
	uint32_t id = s->stage;

	if (!id || s->loop)
		return key;
	for (uint32_t i = id; i < id + TFH_LOOPS_PIPELINE_IDS && i < facts->stage_of.n; i++) {
		int32_t at = facts->stage_of.v[i];
		if (at < 0)
			continue;
		/* The next iterator's root has the same short path. */
		if (i > id && facts->stage_of.v[id] == at)
			break;
		key += tfh_hash_str(facts->stage.v[at].prefix);
	}
	return key;
}

static uint32_t find_group(struct tfh_loops *loops, uint64_t key, uint64_t like, const char *tag,
			   uint32_t series)
{
	struct tfh_group g = {.key = key, .like = like, .tag = tag, .series = series};

	for (size_t i = 0; i < loops->group.n; i++)
		if (loops->group.v[i].key == key)
			return (uint32_t)i;
	return TFH_PUSH(loops->group, g) ? 0 : (uint32_t)loops->group.n - 1;
}

static void make_groups(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	for (size_t i = 0; i < facts->series.n; i++) {
		const struct tfh_series *s = &facts->series.v[i];
		uint32_t name;
		const char *tag = tag_text(facts, s, &name);
		uint64_t key =
			tfh_hash_add(tfh_hash_bytes(tag, base_length(tag)), pipeline_key(facts, s));

		loops->group_of[i] = find_group(loops, key, key, tag, (uint32_t)i);
	}
}

/* Keras gives its train and its test function the same name except for the number at its end. An
 * iterator that always feeds another number feeds another function, not a retraced one. */
static void split_by_number(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	for (size_t i = 0; i < facts->series.n; i++) {
		const struct tfh_series *s = &facts->series.v[i];
		struct tfh_group *g = &loops->group.v[loops->group_of[i]];
		uint32_t name, first;

		tag_text(facts, s, &name);
		tag_text(facts, &facts->series.v[g->series], &first);
		/* Keras names no other function like the one that predicts: it is that one for
		 * another shape. */
		if (name && first && name != first &&
		    tfh_role_of_name(g->tag) != TFH_BRANCH_PREDICT)
			loops->group_of[i] = find_group(loops, tfh_hash_add(g->key, name), g->like,
							g->tag, (uint32_t)i);
	}
}

/* The first and last batch of a series. */
struct reach {
	size_t first, last;
	uint32_t series, group;
};

static int by_first(const void *a, const void *b, void *arg)
{
	const struct reach *x = a, *y = b;

	(void)arg;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->first != y->first ? (x->first < y->first ? -1 : 1) : 0;
}

/*
 * A new epoch's iterator follows the old one. Similar iterators that alternate are several data
 * sets of one step, or one per replica: each gets a group of its own, the same one in every epoch.
 * (Greedy colouring of intervals by their begin.)
 */
static void split_by_turns(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	size_t n = facts->series.n, last[TFH_LOOPS_TURN_SLOTS];
	struct reach *r = tfh_big_array(n, sizeof(*r));
	uint32_t used = 0, group = UINT32_MAX;

	for (uint32_t i = 0; r && i < n; i++)
		r[i] = (struct reach){SIZE_MAX, 0, i, loops->group_of[i]};
	TFH_EACH (i, r ? facts->batch.n : 0) {
		struct reach *x = &r[facts->batch.v[i].series];
		x->first = i < x->first ? i : x->first;
		x->last = i;
	}
	if (r)
		tfh_sort(r, n, sizeof(*r), by_first, NULL);
	for (size_t i = 0; r && i < n; i++) {
		uint32_t slot = 0;
		if (r[i].first == SIZE_MAX)
			continue;
		if (r[i].group != group)
			used = 0;
		group = r[i].group;
		while (slot < used && slot < TFH_LOOPS_TURN_SLOTS - 1 &&
		       last[slot] >= r[i].first + TFH_LOOPS_TURN_TICKS)
			slot++;
		if (slot == used || last[slot] < r[i].last)
			last[slot] = r[i].last;
		used = slot == used ? used + 1 : used;
		const struct tfh_group *g = &loops->group.v[r[i].group];
		if (slot)
			loops->group_of[r[i].series] = find_group(loops, tfh_hash_add(g->key, slot),
								  g->key, g->tag, r[i].series);
	}
	tfh_big_free(r);
}

/* The time after a batch belongs to its loop, except after the last batch of an iterator: the
 * program may do anything there, such as building another model. The longest time is left out too,
 * because the first batch waits until its function is traced. A usual batch replaces what is left
 * out. */
static void own(struct tfh_group *g)
{
	int64_t ns = g->inner > 1 ? g->inner_ns - g->longest_inner : g->owned_ns - g->longest;
	uint64_t n = g->inner > 1 ? g->inner - 1 : g->count - 1;

	if (g->count > 1)
		g->owned_ns = (int64_t)((double)ns / (double)n * (double)g->count);
}

static void measure(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	uint32_t before = UINT32_MAX;

	for (size_t i = 0; i < loops->group.n; i++) {
		struct tfh_group *g = &loops->group.v[i];
		g->count = g->runs = g->inner = 0;
		g->owned_ns = g->inner_ns = g->longest = g->longest_inner = 0;
	}
	TFH_EACH (i, facts->batch.n) {
		const struct tfh_boundary *t = &facts->batch.v[i];
		const struct tfh_series *s = &facts->series.v[t->series];
		uint32_t number = tfh_group_of(loops, t);
		struct tfh_group *g = &loops->group.v[number];
		int64_t next = i + 1 < facts->batch.n ? facts->batch.v[i + 1].t1 : facts->last_work;

		if (t->end)
			continue;
		g->first = g->count++ ? g->first : i;
		g->runs += number != before;
		before = number;
		int64_t ns = next > t->t1 ? tfh_recorded_ns(facts, t->t1, next) : 0;
		g->owned_ns += ns;
		g->longest = ns > g->longest ? ns : g->longest;
		if (s->last == i)
			continue;
		g->inner++;
		g->inner_ns += ns;
		g->longest_inner = ns > g->longest_inner ? ns : g->longest_inner;
	}
	for (size_t i = 0; i < loops->group.n; i++)
		own(&loops->group.v[i]);
}

static bool evaluates(const struct tfh_group *g)
{
	enum tfh_branch role = tfh_role_of_name(g->tag);

	return role == TFH_BRANCH_EVALUATE || role == TFH_BRANCH_PREDICT;
}

static double score(const struct tfh_group *g)
{
	double x = (double)g->owned_ns;

	if (g->count < 2)
		x /= TFH_LOOPS_ONE_BATCH_PART;
	/* Names are hints: an evaluation seldom has "train" in its name, and a training step seldom
	 * "test". */
	if (strcasestr(g->tag, "train"))
		x *= TFH_LOOPS_NAME_TIMES;
	if (evaluates(g))
		x /= TFH_LOOPS_NAME_TIMES;
	return x;
}

static bool same_name(const struct tfh_group *a, const struct tfh_group *b)
{
	size_t n = base_length(a->tag);

	return n && n == base_length(b->tag) && !memcmp(a->tag, b->tag, n);
}

/* A validation follows an epoch: of two alternating loops, the first is training and the second
 * validation, however long they take; a loop that also precedes all others is a sanity check of the
 * validation. If they do not alternate, the first of the two trains unless it has fewer batches. */
static bool trains_before(const struct tfh_group *a, const struct tfh_group *b)
{
	if (b->runs > 1 && (a->runs == b->runs || a->runs + 1 == b->runs))
		return (a->first < b->first) == (a->runs == b->runs);
	return a->first < b->first && a->count >= b->count;
}

/* Among functions of the same name (Keras' for training, testing and predicting), or if one's name
 * says that it evaluates, the function that trains wins, even if the steps of another one take
 * longer. */
static int32_t trains_first(const struct tfh_loops *loops, int32_t best)
{
	const struct tfh_group *v = loops->group.v;

	for (int32_t i = 0; i < (int32_t)loops->group.n; i++)
		if (i != best && trains_before(&v[i], &v[best]) &&
		    (same_name(&v[i], &v[best]) ||
		     (evaluates(&v[best]) && !evaluates(&v[i]) && v[i].count > 1)))
			best = i;
	return best;
}

static int32_t choose(const struct tfh_facts *facts, const struct tfh_loops *loops)
{
	int32_t at = -1;
	double best = 0;

	for (size_t i = 0; i < loops->group.n; i++) {
		const struct tfh_group *g = &loops->group.v[i];
		/* A group that is known not to train comes last. */
		double x = facts->series.v[g->series].tests ? 1 : score(g);
		if (g->count && x > best) {
			best = x;
			at = (int32_t)i;
		}
	}
	return at < 0 ? at : trains_first(loops, at);
}

/* A loop that may train another model of a sweep: its pipeline and function name are those of the
 * training loop, and it has about as many batches. */
struct loop {
	uint32_t group;
	size_t first, last; /* indices into the batches */
	uint64_t inner;	    /* batches that follow one of the same loop */
	int64_t ns;	    /* of those */
};
bool tfh_as_many(const struct tfh_group *a, const struct tfh_group *b)
{
	uint64_t more = a->count > b->count ? a->count : b->count;

	return more - (a->count > b->count ? b->count : a->count) <=
	       TFH_LOOPS_AS_MANY_OFF + more / TFH_LOOPS_AS_MANY_PART;
}

static void add_inner(const struct tfh_facts *facts, struct loop *l, size_t i)
{
	l->inner++;
	l->ns += facts->batch.v[i].t1 - facts->batch.v[i - 1].t1;
}

static uint32_t find_loops(const struct tfh_facts *facts, const struct tfh_loops *loops,
			   struct loop *v)
{
	const struct tfh_group *train = &loops->group.v[loops->train_group];
	uint32_t n = 0;

	for (uint32_t i = 0; i < loops->group.n && n < TFH_LOOPS_SWEEP_LOOPS; i++)
		if (*train->tag && loops->group.v[i].like == train->like &&
		    tfh_as_many(&loops->group.v[i], train))
			v[n++] = (struct loop){i, SIZE_MAX, 0, 0, 0};
	TFH_EACH (i, n >= TFH_LOOPS_FEWEST_MODELS ? facts->batch.n : 0) {
		uint32_t g = tfh_group_of(loops, &facts->batch.v[i]);
		for (uint32_t k = 0; k < n; k++) {
			if (v[k].group != g)
				continue;
			if (v[k].first == SIZE_MAX)
				v[k].first = i;
			else if (v[k].last + 1 == i)
				add_inner(facts, &v[k], i);
			v[k].last = i;
		}
	}
	return n;
}

static int by_place(const void *a, const void *b)
{
	const struct loop *x = a, *y = b;

	return x->first != y->first ? (x->first < y->first ? -1 : 1) : 0;
}

static double per_batch(const struct loop *l)
{
	return l->inner ? (double)l->ns / (double)l->inner : 0;
}

/* Whether every second loop takes clearly less time than its neighbours: then an evaluation follows
 * each training. */
static bool turns(const struct loop *v, uint32_t n)
{
	for (uint32_t i = 1; i < n; i += 2)
		if (per_batch(&v[i]) >= TFH_LOOPS_EVAL_TIME_SHARE * per_batch(&v[i - 1]) ||
		    (i + 1 < n &&
		     per_batch(&v[i]) >= TFH_LOOPS_EVAL_TIME_SHARE * per_batch(&v[i + 1])))
			return false;
	return true;
}

/* The models of a sweep are trained one after the other and feed functions of their own, but all of
 * them are the job's purpose. Their loops do not overlap: if two do, the one with less time per
 * batch evaluates. */
static void join_sweep(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	struct loop v[TFH_LOOPS_SWEEP_LOOPS];
	uint32_t n = find_loops(facts, loops, v), kept = 0;

	qsort(v, n, sizeof(*v), by_place);
	for (uint32_t i = 0; i < n; i++) {
		struct loop *last = kept ? &v[kept - 1] : NULL;
		if (!last || v[i].first > last->last)
			v[kept++] = v[i];
		else if (per_batch(&v[i]) > per_batch(last))
			*last = v[i];
	}
	if (kept > TFH_LOOPS_FEWEST_MODELS && kept == n && turns(v, kept)) {
		for (uint32_t i = 0; i < kept; i += 2)
			v[i / 2] = v[i];
		kept = (kept + 1) / 2;
	}
	if (kept < TFH_LOOPS_FEWEST_MODELS)
		return;
	loops->train_group = (int32_t)v[0].group;
	for (size_t i = 0; i < facts->series.n; i++)
		for (uint32_t k = 0; k < kept; k++)
			if (loops->group_of[i] == v[k].group) {
				loops->group_of[i] = (uint32_t)loops->train_group;
				break;
			}
	loops->alike_loops = kept;
	measure(facts, loops);
}

/* Whether each of a group's iterators is exhausted before anything else begins; those of replicas
 * alternate instead. */
static bool in_one_go(const struct tfh_facts *facts, const struct tfh_loops *loops, uint32_t group)
{
	uint64_t n = 0;

	for (size_t i = 0; i < facts->series.n; i++)
		n += loops->group_of[i] == group;
	return loops->group.v[group].runs <= n;
}

/* Ops that are executed one by one after each of a group's batches. */
static double ops_per_batch(const struct tfh_facts *facts, const struct tfh_loops *loops,
			    uint32_t group)
{
	uint64_t ops = 0;

	for (size_t i = 0; i < facts->series.n; i++)
		ops += loops->group_of[i] == group ? facts->series.v[i].ops : 0;
	return (double)ops / (double)loops->group.v[group].count;
}

/* Whether the batches of a group go where those of the training group go: to the same function; if
 * the functions differ, or none is executed, to the same launches, or through as many ops. An
 * evaluation has no backward pass, so it executes far fewer ops. */
static bool fed_alike(const struct tfh_facts *facts, const struct tfh_loops *loops, uint32_t group,
		      const struct tfh_launched *launched)
{
	const struct tfh_group *train = &loops->group.v[loops->train_group],
			       *other = &loops->group.v[group];
	uint32_t a, b;

	tag_text(facts, &facts->series.v[train->series], &a);
	tag_text(facts, &facts->series.v[other->series], &b);
	if (a && a == b)
		return true;
	if (!other->count ||
	    facts->series.v[train->series].tests != facts->series.v[other->series].tests)
		return false;
	if (TFH_DETECT_SAME_LAUNCHES && ((!a && !b) || same_name(train, other)) &&
	    tfh_launched_alike(&launched[loops->train_group], &launched[group]))
		return true;
	if (!TFH_DETECT_AS_MANY_OPS || a || b)
		return false;
	double x = ops_per_batch(facts, loops, (uint32_t)loops->train_group),
	       y = ops_per_batch(facts, loops, group);
	return x >= TFH_LOOPS_STEP_LAUNCHES && fabs(x - y) * TFH_LOOPS_AS_MANY_PART <= x;
}

/* Joins iterators of other pipelines whose batches are trained with, too: after the first epoch,
 * cache() reads from memory what it had read from files. */
static int join_function(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	uint32_t train = (uint32_t)loops->train_group;
	struct tfh_launched *launched = NULL;
	bool joined = false;

	if (loops->group.n < 2)
		return 0;
	int rc = tfh_count_launched(facts, loops, &launched);
	for (uint32_t k = 0; k < loops->group.n && !rc; k++) {
		if (k == train || !fed_alike(facts, loops, k, launched) ||
		    !in_one_go(facts, loops, k))
			continue;
		for (size_t i = 0; i < facts->series.n; i++)
			if (loops->group_of[i] == k)
				loops->group_of[i] = train;
		joined = true;
	}
	if (joined)
		measure(facts, loops);
	tfh_big_free(launched);
	return rc;
}

int tfh_choose_iterator(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	loops->train_group = -1;
	if (!facts->batch.n)
		return 0;
	loops->group_of = tfh_big_array(facts->series.n, sizeof(*loops->group_of));
	if (!loops->group_of)
		return -ENOMEM;
	make_groups(facts, loops);
	split_by_number(facts, loops);
	split_by_turns(facts, loops);
	measure(facts, loops);
	loops->train_group = choose(facts, loops);
	if (loops->train_group < 0)
		return 0;
	join_sweep(facts, loops);
	return join_function(facts, loops);
}

static int by_begin(const void *a, const void *b, void *arg)
{
	const struct tfh_boundary *x = a, *y = b;

	(void)arg;
	return x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

void tfh_sort_marks(struct tfh_loops *loops)
{
	if (loops->mark.n) /* the array may be NULL */
		tfh_sort(loops->mark.v, loops->mark.n, sizeof(*loops->mark.v), by_begin, NULL);
}
