/* `tfhook mcp`: replaces itself by the Model Context Protocol server of the Python package
 * (lib/python/tfhook/mcp.py). */
#include "cli/python_start.h"

int tfh_cmd_mcp(const struct tfh_command_line *args)
{
	if (args->operands > 1) {
		tfh_say("mcp takes one folder; `tfhook help mcp` describes it");
		return TFH_EXIT_USAGE;
	}
	return tfh_python_start("tfhook.mcp", "tfhook,mcp",
				"'mcp>=2,<3' (with Python 3.10 or newer)", args);
}
