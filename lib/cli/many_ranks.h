#ifndef TFH_CLI_MANY_RANKS_H
#define TFH_CLI_MANY_RANKS_H

#include "cli/cli.h"
#include "cli/digests.h"

/* The digests of a run directory's hosts, by name. */
struct tfh_host_digests {
	char **path;
	uint32_t n;
};
/* 0 or -errno. */
int tfh_host_digests_find(const char *dir, struct tfh_host_digests *out);
void tfh_host_digests_free(struct tfh_host_digests *x);

/* Reports a directory that holds digests of hosts, and sets the exit status. False: it holds none,
 * and was not reported. */
bool tfh_report_many(const struct tfh_command_line *args, int *status);

#endif
