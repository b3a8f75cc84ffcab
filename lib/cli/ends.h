/*
 * How the processes of a job ended, of which `tfhook run` is no parent: by descriptors that it holds of them, where the kernel tells
 * (Linux 6.15 and newer). Nothing of the processes is touched, and their parents get their status as ever.
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

/* A process that runs; of more than TFH_ENDS nothing will be known. */
void tfh_ends_add(struct tfh_ends *e, pid_t pid, uint64_t start);
/* After the job: keeps those whose end is known, and closes all descriptors. */
void tfh_ends_ask(struct tfh_ends *e);

#endif
