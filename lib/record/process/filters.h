/*
 * Filters of the job's system calls (seccomp) may end the process for a call that the job never makes, but the recorder does. Nothing
 * tells which calls they are, so a child of ours makes each of them once, in a way that has no effect, and the filter ends the child
 * instead. The child is one that no signal and no wait() of the job reports. It is made only where a filter is seen, and from Linux 5.16
 * on: before, a process that ends by a filter takes along those that share its memory.
 *
 * Before the first driver call, only /proc/self/status is read, with calls that the loader has made for the library itself. A filter is
 * then seen in that file, or by the hooks of prctl and syscall through which it is installed.
 */
#ifndef TFH_RECORD_FILTERS_H
#define TFH_RECORD_FILTERS_H

#include <stdbool.h>

/* At load. Returns false if the process is under a filter that is not known yet. */
bool tfh_filters_look(void);
/* Whether the recorder may make its calls. Finds that out when first asked under a filter. tfh_refused then has the calls that
 * recording can do without. */
bool tfh_filters_allow(void);
/* The same as far as it is known already; makes no system call. */
bool tfh_filters_allowed(void);
/* Whether the recorder may still make its calls after this request (number and six arguments), which installs a filter. */
bool tfh_filters_allow_more(const long *install);
/* There is one more filter, which is to be tried before the first call of ours. */
void tfh_filters_changed(void);

#endif
