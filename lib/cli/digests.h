/* Digests for commands that compare or show runs. */
#ifndef TFH_CLI_DIGESTS_H
#define TFH_CLI_DIGESTS_H

#include <sys/stat.h>

#include "cli/cli.h"
#include "digest/digest.h"

/* The digest of PATH. That is PATH itself if it is one; for a run directory, the digest in it, if
 * it is fresh or nothing else is left; otherwise one made from the recording or trace, in an
 * unnamed file. 0 or -errno with `err`. */
int tfh_digest_get(const char *path, struct tfh_run_digest **out, struct tfh_err *err);

/* The digest that PATH is, or that is in that directory. It must be up to date unless `stale`. 0 or
 * -errno. */
int tfh_digest_here(const char *path, bool stale, struct tfh_run_digest **out);

/* Judges PATH and writes its digest to `fd`, which is closed. `host`: only of the processes of one
 * host of a run directory, NULL: of all. Shows progress on a terminal. 0 or -errno with `err`. */
int tfh_digest_make(const char *path, const char *host, int fd, struct tfh_err *err);

/* digest_update.c: updates the digest of `from`, whose status is `st`, in `out` (NULL: in that
 * directory), and reports it on stdout. If processes of several hosts recorded in a directory, each
 * host has a digest of its own there, <host>.digest.tft; `only`: just that of this host. 0 or
 * -errno with `err`. */
int tfh_digest_update(const char *from, const char *out, const char *only, const struct stat *st,
		      struct tfh_err *err);

/* Whether the run of a directory began on a host, as far as is known. */
bool tfh_run_began_at(const char *dir, const char *host);

/* follow_digests.c: keeps the digest of a run directory up to date until its job has ended, or the
 * digests of all run directories in a folder until a signal arrives. A run's digest is made again
 * every `interval_s` at most. Returns the exit code. */
int tfh_follow_digests(const char *path, double interval_s);

/* Whether all tables of a digest can be read. */
bool tfh_digest_check(const char *path);

/* Prints the contents of a digest; false: PATH is not a digest. */
bool tfh_digest_print(const char *path);

#endif
