/* Steps of opening a run. */
#ifndef TFH_MODEL_OPEN_OPENING_H
#define TFH_MODEL_OPEN_OPENING_H

#include "model/opened.h"

/* add_file.c. `temporary`: removed when the run is closed. 0 or -errno. */
int tfh_run_add_file(struct tfh_run *run, const char *path, bool temporary, struct tfh_err *err);

/* Files ordered by process, and within a process in the order in which they were added; to be
 * freed. NULL when out of memory. */
uint32_t *tfh_files_by_process(const struct tfh_run *run);

/* leftover.c: adds the contents of journals that belong to this directory, through temporary files.
 */
void tfh_run_add_journals(struct tfh_run *run, const char *dir);

/* extras.c: holes, machine samples, notes and calls in flight of one file. 0 or -ENOMEM. */
int tfh_run_read_notes(struct tfh_run *run, uint32_t file);

/* open_samples.c: the last samples of calls in flight; after all notes were read and chunks sorted.
 * 0 or -ENOMEM. */
int tfh_run_look_at_flight(struct tfh_run *run);

/* meter_lines.c: adds a sample's entry, in time order, if it is about the machine; other entries
 * are ignored. 0 or -ENOMEM. At the end, the lines are sorted in the table's order. */
struct tft_sample_thread;
int tfh_run_add_reading(struct tfh_model_proc *p, int64_t t, const struct tft_sample_thread *entry);
void tfh_run_sort_meters(struct tfh_model_proc *p);
void tfh_run_free_meters(struct tfh_model_proc *p);

/* missing.c: finds missing files and the resulting holes. Needs the clocks (set_clocks()). 0 or
 * -ENOMEM. */
int tfh_run_find_missing(struct tfh_run *run);

/* discarded_spans.c: finds the spans whose records were discarded, from the headers of chunks.
 * Needs the clocks. 0 or -ENOMEM. */
int tfh_run_find_discarded_spans(struct tfh_run *run);

/* meta.c */
struct tfh_meta {
	const char **argv;
	uint32_t argc;
	const char *host;
	enum tfh_end end;
	int number;
	double wall_s;	  /* 0: unknown */
	int64_t start_ns; /* of the command, since 1970; 0: unknown */
	bool has_end;
};
void tfh_meta_read(struct tfh_arena *arena, const char *dir, struct tfh_meta *meta);

/* meta.c: parts of a JSON scanner that skips what is not looked up. tfh_facts_text() returns the
 * whole text of a file in the run directory, up to 1 MiB; NULL: there is no such file. */
char *tfh_facts_text(struct tfh_arena *arena, const char *dir, const char *name);
const char *tfh_facts_blanks(const char *p);
/* Value of a key of the outermost object; NULL: it has no such key. */
const char *tfh_facts_value(const char *text, const char *key);
/* Reads the string at *p (a quote) and moves *p past it; NULL: there is no string. */
char *tfh_facts_string(struct tfh_arena *arena, const char **p);

/* start_file.c: gives the run's processes their entries in start.json of a directory. Call it once
 * the processes' start times are known. 0 or -ENOMEM. */
int tfh_run_read_start(struct tfh_run *run, const char *dir);
/* Likewise reads from end.json how processes ended. */
void tfh_run_read_ends(struct tfh_run *run, const char *dir);
/* For a directory without trace files: adds the processes that start.json has samples of and that
 * never recorded. 0 or -ENOMEM. */
int tfh_run_add_sampled(struct tfh_run *run, const char *dir, const char *host);
#define TFH_PROCESS_TICK_NS 10000000 /* resolution of times in /proc/PID/stat */

#endif
