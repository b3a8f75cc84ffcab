/*
 * A sanitizer built into the job (of threads: TSan; of memory: MSan) sees what libc does for us,
 * but not our own stores, which are not instrumented: it would report the order that our atomics
 * give, and memory that we have filled, to the job and end it with its own exit code. What lies
 * between begin and end is not looked at. Nothing, without such a runtime.
 */
#ifndef TFH_RECORD_SANITIZER_H
#define TFH_RECORD_SANITIZER_H

/* Of the calling thread, nested; each begin needs its end before the thread ends. */
void tfh_sanitizer_ignore_begin(void);
void tfh_sanitizer_ignore_end(void);

#endif
