/* Where in the program the time went, in words. */
#include "judge/words/text.h"

/* Which functions a cause's time was spent in: those with the largest parts, as long as they have a
 * tenth of it. */
static const char *pause_line(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	struct tfh_pause_site site[TFH_PAUSE_SITES];
	uint32_t n = tfh_pauses_sites(accounts, cause, site);
	const char *line = NULL;

	for (uint32_t i = 0; i < n && accounts->judged_steps; i++) {
		double ms = (double)site[i].ns / 1e6 / (double)accounts->judged_steps;
		if (site[i].ns * 10 < accounts->cause_ns[cause])
			break;
		line = tfh_text(accounts->facts->arena,
				ms < 999 ? "%s%s%.3g ms of it in %s" : "%s%s%.0f ms of it in %s",
				line ? line : "", line ? ", " : "", ms, site[i].name);
	}
	return line;
}

const char *tfh_site_line(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	const struct tfh_site_use *site = cause == TFH_CAUSE_HOST_SYNC	    ? accounts->wait_site
					  : cause == TFH_CAUSE_HOST_ALLOC   ? accounts->alloc_site
					  : cause == TFH_CAUSE_HOST_COMPILE ? accounts->load_site
									    : NULL;
	if (cause == TFH_CAUSE_HOST_PYTHON || cause == TFH_CAUSE_HOST_UNKNOWN ||
	    cause == TFH_CAUSE_HOST_CALLBACK)
		return pause_line(accounts, cause);
	const char *text = site ? tfh_site_text(accounts, site) : "";

	return *text ? tfh_text(accounts->facts->arena, "%s called from %s",
				tfh_site_most(site)->fn->name, text)
		     : NULL;
}

const char *tfh_site_advice(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	struct tfh_pause_site site[TFH_PAUSE_SITES];

	if (!accounts->facts->feed->imported ||
	    (cause != TFH_CAUSE_HOST_PYTHON && cause != TFH_CAUSE_HOST_UNKNOWN))
		return NULL;
	uint32_t n = tfh_pauses_sites(accounts, cause, site);
	bool large = n && site[0].ns * 10 >= accounts->cause_ns[cause];
	if (!large && tfh_pauses_ns(accounts, cause) * 2 >= accounts->cause_ns[cause])
		return "do less of it, or in another thread or process, or while the device "
		       "computes; of the functions in the trace none has a tenth of it";
	if (large)
		return tfh_text(accounts->facts->arena,
				cause == TFH_CAUSE_HOST_PYTHON
					? "make %s faster, or do it less often, in another thread "
					  "or process, or while the device computes"
					: "see what %s waits for or makes ready, and do it less "
					  "often, beforehand, or while the device computes",
				site[0].name);
	return "record once more with the functions of Python (with_stack=True, or the Python "
	       "tracer) to see what that thread does, and do it less often, in another thread, or "
	       "while the device computes";
}
