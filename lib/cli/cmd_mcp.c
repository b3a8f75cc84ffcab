/* `tfhook mcp`: replaces itself by the Model Context Protocol server of the Python package
 * (lib/python/tfhook/mcp.py). */
#include "cli/python_start.h"

static int cmd_mcp(const struct tfh_command_line *args)
{
	if (args->operands > 1) {
		tfh_say("mcp takes one folder; `tfhook help mcp` describes it");
		return TFH_EXIT_USAGE;
	}
	return tfh_python_start("tfhook.mcp", "tfhook,mcp",
				"'mcp>=2,<3' (with Python 3.10 or newer)", args);
}

const struct tfh_command tfh_cmd_mcp = {
	.name = "mcp",
	.operand_text = "[DIR]",
	.summary = "serve the recordings in a folder to a Model Context Protocol client",
	.details =
		"A client starts this server and talks to it over stdin and stdout. Its tools "
		"(list_runs, verdict, why, lines, steps, sql, compare) only read, and only below "
		"DIR (the current folder by default). Names and texts from recordings are escaped. "
		"Needs Python 3.10 or newer with the packages tfhook (its wheel) and mcp.\n\n"
		"Exit code: 0 the client has ended the session, 2 usage, 125 Python or a package "
		"is missing.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_mcp,
	.flags = {{.name = NULL}},
};
