/* Where in the program the time-consuming calls were made: backtraces with the time of their
 * calls. */
#include "judge/account/account.h"

/* If the table is full, the smallest entry is replaced, and its time is inherited, so that frequent
 * ones are never lost (Metwally and others, Space-Saving, 2005). */
void tfh_site_count(struct tfh_site_use *site, const struct tfh_event *ev)
{
	struct tfh_site_use *least = site;

	if (!ev->stack)
		return;
	for (int i = 0; i < TFH_ACCOUNT_SITES; i++) {
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

void tfh_queued_count(struct tfh_queued_use *use, const struct tfh_event *ev)
{
	struct tfh_queued_use *least = use;

	for (int i = 0; i < TFH_ACCOUNT_SITES; i++) {
		if (use[i].address == ev->w[0] || !use[i].address) {
			least = &use[i];
			break;
		}
		if (use[i].ns < least->ns)
			least = &use[i];
	}
	least->address = ev->w[0];
	least->ns += ev->t1 - ev->t0;
}

const struct tfh_site_use *tfh_wait_sites(const struct tfh_accounts *accounts, size_t *at)
{
	while (*at <= accounts->copy.n) {
		size_t i = (*at)++;
		if (!i)
			return accounts->wait_site;
		if (accounts->copy.v[i - 1].blocking)
			return accounts->copy.v[i - 1].site;
	}
	return NULL;
}

const struct tfh_site_use *tfh_site_most(const struct tfh_site_use *site)
{
	const struct tfh_site_use *most = site;

	for (int i = 1; i < TFH_ACCOUNT_SITES; i++)
		if (site[i].ns > most->ns)
			most = &site[i];
	return most;
}

const char *tfh_site_text(const struct tfh_accounts *accounts, const struct tfh_site_use *site)
{
	const struct tfh_site_use *most = tfh_site_most(site);

	return most->stack && accounts->facts->feed->site
		       ? accounts->facts->feed->site(accounts->facts->feed->arg,
						     accounts->facts->process, most->stack)
		       : "";
}
