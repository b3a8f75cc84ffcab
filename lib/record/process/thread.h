/* Threads that the recorder runs in the job. */
#ifndef TFH_RECORD_THREAD_H
#define TFH_RECORD_THREAD_H

#include <pthread.h>

/* Starts a thread with all signals blocked and a stack of 2 MiB: the static TLS of all libraries of a
 * big job is taken from it, and CUPTI's and NVML's code may run on it. 0 or an error number. */
int tfh_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/* First and last thing that such a thread does: hooked calls in between are not the job's, and a
 * sanitizer ignores its accesses. The name has at most 15 characters. */
void tfh_thread_begin(const char *name);
void tfh_thread_end(void);

#endif
