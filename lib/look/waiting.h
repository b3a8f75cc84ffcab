/*
 * What a thread of this process waits for, read from /proc/self/task/TID/syscall without stopping
 * it (3 to 8 us). The kernel tells which system call it is in, and its arguments.
 */
#ifndef TFH_LOOK_WAITING_H
#define TFH_LOOK_WAITING_H

#include <stddef.h>
#include <stdint.h>

#include "format/layout.h"

#define TFH_WAITING_NAME 256

struct tfh_waiting {
	enum tft_look state;
	uint16_t call; /* system call; 0xffff: it is in none */
	int32_t fd;    /* that it reads, writes or polls, -1: none */
	uint64_t what; /* address of the lock, number of the pipe or socket; 0: none */
	char name[TFH_WAITING_NAME]; /* of the file or device, cut at its beginning; "": none */
};

/* Where Python's global lock lies. Once, at load. */
void tfh_waiting_python(const void *runtime, size_t bytes);
/* A descriptor to look at a thread of a process (0: this one) by, to be closed; -ESRCH: there is no such thread any
 * more; or why the kernel does not tell: -EACCES, -EPERM, -ENOENT. */
int tfh_waiting_open(int32_t pid, uint32_t tid);
/* 0, -ESRCH or as above. */
int tfh_waiting_look(int fd, int32_t pid, uint32_t tid, struct tfh_waiting *out);

/* ---- for tests ---- */

/* From the text of /proc/self/task/TID/syscall; *arg: its first six arguments. */
void tfh_waiting_parse(const char *text, struct tfh_waiting *out, uint64_t arg[6]);
/* From where the link of a descriptor leads; `out->state` says in which direction. */
void tfh_waiting_link(const char *link, struct tfh_waiting *out);

#endif
