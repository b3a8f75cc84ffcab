/*
 * The only writer of accounts, and of the chains that keep charges with their times. The host line
 * charges through open_accounts.c, the device line through blame.c.
 */
#include "judge/account/account.h"

void tfh_account_add(struct tfh_account *a, int64_t ns, enum tfh_cause cause, bool direct)
{
	*(cause == TFH_CAUSE_NONE ? &a->compute : &a->cause[cause]) += ns;
	a->direct += direct ? ns : 0;
}

void tfh_account_sum(struct tfh_account *sum, const struct tfh_account *a)
{
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		sum->cause[c] += a->cause[c];
	sum->compute += a->compute;
	sum->direct += a->direct;
}

void tfh_account_charge(struct tfh_account *a, struct tfh_chain *chain, int64_t t0, int64_t t1,
			enum tfh_cause cause, bool direct)
{
	if (t1 <= t0)
		return;
	tfh_account_add(a, t1 - t0, cause, direct);
	if (chain)
		tfh_chain_add(chain, &(struct tfh_link){.t0 = t0, .t1 = t1, .cause = cause});
}

uint32_t tfh_divide(int64_t t0, int64_t t1, const double share[TFH_CAUSE_COUNT],
		    struct tfh_share_end part[TFH_CAUSE_COUNT])
{
	double sum = 0;
	uint32_t n = 0;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		if (share[c] <= 0)
			continue;
		sum += share[c];
		int64_t t = t0 + (int64_t)(sum * (double)(t1 - t0));
		part[n++] = (struct tfh_share_end){t < t1 ? t : t1, c};
	}
	if (n) /* the rest is a rounding error */
		part[n - 1].t1 = t1;
	return n;
}
