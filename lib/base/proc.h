/*
 * Small files in /proc and /sys. They are read without stdio, since jobs may have little stack and
 * no memory left.
 */
#ifndef TFH_BASE_PROC_H
#define TFH_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads the first size - 1 bytes as a string; "" if unreadable. Regular files only: opening a FIFO
 * would block. */
void tfh_read_small(const char *path, char *text, size_t size);
/* Like tfh_read_small(), relative to a directory and without following links. Returns -errno if
 * unreadable, -EINVAL if it is not a regular file. */
int tfh_read_small_at(int at, const char *name, char *text, size_t size);

/* The number after `key` ("MemTotal:") at the start of a line; UINT64_MAX if there is no such line.
 */
uint64_t tfh_number_of_line(const char *text, const char *key);

/*
 * Moves a descriptor to a number that programs rarely reach: just below the soft limit, at most
 * 1,024, since every fork copies a table up to the highest number. Shell scripts use numbers up to
 * 255. Returns the new number, or `fd` if none is free.
 */
int tfh_raise_fd(int fd);

/* Start time of a process in clock ticks after boot (field 22 of /proc/PID/stat), which
 * distinguishes a reused pid; 0 if there is no such process. */
uint64_t tfh_process_start(pid_t pid);

/* The processes that a thread has started and that still exist: at most `most`, and those that the
 * kernel lists in 1 KiB. Returns their number. */
uint32_t tfh_children(pid_t pid, uint32_t tid, int32_t *child, uint32_t most);
/* The same of all threads of a process, at most 64 of them. Allocates memory. */
uint32_t tfh_all_children(pid_t pid, int32_t *child, uint32_t most);

/* True if the main thread has ended (pthread_exit) and only `n` threads are left, which are the
 * caller's own. */
bool tfh_last_threads(unsigned n);
/* A number that changes with the system call filters of the calling thread. A filter that the job
 * sets on all its threads may end the job when we make a system call. */
uint32_t tfh_call_filters(int fd);
/* Opens the descriptor for tfh_call_filters(), which belongs to the calling thread; the caller
 * closes it. */
int tfh_call_filters_open(void);

/* Whether the eight bytes at `address` can be read. Takes 0.1 us, needs no memory, and makes a
 * system call that every filter allows. Preserves errno. */
bool tfh_readable(const void *address);

/* Number of one of this process's namespaces ("pid", "mnt", ...); 0 if unknown. */
uint64_t tfh_namespace(const char *name);

/* Bytes that the main thread's stack may still grow below `here`; 0 if `here` is not in it (a
 * program may run its main thread on another stack). */
size_t tfh_main_stack_left(const void *here);
/* Bytes of stack left to the calling thread; 0 if it runs on another stack than its own. libc
 * allocates for this. */
size_t tfh_stack_left(void);

#endif
