/* `tfhook mcp`: replaces itself by the Model Context Protocol server of the Python package
 * (lib/python/tfhook/mcp.py). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/capture.h"
#include "cli/cli.h"

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

/* `make install` puts the package where no interpreter searches. */
static void add_package(void)
{
	const char *path = getenv("PYTHONPATH");
	char package[4096], value[16384];

	if (tfh_install_find("python/tfhook/mcp.py", package))
		return;
	for (int up = 0; up < 2; up++)
		*strrchr(package, '/') = '\0';
	snprintf(value, sizeof(value), "%s%s%s", package, path && *path ? ":" : "",
		 path ? path : "");
	setenv("PYTHONPATH", value, 1);
}

int tfh_cmd_mcp(const struct tfh_command_line *args)
{
	char python[4096], out[4096];
	char *look[] = {python, "-c",
			"import importlib.util as u, sys\n"
			"sys.exit(any(not u.find_spec(m) for m in ('tfhook', 'mcp')))",
			NULL};

	if (args->operands > 1) {
		tfh_say("mcp takes one folder; `tfhook help mcp` describes it");
		return TFH_EXIT_USAGE;
	}
	find_python(python);
	add_package();
	if (tfh_capture(look, NULL, 60, out, sizeof(out))) {
		tfh_say("this needs a python3 (3.10 or newer) with the packages tfhook and mcp: "
			"install tfhook's wheel (make wheel), then: %s -m pip install 'mcp>=2,<3'",
			python);
		return TFH_EXIT_TOOL;
	}
	execlp(python, python, "-m", "tfhook.mcp", args->operands ? args->operand[0] : ".",
	       (char *)NULL);
	tfh_say("cannot start %s", python);
	return TFH_EXIT_TOOL;
}
