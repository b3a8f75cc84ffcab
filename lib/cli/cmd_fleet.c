/* `tfhook collect` and `tfhook fleet`: Parquet, DuckDB and Spark are reached through the Python
 * package (lib/python/tfhook/collect.py, fleet.py). */
#include <string.h>

#include "cli/python_start.h"

static int cmd_collect(const struct tfh_command_line *args)
{
	if (!args->operands || !tfh_line_get(args, "output")) {
		tfh_say("collect needs -o LAKE and the runs: tfhook collect -o LAKE DIR...");
		return TFH_EXIT_USAGE;
	}
	return tfh_python_start("tfhook.collect", "tfhook,pyarrow", "'pyarrow>=14'", args);
}

const struct tfh_command tfh_cmd_collect = {
	.name = "collect",
	.operand_text = "-o LAKE PATH...",
	.summary = "add runs to a data set of Parquet files, for questions about a fleet",
	.details =
		"PATH is a run directory, a digest, a trace of another profiler, or a folder to "
		"search for run directories. The report of each run is added to LAKE: a folder, or "
		"a URL such as "
		"s3://BUCKET/FOLDER. A run that is already there is not added again, but updated "
		"if it has continued since. Any number of collectors may write at once. Needs "
		"python3 with the packages tfhook (its wheel) and pyarrow.\n\n"
		"Exit code: 0 fine, 2 usage, 3 nothing could be read or written, 4 some runs were "
		"skipped, 5 no runs, 125 Python or a package is missing.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_collect,
	.flags =
		{
			{.name = "output",
			 .letter = 'o',
			 .arg = "LAKE",
			 .help = "the data set, created if it does not exist"},
			{.name = "labels",
			 .arg = "NAME=VALUE,...",
			 .help = "labels for runs that have no label of that name (see "
				 "TFHOOK_LABELS)"},
		},
};

static int cmd_fleet(const struct tfh_command_line *args)
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

const struct tfh_command tfh_cmd_fleet = {
	.name = "fleet",
	.operand_text = "LAKE",
	.summary = "where a fleet's GPU hours go: causes, teams, images, hosts, jobs to look at",
	.details =
		"LAKE is a data set made by `tfhook collect`. Prints the GPU hours lost by cause, "
		"team, framework, image and line; images that made jobs slower; hosts that are "
		"slow in every job; and jobs to look at first, each with the gain of fixing it. "
		"DuckDB runs the queries in this process, Spark on a cluster. Needs python3 with "
		"the packages tfhook (its wheel), pyarrow and duckdb or pyspark.\n\n"
		"Exit code: 0 fine, 2 usage, 3 unreadable, 5 no runs, 125 Python or a package is "
		"missing.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_fleet,
	.flags =
		{
			{.name = "since",
			 .arg = "DAY",
			 .help = "only runs that began on DAY (2026-11-16) or later; 7d: in the "
				 "last 7 days"},
			{.name = "until",
			 .arg = "DAY",
			 .help = "only runs that began on DAY or before"},
			{.name = "all", .help = "print every row"},
			{.name = "json", .help = "print JSON, schema tfhook.fleet/1"},
			{.name = "html",
			 .arg = "FILE",
			 .help = "write every row as one page to FILE, which must be new or an "
				 "earlier page"},
			{.name = "engine",
			 .arg = "ENGINE",
			 .choices = "duckdb spark",
			 .help = "the query engine: duckdb (the default) or spark"},
			{.name = "master",
			 .arg = "URL",
			 .help = "Spark's cluster, local[*] by default"},
		},
};
