/* `tfhook prune`: removes segments of runs by age and size, and keeps the runs' digests. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/options.h"
#include "base/print.h"
#include "cli/cli.h"
#include "cli/prune.h"
#include "report/format.h"

struct pruned_run {
	char *name; /* in the folder */
	struct tfh_prunable is;
};

struct pruning {
	const char *folder;
	int at;
	struct pruned_run *run; /* the oldest first */
	size_t n, others;	/* others: of other users */
	uint64_t bytes;		/* of all existing segments */
	/* Remove the segments of runs that have not changed for this long, as long as all together
	 * have more than `most` bytes. */
	int64_t older_s;
	uint64_t most;
	bool really;
	uint64_t dropped, dropped_runs;
	int status;
};

/* "14d", "36h", "90m", "30s". */
static int parse_age(const char *text, int64_t *seconds)
{
	static const struct {
		char unit;
		int s;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	char *end;
	double n = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (end == text || *end != units[i].unit || end[1] || !(n >= 0) || n > 1e6)
			continue;
		*seconds = (int64_t)(n * units[i].s);
		return 0;
	}
	tfh_say("prune: --older needs an age such as 14d, 36h or 90m, not '%s'", text);
	return -EINVAL;
}

static int parse(const struct tfh_command_line *args, struct pruning *p)
{
	const char *older = tfh_line_get(args, "older"), *size = tfh_line_get(args, "size");
	int64_t most = 0;

	if (args->operands != 1 || (!older && !size)) {
		tfh_say("prune needs a folder of runs, and which to prune: tfhook prune --older "
			"14d FOLDER");
		return -EINVAL;
	}
	if (size && tfh_parse_size(size, &most)) {
		tfh_say("prune: --size needs bytes such as 500G, not '%s'", size);
		return -EINVAL;
	}
	p->most = (uint64_t)most;
	p->folder = args->operand[0];
	p->really = tfh_line_get(args, "delete") != NULL;
	return older ? parse_age(older, &p->older_s) : 0;
}

static int oldest_first(const void *a, const void *b)
{
	const struct pruned_run *x = a, *y = b;

	if (x->is.newest_s != y->is.newest_s)
		return x->is.newest_s < y->is.newest_s ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int add_run(struct pruning *p, const char *name)
{
	struct tfh_prunable is;
	int dir = tfh_prune_open(p->at, name, &is);

	if (dir < 0) {
		p->others += dir == -EPERM;
		return dir == -ENOMSG || dir == -EPERM || dir == -EACCES ? 0 : dir;
	}
	close(dir);
	struct pruned_run *grown = realloc(p->run, (p->n + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->run = grown;
	p->run[p->n] = (struct pruned_run){strdup(name), is};
	if (!p->run[p->n].name)
		return -ENOMEM;
	p->n++;
	p->bytes += is.bytes;
	return 0;
}

/* The folder itself, or the runs in it. */
static int find_runs(struct pruning *p)
{
	int rc = add_run(p, ".");
	DIR *d = rc || p->n ? NULL : tfh_list_names(p->at);
	struct dirent *e;

	while (d && !rc && (e = readdir(d)))
		if (*e->d_name != '.')
			rc = add_run(p, e->d_name);
	if (d)
		closedir(d);
	if (p->n)
		qsort(p->run, p->n, sizeof(*p->run), oldest_first);
	return rc;
}

static void prune_run(struct pruning *p, const struct pruned_run *r)
{
	struct tfh_prunable is;
	int dir = tfh_prune_open(p->at, r->name, &is), rc = 0;
	const char *slash = strcmp(r->name, ".") ? "/" : "", *name = *slash ? r->name : "";
	char bytes[TFH_TEXT];

	if (dir < 0)
		return; /* it is gone */
	const char *why = tfh_prune_refused(dir, &is);
	if (!why && p->really)
		rc = tfh_prune_drop(dir, &is);
	close(dir);
	if (why) {
		tfh_print(stdout, "%s%s%s: kept: %s\n", p->folder, slash, name, why);
		return;
	}
	if (rc) {
		tfh_say("prune: %s%s%s: %s", p->folder, slash, name, strerror(-rc));
		p->status = TFH_EXIT_UNREADABLE;
		return;
	}
	tfh_print(stdout, "%s%s%s: %s %u segment%s, %s\n", p->folder, slash, name,
		  p->really ? "dropped" : "would drop", is.files, is.files == 1 ? "" : "s",
		  tfh_fmt_bytes(bytes, (double)is.bytes));
	p->dropped += is.bytes;
	p->dropped_runs++;
	p->bytes -= is.bytes < p->bytes ? is.bytes : p->bytes;
}

static void print_sum(const struct pruning *p)
{
	char dropped[TFH_TEXT], left[TFH_TEXT];

	tfh_print(stdout, "%s of %llu run%s %s; %s of segments %s\n",
		  tfh_fmt_bytes(dropped, (double)p->dropped), (unsigned long long)p->dropped_runs,
		  p->dropped_runs == 1 ? "" : "s",
		  p->really ? "dropped" : "to drop (--delete does it)",
		  tfh_fmt_bytes(left, (double)p->bytes), p->really ? "are left" : "would be left");
	if (p->others)
		tfh_say("prune: %zu runs of other users are left alone", p->others);
}

static int cmd_prune(const struct tfh_command_line *args)
{
	struct pruning p = {.status = TFH_EXIT_OK};

	if (parse(args, &p))
		return TFH_EXIT_USAGE;
	p.at = open(p.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = p.at < 0 ? -errno : find_runs(&p);
	if (rc) {
		tfh_say("prune: %s: %s", p.folder, strerror(-rc));
		p.status = TFH_EXIT_UNREADABLE;
	}
	int64_t now = time(NULL);
	for (size_t i = 0; i < p.n && !rc; i++)
		if (p.bytes > p.most && p.run[i].is.newest_s <= now - p.older_s)
			prune_run(&p, &p.run[i]);
	if (!rc && p.n)
		print_sum(&p);
	if (!rc && !p.n) {
		tfh_say("prune: no run directory of yours with segments in %s", p.folder);
		p.status = TFH_EXIT_NOTHING;
	}
	for (size_t i = 0; i < p.n; i++)
		free(p.run[i].name);
	free(p.run);
	if (p.at >= 0)
		close(p.at);
	return p.status;
}

const struct tfh_command tfh_cmd_prune = {
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
	.run = cmd_prune,
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
