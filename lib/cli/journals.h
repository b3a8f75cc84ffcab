/* Journals of recording processes, as found from outside. */
#ifndef TFH_CLI_JOURNALS_H
#define TFH_CLI_JOURNALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tfh_found_journal {
	char path[4096];
	pid_t pid;
	bool live; /* its owner still runs */
	bool copy; /* it lies in the directory and names another: that was copied or moved */
};

/* All journals of a run directory (absolute path; copies among them), or, with `dir` NULL, of one
 * process: beside the output and in /dev/shm. Fills at most `cap` entries and returns how many
 * there are. */
unsigned tfh_journals_find(const char *dir, pid_t pid, struct tfh_found_journal *found,
			   unsigned cap);

#endif
