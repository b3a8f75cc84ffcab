/* What a sample of a run in which no call was recorded is about, by its stack. */
#include <string.h>

#include "base/text.h"
#include "judge/verdict/sampled.h"

/* Whether a thread that waits for another one asks a library's iterator for its next element, which
 * the other one makes, as if it took it from a queue. */
static bool asks_iterator(const struct tfh_start_sample *k, const struct tfh_model_line *frame,
			  uint32_t n)
{
	bool waits =
		TFH_DETECT_ASKS_NEXT && (k->state == TFT_STATE_LOCK || k->state == TFT_STATE_EVENT);

	for (uint32_t i = 0; waits && i < n && frame[i].library; i++)
		if (tfh_ends_with(frame[i].function, "__next__"))
			return true;
	return false;
}

/* Whether frame i is the `__next__` of a library's iterator that the program asks, perhaps through
 * a generator of a library (a progress bar's `__iter__`). */
static bool is_asked(const struct tfh_model_line *frame, uint32_t n, uint32_t i)
{
	if (!frame[i].library || !tfh_ends_with(frame[i].function, "__next__"))
		return false;
	for (i++; i < n && frame[i].library; i++)
		if (!tfh_ends_with(frame[i].function, "__iter__"))
			return false;
	return i < n;
}

/* How many frames, from the innermost one on, are those of such an iterator, and of what makes its
 * elements; 0: none, or JAX or PyTorch compute there, so that it rather is a step. */
static uint32_t in_iterator(const struct tfh_model_line *frame, uint32_t n)
{
	uint32_t at = TFH_DETECT_NEXT_MAKES ? n : 0;

	while (at && !is_asked(frame, n, at - 1))
		at--;
	for (uint32_t i = 0; i < at; i++)
		if (tfh_computes_in(&frame[i]))
			return 0;
	return at;
}

enum tfh_role tfh_sampled_role(const struct tfh_start_sample *k, const struct tfh_model_line *frame,
			       uint32_t n)
{
	enum tfh_role role = n ? tfh_place_role(frame, n, TFH_ORDER_UNKNOWN) : TFH_ROLE_NONE;
	uint32_t makes;

	if (role == TFH_ROLE_NONE && asks_iterator(k, frame, n))
		return TFH_ROLE_QUEUE;
	if (role == TFH_ROLE_NONE && (makes = in_iterator(frame, n)))
		return tfh_loader_role(frame, makes, k->state);
	return role == TFH_ROLE_LOADER ? tfh_loader_role(frame, n, k->state) : role;
}

bool tfh_sampled_imports(const struct tfh_model_line *frame, uint32_t n)
{
	const char *file;
	uint32_t at = n ? tfh_start_lead(frame, n) : 0;

	if (n && (!strcmp(frame[at].file, "<frozen site>") || tfh_line_imports(frame, at, &file)))
		return true;
	for (uint32_t i = 0; i < at; i++)
		if (frame[i].library && (!strcmp(frame[i].function, "<module>") ||
					 strstr(frame[i].file, "/importlib/__init__.py")))
			return true;
	return false;
}
