/* Candidates for the step's clock: batches that the loops fetched, by iterator, and what was
 * executed around and between them. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "judge/facts/survey.h"

/* NULL when out of memory */
static struct tfh_tag *add_tag(struct tfh_facts *facts, uint32_t name)
{
	struct tfh_tag t = {.name = name};
	const char *s;

	if (name >= TFH_FACTS_NAMES)
		name = 0;
	while (facts->tag_of.n <= name)
		if (TFH_PUSH(facts->tag_of, -1))
			return NULL;
	if (facts->tag_of.v[name] >= 0)
		return &facts->tag.v[facts->tag_of.v[name]];
	s = name ? facts->feed->name(facts->feed->arg, facts->process, TFT_NAME_OP, name, NULL,
				     NULL)
		 : "";
	t.backward = tfh_starts_with(s, "Engine::execute");
	t.function = tfh_starts_with(s, "__inference_") || tfh_starts_with(s, "__forward_") ||
		     tfh_starts_with(s, "__backward_") || t.backward;
	t.getnext = tfh_starts_with(s, "IteratorGetNext");
	t.save = tfh_starts_with(s, "SaveV2") || tfh_starts_with(s, "MergeV2Checkpoints");
	t.log = (tfh_starts_with(s, "Write") && strstr(s, "Summary")) ||
		tfh_starts_with(s, "FlushSummaryWriter") || tfh_starts_with(s, "PrintV2");
	t.updates = (tfh_starts_with(s, "Assign") && tfh_ends_with(s, "VariableOp")) ||
		    tfh_starts_with(s, "ResourceApply") || tfh_starts_with(s, "ResourceScatter");
	t.iterator = TFH_DETECT_PIPELINES && tfh_starts_with(s, "MakeIterator");
	t.pipeline = t.iterator || (TFH_DETECT_PIPELINES &&
				    (tfh_ends_with(s, "Dataset") || tfh_ends_with(s, "DatasetV2")));
	if (TFH_PUSH(facts->tag, t))
		return NULL;
	facts->tag_of.v[name] = (int32_t)facts->tag.n - 1;
	return &facts->tag.v[facts->tag.n - 1];
}

static uint32_t series_of(struct tfh_facts *facts, uint32_t iterator, uint32_t stage, bool loop)
{
	struct tfh_series s = {.iterator = iterator, .stage = stage, .loop = loop};
	uint32_t *at = &facts->series_at[iterator % TFH_FACTS_SERIES_BUCKETS];

	for (uint32_t i = *at; i--; i = facts->series.v[i].before) {
		struct tfh_series *old = &facts->series.v[i];
		if (old->iterator == iterator && old->loop == loop &&
		    (old->stage == stage || !old->stage || !stage)) {
			if (!old->stage)
				old->stage = stage;
			return i;
		}
	}
	s.before = *at;
	if (TFH_PUSH_BIG(facts->series, s))
		return 0;
	*at = (uint32_t)facts->series.n;
	return *at - 1;
}

/* Get-next calls nest (kernel around iterator resource). The outermost one counts; its inner call,
 * which ended just before, is dropped. */
int tfh_batch_event(struct tfh_facts *facts, const struct tfh_event *ev, bool loop)
{
	struct tfh_boundary t = {.t0 = ev->t0, .t1 = ev->t1, .thread = ev->thread};
	uint32_t iterator = loop ? 0 : (uint32_t)ev->w[0], stage = (uint32_t)ev->w[1];

	t.end = ev->flags & (TFT_F_OPTIONAL | TFT_F_FAILED); /* either way there is no batch */
	t.fresh = facts->iterator_made;
	facts->iterator_made = false;
	if (loop && !stage)
		stage = ev->stream;
	for (size_t i = facts->batch.n;
	     i-- > 0 && i + TFH_FACTS_NESTED_GETS > facts->batch.n && !loop;) {
		struct tfh_boundary *old = &facts->batch.v[i];
		if (old->thread != t.thread)
			continue;
		if (old->t0 < t.t0)
			break;
		if (!iterator)
			iterator = facts->series.v[old->series].iterator;
		if (!stage)
			stage = facts->series.v[old->series].stage;
		t.end |= old->end;
		t.fresh |= old->fresh;
		facts->series.v[old->series].count--;
		memmove(old, old + 1, (facts->batch.n - i - 1) * sizeof(*old));
		facts->batch.n--;
	}
	t.series = series_of(facts, iterator, stage, loop);
	if (TFH_PUSH_BIG(facts->batch, t) || !facts->series.n)
		return -ENOMEM;
	facts->series.v[t.series].count++;
	return 0;
}

static void tag_series(struct tfh_series *s, uint32_t name, int64_t ns)
{
	size_t least = 0;

	for (size_t i = 0; i < TFH_FACTS_SERIES_TAGS; i++) {
		if (s->tag[i].name == name && s->tag[i].ns) {
			s->tag[i].calls++;
			s->tag[i].ns += ns;
			return;
		}
		if (s->tag[i].ns < s->tag[least].ns)
			least = i;
	}
	if (s->tag[least].ns < ns) {
		s->tag[least].name = name;
		s->tag[least].calls = 1;
		s->tag[least].ns = ns;
	}
}

/* What is executed after a batch shows what the batch was for. */
static void count_call(struct tfh_facts *facts, const struct tfh_event *ev, struct tfh_tag *tag)
{
	if (!tag->count++) {
		tag->first = ev->t0;
		tag->first_ns = ev->t1 - ev->t0;
	}
	tag->ns += ev->t1 - ev->t0;
	tag->thread = ev->thread;
	tag->function |= ev->fn->family == TFH_FAM_SESSION;
	facts->execs++;
	if (!tag->getnext && ev->t0 > facts->last_exec)
		facts->last_exec = ev->t0;
	facts->iterator_made |= tag->iterator;
}

/* Notes at the batches that came during a call that it executed them. */
static void contain_batches(struct tfh_facts *facts, const struct tfh_event *ev,
			    struct tfh_tag *tag)
{
	for (size_t i = facts->batch.n; i-- > 0 && facts->batch.v[i].t1 >= ev->t0;) {
		struct tfh_boundary *t = &facts->batch.v[i];
		if (t->t0 < ev->t0)
			continue;
		t->x0 = ev->t0;
		t->x1 = ev->t1;
		tag->batches = true;
		if (t->end)
			continue;
		struct tfh_series *in = &facts->series.v[t->series];
		in->execs += in->exec_at != ev->t0 || !in->execs;
		in->exec_at = ev->t0;
		in->contained++;
	}
}

int tfh_exec_event(struct tfh_facts *facts, const struct tfh_event *ev)
{
	struct tfh_tag *tag = add_tag(facts, (uint32_t)ev->w[0]);

	if (!tag)
		return -ENOMEM;
	count_call(facts, ev, tag);
	if (tag->function && TFH_PUSH_BIG(facts->exec, ((struct tfh_exec){ev->t0, ev->t1, tag->name,
									  ev->thread, ev->stack})))
		return -ENOMEM;
	if (tag->save && TFH_PUSH_BIG(facts->rare, ((struct tfh_rare){ev->t0, ev->thread, true})))
		return -ENOMEM;
	if (tfh_logged_event(facts, ev, tag))
		return -ENOMEM;
	if (tag->getnext || !facts->batch.n)
		return 0;
	contain_batches(facts, ev, tag);
	struct tfh_series *s = &facts->series.v[facts->batch.v[facts->batch.n - 1].series];
	if (tag->function)
		tag_series(s, tag->name, ev->t1 - ev->t0);
	else
		s->ops++;
	return 0;
}

/* When the last launch began; without a device, the last op. INT64_MAX: not known. */
static int64_t last_work(const struct tfh_facts *facts)
{
	size_t n = facts->token.n;

	while (n && !tfh_is_launch(tfh_kind_of(facts, &facts->token.v[n - 1])))
		n--;
	if (n)
		return facts->token.v[n - 1].t0;
	return facts->launches || !facts->execs ? INT64_MAX : facts->last_exec;
}

void tfh_end_batches(struct tfh_facts *facts)
{
	if (!(facts->feed->imported || facts->feed->failed) || !facts->batch.n ||
	    facts->late_launch)
		return;
	struct tfh_boundary *last = &facts->batch.v[facts->batch.n - 1];
	last->end |= last->t0 > last_work(facts);
}

/* PyTorch's profiler opens one more step when it stops, in which nothing is launched: drops it. */
void tfh_end_marks(struct tfh_facts *facts)
{
	size_t n = facts->mark.n;
	const struct tfh_boundary *last = n ? &facts->mark.v[n - 1] : NULL;
	bool device = facts->launches > 0;

	if (!facts->feed->imported || n < 2 ||
	    (device ? !facts->thread[last->thread].launches : !facts->thread[last->thread].execs) ||
	    last->t0 < (device ? facts->quiet.v[facts->quiet.n - 1].t0 : facts->last_exec))
		return;
	facts->mark.n--;
	facts->marks_left -= facts->mark.v[n - 2].left;
	facts->mark.v[n - 2].left = false;
}

void tfh_find_restarts(struct tfh_facts *facts)
{
	uint64_t n = 0, fresh = 0, sets = 0;

	TFH_EACH (i, facts->batch.n) {
		n += !facts->batch.v[i].end;
		fresh += !facts->batch.v[i].end && facts->batch.v[i].fresh;
	}
	for (size_t i = 0; i < facts->tag.n; i++)
		sets += facts->tag.v[i].pipeline && !facts->tag.v[i].iterator
				? facts->tag.v[i].count
				: 0;
	facts->restarts = fresh >= TFH_VERDICT_FEWEST_WINDOWS &&
			  (double)fresh > TFH_VERDICT_MOST_SHARE * (double)n && 2 * sets < fresh;
	for (size_t i = 0; i < facts->longs.n && facts->restarts; i++)
		if (facts->longs.v[i].iterator)
			facts->longs.v[i].activity = TFH_ACTIVITY_INPUT;
}
