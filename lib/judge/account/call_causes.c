/* The causes of calls that are charged for what they do. */
#include "judge/account/account.h"

enum tfh_cause tfh_exec_cause(const struct tfh_accounts *accounts, bool saves, bool makes,
			      bool logs)
{
	if (makes && !saves)
		return accounts->evaluates ? TFH_CAUSE_HOST_CALLBACK : TFH_CAUSE_HOST_COMPILE;
	return saves  ? TFH_CAUSE_HOST_CHECKPOINT
	       : logs ? TFH_CAUSE_HOST_LOGGING
		      : TFH_CAUSE_HOST_LAUNCH;
}

enum tfh_cause tfh_other_cause(enum tfh_family family, int64_t ns)
{
	if (family == TFH_FAM_GRAPH && ns > TFH_ACCOUNT_GRAPH_NS)
		return TFH_CAUSE_HOST_COMPILE;
	if (family == TFH_FAM_MANAGED)
		return TFH_CAUSE_TRANSFER_MANAGED;
	return ns < TFH_GAP_NS ? TFH_CAUSE_HOST_LAUNCH : TFH_CAUSE_HOST_UNKNOWN;
}
