/*
 * What is reported about device times besides the rows: facts, the reason why there are none, and
 * their cost.
 */
#include "record/gpu/gpu.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "format/tft_write.h"
#include "record/process/log.h"

static uint32_t why_state; /* atomic: 0 none, 1 being written, 2 there */
static char why[512];
#define FACTS 32
#define FACT_BYTES 256
/* Each fact has a place of its own, so the job's threads and the flusher need not wait for each
 * other. */
static struct {
	uint32_t ready; /* atomic */
	char text[FACT_BYTES];
} fact[FACTS];
static uint32_t facts; /* atomic: places taken; may exceed their number */
static uint32_t facts_said;
static uint64_t overhead_ns, own_ns, costs_said;
static bool said; /* written to segment `of_segment` */
static uint32_t of_segment;

void tfh_gpu_overhead(uint64_t ns)
{
	overhead_ns = ns;
}

void tfh_gpu_own_cost(uint64_t ns)
{
	own_ns += ns;
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
	uint32_t i = __atomic_fetch_add(&facts, 1, __ATOMIC_RELAXED);
	va_list args;

	if (i >= FACTS)
		return;
	va_start(args, fmt);
	vsnprintf(fact[i].text, FACT_BYTES, fmt, args);
	va_end(args);
	__atomic_store_n(&fact[i].ready, 1, __ATOMIC_RELEASE);
}

static uint32_t facts_ready(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < FACTS; i++)
		n += __atomic_load_n(&fact[i].ready, __ATOMIC_ACQUIRE);
	return n;
}

/* Returns how many facts were put. */
static uint32_t put_facts(char *text, size_t size, size_t *len)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < FACTS; i++)
		if (__atomic_load_n(&fact[i].ready, __ATOMIC_ACQUIRE)) {
			*len += (size_t)snprintf(text + *len, size - *len, "%s\n", fact[i].text);
			n++;
		}
	return n;
}

bool tfh_gpu_said(uint32_t segment)
{
	if (segment != of_segment)
		said = false;
	of_segment = segment;
	return said;
}

int tfh_gpu_put_notes(struct tft_writer *w, uint32_t segment, bool last)
{
	const size_t size = FACTS * (FACT_BYTES + 1) + sizeof(why) + 192;
	static char *text; /* owned by the flusher */
	uint32_t n;
	size_t len = 0;
	/* Written rarely, but often enough to be roughly right in the file of a killed job. */
	uint64_t costs_now = overhead_ns + own_ns;
	bool costs = costs_now > costs_said + costs_said / 4 || (last && costs_now > costs_said);
	int err;

	if (tfh_gpu_said(segment) && facts_said == facts_ready() && !costs)
		return 0;
	if (!facts_ready() && __atomic_load_n(&why_state, __ATOMIC_ACQUIRE) != 2)
		return 0;
	if (!tfh_map_once(&text, size))
		return -ENOMEM;
	n = put_facts(text, size, &len);
	if (__atomic_load_n(&why_state, __ATOMIC_ACQUIRE) == 2)
		len += (size_t)snprintf(text + len, size - len, "gpu.why=%s\n", why);
	if (overhead_ns)
		len += (size_t)snprintf(text + len, size - len, "gpu.overhead_ns=%llu\n",
					(unsigned long long)overhead_ns);
	if (own_ns)
		len += (size_t)snprintf(text + len, size - len, "gpu.recorder_ns=%llu\n",
					(unsigned long long)own_ns);
	err = tft_write_chunk(w, TFT_NOTE, text, (uint32_t)len);
	said = !err;
	if (!err)
		costs_said = costs_now;
	facts_said = n;
	return err;
}

void tfh_gpu_forget_notes(void)
{
	why_state = facts = facts_said = 0;
	for (uint32_t i = 0; i < FACTS; i++)
		fact[i].ready = 0;
	overhead_ns = own_ns = costs_said = 0;
	said = false;
}
