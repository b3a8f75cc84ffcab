/* The class of some charged time (tfh_class_of()): of a step, or of the run. docs/judging_class.md
 * has the rules in words. */
#include <math.h>
#include <string.h>

#include "judge/account/account.h"

void tfh_blocking_of(const double part[TFH_PART_COUNT], double by_class[TFH_CLASS_COUNT])
{
	memset(by_class, 0, TFH_CLASS_COUNT * sizeof(*by_class));
	for (int p = 0; p < TFH_PART_COUNT; p++)
		by_class[tfh_part_class(p)] += part[p];
}

bool tfh_class_blocks(enum tfh_class cls)
{
	return cls != TFH_CLASS_NONE && cls != TFH_CLASS_COMPUTE_BOUND &&
	       cls != TFH_CLASS_BALANCED && cls != TFH_CLASS_UNCLASSIFIED;
}

/* The class that blocks most; `next`: how long the second one does. */
static enum tfh_class worst(const double by_class[TFH_CLASS_COUNT], double *next)
{
	enum tfh_class best = TFH_CLASS_INPUT_BOUND;

	*next = 0;
	for (int c = best + 1; c < TFH_CLASS_COUNT; c++) {
		if (!tfh_class_blocks(c))
			continue;
		*next = fmax(*next, fmin(by_class[c], by_class[best]));
		if (by_class[c] > by_class[best])
			best = c;
	}
	return best;
}

enum tfh_class tfh_class_of(const double part[TFH_PART_COUNT], double total)
{
	double by_class[TFH_CLASS_COUNT], next, unknown = part[TFH_PART_UNATTRIBUTED];

	tfh_blocking_of(part, by_class);
	enum tfh_class c = worst(by_class, &next);
	/* Much time without a cause leaves the class open, unless none of the others would have
	 * more even with all of it. */
	if (total <= 0 ||
	    (unknown > TFH_UNATTRIBUTED_SHARE * total && by_class[c] <= next + unknown))
		return TFH_CLASS_UNCLASSIFIED;
	if (part[TFH_PART_COMPUTE] >= TFH_ACCOUNT_COMPUTE_SHARE * total)
		return TFH_CLASS_COMPUTE_BOUND;
	if (by_class[c] < (1 - TFH_ACCOUNT_COMPUTE_SHARE) * total &&
	    part[TFH_PART_COMPUTE] > total / 2)
		return TFH_CLASS_COMPUTE_BOUND;
	return by_class[c] >= TFH_BLOCKING_SHARE * total ? c : TFH_CLASS_BALANCED;
}

enum tfh_cause tfh_largest_cause(const int64_t cause[TFH_CAUSE_COUNT], enum tfh_class cls)
{
	enum tfh_cause best = TFH_CAUSE_NONE;

	if (cls == TFH_CLASS_NONE)
		return TFH_CAUSE_NONE;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (tfh_cause_class(c) == cls && cause[c] > 0 &&
		    (best < 0 || cause[c] > cause[best]))
			best = c;
	return best;
}
