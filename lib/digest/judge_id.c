/* Identifies the judge that made a digest. The build derives it from all sources that decide what a
 * digest says. */
#include "digest/digest.h"
#include "tfhook/version.h"

#ifndef TFH_JUDGE_ID
#define TFH_JUDGE_ID "0"
#endif

const char *tfh_judge_id(void)
{
	return TFHOOK_VERSION "-" TFH_JUDGE_ID;
}
