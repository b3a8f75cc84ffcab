/* Small files of /proc and /sys. Without stdio: also used inside a job, which may have little stack
 * and no memory. */
#ifndef TFH_BASE_PROC_H
#define TFH_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The file's first size - 1 bytes as a string; "" when it cannot be read. Only of a regular file:
 * whoever opens a FIFO waits for its other end. */
void tfh_read_small(const char *path, char *text, size_t size);
/* The same below a directory, and of no link. -errno when it cannot be read; -EINVAL when it is no
 * regular file. */
int tfh_read_small_at(int at, const char *name, char *text, size_t size);

/* The number behind `key` ("MemTotal:") at the start of a line; UINT64_MAX: there is no such line. */
uint64_t tfh_number_of_line(const char *text, const char *key);

/*
 * Moves a descriptor to a number that programs come to last: just below the soft limit, at most
 * 1,024, since every fork copies a table as long as the highest number. Shells and scripts name
 * numbers up to 255 themselves. Returns the new number, or `fd` where there is no free one.
 */
int tfh_raise_fd(int fd);

/* Start of a process in clock ticks after boot (field 22 of /proc/PID/stat), which tells a reused
 * pid; 0 when there is no such process. */
uint64_t tfh_process_start(pid_t pid);

/* True: the main thread has ended (pthread_exit) and but `n` threads are left, the caller's own. */
bool tfh_last_threads(unsigned n);

/* Number of one of this process' namespaces ("pid", "mnt", ...); 0 when the kernel does not tell.
 */
uint64_t tfh_namespace(const char *name);

/* Bytes that the main thread's own stack may still grow below `here`; 0 if `here` is not in it: a
 * program may run its main thread on a stack of its own making. */
size_t tfh_main_stack_left(const void *here);
/* Bytes of stack that the calling thread has left; 0 when it runs on another one than its own. Asks
 * libc, which allocates. */
size_t tfh_stack_left(void);

#endif
