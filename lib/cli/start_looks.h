/*
 * Looks at the job from outside until it records. A process has no thread of the recorder's before its first recorded call,
 * and what comes before that (imports, reading data) may take long. So `tfhook run`, which only waits for the job, samples
 * what the main threads of its processes do, at random moments, and leaves it in start.json (format/FORMAT.md, 5). Nothing of
 * the job is stopped or changed; it takes at most half a percent of a processor, and less the longer it lasts.
 */
#ifndef TFH_CLI_START_LOOKS_H
#define TFH_CLI_START_LOOKS_H

#include "cli/ends.h"
#include "cli/run.h"

struct tfh_start_looks;

/* For the job that begins with process `pid`. NULL: no looks are wanted, or no memory. `place` must stay. */
struct tfh_start_looks *tfh_start_looks_new(const struct tfh_place *place, pid_t pid);
/* How long until the next look, ns; negative: there are none any more. */
int64_t tfh_start_looks_wait(const struct tfh_start_looks *s);
/* Takes a look, if it is time. */
void tfh_start_looks_take(struct tfh_start_looks *s);
/* The job has ended: writes what has not been written yet. */
void tfh_start_looks_end(struct tfh_start_looks *s);
/* After that: how the processes that recorded ended, as far as known; NULL for NULL. */
const struct tfh_ends *tfh_start_looks_ends(const struct tfh_start_looks *s);
/* Says where the job's main thread was seen: all that is known of a job that recorded nothing. */
void tfh_start_looks_say(const struct tfh_start_looks *s);
void tfh_start_looks_free(struct tfh_start_looks *s);

#endif
