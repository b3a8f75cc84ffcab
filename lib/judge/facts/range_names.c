/*
 * Ranges whose names show the steps: PyTorch's range around an optimizer's step, and XLA's around
 * the execution of a program. XLA's autotuner executes candidates in such ranges, too, but these
 * have no number. In the traces of JAX's profiler the calls of jitted functions have ranges, each
 * of which may contain a second one of the same call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "judge/facts/survey.h"
#include "judge/stats.h"

static const char update[] = "Optimizer.step#", module[] = "XlaModule:#hlo_module=",
		  number[] = ",program_id=", jitted[] = "PjitFunction(";

enum range_name { R_OTHER, R_UPDATE, R_PROGRAM, R_NEW = UINT8_MAX };

static const char *text_of(const struct tfh_facts *facts, uint32_t name)
{
	const struct tfh_feed *f = facts->feed;
	const char *s = f->name(f->arg, facts->process, TFT_NAME_STRING, name, NULL, NULL);

	return s ? s : "";
}

/* The part of a range's name that begins with the name of XLA's program; NULL: it has none. Before
 * it is the name of NVTX' domain. */
static const char *program_in(const char *s)
{
	const char *at = strstr(s, module);

	if (tfh_starts_with(s, jitted))
		return s + sizeof(jitted) - 1;
	return at && strstr(at, number) ? at + sizeof(module) - 1 : NULL;
}

static enum range_name kind_of(const char *s)
{
	if (tfh_starts_with(s, update))
		return R_UPDATE;
	return program_in(s) ? R_PROGRAM : R_OTHER;
}

int tfh_range_event(struct tfh_facts *facts, const struct tfh_event *ev)
{
	uint32_t name = ev->w[0] < TFH_FACTS_NAMES ? (uint32_t)ev->w[0] : 0;

	while (facts->range_name.n <= name)
		if (TFH_PUSH(facts->range_name, R_NEW))
			return -ENOMEM;
	if (facts->range_name.v[name] == R_NEW)
		facts->range_name.v[name] = (uint8_t)kind_of(text_of(facts, name));
	switch (facts->range_name.v[name]) {
	case R_UPDATE:
		return facts->feed->imported
			       ? 0
			       : TFH_PUSH_BIG(facts->update, ((struct tfh_update){ev->t0, ev->t1}));
	case R_PROGRAM:
		return TFH_PUSH_BIG(facts->program,
				    ((struct tfh_exec){ev->t0, ev->t1, name | TFH_FACTS_PROGRAM,
						       ev->thread, 0}));
	}
	return 0;
}

static int by_begin(const void *a, const void *b, void *arg)
{
	const struct tfh_exec *x = a, *y = b;

	(void)arg;
	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	return x->t1 != y->t1 ? (x->t1 > y->t1 ? -1 : 1) : 0;
}

/* Drops those that lie inside the one before. Returns the new number. */
static size_t outermost(struct tfh_exec *v, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!kept || v[i].t1 > v[kept - 1].t1)
			v[kept++] = v[i];
	return kept;
}

int tfh_programs_end(struct tfh_facts *facts)
{
	struct tfh_exec *v = facts->program.v;
	uint64_t *count = calloc(facts->feed->n_threads + 1, sizeof(*count));
	uint32_t best = 0;
	size_t n = 0;

	TFH_EACH (i, count ? facts->program.n : 0)
		count[v[i].thread]++;
	for (uint32_t i = 1; count && i < facts->feed->n_threads; i++)
		best = count[i] > count[best] ? i : best;
	TFH_EACH (i, count ? facts->program.n : 0)
		if (v[i].thread == best)
			v[n++] = v[i];
	if (n)
		tfh_sort(v, n, sizeof(*v), by_begin, NULL);
	facts->program.n = outermost(v, n);
	free(count);
	return count ? 0 : -ENOMEM;
}

const char *tfh_function_name(const struct tfh_facts *facts, uint32_t name, size_t *n)
{
	const struct tfh_feed *f = facts->feed;
	const char *s;

	if (name & TFH_FACTS_PROGRAM) {
		s = program_in(text_of(facts, name & ~TFH_FACTS_PROGRAM));
		*n = s ? strcspn(s, ",)") : 0;
	} else {
		s = f->name(f->arg, facts->process, TFT_NAME_OP, name, NULL, NULL);
		*n = s ? strlen(s) : 0;
	}
	return s ? s : "";
}

const char *tfh_graph_name(const struct tfh_facts *facts, uint32_t name, size_t *n)
{
	static const char inference[] =
		"__inference_"; /* TensorFlow's prefix of every function name */
	const char *s = tfh_function_name(facts, name, n);

	if (!tfh_starts_with(s, inference))
		return s;
	*n -= sizeof(inference) - 1;
	return s + sizeof(inference) - 1;
}

size_t tfh_unnumbered(const char *name, size_t n)
{
	while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	return n;
}

const char *tfh_graph_base(const struct tfh_facts *facts, uint32_t name)
{
	size_t n, all;
	const char *s = tfh_graph_name(facts, name, &all);

	n = tfh_unnumbered(s, all);
	n -= n && s[n - 1] == '_' && n < all;
	return tfh_arena_text(facts->arena, "%.*s", (int)n, s);
}
