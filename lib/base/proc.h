/* Small files of /proc and /sys. Without stdio: also used inside a job, which may have little stack
 * and no memory. */
#ifndef TFH_BASE_PROC_H
#define TFH_BASE_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The file's first size - 1 bytes as a string; "" when it cannot be read. */
void tfh_read_small(const char *path, char *text, size_t size);

/* Start of a process in clock ticks after boot (field 22 of /proc/PID/stat), which tells a reused
 * pid; 0 when there is no such process. */
uint64_t tfh_process_start(pid_t pid);

/* Bytes that the main thread's own stack may still grow below `here`; 0 if `here` is not in it: a
 * program may run its main thread on a stack of its own making. */
size_t tfh_main_stack_left(const void *here);
/* Bytes of stack that the calling thread has left; 0 when it runs on another one than its own. Asks
 * libc, which allocates. */
size_t tfh_stack_left(void);

#endif
