#include "base/bisect.h"
#include "judge/loops/loops.h"

/* The window that contains t: the last one that begins at or before t. */
size_t tfh_window_of(const struct tfh_loops *loops, int64_t t, size_t hint)
{
	const struct tfh_window *w = loops->window.v;
	size_t n = loops->window.n;

	if (hint < n && w[hint].t0 <= t && t < w[hint].t1)
		return hint;
	if (hint + 1 < n && w[hint + 1].t0 <= t && t < w[hint + 1].t1)
		return hint + 1;
	size_t lo = TFH_BISECT(i, 0, n, w[i].t0 <= t);
	return lo && t < w[lo - 1].t1 ? lo - 1 : SIZE_MAX;
}
