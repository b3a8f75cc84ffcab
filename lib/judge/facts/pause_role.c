#include "judge/facts/pause_role.h"

#include <stdio.h>
#include <string.h>

#include "base/packages.h"

bool tfh_kind_is_graph(uint16_t kind)
{
	return kind == (TFH_FAM_EXECUTE << 3 | TFH_GRAPH_OF_OPS);
}

bool tfh_kind_launches(uint16_t kind)
{
	return tfh_family_launches(kind >> 3) || kind == (TFH_FAM_EXECUTE << 3 | TFH_EAGER_OP) ||
	       tfh_kind_is_graph(kind);
}

void tfh_package_of(const struct tfh_model_line *frame, char out[TFH_FACTS_PACKAGE])
{
	const char *at = frame->library ? tfh_in_packages(frame->file) : NULL;

	snprintf(out, TFH_FACTS_PACKAGE, "%.*s", at ? (int)strcspn(at, "/") : 0, at ? at : "");
}

static bool same_line(const struct tfh_model_line *seen, uint32_t n, const struct tfh_pause_end *to)
{
	uint32_t a = n ? tfh_place_lead(seen, n) : 0,
		 b = to->n ? tfh_place_lead(to->frame, to->n) : 0;

	return n && to->n && seen[a].line == to->frame[b].line &&
	       !strcmp(seen[a].file, to->frame[b].file);
}

bool tfh_stack_samples_lead_to(const struct tfh_model_line *seen, uint32_t n,
			       const struct tfh_pause_end *to)
{
	return same_line(seen, n, to) && seen[0].library;
}

bool tfh_stack_samples_on_line(const struct tfh_model_line *seen, uint32_t n,
			       const struct tfh_pause_end *to)
{
	return to->soon || same_line(seen, n, to);
}

/* Whether the sample was also in the library function, called from the program, that makes that
 * call. */
static bool samples_call(const struct tfh_model_line *seen, uint32_t n,
			 const struct tfh_pause_end *to)
{
	uint32_t a = n ? tfh_place_lead(seen, n) : 0,
		 b = to->n ? tfh_place_lead(to->frame, to->n) : 0;

	return a && b && tfh_stack_samples_lead_to(seen, n, to) &&
	       tfh_same_function(&seen[a - 1], &to->frame[b - 1]);
}

/* Whether a sample is at another line of a function that also makes the call. That is the
 * function's own work, or that of compiled code without frames, and not the path to the call. */
static bool is_own_work(const struct tfh_model_line *seen, uint32_t n,
			const struct tfh_pause_end *to)
{
	return TFH_DETECT_OWN_WORK && n < to->n &&
	       tfh_same_function(&seen[0], &to->frame[to->n - n]) &&
	       seen[0].line != to->frame[to->n - n].line;
}

bool tfh_stack_samples_issue(const struct tfh_model_line *seen, uint32_t n,
			     const struct tfh_pause_end *to, const char *launcher)
{
	char package[TFH_FACTS_PACKAGE];

	if (!TFH_DETECT_LAUNCHER || !n || !*launcher)
		return false;
	tfh_package_of(&seen[0], package);
	if (strcmp(package, launcher) != 0)
		return false;
	if (to->after >> 3 == TFH_FAM_COPY)
		return to->soon || (samples_call(seen, n, to) && !is_own_work(seen, n, to));
	return tfh_kind_launches(to->after) && (to->soon || tfh_stack_samples_lead_to(seen, n, to));
}

bool tfh_stack_samples_copy(const struct tfh_model_line *seen, uint32_t n,
			    const struct tfh_pause_end *to)
{
	return n && seen[0].library && to->before >> 3 == TFH_FAM_COPY &&
	       to->after >> 3 == TFH_FAM_COPY && (to->soon || samples_call(seen, n, to));
}

bool tfh_stack_samples_within(const struct tfh_model_line *seen, uint32_t n,
			      const struct tfh_pause_end *to)
{
	return TFH_DETECT_WITHIN && to->before >> 3 != TFH_FAM_CONSUMER &&
	       tfh_order_of(seen, n, to->last, to->n_last) == TFH_ORDER_AFTER;
}

enum tfh_role tfh_role_between(int state, enum tfh_order order, bool dispatch, bool copies,
			       const struct tfh_pause_end *to)
{
	switch (state) {
	case TFT_STATE_RUNNING:
		/* A module is loaded right after it was compiled. */
		if (to->after >> 3 == TFH_FAM_MODULE)
			return TFH_ROLE_COMPILE;
		if (TFH_DETECT_DISPATCH && tfh_kind_launches(to->before) &&
		    tfh_kind_launches(to->after) && dispatch)
			return TFH_ROLE_LAUNCH;
		if (TFH_DETECT_DISPATCH && copies)
			return TFH_ROLE_COPY;
		return order == TFH_ORDER_BEFORE  ? TFH_ROLE_FIRST
		       : order == TFH_ORDER_AFTER ? TFH_ROLE_LATER
						  : TFH_ROLE_NONE;
	case TFT_STATE_LOCK:
	case TFT_STATE_EVENT:
	case TFH_SEEN_MUTEX:
	case TFH_SEEN_SIGNAL:
	case TFH_SEEN_END:
		return order == TFH_ORDER_AFTER ? TFH_ROLE_LOCK : TFH_ROLE_NONE;
	case TFT_STATE_PIPE:
	case TFT_STATE_SOCKET:
	case TFT_STATE_POLL:
		return order == TFH_ORDER_AFTER ? TFH_ROLE_WAIT : TFH_ROLE_NONE;
	case TFT_STATE_NAMES:
		return order == TFH_ORDER_AFTER ? TFH_ROLE_SAVE : TFH_ROLE_NONE;
	default:
		return TFH_ROLE_NONE;
	}
}

enum tfh_role tfh_role_above(int state, const struct tfh_model_line *seen, uint32_t n,
			     const struct tfh_pause_end *to)
{
	if (tfh_order_of(seen, n, to->frame, to->n) != TFH_ORDER_BEFORE ||
	    tfh_order_of(seen, n, to->last, to->n_last) != TFH_ORDER_BEFORE)
		return TFH_ROLE_NONE;
	switch (state) {
	case TFT_STATE_LOCK:
	case TFT_STATE_EVENT:
	case TFH_SEEN_SIGNAL:
	case TFH_SEEN_END:
		/* A library's function (of a queue, a future, an event) waits for something that
		 * another thread makes. The program itself takes a lock. */
		return seen[0].library ? TFH_ROLE_MADE : TFH_ROLE_GIVEN;
	case TFT_STATE_PIPE:
	case TFT_STATE_SOCKET:
	case TFT_STATE_POLL:
		return TFH_ROLE_SENT;
	default:
		return TFH_ROLE_NONE;
	}
}
