/* What is said of device times beside the rows: facts, the reason why there are none, what they
 * cost. */
#include "record/gpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "record/flusher.h"

static uint32_t why_state; /* atomic: 0 none, 1 being written, 2 there */
static char why[512], facts[2048];
static uint32_t facts_bytes, said_bytes;
static uint64_t overhead_ns, overhead_said;
static bool said; /* in this segment */

void tfh_gpu_overhead(uint64_t ns)
{
	overhead_ns = ns;
}

void tfh_gpu_why(const char *fmt, ...)
{
	uint32_t none = 0;
	va_list args;

	if (!__atomic_compare_exchange_n(&why_state, &none, 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	__atomic_store_n(&why_state, 2, __ATOMIC_RELEASE);
	tfh_log(1, "no device times: %s", why);
}

void tfh_gpu_fact(const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(facts + facts_bytes, sizeof(facts) - facts_bytes - 1, fmt, args);
	va_end(args);
	if (n <= 0 || facts_bytes + (uint32_t)n + 1 >= sizeof(facts))
		return;
	facts[facts_bytes + (uint32_t)n] = '\n';
	facts_bytes += (uint32_t)n + 1;
}

int tfh_gpu_put_notes(void)
{
	char text[sizeof(facts) + sizeof(why) + 128];
	/* Rarely, and yet not far from the truth in the file of a job that is killed. */
	bool costs = overhead_ns > overhead_said + overhead_said / 4 ||
		     (tfh_gpu_exiting() && overhead_ns > overhead_said);
	int n, err;

	if (said && said_bytes == facts_bytes && !costs)
		return 0;
	if (!facts_bytes && __atomic_load_n(&why_state, __ATOMIC_ACQUIRE) != 2)
		return 0;
	n = snprintf(text, sizeof(text), "%.*s", (int)facts_bytes, facts);
	if (__atomic_load_n(&why_state, __ATOMIC_ACQUIRE) == 2)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "gpu.why=%s\n", why);
	if (overhead_ns)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "gpu.overhead_ns=%llu\n",
			      (unsigned long long)overhead_ns);
	err = tft_write_chunk(tfh_f.seg.writer, TFT_NOTE, text, (uint32_t)n);
	said = !err;
	if (!err)
		overhead_said = overhead_ns;
	said_bytes = facts_bytes;
	return err;
}

bool tfh_gpu_said(void)
{
	return said;
}

void tfh_gpu_new_segment(void)
{
	said = false;
}

void tfh_gpu_forget_notes(void)
{
	why_state = facts_bytes = said_bytes = 0;
	overhead_ns = overhead_said = 0;
	said = false;
}
