/*
 * Samples the job from outside until it records. A process has no recorder thread before its first
 * recorded call, and what comes before it (imports, reading data) may take long. So `tfhook run`,
 * which only waits for the job, samples the main threads of its processes at random moments, and
 * writes the samples to start.json (format/FORMAT.md, 5). Where the main thread waits, it also
 * samples one of the process' other Python threads. It neither stops nor changes the job. It
 * takes at most half a percent of a processor, and less the longer it lasts.
 */
#ifndef TFH_CLI_START_SAMPLES_H
#define TFH_CLI_START_SAMPLES_H

#include "cli/ends.h"
#include "cli/run.h"

struct tfh_start_samples;

/* For the job that begins with process `pid`. NULL: no samples are wanted, or out of memory.
 * `place` must remain valid. */
struct tfh_start_samples *tfh_start_samples_new(const struct tfh_place *place, pid_t pid);
/* Time until the next sample, ns; negative: there are no more. */
int64_t tfh_start_samples_wait(const struct tfh_start_samples *s);
/* Takes a sample if one is due. */
void tfh_start_samples_take(struct tfh_start_samples *s);
/* After the job: writes what has not been written yet. */
void tfh_start_samples_end(struct tfh_start_samples *s);
/* After tfh_start_samples_end(): how the processes that recorded ended, if known; NULL for NULL. */
const struct tfh_ends *tfh_start_samples_ends(const struct tfh_start_samples *s);
/* Likewise: whether samples were written. They are all that is known of a job that recorded
 * nothing. */
bool tfh_start_samples_kept(const struct tfh_start_samples *s);
/* If none were: the largest number of samples with a line that any process had. */
uint32_t tfh_start_samples_placed(const struct tfh_start_samples *s);
void tfh_start_samples_free(struct tfh_start_samples *s);

#endif
