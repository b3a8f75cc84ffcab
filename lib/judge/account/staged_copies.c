/*
 * Copies from pageable memory that a library makes itself: a thread of its own copies the data to
 * pinned memory and submits the copy to the device, while the thread that launches waits (JAX's
 * device_put). No call of the driver shows the first copy: the library's thread makes its calls
 * after a pause. If samples show the launching thread waiting in that pause, the pause is the first
 * copy. Otherwise that thread had not requested the copy yet, and the pause waited for what it did.
 *
 * A thread that waits for a stream and, after the pause, copies into that stream sends back
 * something made of what the stream had fetched. In a job of several ranks that is an exchange
 * through the host's memory (gloo, MPI without CUDA).
 */

#include <string.h>

#include "judge/account/device.h"

/* A thread that neither launches nor runs Python, in a process that does: the library's own. */
static bool is_library(const struct tfh_facts *facts, uint32_t thread)
{
	const struct tfh_thread_use *u = &facts->thread[thread];

	return !u->launches && !u->python && tfh_stack_samples_python(facts->samples);
}

/* The copy of data from pinned memory to the device that follows the pause i; NULL: there is
 * none. */
static const struct tfh_host_span *copied_next(const struct tfh_slice *sl, uint32_t i)
{
	const struct tfh_host_span *s = &sl->span.v[i];
	uint32_t last = sl->thread_span[s->thread + 1];

	for (uint32_t k = i + 1; k < last && sl->span.v[k].t0 - s->t1 < TFH_GAP_NS; k++) {
		const struct tfh_host_span *c = &sl->span.v[k];
		if (c->family == TFH_FAM_COPY && c->dir == TFH_DIR_H2D)
			return !c->pageable && c->bytes >= TFH_ACCOUNT_STAGED_BYTES ? c : NULL;
	}
	return NULL;
}

/* Whether pause i, before copy c, is an exchange with other ranks. */
static bool exchanges(const struct tfh_slice *sl, uint32_t i, const struct tfh_host_span *c)
{
	const struct tfh_facts *facts = sl->accounts->facts;
	const struct tfh_host_span *before =
		i > sl->thread_span[c->thread] ? &sl->span.v[i - 1] : NULL;

	return facts->feed->processes[facts->process].world > 1 && before &&
	       before->activity == TFH_ACTIVITY_SYNC && before->stream == c->stream;
}

/* Whether samples show that the thread mostly waited for others in its pause. */
static bool waited(const struct tfh_facts *facts, const struct tfh_host_span *pause)
{
	struct tfh_seen seen;
	double share = 0;

	if (!tfh_stack_samples_divide(facts->samples, pause->thread, pause->t0, pause->t1, &seen))
		return false;
	for (int at = 0; at < TFH_SEEN_COUNT; at++)
		share += tfh_awaits_thread(at) ? seen.part[at] : 0;
	for (int role = 0; role < TFH_ROLE_COUNT; role++)
		share += seen.part[TFH_AT(role, 1)];
	return 2 * share > 1;
}

/* The pause of a driving thread at the end of s, TFH_NO: there is none. */
static uint32_t asked_in(const struct tfh_slice *sl, const struct tfh_host_span *s)
{
	const struct tfh_facts *facts = sl->accounts->facts;

	for (uint32_t t = 0; t < facts->feed->n_threads; t++) {
		uint32_t at = facts->thread[t].drives && t != s->thread ? tfh_span_at(sl, t, s->t1)
									: TFH_NO;
		const struct tfh_host_span *pause = at == TFH_NO ? NULL : &sl->span.v[at];
		if (pause && pause->activity == TFH_ACTIVITY_GAP && pause->t1 >= s->t1 &&
		    at > sl->thread_span[t])
			return at;
	}
	return TFH_NO;
}

/* The last call of the thread of pause i that ended by t. */
static uint32_t last_by(const struct tfh_slice *sl, uint32_t i, int64_t t)
{
	uint32_t last = sl->thread_span[sl->span.v[i].thread + 1], best = TFH_NO;

	for (uint32_t k = i + 1; k < last && sl->span.v[k].t1 <= t; k++)
		best = sl->span.v[k].activity == TFH_ACTIVITY_GAP ? best : k;
	return best;
}

bool tfh_is_staged(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	if (cause != TFH_CAUSE_TRANSFER_H2D_PAGEABLE)
		return false;
	for (size_t i = 0; i < accounts->copy.n; i++)
		if (accounts->copy.v[i].dir == TFH_DIR_H2D && accounts->copy.v[i].pageable)
			return false;
	return true;
}

void tfh_mark_staging(struct tfh_slice *sl)
{
	const struct tfh_facts *facts = sl->accounts->facts;

	for (uint32_t i = 0; i < sl->span.n && facts->samples; i++) {
		struct tfh_host_span *s = &sl->span.v[i];
		const struct tfh_host_span *copy = NULL;
		if (s->activity == TFH_ACTIVITY_GAP && s->t1 - s->t0 >= TFH_GAP_NS &&
		    is_library(facts, s->thread))
			copy = copied_next(sl, i);
		if (!copy)
			continue;
		uint32_t asked = asked_in(sl, s);
		if (asked == TFH_NO)
			continue;
		struct tfh_host_span *pause = &sl->span.v[asked];
		if (pause->t1 - s->t1 < TFH_WOKEN_NS && waited(facts, pause)) {
			s->library = exchanges(sl, i, copy) ? TFH_CAUSE_COMMUNICATION_TRANSFER
							    : TFH_CAUSE_TRANSFER_H2D_PAGEABLE;
			s->from = asked - 1;
			pause->from = last_by(sl, i, pause->t1);
			continue;
		}
		s->asked = asked;
		memset(s->divided, 0, sizeof(s->divided));
		if (pause->from != TFH_NO && is_library(facts, sl->span.v[pause->from].thread))
			pause->from = TFH_NO;
	}
}
