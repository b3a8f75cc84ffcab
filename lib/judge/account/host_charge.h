/* Charges the merged line of host time (flatten.c), span by span, for host_line.c. */
#ifndef TFH_JUDGE_ACCOUNT_HOST_CHARGE_H
#define TFH_JUDGE_ACCOUNT_HOST_CHARGE_H

#include "judge/account/inferred.h"

struct tfh_host_charge {
	struct tfh_accounts *accounts;
	struct tfh_open_accounts *open;
	const double *brief; /* shares of causes in short pauses; NULL: they are launching */
	struct tfh_inferred device;
	uint64_t fetched; /* launches before the last blocking copy */
};

/* Charges [t0, t1), a part of the call `p`, or of a pause (NULL). `arg`: a struct
 * tfh_host_charge. */
void tfh_host_charge_span(void *arg, int64_t t0, int64_t t1, const struct tfh_piece *p);

#endif
