/*
 * The share of its CPU time that a process spends in the kernel. Reading a file from the page
 * cache, or writing without waiting for the disk, looks like running code in a sample of the
 * thread; but much of the time is system time.
 */
#include "judge/facts/facts.h"

void tfh_find_kernel_time(struct tfh_facts *facts)
{
	const struct tfh_feed *f = facts->feed;
	const struct tfh_sample *s = NULL;
	uint32_t n = f->samples ? f->samples(f->arg, facts->process, &s) : 0;
	double cpu = 0, kernel = 0, wall = 0;
	uint64_t written = 0;
	int64_t from = 0;

	for (int i = 0; i < TFH_PHASE_COUNT; i++)
		from = facts->phase[i] > from ? facts->phase[i] : from;
	for (uint32_t i = 1; i < n; i++) {
		if (s[i - 1].t < from || s[i].t > facts->last_work)
			continue;
		wall += (double)(s[i].t - s[i - 1].t) / 1e9;
		cpu += s[i].cpu_s;
		kernel +=
			s[i].system_s - TFH_FACTS_FAULT_TIMES * (double)s[i].faults * s[i].fault_s;
		written += s[i].write_bytes;
	}
	facts->much_kernel =
		kernel > TFH_BLOCKING_SHARE * wall && kernel > TFH_FACTS_KERNEL_SHARE * cpu;
	if ((double)written > TFH_FACTS_LINES_RATE * kernel)
		facts->writes = (double)written > TFH_FACTS_WRITE_RATE * kernel ? TFH_WRITES_BYTES
										: TFH_WRITES_LINES;
	facts->kernel_share = cpu > 0 ? kernel / cpu : 0;
}
