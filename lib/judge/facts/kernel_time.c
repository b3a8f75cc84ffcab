/*
 * The share of its CPU time that a process spends in the kernel. Reading a file from the page
 * cache, or writing without waiting for the disk, looks like running code in a sample of the
 * thread; but much of the time is system time. So is that of waking threads or mapping memory,
 * which neither reads nor writes.
 */
#include <math.h>

#include "judge/facts/facts.h"

/* How long the kernel may have read and written since the last sample, at most; 0: not recorded. */
static double io_s(const struct tfh_sample *s)
{
	return (double)s->io_calls * TFH_FACTS_IO_CALL_S + (double)s->io_bytes / TFH_FACTS_IO_RATE;
}

/* Page faults without those of memory into which something was read for the first time. */
static double other_faults(const struct tfh_sample *s)
{
	double read_into =
		TFH_DETECT_IO_CALLS && s->page_bytes ? (double)(s->io_bytes / s->page_bytes) : 0;

	return fmax((double)s->faults - read_into, 0);
}

void tfh_find_kernel_time(struct tfh_facts *facts)
{
	const struct tfh_sample *s = NULL;
	uint32_t n = tfh_machine_samples(facts, &s);
	double cpu = 0, kernel = 0, wall = 0, io = 0;
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
			s[i].system_s - TFH_FACTS_FAULT_TIMES * other_faults(&s[i]) * s[i].fault_s;
		written += s[i].write_bytes;
		io += io_s(&s[i]);
	}
	facts->much_kernel = kernel > TFH_BLOCKING_SHARE * wall &&
			     kernel > TFH_FACTS_KERNEL_SHARE * cpu &&
			     (!TFH_DETECT_IO_CALLS || !(io > 0) || 2 * io > kernel);
	if ((double)written > TFH_FACTS_LINES_RATE * kernel)
		facts->writes = (double)written > TFH_FACTS_WRITE_RATE * kernel ? TFH_WRITES_BYTES
										: TFH_WRITES_LINES;
	facts->kernel_share = cpu > 0 ? kernel / cpu : 0;
}
