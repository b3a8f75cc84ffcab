/*
 * Whether child processes are the program's peers in an exchange of data: each works only while the
 * program waits for it, and mostly at lines at which the program works, too. A loader's worker is
 * no peer: it works ahead, so it is as busy while the program works. Nor is a server, which runs
 * code of its own. The flusher samples a driving thread and then one child process, so a pair of
 * samples shows both at about the same time.
 */
#include "judge/facts/facts.h"

struct turn_pairs {
	uint32_t own, own_alone;   /* pairs: the program ran; and the child waited */
	uint32_t others, answered; /* pairs: the program waited; and the child worked */
};

static void add_pair(struct turn_pairs *n, const struct tfh_seen_sample *own,
		     const struct tfh_child_sample *child)
{
	bool idle = tfh_awaits_sender(child->state);

	if (own->state == TFT_STATE_RUNNING) {
		n->own++;
		n->own_alone += idle;
	} else if (tfh_awaits_sender(own->state)) {
		n->others++;
		/* a sleeping child may wait for a user */
		n->answered += !idle && child->state != TFT_STATE_SLEEP;
	}
}

static bool by_turns(const struct tfh_facts *facts)
{
	size_t own = tfh_stack_samples_count(facts->samples), k = 0;
	struct turn_pairs n = {0};

	for (size_t i = 0; i < facts->child.n; i++) {
		const struct tfh_child_sample *child = &facts->child.v[i];
		while (k < own && tfh_stack_samples_at(facts->samples, k).t <= child->t)
			k++;
		struct tfh_seen_sample last = k ? tfh_stack_samples_at(facts->samples, k - 1)
						: (struct tfh_seen_sample){0};
		if (k && !child->thread && facts->thread[last.thread].drives &&
		    child->t - last.t < TFH_WOKEN_NS)
			add_pair(&n, &last, child);
	}
	return n.own >= TFH_FACTS_SAMPLE_LEAST && n.others >= TFH_FACTS_SAMPLE_LEAST &&
	       n.own_alone > TFH_VERDICT_MOST_SHARE * n.own &&
	       n.answered >= TFH_CYCLE_SURE_SHARE * n.others;
}

/* The program's innermost line of a place. False: none. */
static bool line_at(const struct tfh_facts *facts, uint32_t place, struct tfh_model_line *out)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t n = tfh_frames_at(facts, place, frame);

	if (n)
		*out = frame[tfh_place_lead(frame, n)];
	return n && !out->library;
}

/* Whether the program was seen working at that line. */
static bool runs_at(const struct tfh_facts *facts, const struct tfh_model_line *line)
{
	struct tfh_model_line own;

	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		if (k.state == TFT_STATE_RUNNING && facts->thread[k.thread].drives &&
		    line_at(facts, k.place, &own) && tfh_same_line(&own, line))
			return true;
	}
	return false;
}

/* Whether most of the children's work is at lines at which the program works, too. */
static bool at_same_lines(const struct tfh_facts *facts)
{
	struct tfh_model_line line, last = {0};
	double all = 0, same = 0;
	bool shared = false;

	for (size_t i = 0; i < facts->child.n; i++) {
		const struct tfh_child_sample *k = &facts->child.v[i];
		if (k->thread || k->state != TFT_STATE_RUNNING)
			continue;
		all += k->ns;
		if (!line_at(facts, k->place, &line))
			continue;
		if (!last.file || !tfh_same_line(&line, &last))
			shared = runs_at(facts, &line);
		last = line;
		same += shared ? k->ns : 0;
	}
	return same > TFH_VERDICT_MOST_SHARE * all;
}

void tfh_find_answers(struct tfh_facts *facts)
{
	facts->answers = TFH_DETECT_ANSWERS && !facts->loader && !facts->consumers &&
			 by_turns(facts) && at_same_lines(facts);
}
