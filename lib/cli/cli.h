/*
 * The `tfhook` command: one file per subcommand (cmd_<name>.c), one table of them (commands.c). The
 * table feeds parsing, help and the shells' completions, so a flag is written down once.
 */
#ifndef TFH_CLI_H
#define TFH_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* Exit codes of the analysis commands. `run` gives the job's own, or one of the last three. */
enum tfh_exit {
	TFH_EXIT_OK = 0,
	TFH_EXIT_GATE = 1, /* a check that was asked for failed */
	TFH_EXIT_USAGE = 2,
	TFH_EXIT_UNREADABLE = 3,
	TFH_EXIT_INCOMPLETE = 4,
	TFH_EXIT_NOTHING = 5, /* nothing to analyse */
	TFH_EXIT_TOOL = 125,  /* run: tfhook itself failed, the job was not started */
	TFH_EXIT_NOT_EXECUTABLE = 126,
	TFH_EXIT_NOT_FOUND = 127,
};

/* What stands after the flags; completions offer accordingly. */
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
	const char *choices; /* legal values, separated by spaces; NULL = any */
	const char *help;
};

#define TFH_MAX_FLAGS 12

struct tfh_command_line;

struct tfh_command {
	const char *name;
	const char *operand_text; /* "[PATH...]" */
	const char *summary;	  /* one line */
	const char *details;	  /* further lines of the help, "" = none */
	enum tfh_operands operands;
	const char *words; /* TFH_OPERANDS_WORDS: the first operand's legal values */
	int usage_exit;	   /* exit code of a usage error */
	int (*run)(const struct tfh_command_line *args);
	struct tfh_flag flags[TFH_MAX_FLAGS]; /* ends at the first without a name */
};

/* A parsed command line; everything borrowed from argv. */
struct tfh_command_line {
	const struct tfh_command *command;
	const struct tfh_command *const *all; /* there are, NULL-terminated: for help */
	const char *value[TFH_MAX_FLAGS]; /* by index in flags; "" for a switch that was given */
	char **operand;			  /* NULL-terminated */
	int operands;
	bool dashes; /* "--" stood before the operands */
};

/* ---- commands.c ---- */
extern const struct tfh_command *const tfh_commands[];

/* ---- parse.c ---- */
/* NULL: none has that name. */
const struct tfh_command *tfh_command_find(const struct tfh_command *const *all, const char *name);
/* Sorts argv[1..] into flags and operands, or says what is wrong on stderr and returns -EINVAL. A
 * command whose operands are a command line ends its flags at the first operand. `args->operand` is
 * argv itself, rearranged. */
int tfh_line_parse(const struct tfh_command *command, char **argv, struct tfh_command_line *args);
/* Value of a flag, "" for a switch, NULL if it was not given. */
const char *tfh_line_get(const struct tfh_command_line *args, const char *name);

/* ---- help.c ---- */
void tfh_help_all(FILE *out, const struct tfh_command *const *all);
void tfh_help_command(FILE *out, const struct tfh_command *command);

/* ---- console.c ---- */
/* Prints text from `column` on, broken before column 80, further lines at `indent`. */
void tfh_print_wrapped(FILE *out, size_t column, size_t indent, const char *text);
/* One line on stderr, "tfhook: " before it. */
__attribute__((format(printf, 1, 2))) void tfh_say(const char *fmt, ...);
/* Why reading or judging failed (`code` is a negative errno), with the remedy where files may not
 * be read. */
void tfh_say_why(const struct tfh_err *err, int code);
/* The same without the path that a line begins with anyway. */
const char *tfh_reason(const struct tfh_err *err, int code, const char *path);
/* Files of a directory that could not be read beside those that could. */
struct tfh_run;
void tfh_say_left_out(const struct tfh_run *run);
/* Whether to colour `out`, from --color=auto|always|never, NO_COLOR, CLICOLOR_FORCE, TERM. */
bool tfh_use_color(const char *flag, FILE *out);
/* Whether the locale can show more than ASCII. */
bool tfh_use_utf8(void);
/* progress.c: shows on a terminal how much of a run was read while it is judged; NULL: nothing will
 * be shown. Both ends in the same thread. */
struct tfh_progress;
struct tfh_progress *tfh_progress_start(struct tfh_run *run);
void tfh_progress_stop(struct tfh_progress *p);

/* Exit code for a negative errno of the readers and of the analysis. */
int tfh_exit_code(int error);

/* ---- install.c ---- */
/* Where a part of the installation lies ("libtfhook.so", "sim/libcuda.so.1", "demo/main.py"),
 * looked for relative to the running command: in the build tree and below PREFIX. 0 or -ENOENT;
 * then `path` names the first place tried. */
int tfh_install_find(const char *part, char path[4096]);

/* ---- commands ---- */
int tfh_cmd_run(const struct tfh_command_line *args);
int tfh_cmd_report(const struct tfh_command_line *args);
int tfh_cmd_info(const struct tfh_command_line *args);
int tfh_cmd_import(const struct tfh_command_line *args);
int tfh_cmd_verify(const struct tfh_command_line *args);
int tfh_cmd_repair(const struct tfh_command_line *args);
int tfh_cmd_ctl(const struct tfh_command_line *args);
int tfh_cmd_demo(const struct tfh_command_line *args);
int tfh_cmd_doctor(const struct tfh_command_line *args);
int tfh_cmd_env(const struct tfh_command_line *args);
int tfh_cmd_completions(const struct tfh_command_line *args);
int tfh_cmd_help(const struct tfh_command_line *args);
int tfh_cmd_version(const struct tfh_command_line *args);

/* The whole command: argv as main got it. Returns the exit status. */
int tfh_cli(int argc, char **argv);

#endif
