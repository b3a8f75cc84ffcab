/* run.json: what was run, where, and with which settings. */
#ifndef TFH_BASE_RUNJSON_H
#define TFH_BASE_RUNJSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tfh_run_facts {
	const char *launch; /* what the processes of one launch have in common */
	const char *exe;    /* NULL: not known yet */
	char *const *argv;  /* ends with NULL */
	int64_t world;	    /* ranks; -1: not known */
};

/* Writes the document without secrets; it takes the rest from this process. Returns 0 or
 * tfh_json_finish()'s error. Needs little stack. Not thread-safe. */
int tfh_runjson_print(FILE *out, const struct tfh_run_facts *facts);

/* Identifies the process group of this process: leader's pid, its start time and the machine's
 * boot. */
void tfh_launch_id(char *text, size_t size);

/* UTC with milliseconds, from nanoseconds since 1970. */
void tfh_utc_text(char out[32], int64_t ns);

#endif
