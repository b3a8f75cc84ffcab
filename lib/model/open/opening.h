/* Steps of opening a run that live in files of their own. */
#ifndef TFH_MODEL_OPENING_H
#define TFH_MODEL_OPENING_H

#include "model/opened.h"

/* add_file.c. `temporary`: it is removed when the run is closed. 0 or -errno */
int tfh_run_add_file(struct tfh_run *run, const char *path, bool temporary, struct tfh_err *err);

/* Files in order of their process, those of one in the order in which they were added; to be freed.
 * NULL: no memory. */
uint32_t *tfh_files_by_process(const struct tfh_run *run);

/* leftover.c: adds what journals hold that belong to this directory, through temporary files. */
void tfh_run_add_journals(struct tfh_run *run, const char *dir);

/* extras.c: holes, machine samples, notes and calls in flight of one file. 0 or -ENOMEM. */
int tfh_run_read_notes(struct tfh_run *run, uint32_t file);

/* open_looks.c: what the threads of calls in flight were seen at; all notes are read, and chunks are in
 * order. 0 or -ENOMEM. */
int tfh_run_look_at_flight(struct tfh_run *run);

/* meter_lines.c: an entry of a sample that says something of the machine (others are ignored), in order of
 * time; 0 or -ENOMEM. When all are there they are sorted as the table has them. */
struct tft_sample_thread;
int tfh_run_add_reading(struct tfh_model_proc *p, int64_t t, const struct tft_sample_thread *entry);
void tfh_run_sort_meters(struct tfh_model_proc *p);
void tfh_run_free_meters(struct tfh_model_proc *p);

/* missing.c: files that are not there, and the holes that they leave; clocks are set. 0 or -ENOMEM.
 */
int tfh_run_find_missing(struct tfh_run *run);

/* stretches.c: from the chunks' headers; clocks are set. 0 or -ENOMEM */
int tfh_run_find_stretches(struct tfh_run *run);

/* meta.c */
struct tfh_meta {
	const char **argv;
	uint32_t argc;
	const char *host;
	enum tfh_end end;
	int number;
	double wall_s;	  /* 0: not known */
	int64_t start_ns; /* of the command, since 1970; 0: not known */
	bool has_run, has_end;
};
void tfh_meta_read(struct tfh_arena *arena, const char *dir, struct tfh_meta *meta);

#endif
