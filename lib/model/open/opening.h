/* Steps of opening a run that live in files of their own. */
#ifndef TFH_MODEL_OPENING_H
#define TFH_MODEL_OPENING_H

#include "model/opened.h"

/* open_run.c */
int tfh_run_add_file(struct tfh_run *run, const char *path, bool temporary, struct tfh_err *err);
/* Ticks of a file on the axis of the run. */
int64_t tfh_run_ns(const struct tfh_run *run, uint32_t file, uint64_t ticks);

/* leftover.c: adds what journals hold that belong to this directory, through temporary files. */
void tfh_run_add_journals(struct tfh_run *run, const char *dir);

/* extras.c: holes, machine samples, notes and calls in flight of one file. 0 or -ENOMEM. */
int tfh_run_read_notes(struct tfh_run *run, uint32_t file);

/* missing.c: files that are not there, and the holes that they leave; clocks are set. 0 or -ENOMEM.
 */
int tfh_run_find_missing(struct tfh_run *run);

#endif
