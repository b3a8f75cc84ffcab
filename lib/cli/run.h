/* Parts of `tfhook run` that `doctor` and `env` share. */
#ifndef TFH_CLI_RUN_H
#define TFH_CLI_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/access.h"
#include "base/err.h"
#include "cli/ends.h"

/* ---- program.c: can a program be recorded? ---- */

enum tfh_program_state {
	TFH_PROGRAM_OK,
	TFH_PROGRAM_NOT_FOUND,
	TFH_PROGRAM_NOT_EXECUTABLE,
	/* It runs, but the loader will not load the recorder: */
	TFH_PROGRAM_STATIC,
	TFH_PROGRAM_PRIVILEGED, /* setuid, setgid or file capabilities */
	/* The recorder must not be loaded into it: */
	TFH_PROGRAM_OTHER_CLASS, /* 32 bits, or another processor */
	/* Musl: its loader ends the program for symbols that only glibc has. */
	TFH_PROGRAM_OTHER_LIBC,
};

struct tfh_program {
	char path[4096]; /* the path that execvp will find */
	enum tfh_program_state state;
	char why[768]; /* one line with the remedy, "" when OK */
};

/* Inspects what execvp(name) would start, for a script its interpreter. Starts nothing. */
void tfh_program_check(const char *name, struct tfh_program *program);

/* ---- library.c: the recorder and the variables that load it into a job ---- */

struct tfh_library {
	char path[4096]; /* of the file */
	/* What LD_PRELOAD takes: a path with $LIB in it where the installation has links for that;
	 * or a link without blanks and colons. */
	char preload[4096];
	/* Private directory of the links, "" = none; removed by tfh_library_release. */
	char link_dir[4096];
	char audit[4096]; /* value for LD_AUDIT, "" = not requested */
};

/* Finds the recorder (for TFHOOK_EXPORTS=0 the variant without exported driver names) and checks
 * that the loader can load it. With `link`, a path that LD_PRELOAD cannot express gets a link in a
 * private directory. Returns 0 or -errno. */
int tfh_library_find(struct tfh_library *library, bool link, struct tfh_err *err);
/* Finds the auditor, which applies the hooks to libraries opened with RTLD_DEEPBIND, and sets
 * library->audit. Call after tfh_library_find() with the same `link`. Returns 0 or -errno. */
int tfh_library_add_audit(struct tfh_library *library, bool link, struct tfh_err *err);
void tfh_library_release(struct tfh_library *library);

/* Value for LD_PRELOAD or LD_AUDIT: `ours` before the existing entries. To be freed; NULL when out
 * of memory. */
char *tfh_preload_value(const char *ours, const char *existing);

/* Reports every TFHOOK_ variable that is not a setting, with the nearest name, and every invalid
 * value, with the valid ones. Returns their number. */
unsigned tfh_check_variables(void);

/* ---- run_directory.c: the run directory ---- */

struct tfh_place {
	char dir[4096]; /* absolute */
	bool made;	/* created by tfhook: removed again if it stays empty */
	int fd;		/* open directory, whatever happens to its name */
	struct tfh_access access;
};

/* Creates the run directory: `output`, or a generated name below TFHOOK_DIR or ".". Its group is
 * TFHOOK_GROUP, which the job gets as a number. Returns 0 or -errno. */
int tfh_place_make(struct tfh_place *place, const char *output, const char *program,
		   struct tfh_err *err);
/* Bytes that can be written to the file system of `dir` before recording pauses; negative: bytes
 * missing. `floor` receives the space that stays free: the larger of 2 GiB and 5 %. */
int64_t tfh_place_room(const char *dir, uint64_t *floor);
/* Number of trace files in it, journals included. */
unsigned tfh_place_traces(const char *dir);
/* If nothing was recorded, removes what tfhook put there, and the directory if it is then empty. */
void tfh_place_remove_unused(const struct tfh_place *place);

/* Creates a file of the run directory, to be closed by the caller; an existing one is an error. 0
 * or -errno. */
int tfh_place_create(const struct tfh_place *place, const char *name, FILE **out);
/* Write run.json before the job and end.json after it (`ends`: of its processes, NULL: unknown).
 * Return 0 or -errno; -EEXIST: another `tfhook run` uses the directory. */
int tfh_place_write_run(const struct tfh_place *place, char *const *argv);
int tfh_place_write_end(const struct tfh_place *place, pid_t pid, int wait_status, int64_t start_ns,
			int64_t end_ns, const struct tfh_ends *ends);

/* ---- aftermath.c: after the job ---- */

struct tfh_start_samples;

/* Salvages what the job's processes left, then prints the short verdict or why there is none.
 * `job`: the job's wait status; `audit`: it ran with the auditor. Never fails; problems go to
 * stderr. Returns whether anything was recorded. */
bool tfh_aftermath(const struct tfh_place *place, const struct tfh_program *program, int job,
		   bool quiet, bool color, bool audit, const struct tfh_start_samples *samples);

#endif
