/*
 * How the processes of a job ended that are not children of `tfhook run`. It holds a pidfd of each,
 * from which Linux 6.15 and newer report the exit status. The processes are not affected, and their
 * parents get their status as usual.
 */
#ifndef TFH_CLI_ENDS_H
#define TFH_CLI_ENDS_H

#include <stdint.h>
#include <sys/types.h>

#define TFH_ENDS 64u

struct tfh_ends {
	struct tfh_end_of {
		pid_t pid;
		uint64_t start; /* field 22 of /proc/PID/stat */
		int fd;
		int status; /* as waitpid() gives it, after tfh_ends_ask() */
	} of[TFH_ENDS];
	uint32_t n;
};

/* Adds a running process, if it is not there already. Beyond TFH_ENDS processes, ends stay
 * unknown. */
void tfh_ends_add(struct tfh_ends *e, pid_t pid, uint64_t start);
/* Removes a process, if it is there. */
void tfh_ends_drop(struct tfh_ends *e, pid_t pid, uint64_t start);
/* After the job: keeps the processes whose end is known, and closes all descriptors. */
void tfh_ends_ask(struct tfh_ends *e);

#endif
