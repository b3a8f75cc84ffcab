/*
 * Ops that fall back to the CPU, without an implementation for the device: in the middle of a step
 * operands are fetched, the host computes, and the result is copied back. All of it, including the
 * computing, is the cost of the fallback.
 */
#include "judge/account/device.h"

/* The copy to the device that follows a fetch in the same window, with no launch and no get-next
 * between; TFH_NO if there is none, or if it has another size. */
static uint32_t copy_back(const struct tfh_slice *sl, uint32_t i, size_t window)
{
	const struct tfh_host_span *from = &sl->span.v[i];
	uint32_t last = sl->thread_span[from->thread + 1];

	for (uint32_t k = i + 1; k < last; k++) {
		const struct tfh_host_span *s = &sl->span.v[k];
		if (s->t0 >= sl->accounts->loops->window.v[window].t1 ||
		    s->activity == TFH_ACTIVITY_INPUT || tfh_family_launches(s->family))
			return TFH_NO;
		if (s->family == TFH_FAM_COPY && s->dir == TFH_DIR_H2D)
			return s->bytes <= TFH_ACCOUNT_FALLBACK_TIMES * from->bytes &&
					       from->bytes <= TFH_ACCOUNT_FALLBACK_TIMES * s->bytes
				       ? k
				       : TFH_NO;
	}
	return TFH_NO;
}

/* Whether the call launches in the window, into this stream unless it is TFH_NO. */
static bool launches_in(const struct tfh_host_span *s, const struct tfh_window *w, uint32_t stream)
{
	return s->t0 >= w->t0 && s->t0 < w->t1 && tfh_family_launches(s->family) &&
	       (stream == TFH_NO || s->stream == stream);
}

/* Whether the stream of the last launch before the fetch continues shortly after the copy back.
 * Otherwise the two copies may belong to parts of a batch that are processed on streams of their
 * own. */
static bool goes_on(const struct tfh_slice *sl, uint32_t fetch, uint32_t back,
		    const struct tfh_window *w)
{
	uint32_t thread = sl->span.v[fetch].thread, at = fetch;
	uint32_t first = sl->thread_span[thread], last = sl->thread_span[thread + 1];

	first = fetch > first + TFH_ACCOUNT_FALLBACK_REACH ? fetch - TFH_ACCOUNT_FALLBACK_REACH
							   : first;
	last = back + TFH_ACCOUNT_FALLBACK_REACH < last ? back + TFH_ACCOUNT_FALLBACK_REACH : last;
	while (at > first && !launches_in(&sl->span.v[at - 1], w, TFH_NO))
		at--;
	if (at == first)
		return false;
	for (uint32_t k = back + 1; k < last; k++)
		if (launches_in(&sl->span.v[k], w, sl->span.v[at - 1].stream))
			return true;
	return false;
}

/* Whether a copy before the next launch sends the host memory into which this fetch wrote. */
static bool returns(const struct tfh_slice *sl, const struct tfh_host_span *fetch, uint32_t back)
{
	uint32_t last = sl->thread_span[fetch->thread + 1];

	for (uint32_t k = back; k < last && !tfh_family_launches(sl->span.v[k].family); k++) {
		const struct tfh_host_span *s = &sl->span.v[k];
		if (s->family == TFH_FAM_COPY && s->dir == TFH_DIR_H2D && fetch->handle &&
		    s->handle == fetch->handle && s->bytes == fetch->bytes)
			return true;
	}
	return false;
}

/* Whether the fetched memory is copied back after less time than the copies take. */
static bool comes_and_goes(const struct tfh_slice *sl, uint32_t fetch, uint32_t back)
{
	int64_t copies = 0, between = 0;
	bool same = false;

	for (uint32_t k = fetch; k <= back; k++) {
		const struct tfh_host_span *s = &sl->span.v[k];
		bool copy = s->family == TFH_FAM_COPY;
		*(copy ? &copies : &between) += s->t1 - s->t0;
		same |= copy && s->dir == TFH_DIR_D2H && returns(sl, s, back);
	}
	return same && between < copies;
}

/* Whether samples show Python at work between the copies. A framework's op without an
 * implementation for the device is native code. The program's own Python uses what was fetched, as
 * an agent does that plays a game. A library's may only prepare the next launch: one that is given
 * host memory (numba, PyCUDA) copies it there and back around each of its launches. */
static bool python_works(const struct tfh_slice *sl, uint32_t fetch, uint32_t back)
{
	const struct tfh_host_span *from = &sl->span.v[fetch], *to = &sl->span.v[back];
	double share[TFH_CAUSE_COUNT], python;

	if (!tfh_pause_causes(sl->accounts, from->thread, from->t1, to->t0, false,
			      TFH_CAUSE_HOST_UNKNOWN, share))
		return false;
	python = share[TFH_CAUSE_HOST_PYTHON];
	if (comes_and_goes(sl, fetch, back))
		python += share[TFH_CAUSE_TRANSFER_SMALL_COPIES] + share[TFH_CAUSE_HOST_LAUNCH];
	return python > TFH_ACCOUNT_FALLBACK_PYTHON;
}

void tfh_mark_fallbacks(struct tfh_slice *sl)
{
	size_t w = sl->w0;

	for (uint32_t i = 0; i < sl->span.n; i++) {
		const struct tfh_host_span *s = &sl->span.v[i];
		if (s->family != TFH_FAM_COPY || s->dir != TFH_DIR_D2H || s->fallback ||
		    s->bytes < TFH_VALUE_BYTES)
			continue;
		w = tfh_window_of(sl->accounts->loops, s->t0, w == SIZE_MAX ? 0 : w);
		uint32_t back = w == SIZE_MAX ? TFH_NO : copy_back(sl, i, w);
		if (back == TFH_NO)
			continue;
		if (!goes_on(sl, i, back, &sl->accounts->loops->window.v[w]) ||
		    python_works(sl, i, back))
			continue;
		for (uint32_t k = i; k <= back; k++)
			sl->span.v[k].fallback = true;
	}
}
