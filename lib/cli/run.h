/* Parts of `tfhook run`, shared with `doctor` and `env`. */
#ifndef TFH_CLI_RUN_H
#define TFH_CLI_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/access.h"
#include "base/err.h"

/* ---- program.c: can this program be recorded? ---- */

enum tfh_program_state {
	TFH_PROGRAM_OK,
	TFH_PROGRAM_NOT_FOUND,
	TFH_PROGRAM_NOT_EXECUTABLE,
	/* It runs, but the loader will not take the recorder along: */
	TFH_PROGRAM_STATIC,
	TFH_PROGRAM_PRIVILEGED, /* setuid, setgid or file capabilities */
	/* The recorder must not be brought to it at all: */
	TFH_PROGRAM_OTHER_CLASS, /* 32 bits, or another processor */
	TFH_PROGRAM_OTHER_LIBC,	 /* musl, whose loader ends the program for what glibc alone has */
};

struct tfh_program {
	char path[4096]; /* as execvp will find it */
	enum tfh_program_state state;
	char why[768]; /* one line with the remedy, "" when OK */
};

/* Looks at what execvp(name) would start; of a script at its interpreter. Starts nothing. */
void tfh_program_check(const char *name, struct tfh_program *program);

/* ---- library.c: the recorder and the variables that bring it into a job ---- */

struct tfh_library {
	char path[4096]; /* of the file */
	char preload
		[4096]; /* what LD_PRELOAD takes: path with $LIB in it where the installation has
				links for that; or a link without blanks and colons */
	char link_dir[4096]; /* private directory of the links, "" = none; tfh_library_release
				removes it */
	char audit[4096];    /* what LD_AUDIT takes, "" = not asked for */
};

/* Finds the recorder (for TFHOOK_EXPORTS=0 its twin without exported driver names) and checks that
 * the loader will take it. With `link` a path that LD_PRELOAD cannot express gets a link in a
 * private directory. 0 or -errno. */
int tfh_library_find(struct tfh_library *library, bool link, struct tfh_err *err);
/* The auditor that leads libraries opened with RTLD_DEEPBIND to the recorder, into library->audit;
 * after tfh_library_find with the same `link`. 0 or -errno. */
int tfh_library_add_audit(struct tfh_library *library, bool link, struct tfh_err *err);
void tfh_library_release(struct tfh_library *library);

/* Value for LD_PRELOAD or LD_AUDIT: ours before what is there already. Malloced; NULL without
 * memory. */
char *tfh_preload_value(const char *ours, const char *existing);

/* Says every TFHOOK_ variable that no setting has, with the nearest name, and every value that is
 * not understood, with what may stand there. Returns how many. */
unsigned tfh_check_variables(void);

/* ---- run_directory.c: the run directory ---- */

struct tfh_place {
	char dir[4096]; /* absolute */
	bool made;	/* by us: removed again when it stays empty */
	int fd;		/* of it, whatever its name stands for meanwhile */
	struct tfh_access access;
};

/* Makes the run directory: `output`, or a name of its own below TFHOOK_DIR or "."; for the group of
 * TFHOOK_GROUP, which becomes a number for the job. 0 or -errno. */
int tfh_place_make(struct tfh_place *place, const char *output, const char *program,
		   struct tfh_err *err);
/* Bytes that may still be written to the file system of `dir` before recording pauses; negative:
 * that many too few. `floor` gets what stays free: the larger of 2 GiB and 5 %. */
int64_t tfh_place_room(const char *dir, uint64_t *floor);
/* Number of trace files in it, journals included. */
unsigned tfh_place_traces(const char *dir);
/* Removes what tfhook itself put there if nothing was recorded, and the directory if that leaves it
 * empty. */
void tfh_place_remove_unused(const struct tfh_place *place);

/* run.json before the job, end.json after it. 0 or -errno; -EEXIST: another `tfhook run` has the
 * directory. */
int tfh_place_write_run(const struct tfh_place *place, char *const *argv);
int tfh_place_write_end(const struct tfh_place *place, pid_t pid, int wait_status, int64_t start_ns,
			int64_t end_ns);

/* ---- aftermath.c: when the job is over ---- */

/* Salvages what the job's processes left, then prints the short verdict or why there is none.
 * `job`: the wait status of the job; `audit`: it had the auditor. Never fails: trouble is said on
 * stderr. Returns whether anything was recorded. */
bool tfh_aftermath(const struct tfh_place *place, const struct tfh_program *program, int job,
		   bool quiet, bool color, bool audit);

#endif
