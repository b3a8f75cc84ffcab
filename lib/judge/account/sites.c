/* Where in the program the calls were made that take the time: backtraces by the time of their
 * calls. */
#include "judge/internal.h"

/* The weight of the one displaced is inherited, so that what is frequent is never lost (Metwally
 * and others, Space-Saving, 2005). */
void tfh_site_count(struct tfh_site_use *site, const struct tfh_event *ev)
{
	struct tfh_site_use *least = site;

	if (!ev->stack)
		return;
	for (int i = 0; i < TFH_SITES; i++) {
		if (site[i].stack == ev->stack || !site[i].stack) {
			least = &site[i];
			break;
		}
		if (site[i].ns < least->ns)
			least = &site[i];
	}
	least->stack = ev->stack;
	least->fn = ev->fn;
	least->ns += ev->t1 - ev->t0;
}

static const struct tfh_site_use *most_of(const struct tfh_site_use *site)
{
	const struct tfh_site_use *most = site;

	for (int i = 1; i < TFH_SITES; i++)
		if (site[i].ns > most->ns)
			most = &site[i];
	return most;
}

const char *tfh_site_text(const struct tfh_job *job, const struct tfh_site_use *site)
{
	const struct tfh_site_use *most = most_of(site);

	return most->stack && job->feed->site
		       ? job->feed->site(job->feed->arg, job->process, most->stack)
		       : "";
}

/* Which functions a cause's time was spent in: those with the largest parts, as long as they have a
 * tenth of it. */
static const char *pause_line(struct tfh_job *job, enum tfh_cause cause)
{
	struct tfh_pause_site site[TFH_PAUSE_SITES];
	uint32_t n = tfh_cover_sites(job, cause, site);
	const char *line = NULL;

	for (uint32_t i = 0; i < n && job->judged_steps; i++) {
		double ms = (double)site[i].ns / 1e6 / (double)job->judged_steps;
		if (site[i].ns * 10 < job->cause_ns[cause])
			break;
		line = tfh_text(job,
				ms < 999 ? "%s%s%.3g ms of it in %s" : "%s%s%.0f ms of it in %s",
				line ? line : "", line ? ", " : "", ms, site[i].name);
	}
	return line;
}

const char *tfh_site_line(struct tfh_job *job, enum tfh_cause cause)
{
	const struct tfh_site_use *site = cause == TFH_CAUSE_HOST_SYNC	    ? job->wait_site
					  : cause == TFH_CAUSE_HOST_ALLOC   ? job->alloc_site
					  : cause == TFH_CAUSE_HOST_COMPILE ? job->load_site
									    : NULL;
	if (cause == TFH_CAUSE_HOST_PYTHON || cause == TFH_CAUSE_HOST_UNKNOWN ||
	    cause == TFH_CAUSE_HOST_CALLBACK)
		return pause_line(job, cause);
	const char *text = site ? tfh_site_text(job, site) : "";

	return *text ? tfh_text(job, "%s called from %s", most_of(site)->fn->name, text) : NULL;
}

const char *tfh_site_advice(struct tfh_job *job, enum tfh_cause cause)
{
	struct tfh_pause_site site[TFH_PAUSE_SITES];

	if (!job->feed->imported ||
	    (cause != TFH_CAUSE_HOST_PYTHON && cause != TFH_CAUSE_HOST_UNKNOWN))
		return NULL;
	uint32_t n = tfh_cover_sites(job, cause, site);
	bool large = n && site[0].ns * 10 >= job->cause_ns[cause];
	if (!large && tfh_cover_ns(job, cause) * 2 >= job->cause_ns[cause])
		return "do less of it, or in another thread or process, or while the device "
		       "computes; of the functions in the trace none has a tenth of it";
	if (large)
		return tfh_text(job,
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
