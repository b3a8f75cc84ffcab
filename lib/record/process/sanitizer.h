/*
 * Makes a sanitizer in the job (TSan, MSan) ignore tfhook's code. It sees libc's accesses on our
 * behalf but not our own stores, which are not instrumented. So it would report our atomics as
 * races and the memory that the recorder has filled as uninitialised, and end the job with its own
 * exit code. Accesses between begin and end are ignored. No effect without such a runtime.
 */
#ifndef TFH_RECORD_PROCESS_SANITIZER_H
#define TFH_RECORD_PROCESS_SANITIZER_H

/* For the calling thread; nestable. Each begin needs its end before the thread ends. */
void tfh_sanitizer_ignore_begin(void);
void tfh_sanitizer_ignore_end(void);

#endif
