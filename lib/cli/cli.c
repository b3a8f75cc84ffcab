/* Dispatches argv to a subcommand. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#include "cli/cli.h"

/*
 * Removes tfhook's library from LD_PRELOAD; other entries keep their order. Returns whether it was
 * there. The command must not be traced: it maps journals and may run in the middle of a job.
 */
static bool strip_own_preload(char *out, size_t size)
{
	const char *value = getenv("LD_PRELOAD");
	bool found = false;
	size_t used = 0;

	out[0] = '\0';
	while (value && *value) {
		size_t len = strcspn(value, " :");
		char entry[4096];
		snprintf(entry, sizeof(entry), "%.*s", (int)len, value);
		if (tfh_starts_with(tfh_file_of(entry), "libtfhook"))
			found = true;
		else if (len && used + len + 2 < size)
			used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ":" : "",
						 entry);
		value += len + (value[len] != '\0');
	}
	return found;
}

static void start_again_without_preload(char **argv)
{
	char rest[16384];

	if (!strip_own_preload(rest, sizeof(rest)))
		return;
	if (*rest)
		setenv("LD_PRELOAD", rest, 1);
	else
		unsetenv("LD_PRELOAD");
	execv("/proc/self/exe", argv);
}

static bool wants_help(const struct tfh_command *command, char **argv)
{
	for (; *argv && strcmp(*argv, "--"); argv++) {
		if (!strcmp(*argv, "--help") || !strcmp(*argv, "-h"))
			return true;
		if (command->operands == TFH_OPERANDS_COMMAND && (*argv)[0] != '-')
			return false;
	}
	return false;
}

static int dispatch(int argc, char **argv)
{
	struct tfh_command_line args;
	char *help[] = {argc > 1 ? argv[1] : NULL, NULL};

	if (argc < 2) {
		tfh_help_all(stderr, tfh_commands);
		return TFH_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		help[0] = NULL;
	else if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return tfh_cmd_version.run(NULL);
	const struct tfh_command *command =
		help[0] ? tfh_command_find(tfh_commands, help[0]) : NULL;
	if (!command) {
		args = (struct tfh_command_line){
			.all = tfh_commands, .operand = help, .operands = help[0] != NULL};
		return tfh_cmd_help.run(&args);
	}
	if (wants_help(command, argv + 2)) {
		tfh_help_command(stdout, command);
		return TFH_EXIT_OK;
	}
	if (tfh_line_parse(command, argv + 2, &args))
		return command->usage_exit;
	args.all = tfh_commands;
	return command->run(&args);
}

/*
 * If descriptors 0 to 2 are closed (as services do), a recording's file must not get one of these
 * numbers, or messages would be written into it. A job started from here finds them closed as
 * before.
 */
static void fill_descriptors(void)
{
	/* Opened in the opposite direction, so that using them fails as before. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC) < 0)
			return;
}

int tfh_cli(int argc, char **argv)
{
	fill_descriptors();
	setlocale(LC_CTYPE, "");
	start_again_without_preload(argv);
	int status = dispatch(argc, argv);
	if (fflush(stdout) || ferror(stdout)) {
		tfh_say("cannot write the output: %s", strerror(errno));
		return status == TFH_EXIT_OK ? TFH_EXIT_UNREADABLE : status;
	}
	return status;
}
