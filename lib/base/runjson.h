/* run.json: what was run, where and with which settings. */
#ifndef TFH_BASE_RUNJSON_H
#define TFH_BASE_RUNJSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tfh_run_facts {
	const char *launch; /* what its processes, and no others, have in common */
	const char *exe;    /* NULL: not known yet */
	char *const *argv;  /* ends with NULL */
	int64_t world;	    /* ranks; -1: not known */
	bool no_env;	    /* another thread may be changing the environment */
};

/* Writes the document, secrets left out; the rest is asked of this process. 0, or -errno as of
 * tfh_json_finish(). Needs little of the stack; not for two threads at once. */
int tfh_runjson_print(FILE *out, const struct tfh_run_facts *facts);

/* The process group of this process as an identity: leader's pid, its start and the machine's boot.
 */
void tfh_launch_id(char *text, size_t size);

/* UTC with milliseconds, of nanoseconds since 1970. */
void tfh_utc_text(char out[32], int64_t ns);

#endif
