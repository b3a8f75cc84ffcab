/* Threads that the recorder runs in the job. */
#ifndef TFH_RECORD_PROCESS_THREAD_H
#define TFH_RECORD_PROCESS_THREAD_H

#include <pthread.h>

/* Starts a thread with all signals blocked. Its stack has 2 MiB, because the static TLS of all
 * libraries of a big job is taken from it, and code of CUPTI and NVML may run on it. Returns 0 or
 * an error number. */
int tfh_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/* The first and last thing that such a thread does. Hooked calls in between are not the job's, and
 * a sanitizer ignores the thread's accesses. The name has at most 15 characters. */
void tfh_thread_begin(const char *name);
void tfh_thread_end(void);

#endif
