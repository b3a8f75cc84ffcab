/* The table of subcommands. */
#include <errno.h>
#include "cli/cli.h"

#define COLOR                                                                                      \
	{                                                                                          \
		.name = "color", .arg = "WHEN", .choices = "auto always never",                    \
		.help = "colour the output (auto: on a terminal, unless NO_COLOR is set)"          \
	}

#define AUDIT                                                                                      \
	{                                                                                          \
		.name = "audit",                                                                   \
		.help = "also record GPU libraries opened with RTLD_DEEPBIND (taichi)"             \
	}

static const struct tfh_command cmd_run = {
	.name = "run",
	.operand_text = "[--] CMD [ARG...]",
	.summary = "record CMD and its children, and print a short verdict",
	.details =
		"Creates the directory tfhook-<exe>-<UTC>-<id>/ here, starts CMD with the "
		"recorder preloaded, and waits. CMD's output, exit code and results do not "
		"change; tfhook writes to stderr only. The environment variables that `tfhook env` "
		"lists configure the recorder.\n\n"
		"Exit code: CMD's own; if CMD died of a signal, so does tfhook. Before CMD "
		"starts: 125 tfhook cannot record, 126 CMD is not executable, 127 CMD is not "
		"found.",
	.operands = TFH_OPERANDS_COMMAND,
	.usage_exit = TFH_EXIT_TOOL,
	.run = tfh_cmd_run,
	.flags =
		{
			{.name = "output",
			 .letter = 'o',
			 .arg = "DIR",
			 .help = "write the recording to DIR, which must be new or empty"},
			{.name = "quiet",
			 .letter = 'q',
			 .help = "print nothing, not even the verdict"},
			{.name = "strict",
			 .help = "do not start CMD if it cannot be recorded; exit 125 if nothing "
				 "was recorded"},
			AUDIT,
			COLOR,
		},
};

static const struct tfh_command cmd_report = {
	.name = "report",
	.operand_text = "[PATH...]",
	.summary = "where each step's time goes, and what fixing it would gain",
	.details =
		"Prints at most one screen: the verdict, what is to blame, what to do next, and "
		"how sure that is. --all prints everything; flags such as --kernels print single "
		"parts, and may be combined.\n\n"
		"PATH is a run directory or .tft files; the default is your newest run directory "
		"here. It may also be a trace of another profiler: PyTorch's Kineto JSON (.json, "
		".json.gz), TensorFlow's and JAX's XPlane (.xplane.pb, or TensorBoard's log "
		"directory), the SQLite export of nsys, or rocprof's results.json. Several traces "
		"are the ranks of one job.\n\n"
		"If a directory holds digests of several hosts (see `tfhook digest`), the report "
		"covers the whole job and is made from these alone: it names the ranks that the "
		"others wait for, and those that are missing, died or hang. With --ranks --json: "
		"schema tfhook.ranks/1.\n\n"
		"Exit code: 0 fine, 2 usage, 3 unreadable, 4 incomplete (with --strict), 5 "
		"nothing to analyse.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_report,
	.flags =
		{
			{.name = "all",
			 .help = "print the whole report, not only its first screen"},
			{.name = "kernels", .help = "print all kernels by the time they take"},
			{.name = "transfers", .help = "print all copies by the bytes they move"},
			{.name = "input", .help = "print the stages of the input pipeline"},
			{.name = "where",
			 .help = "print the lines of Python where steps spend their time, as a "
				 "tree"},
			{.name = "folded",
			 .help = "print those lines as folded stacks, for flame graphs"},
			{.name = "memory", .help = "print the device memory in use over the run"},
			{.name = "ranks", .help = "print one line per rank"},
			{.name = "machine",
			 .help = "print what processors, memory, disks and network did"},
			{.name = "steps",
			 .help = "print one line per step; with --json, one JSON object per line"},
			{.name = "step",
			 .arg = "N",
			 .help = "print where step N went; with --ranks, which ranks the others "
				 "waited for in it"},
			{.name = "csv", .help = "print the steps as CSV"},
			{.name = "json",
			 .help = "print the whole report as JSON, schema tfhook.report/1"},
			{.name = "html",
			 .arg = "FILE",
			 .help = "write everything as one page to FILE, which must be new or an "
				 "earlier page; a browser shows it offline. With --ranks: a job of "
				 "many ranks, from its hosts' digests"},
			{.name = "wide",
			 .letter = 'w',
			 .help = "print names in full, whatever the terminal's width"},
			{.name = "strict", .help = "exit 4 if the recording is incomplete"},
			COLOR,
		},
};

static const struct tfh_command cmd_why = {
	.name = "why",
	.operand_text = "[STEP|TOPIC] [PATH...]",
	.summary = "what a step waited for, as a chain with times; where a figure comes from",
	.details =
		"STEP is a step's number, as in `tfhook report --steps`; the default is a step of "
		"median length. Every moment of it is charged to what the step waited for: "
		"computing, a call of the program, a pause, a copy. TOPIC is gain, verdict, tier, "
		"or a cause such as input.map, and prints how the report arrived at that figure. "
		"PATH is as in `tfhook report`.\n\n"
		"Exit code: 0 fine, 2 usage, 3 unreadable, 5 no such step.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_why,
	.flags =
		{
			{.name = "all", .help = "print every link by itself, however short"},
			COLOR,
		},
};

static const struct tfh_command cmd_top = {
	.name = "top",
	.operand_text = "[PID|DIR]",
	.summary = "watch a running job: what holds it back now, its steps, its calls",
	.details =
		"DIR is the run directory of a running job, PID one of its processes or a process "
		"that started it; the default is your newest run directory here. tfhook judges the "
		"last seconds of the recording at each refresh, with less than 1 % of a CPU, and "
		"neither stops nor slows the job. q quits. If the output is not a terminal, each "
		"refresh prints one line.\n\n"
		"Exit code: 0 fine, 2 usage, 3 unreadable, 5 nothing to show: the job has ended, "
		"or has not recorded yet (--once).",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_top,
	.flags =
		{
			{.name = "once", .help = "print one screen as text, and exit"},
			{.name = "json",
			 .help = "print JSON, schema tfhook.top/1: one document per line (with "
				 "--once: one document)"},
			{.name = "openmetrics",
			 .arg = "FILE",
			 .help = "also keep FILE up to date for node_exporter's textfile "
				 "collector"},
			{.name = "listen",
			 .arg = "PORT",
			 .help = "also serve metrics at http://127.0.0.1:PORT/metrics, to clients "
				 "that send the token in --token FILE"},
			{.name = "token",
			 .arg = "FILE",
			 .help = "file with the token for --listen, of mode 600; created if it "
				 "does not exist"},
			{.name = "otlp",
			 .arg = "URL",
			 .help = "also send the metrics to an OpenTelemetry collector "
				 "(http://HOST:4318)"},
			{.name = "window",
			 .arg = "S",
			 .help = "judge the last S seconds, 30 by default"},
			{.name = "interval",
			 .arg = "S",
			 .help = "refresh every S seconds, 2 by default"},
			COLOR,
		},
};

static const struct tfh_command cmd_diff = {
	.name = "diff",
	.operand_text = "A B | A... -- B... | RUN",
	.summary = "what changed from one run to another, and how sure that is",
	.details =
		"A and B are run directories, .tft files, digests or traces of other profilers. "
		"Prints by how much steps became slower or faster, with a 95 % confidence "
		"interval, which causes gained or lost time, and which lines, kernels, settings "
		"and versions differ; or that no difference was found, and how large one could "
		"still be. Several runs of each kind (A... -- B...) give a more reliable "
		"result.\n\n"
		"--at, given twice, compares two intervals of one run: --at 0-10m --at 50-60m.\n\n"
		"--fail-on takes a part of a step (step, compute, or a cause) and the largest "
		"change allowed: 'step>+5%', 'input.map>1ms', 'step<-2%'.\n\n"
		"Exit code: 0 compared, 1 a change beyond --fail-on was found, 2 usage, 3 "
		"unreadable, 5 no steps to compare.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_diff,
	.flags =
		{
			{.name = "at",
			 .arg = "START-END",
			 .help = "an interval of RUN; give it twice to compare two intervals",
			 .twice = true},
			{.name = "fail-on",
			 .arg = "LIMIT",
			 .help = "exit 1 if a change beyond LIMIT was found"},
			{.name = "all", .help = "print every row"},
			{.name = "json", .help = "print JSON, schema tfhook.diff/1"},
		},
};

static const struct tfh_command cmd_info = {
	.name = "info",
	.operand_text = "[PATH...]",
	.summary = "what is in a recording: command, environment, files, gaps",
	.details = "",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_info,
	.flags =
		{
			{.name = "chunks", .help = "list every chunk of every file"},
			COLOR,
		},
};

static const struct tfh_command cmd_import = {
	.name = "import",
	.operand_text = "TRACE... -o OUT.tft",
	.summary = "convert a trace of PyTorch's or TensorFlow's profiler, or of nsys, to .tft",
	.details =
		"TRACE is Kineto JSON (.json, .json.gz), XPlane (.xplane.pb), an SQLite export of "
		"nsys, or a directory of them, such as TensorBoard's log directory. Several are "
		"the ranks of one job; OUT is then a directory. report and info also read such "
		"traces directly.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_import,
	.flags =
		{
			{.name = "output",
			 .letter = 'o',
			 .arg = "OUT",
			 .help = "the file to write, which must not exist"},
		},
};

/* " perfetto kineto", and a line for each. */
#define FORMAT(name, blanks, suffix, by_rank, help) " " #name
static const char format_names[] =
#include "export/formats.def"
	;
#undef FORMAT

static const struct tfh_command cmd_export = {
	.name = "export",
	.operand_text = "--to FORMAT [PATH...]",
	.summary = "write a run in another tool's format",
#define FORMAT(name, blanks, suffix, by_rank, help) "\n" #name blanks help
	.details =
		"PATH is as in `tfhook report`: a run directory, .tft files, or a trace of another "
		"profiler. The memory used does not grow with the number of calls. Formats:"
#include "export/formats.def"
		"\n\nExit code: 0 fine, 2 usage, 3 unreadable or not written, 5 nothing to export.",
#undef FORMAT
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_export,
	.flags =
		{
			{.name = "to",
			 .arg = "FORMAT",
			 .choices = format_names + 1,
			 .help = "the output format, see below"},
			{.name = "output",
			 .letter = 'o',
			 .arg = "OUT",
			 .help = "the file to write, - for standard output; by default it is named "
				 "after PATH"},
			{.name = "steps",
			 .arg = "A-B",
			 .help = "export only steps A to B, and what overlaps them in time"},
			{.name = "anonymize",
			 .help = "for a trace that goes to others: pseudonyms for kernels, ranges, "
				 "threads, programs and hosts"},
			{.name = "force", .help = "replace OUT if it is a file"},
		},
};

static const struct tfh_command cmd_digest = {
	.name = "digest",
	.operand_text = "[PATH...]",
	.summary = "store the results of an analysis in a small file, for reports and diff",
	.details =
		"Analyses the recording in a run directory and writes DIR/digest.tft: for each "
		"rank the time of each step by cause, the tree of loops, lines, kernels, copies, "
		"machine, quality and verdict, in some 20 bytes per step. `tfhook report` and "
		"`tfhook diff` read it instead of the recording; it is made again after the "
		"recording or tfhook has changed. If processes on several hosts recorded into DIR, "
		"each host has a digest of its own, DIR/HOST.digest.tft, and `tfhook report DIR` "
		"reads all of them.\n\n"
		"--follow keeps digests up to date while jobs run. Given a run directory, it exits "
		"when the job ends. Given a folder, it covers all your runs on this host, "
		"including future ones, until it gets a signal. One such process per host is "
		"enough; it runs at the lowest priority and uses about 1 % of a CPU.\n\n"
		"Exit code: 0 fine, 2 usage, 3 unreadable, 5 nothing to analyse.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_digest,
	.flags =
		{
			{.name = "output",
			 .letter = 'o',
			 .arg = "FILE",
			 .help = "write the digest of one PATH, which may be a trace, to FILE"},
			{.name = "follow",
			 .help = "keep it up to date: PATH is a run directory, or a folder of "
				 "them"},
			{.name = "interval",
			 .arg = "S",
			 .help = "with --follow: update a run's digest at most every S seconds, 60 "
				 "by default"},
		},
};

static const struct tfh_command cmd_collect = {
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
	.run = tfh_cmd_collect,
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

static const struct tfh_command cmd_fleet = {
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
	.run = tfh_cmd_fleet,
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

static const struct tfh_command cmd_prune = {
	.name = "prune",
	.operand_text = "--older AGE|--size BYTES [--delete] FOLDER",
	.summary = "delete the recordings of old runs, but keep their digests",
	.details =
		"Deletes the segments (*.tft) of your run directories in FOLDER, oldest first. "
		"Their digests, run.json and end.json stay, and reports are made from those. "
		"Without --delete it only prints what it would delete. With both --older and "
		"--size it deletes old runs, and stops as soon as the rest fits. It keeps runs "
		"that are being recorded, that may be recorded on another host, that have journals "
		"to repair, or that have no digest of all their segments.\n\n"
		"Exit code: 0 fine, 2 usage, 3 unreadable or not removed, 5 no runs.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_prune,
	.flags =
		{
			{.name = "older",
			 .arg = "AGE",
			 .help = "delete runs that have not changed for AGE: 14d, 36h, 90m"},
			{.name = "size",
			 .arg = "BYTES",
			 .help = "delete runs until the segments in FOLDER take BYTES at most: "
				 "500G, 2T"},
			{.name = "delete",
			 .help = "delete, instead of printing what would be deleted"},
		},
};

static const struct tfh_command cmd_verify = {
	.name = "verify",
	.operand_text = "[PATH...]",
	.summary = "check every chunk's checksum and that each file ended cleanly",
	.details = "Exit code: 0 complete, 3 unreadable, 4 incomplete (damaged chunks, a truncated "
		   "file, lost events).",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_verify,
	.flags =
		{
			{.name = "quiet", .letter = 'q', .help = "print only what is wrong"},
		},
};

static const struct tfh_command cmd_repair = {
	.name = "repair",
	.operand_text = "PATH...",
	.summary = "recover the intact part of damaged files and left-over journals",
	.details = "PATH is a run directory, a .tft file or a journal. The originals are never "
		   "changed. Without -o, the result is a new directory beside it, PATH.repaired; "
		   "for a journal, it is one more file in the run directory that it names.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_repair,
	.flags =
		{
			{.name = "output",
			 .letter = 'o',
			 .arg = "DIR",
			 .help = "directory for the result, created if it does not exist"},
			{.name = "left",
			 .help = "without PATH: move the journals that your killed processes (as "
				 "root: everybody's) left in /dev/shm to their run directories"},
		},
};

static const struct tfh_command cmd_ctl = {
	.name = "ctl",
	.operand_text = "DIR|PID start|stop|flush|gpu on|gpu off",
	.summary = "control the recording of a running job",
	.details =
		"stop     record no more calls (handles and memory are still tracked, so start is "
		"cheap)\n"
		"start    resume recording\n"
		"flush    write what is recorded so far, so that `tfhook report DIR` sees it\n"
		"gpu on   record device times, whatever TFHOOK_CUPTI says\n"
		"gpu off  record no device times\n\n"
		"--at-step switches all processes of a job at the same step. Each process counts "
		"its own steps, so run the same command on every host, some seconds before step N. "
		"Steps are counted from 1 as for TFHOOK_WINDOW: by the job's step marks, otherwise "
		"by the get-next calls of its iterators (the report counts from 0). For every "
		"process the command prints when it will switch. If step N has already passed, "
		"that is at once. A process that has recorded nothing yet cannot be controlled.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_ctl,
	.flags =
		{
			{.name = "at-step",
			 .arg = "N",
			 .help = "with gpu on, gpu off: switch at step N"},
			{.name = "steps",
			 .arg = "N",
			 .help = "with start: stop again after N steps; with gpu on: for N steps"},
		},
};

static const struct tfh_command cmd_doctor = {
	.name = "doctor",
	.operand_text = "[CMD]",
	.summary = "check whether jobs here (or CMD) can be recorded, and what to do if not",
	.details = "Exit code: 0 if a job can be recorded here, 1 if not.",
	.operands = TFH_OPERANDS_COMMAND,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_doctor,
	.flags = {COLOR},
};

static const struct tfh_command cmd_demo = {
	.name = "demo",
	.operand_text = "[main|quick]",
	.summary = "record a real training job on the simulated GPU and report on it",
	.details = "main    tinygrad trains on the simulated GPU, fed by a tf.data pipeline with a "
		   "slow map\n"
		   "quick   the same without TensorFlow: copies ten times too large, then a slow "
		   "loader\n\n"
		   "Needs a python3 with tinygrad and numpy (main: tensorflow, too); `make demo` "
		   "prepares one.",
	.operands = TFH_OPERANDS_WORDS,
	.words = "main quick",
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_demo,
	.flags =
		{
			{.name = "output",
			 .letter = 'o',
			 .arg = "DIR",
			 .help = "keep the recordings below DIR"},
			COLOR,
		},
};

static const struct tfh_command cmd_env = {
	.name = "env",
	.operand_text = "",
	.summary = "print the variables for launchers that start the job themselves",
	.details =
		"eval \"$(tfhook env)\" sets them in this shell. All settings follow as comments.",
	.operands = TFH_OPERANDS_NONE,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_env,
	.flags =
		{
			{.name = "format",
			 .arg = "FORM",
			 .choices = "shell docker slurm k8s sagemaker",
			 .help = "shell: export lines; docker: flags; slurm: a list for sbatch "
				 "--export; k8s: a JSON patch for kubectl, of a pod whose "
				 "container is called training and whose node has tfhook; "
				 "sagemaker: the environment (JSON) of a job whose image has "
				 "tfhook"},
			AUDIT,
		},
};

static const struct tfh_command cmd_mcp = {
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
	.run = tfh_cmd_mcp,
	.flags = {{.name = NULL}},
};

static const struct tfh_command cmd_completions = {
	.name = "completions",
	.operand_text = "bash|zsh|fish",
	.summary = "print the completion script of a shell",
	.details = "",
	.operands = TFH_OPERANDS_WORDS,
	.words = "bash zsh fish",
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_completions,
	.flags = {{.name = NULL}},
};

static const struct tfh_command cmd_help = {
	.name = "help",
	.operand_text = "[COMMAND]",
	.summary = "print the list of commands, or a command's help",
	.details = "",
	.operands = TFH_OPERANDS_WORDS,
	.words = "",
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_help,
	.flags =
		{
			{.name = "man",
			 .help = "print the source of a command's manual page, or of tfhook(7)"},
		},
};

static const struct tfh_command cmd_version = {
	.name = "version",
	.operand_text = "",
	.summary = "print tfhook's version",
	.details = "",
	.operands = TFH_OPERANDS_NONE,
	.usage_exit = TFH_EXIT_USAGE,
	.run = tfh_cmd_version,
	.flags = {{.name = NULL}},
};

const struct tfh_command *const tfh_commands[] = {
	&cmd_run,   &cmd_report,      &cmd_why,	   &cmd_top,	 &cmd_diff,    &cmd_ctl,
	&cmd_info,  &cmd_import,      &cmd_export, &cmd_digest,	 &cmd_collect, &cmd_fleet,
	&cmd_prune, &cmd_verify,      &cmd_repair, &cmd_doctor,	 &cmd_demo,    &cmd_env,
	&cmd_mcp,   &cmd_completions, &cmd_help,   &cmd_version, NULL,
};
