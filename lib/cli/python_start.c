#include "cli/python_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/capture.h"

/* The interpreter next to the command, as in a wheel's environment; else the one on PATH. */
static void find_python(char python[4096])
{
	ssize_t n = readlink("/proc/self/exe", python, 4000);

	python[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(python, '/');
	if (slash)
		memcpy(slash, "/python3", sizeof("/python3"));
	if (!slash || access(python, X_OK))
		memcpy(python, "python3", sizeof("python3"));
}

static void put_first(const char *variable, const char *path)
{
	const char *now = getenv(variable);
	char value[16384];

	snprintf(value, sizeof(value), "%s%s%s", path, now && *now ? ":" : "", now ? now : "");
	setenv(variable, value, 1);
}

/* `make install` puts the package where no interpreter searches, and the package looks for this command. */
static void add_paths(void)
{
	char path[4096];

	if (!tfh_install_find("python/tfhook/mcp.py", path)) {
		for (int up = 0; up < 2; up++)
			*strrchr(path, '/') = '\0';
		put_first("PYTHONPATH", path);
	}
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(path, '/');
	if (slash) {
		*slash = '\0';
		put_first("PATH", path);
	}
}

/* The flags that were given, then the operands. */
static void run_module(char *python, const char *module, const struct tfh_command_line *args)
{
	char *argv[4 + 2 * TFH_MAX_FLAGS + args->operands + 1], names[TFH_MAX_FLAGS][32];
	int n = 0;

	argv[n++] = python;
	argv[n++] = "-m";
	argv[n++] = (char *)module;
	for (int i = 0; i < TFH_MAX_FLAGS && args->command->flags[i].name; i++) {
		const struct tfh_flag *flag = &args->command->flags[i];
		if (!args->value[i])
			continue;
		snprintf(names[i], sizeof(names[i]), "--%s", flag->name);
		argv[n++] = names[i];
		if (flag->arg)
			argv[n++] = (char *)args->value[i];
	}
	if (args->operands)
		argv[n++] = "--";
	for (int i = 0; i < args->operands; i++)
		argv[n++] = args->operand[i];
	argv[n] = NULL;
	execvp(python, argv);
}

int tfh_python_start(const char *module, const char *needs, const char *remedy,
		     const struct tfh_command_line *args)
{
	char python[4096], out[4096], code[512];
	char *look[] = {python, "-c", code, NULL};

	snprintf(code, sizeof(code),
		 "import importlib.util as u, sys\n"
		 "sys.exit(any(not u.find_spec(m) for m in '%s'.split(',')))",
		 needs);
	find_python(python);
	add_paths();
	if (tfh_capture(look, NULL, 60, out, sizeof(out))) {
		tfh_say("this needs a python3 with the packages %s: install tfhook's wheel (make wheel), then: %s -m pip "
			"install %s",
			needs, python, remedy);
		return TFH_EXIT_TOOL;
	}
	run_module(python, module, args);
	tfh_say("cannot start %s", python);
	return TFH_EXIT_TOOL;
}
