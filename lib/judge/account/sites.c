/* Where in the program the time-consuming calls were made: backtraces with the time of their
 * calls. */
#include "judge/account/account.h"

/* Adds time to the entry of its stack or, without a stack, of its function. If the table is full,
 * the smallest entry is replaced, and its time is inherited, so that frequent ones are never lost
 * (Metwally and others, Space-Saving, 2005). */
static void count(struct tfh_site_use *site, uint32_t stack, const struct tfh_fn_info *fn,
		  int64_t ns)
{
	struct tfh_site_use *least = site;

	for (int i = 0; i < TFH_ACCOUNT_SITES; i++) {
		bool same = site[i].stack == stack && (stack || site[i].fn == fn);
		if (same || (!site[i].stack && !site[i].ns)) {
			least = &site[i];
			break;
		}
		if (site[i].ns < least->ns)
			least = &site[i];
	}
	least->stack = stack;
	least->fn = fn;
	least->ns += ns;
}

void tfh_site_count(struct tfh_site_use *site, const struct tfh_event *ev)
{
	if (ev->stack)
		count(site, ev->stack, ev->fn, ev->t1 - ev->t0);
}

void tfh_site_count_function(struct tfh_site_use *fn, const struct tfh_event *ev)
{
	count(fn, 0, ev->fn, ev->t1 - ev->t0);
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
