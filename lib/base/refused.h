/* System calls that recording can do without, and for which a filter of the job would end the
 * process (record/process/filters.h). */
#ifndef TFH_BASE_REFUSED_H
#define TFH_BASE_REFUSED_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum tfh_call {
	TFH_CALL_COPY = 1,   /* process_vm_readv */
	TFH_CALL_QUOTA = 2,  /* quotactl_fd */
	TFH_CALL_POLICY = 4, /* get_mempolicy */
	TFH_CALL_THREAD = 8, /* prctl */
	TFH_CALL_TABLE = 16, /* close_range */
};

extern uint32_t tfh_refused; /* atomic: set of enum tfh_call */

static inline bool tfh_may_call(enum tfh_call call)
{
	return !(__atomic_load_n(&tfh_refused, __ATOMIC_RELAXED) & (uint32_t)call);
}

/* process_vm_readv. Returns -1 with EPERM if a filter forbids it. */
static inline ssize_t tfh_copy_memory(pid_t pid, const struct iovec *to, unsigned long n,
				      const struct iovec *from, unsigned long m)
{
	if (tfh_may_call(TFH_CALL_COPY))
		return process_vm_readv(pid, to, n, from, m, 0);
	errno = EPERM;
	return -1;
}

#endif
