/*
 * A filter of the job's system calls (seccomp) may end the process for a call that the recorder
 * makes but the job never does. The filter cannot be queried, so a child process makes each such
 * call once, in a way that has no effect, and the filter ends the child instead. No signal and no
 * wait() of the job reports that child. It is created only where a filter is present, and only from
 * Linux 5.16 on: in earlier kernels, a process that a filter ends takes along all processes that
 * share its memory.
 *
 * Before the first driver call, only /proc/self/status is read, with calls that the loader has
 * already made to load the library. A filter shows in that file, or in the hooks of prctl and
 * syscall, through which filters are installed.
 */
#ifndef TFH_RECORD_PROCESS_FILTERS_H
#define TFH_RECORD_PROCESS_FILTERS_H

#include <stdbool.h>
#include <stdint.h>

/* Called at load. Returns false if the process has a filter that has not been tried yet. */
bool tfh_filters_find(void);
/* Whether the recorder may make its calls. The first call under a filter tries it, and adds refused
 * calls that recording can do without to tfh_refused. */
bool tfh_filters_allow(void);
/* Whether that is already known to be so. Makes no system call. */
bool tfh_filters_allowed(void);
/* Whether the recorder may still make its calls after this request (number and six arguments),
 * which installs a filter. */
bool tfh_filters_allow_more(const long *install);
/* Another filter was installed. It is tried before the recorder's next call. */
void tfh_filters_changed(void);
/* How many filters the job has asked for so far. */
uint32_t tfh_filters_asked(void);

#endif
