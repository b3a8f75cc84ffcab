/* `tfhook collect` and `tfhook fleet`: Parquet, DuckDB and Spark are reached through the Python
 * package (lib/python/tfhook/collect.py, fleet.py). */
#include <string.h>

#include "cli/python_start.h"

int tfh_cmd_collect(const struct tfh_command_line *args)
{
	if (!args->operands || !tfh_line_get(args, "output")) {
		tfh_say("collect needs -o LAKE and the runs: tfhook collect -o LAKE DIR...");
		return TFH_EXIT_USAGE;
	}
	return tfh_python_start("tfhook.collect", "tfhook,pyarrow", "'pyarrow>=14'", args);
}

int tfh_cmd_fleet(const struct tfh_command_line *args)
{
	const char *engine = tfh_line_get(args, "engine");

	if (args->operands != 1) {
		tfh_say("fleet needs the lake that `tfhook collect` made: tfhook fleet LAKE");
		return TFH_EXIT_USAGE;
	}
	if (engine && !strcmp(engine, "spark"))
		return tfh_python_start("tfhook.fleet", "tfhook,pyarrow,pyspark",
					"'pyarrow>=14' 'pyspark>=4' (with Java 17)", args);
	return tfh_python_start("tfhook.fleet", "tfhook,pyarrow,duckdb",
				"'pyarrow>=14' 'duckdb>=1.1'", args);
}
