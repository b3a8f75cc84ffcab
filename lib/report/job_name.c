/* What a job is called: its script or module, else its program, after the programs that only start
 * it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "report/report.h"

/* Programs that run the rest of their command line. */
static const struct starter {
	const char *name;
	/* Options with a value, by their letter; long ones by the same first letter. */
	const char *valued;
	uint32_t words; /* before the command: a time limit, a mask */
} starters[] = {
	{"env", "uC", 0},     {"nice", "na", 0},   {"ionice", "cn", 0}, {"timeout", "sk", 1},
	{"time", "fo", 0},    {"taskset", "", 1},  {"chrt", "TPD", 1},	{"numactl", "NmCpiw", 0},
	{"stdbuf", "ioe", 0}, {"nohup", "", 0},	   {"setsid", "", 0},	{"xvfb-run", "npesf", 0},
	{"prlimit", "", 0},   {"unbuffer", "", 0}, {"exec", "a", 0},	{"catchsegv", "", 0},
};

static const struct starter *starter_of(const char *program)
{
	for (size_t i = 0; i < sizeof(starters) / sizeof(*starters); i++)
		if (!strcmp(tfh_file_of(program), starters[i].name))
			return &starters[i];
	return NULL;
}

/* Whether the value of an option is the next word. */
static bool takes_next(const struct starter *s, const char *option)
{
	if (option[1] == '-')
		return option[2] && !strchr(option, '=') &&
		       (strchr(s->valued, option[2]) || strchr(s->valued, toupper(option[2])));
	return option[1] && !option[2] && strchr(s->valued, option[1]);
}

/* How many words of a command line come before the command that a starter runs; 0: it is no
 * starter, or no command follows. */
static uint32_t before_command(const char *const *argv, uint32_t argc)
{
	const struct starter *s = starter_of(argv[0]);
	uint32_t i = 1, words = s ? s->words : 0;

	for (; s && i < argc; i++) {
		if (argv[i][0] == '-')
			i += takes_next(s, argv[i]);
		else if (strchr(argv[i], '=') && !strcmp(s->name, "env"))
			continue;
		else if (!words--)
			return i;
	}
	return 0;
}

bool tfh_report_timed(const char *const *argv, uint32_t argc)
{
	for (uint32_t skip = 0;; argv += skip, argc -= skip) {
		skip = before_command(argv, argc);
		if (!skip || !strcmp(tfh_file_of(argv[0]), "timeout"))
			return skip;
	}
}

static bool is_shell(const char *program)
{
	const char *base = tfh_file_of(program);

	return !strcmp(base, "sh") || !strcmp(base, "bash") || !strcmp(base, "dash") ||
	       !strcmp(base, "zsh");
}

static bool is_python(const char *program)
{
	const char *base = tfh_file_of(program);

	return tfh_starts_with(base, "python") || tfh_starts_with(base, "pypy");
}

/* Programs, or modules of Python, that start a script in several processes. */
static bool launches(const char *name)
{
	static const char *const of[] = {"torchrun",
					 "accelerate",
					 "deepspeed",
					 "horovodrun",
					 "mpirun",
					 "mpiexec",
					 "srun",
					 "torch.distributed.run",
					 "torch.distributed.launch",
					 "accelerate.commands.launch"};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (!strcmp(name, of[i]))
			return true;
	return false;
}

static const char *script(const char *const *argv, uint32_t argc)
{
	for (uint32_t i = 1; i < argc; i++) {
		if (tfh_ends_with(argv[i], ".py") && strlen(argv[i]) > 3)
			return tfh_file_of(argv[i]);
		if (!strcmp(argv[i], "-m") && i + 1 < argc && !launches(argv[i + 1]))
			return argv[i + 1];
		if (!strcmp(argv[i], "-c"))
			break;
	}
	return tfh_file_of(argv[0]);
}

/* The script or module that a line of shell runs; NULL: it names none. Quotes are not resolved. */
static const char *in_line(const char *line)
{
	static _Thread_local char name[128];
	bool module = false;

	while (*(line += strspn(line, " \t\n;&|\"'"))) {
		size_t len = strcspn(line, " \t\n;&|\"'");
		snprintf(name, sizeof(name), "%.*s", (int)len, line);
		if (module || (len > 3 && tfh_ends_with(name, ".py")))
			return tfh_file_of(name);
		module = !strcmp(name, "-m");
		line += len;
	}
	return NULL;
}

const char *tfh_report_job(const char *const *argv, uint32_t argc)
{
	for (uint32_t skip; (skip = before_command(argv, argc)) > 0;) {
		argv += skip;
		argc -= skip;
	}
	for (uint32_t i = 1; is_shell(argv[0]) && i < argc; i++) {
		size_t len = strlen(argv[i]);
		bool line = argv[i][0] == '-' && argv[i][1] != '-' && argv[i][len - 1] == 'c';
		const char *name = line && i + 1 < argc ? in_line(argv[i + 1]) : NULL;
		if (line)
			return name ? name : tfh_file_of(argv[0]);
		if (argv[i][0] != '-')
			return tfh_file_of(argv[i]);
	}
	return is_python(argv[0]) || launches(tfh_file_of(argv[0])) ? script(argv, argc)
								    : tfh_file_of(argv[0]);
}
