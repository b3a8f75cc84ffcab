/*
 * The `tfhook` command: one file per subcommand (cmd_<name>.c) with its flags, and a list of them
 * (commands.c). Parsing, help and shell completions use these, so a flag is written down once.
 */
#ifndef TFH_CLI_CLI_H
#define TFH_CLI_CLI_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Exit codes of the analysis commands. `run` returns the job's exit code, or one of the last three.
 */
enum tfh_exit {
	TFH_EXIT_OK = 0,
	TFH_EXIT_GATE = 1, /* a requested check failed */
	TFH_EXIT_USAGE = 2,
	TFH_EXIT_UNREADABLE = 3,
	TFH_EXIT_INCOMPLETE = 4,
	TFH_EXIT_NOTHING = 5, /* nothing to analyse */
	TFH_EXIT_TOOL = 125,  /* run: tfhook failed, the job was not started */
	TFH_EXIT_NOT_EXECUTABLE = 126,
	TFH_EXIT_NOT_FOUND = 127,
};

/* Operands after the flags; completions depend on it. */
enum tfh_operands {
	TFH_OPERANDS_NONE,
	TFH_OPERANDS_TRACES,
	TFH_OPERANDS_COMMAND,
	TFH_OPERANDS_WORDS
};

struct tfh_flag {
	const char *name;    /* long form, without dashes */
	char letter;	     /* short form, 0 = none */
	const char *arg;     /* NULL: a switch; else the value's name in the help */
	const char *choices; /* valid values, separated by spaces; NULL = any */
	const char *help;
	bool twice; /* may be given a second time, with another value */
};

/* Flags of several commands. */
#define TFH_FLAG_COLOR                                                                             \
	{                                                                                          \
		.name = "color", .arg = "WHEN", .choices = "auto always never",                    \
		.help = "colour the output (auto: on a terminal, unless NO_COLOR is set)"          \
	}

#define TFH_FLAG_AUDIT                                                                             \
	{                                                                                          \
		.name = "audit",                                                                   \
		.help = "also record GPU libraries opened with RTLD_DEEPBIND (taichi)"             \
	}

#define TFH_MAX_FLAGS 20

struct tfh_command_line;

struct tfh_command {
	const char *name;
	const char *operand_text; /* "[PATH...]" */
	const char *summary;	  /* one line */
	const char *details;	  /* further lines of the help, "" = none */
	enum tfh_operands operands;
	const char *words; /* TFH_OPERANDS_WORDS: valid values of the first operand */
	int usage_exit;	   /* exit code of a usage error */
	int (*run)(const struct tfh_command_line *args);
	struct tfh_flag flags[TFH_MAX_FLAGS]; /* ends at the first without a name */
};

/* A parsed command line, borrowed from argv. */
struct tfh_command_line {
	const struct tfh_command *command;
	const struct tfh_command *const *all; /* every command, NULL-terminated: for help */
	const char *value[TFH_MAX_FLAGS];     /* by index in flags; "" for a switch */
	char **operand;			      /* NULL-terminated */
	int operands;
	int before;	   /* operands in front of "--" */
	const char *again; /* second value of a flag that may be given twice; NULL: not given */
};

/* ---- commands.c ---- */
extern const struct tfh_command *const tfh_commands[];

/* ---- parse.c ---- */
/* NULL if there is none of that name. */
const struct tfh_command *tfh_command_find(const struct tfh_command *const *all, const char *name);
/* Sorts argv[1..] into flags and operands, or reports the error on stderr and returns -EINVAL. For
 * a command whose operands are a command line, the flags end at the first operand. `args->operand`
 * is argv itself, rearranged. */
int tfh_line_parse(const struct tfh_command *command, char **argv, struct tfh_command_line *args);
/* Value of a flag, "" for a switch, NULL if not given. */
const char *tfh_line_get(const struct tfh_command_line *args, const char *name);
/* Parses a flag of seconds between two limits. Without the flag, *out is unchanged. 0, or -EINVAL
 * with a message. */
int tfh_line_seconds(const struct tfh_command_line *args, const char *flag, double least,
		     double most, double *out);

/* ---- help.c ---- */
void tfh_help_all(FILE *out, const struct tfh_command *const *all);
void tfh_help_command(FILE *out, const struct tfh_command *command);

/* ---- man.c: the source of a command's manual page, and of tfhook(7) ---- */
void tfh_man_command(FILE *out, const struct tfh_command *command);
void tfh_man_overview(FILE *out, const struct tfh_command *const *all);

/* ---- console.c ---- */
/* Prints text from `column` on, wrapped before column 80, with further lines indented by `indent`.
 */
void tfh_print_wrapped(FILE *out, size_t column, size_t indent, const char *text);
/* Prints one line on stderr, prefixed with "tfhook: ". */
__attribute__((format(printf, 1, 2))) void tfh_say(const char *fmt, ...);
/* Reports why reading or judging failed (`code` is a negative errno); if files are unreadable, with
 * the remedy. */
void tfh_say_why(const struct tfh_err *err, int code);
/* The same message, without the path that the line starts with. */
const char *tfh_reason(const struct tfh_err *err, int code, const char *path);
/* Whether to colour `out`: from --color=auto|always|never, NO_COLOR, CLICOLOR_FORCE, TERM. */
bool tfh_use_color(const char *flag, FILE *out);
/* Whether the locale supports more than ASCII. */
bool tfh_use_utf8(void);
/* Columns of a line of `out`: from its terminal, else from COLUMNS, else 80. */
unsigned tfh_use_columns(FILE *out);
/* Lines above the prompt: of its terminal, else by LINES; 0: unknown. */
unsigned tfh_use_rows(FILE *out);
/* files.c: the names in a directory, from the first one on, to be read by readdir(). The caller
 * closes it. NULL with errno. */
DIR *tfh_list_names(int dir);
/* files.c: reports files of a directory that could not be read, among readable ones. */
struct tfh_run;
void tfh_say_left_out(const struct tfh_run *run);
/* progress.c: shows on a terminal how much of a run has been read; NULL if nothing will be shown.
 * Start and stop in the same thread. */
struct tfh_progress;
struct tfh_progress *tfh_progress_start(struct tfh_run *run);
void tfh_progress_stop(struct tfh_progress *p);
/* The same for bytes: of files, and of the files in directories, for commands that read all of them
 * once. */
struct tfh_progress *tfh_progress_files(const char *const *paths, size_t n);
/* Hides the line until tfh_progress_go_on(), so that other lines can be printed. */
void tfh_progress_hold(struct tfh_progress *p);
void tfh_progress_go_on(struct tfh_progress *p);
/* tfh_import_open() with a progress line for another tool's trace, which it reads. */
int tfh_progress_open(const char *const *paths, uint32_t n, struct tfh_run **run,
		      struct tfh_err *err);

/* Exit code for a negative errno of readers and analysis. */
int tfh_exit_code(int error);

/* ---- install.c ---- */
/* Finds a part of the installation ("libtfhook.so", "sim/libcuda.so.1", "demo/main.py") relative to
 * the running command: in the build tree and below PREFIX. Returns 0 or -ENOENT, with the first
 * path tried in `path`. */
int tfh_install_find(const char *part, char path[4096]);

/* ---- cmd_<name>.c ---- */
extern const struct tfh_command tfh_cmd_run;
extern const struct tfh_command tfh_cmd_report;
extern const struct tfh_command tfh_cmd_why;
extern const struct tfh_command tfh_cmd_top;
extern const struct tfh_command tfh_cmd_diff;
extern const struct tfh_command tfh_cmd_ctl;
extern const struct tfh_command tfh_cmd_info;
extern const struct tfh_command tfh_cmd_import;
extern const struct tfh_command tfh_cmd_export;
extern const struct tfh_command tfh_cmd_digest;
extern const struct tfh_command tfh_cmd_collect;
extern const struct tfh_command tfh_cmd_fleet;
extern const struct tfh_command tfh_cmd_prune;
extern const struct tfh_command tfh_cmd_verify;
extern const struct tfh_command tfh_cmd_repair;
extern const struct tfh_command tfh_cmd_doctor;
extern const struct tfh_command tfh_cmd_demo;
extern const struct tfh_command tfh_cmd_env;
extern const struct tfh_command tfh_cmd_mcp;
extern const struct tfh_command tfh_cmd_completions;
extern const struct tfh_command tfh_cmd_help;
extern const struct tfh_command tfh_cmd_version;

/* The whole command, with main's argv. Returns the exit status. */
int tfh_cli(int argc, char **argv);

#endif
