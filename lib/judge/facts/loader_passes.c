/*
 * Which passes through a PyTorch loader train, where the program has no backward passes or
 * optimizers of PyTorch's: what is launched after their batches shows it. An evaluation launches
 * what training does, but without a backward pass and an update, and comes between passes that
 * train.
 */
#include <stdlib.h>

#include "base/bisect.h"

#include "judge/facts/survey.h"

/* From one call without a batch to the next. */
struct pass {
	size_t from, to;   /* tokens after a batch of the usual content */
	uint64_t what;	   /* that content, independent of order */
	uint64_t launches; /* in that content */
	size_t first, end; /* batches */
	bool tests;
};

/* Tokens that begin before t. */
static size_t until(const struct tfh_facts *facts, int64_t t)
{
	return TFH_BISECT(i, 0, facts->token.n, facts->token.v[i].t0 < t);
}

static const struct tfh_token_kind *launch_at(const struct tfh_facts *facts, size_t i)
{
	const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[i]);

	return tfh_is_launch(k) ? k : NULL;
}

/* The launches after a batch, until the next one is delivered. */
static struct pass launches_after(const struct tfh_facts *facts, size_t i)
{
	const struct tfh_boundary *t = &facts->batch.v[i];
	int64_t end = i + 1 < facts->batch.n ? t[1].t1 : INT64_MAX;
	struct pass p = {.from = until(facts, t->t1), .to = until(facts, end)};
	const struct tfh_token_kind *k;

	for (size_t at = p.from; at < p.to; at++)
		if ((k = launch_at(facts, at))) {
			p.what += k->rough;
			p.launches++;
		}
	return p;
}

/* The pass that begins with batch *i, and sets *i after it. Its content is that of most of its
 * batches, if there is one; otherwise `launches` is 0. */
static struct pass take_pass(const struct tfh_facts *facts, size_t *i)
{
	struct pass most = {0};
	size_t lead = 0, same = 0, first = *i;

	for (; *i < facts->batch.n && !facts->batch.v[*i].end; ++*i) {
		struct pass p = launches_after(facts, *i);
		most = lead ? most : p;
		lead += lead && p.what != most.what ? -(size_t)1 : 1;
	}
	most.first = first;
	most.end = *i;
	for (size_t k = first; k < *i; k++)
		same += launches_after(facts, k).what == most.what;
	if (2 * same <= most.end - most.first)
		most.launches = 0;
	while (*i < facts->batch.n && facts->batch.v[*i].end)
		++*i;
	return most;
}

static bool is_launched(const struct tfh_facts *facts, const struct pass *p, uint64_t rough)
{
	const struct tfh_token_kind *k;

	for (size_t i = p->from; i < p->to; i++)
		if ((k = launch_at(facts, i)) && k->rough == rough)
			return true;
	return false;
}

/* Whether a pass launches a part of what the training does. */
static bool is_part(const struct tfh_facts *facts, const struct pass *p, const struct pass *train)
{
	const struct tfh_token_kind *k;
	uint64_t common = 0;

	if (!p->launches || p->launches >= train->launches)
		return false;
	for (size_t i = train->from; i < train->to; i++)
		common += (k = launch_at(facts, i)) && is_launched(facts, p, k->rough);
	return common && (double)common <= TFH_LOOPS_EVAL_TRAIN_SHARE * (double)train->launches;
}

/* Whether the passes that test follow others that do not, at least twice. */
static bool follow(const struct pass *v, size_t n)
{
	size_t groups = 0;

	for (size_t i = 1; i < n; i++)
		groups += v[i].tests && !v[i - 1].tests;
	return groups >= 2;
}

static uint64_t all_launches(const struct pass *p)
{
	return p->launches * (p->end - p->first);
}

/* A pass whose content has more than half of all launches (majority vote of Boyer and Moore); NULL:
 * none. */
static const struct pass *find_train(const struct pass *v, size_t n)
{
	const struct pass *most = NULL;
	uint64_t lead = 0, all = 0, same = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t w = all_launches(&v[i]);
		all += w;
		most = lead ? most : &v[i];
		if (v[i].what == most->what) {
			lead += w;
		} else {
			most = w > lead ? &v[i] : most;
			lead = w > lead ? w - lead : lead - w;
		}
	}
	for (size_t i = 0; i < n; i++)
		same += v[i].what == most->what ? all_launches(&v[i]) : 0;
	return 2 * same > all ? most : NULL;
}

int tfh_mark_tested(const struct tfh_facts *facts, bool *tests)
{
	TFH_VEC(struct pass) pass = {0};
	int rc = 0;

	for (size_t i = 0; i < facts->batch.n && !rc;) {
		struct pass p = take_pass(facts, &i);
		rc = p.end > p.first ? TFH_PUSH(pass, p) : 0;
	}
	const struct pass *train = rc ? NULL : find_train(pass.v, pass.n);
	for (size_t i = 0; train && i < pass.n; i++)
		pass.v[i].tests = i > 1 && pass.v[i].what == pass.v[i - 2].what
					  ? pass.v[i - 2].tests /* they take turns */
					  : is_part(facts, &pass.v[i], train);
	bool some = TFH_DETECT_PASSES && train && follow(pass.v, pass.n);
	for (size_t i = 0; some && i < pass.n; i++)
		for (size_t k = pass.v[i].first; k < pass.v[i].end; k++)
			tests[k] = pass.v[i].tests;
	free(pass.v);
	return rc ? rc : some;
}
