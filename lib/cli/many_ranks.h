/* `tfhook report` on the digests of the hosts of one job. */
#ifndef TFH_CLI_MANY_RANKS_H
#define TFH_CLI_MANY_RANKS_H

#include "cli/cli.h"

/* Reports a directory that holds digests of hosts, and sets the exit status. False: it holds none,
 * and was not reported. */
bool tfh_report_many(const struct tfh_command_line *args, int *status);

#endif
