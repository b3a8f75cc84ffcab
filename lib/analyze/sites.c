/* Where in the program the calls were made that take the time: backtraces by the time of their
 * calls. */
#include "analyze/internal.h"

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

const char *tfh_site_line(struct tfh_job *job, enum tfh_cause cause)
{
	const struct tfh_site_use *site = cause == TFH_CAUSE_HOST_SYNC	    ? job->wait_site
					  : cause == TFH_CAUSE_HOST_ALLOC   ? job->alloc_site
					  : cause == TFH_CAUSE_HOST_COMPILE ? job->load_site
									    : NULL;
	const char *text = site ? tfh_site_text(job, site) : "";

	return *text ? tfh_text(job, "%s called from %s", most_of(site)->fn->name, text) : NULL;
}
