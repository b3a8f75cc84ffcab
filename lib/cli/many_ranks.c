/* `tfhook report` on the digests of the hosts of one job, without reading a recording. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sort.h"
#include "base/text.h"
#include "cli/digests.h"
#include "cli/many_ranks.h"
#include "cli/page_file.h"
#include "model/host_files.h"
#include "model/model.h"
#include "ranks/ranks.h"

#define MOST 65536u /* digests */

/* The digests of a run directory's hosts, by name. */
struct host_digests {
	char **path;
	uint32_t n;
};

static int add(struct host_digests *x, const char *dir, const char *name)
{
	char path[8192], **grown = realloc(x->path, (x->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	x->path = grown;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	x->path[x->n] = strdup(path);
	if (!x->path[x->n])
		return -ENOMEM;
	x->n++;
	return 0;
}

static int find_digests(const char *dir, struct host_digests *out)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	*out = (struct host_digests){.n = 0};
	while (d && !rc && (e = readdir(d)))
		if (*e->d_name != '.' && tfh_ends_with(e->d_name, "." TFH_DIGEST_NAME))
			rc = out->n < MOST ? add(out, dir, e->d_name) : -E2BIG;
	if (d)
		closedir(d);
	if (out->n)
		qsort(out->path, out->n, sizeof(*out->path), tfh_by_version);
	return rc;
}

static void free_digests(struct host_digests *x)
{
	for (uint32_t i = 0; i < x->n; i++)
		free(x->path[i]);
	free(x->path);
	*x = (struct host_digests){.n = 0};
}

static bool find(const struct tfh_command_line *args, char *path, size_t size,
		 struct host_digests *out)
{
	struct stat st;

	if (args->operands > 1 || (!args->operands && !tfh_run_newest(path, size)))
		return false;
	if (args->operands)
		snprintf(path, size, "%s", args->operand[0]);
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return false;
	if (find_digests(path, out) || !out->n) {
		free_digests(out);
		return false;
	}
	return true;
}

/* The bytes of a host's segments that its digest was made from; UINT64_MAX: it has no digest. */
static uint64_t digested(const struct tfh_ranks *job, const char *host)
{
	for (uint32_t h = 0; h < job->hosts_read; h++)
		if (job->host[h].name && !strcmp(job->host[h].name, host))
			return job->host[h].bytes;
	return UINT64_MAX;
}

/* Says how many hosts have recordings that are not in their digests. Segments are only appended to,
 * so their sizes show it; reading parts of them all, as for one run, would take longer than the
 * report. */
static void say_stale(const char *dir, const struct tfh_ranks *job)
{
	struct tfh_run_hosts hosts;
	uint32_t none = 0, old = 0, other = 0;

	if (tfh_run_hosts_find(dir, &hosts))
		return;
	for (uint32_t i = 0; i < hosts.n; i++) {
		uint64_t bytes = digested(job, hosts.name[i]);
		none += bytes == UINT64_MAX;
		old += bytes != UINT64_MAX && bytes != hosts.bytes[i];
	}
	for (uint32_t h = 0; h < job->hosts; h++)
		other += job->host[h].other_judge;
	if (none || old)
		tfh_say("of %u hosts, %u have no digest and %u recorded more since: tfhook digest "
			"%s",
			hosts.n, none, old, dir);
	else if (other && hosts.n)
		tfh_say("%u digests are of another version of tfhook: tfhook digest %s", other,
			dir);
	else if (other && other < job->hosts)
		tfh_say("%u of %u digests are of another version of tfhook, which may judge "
			"differently",
			other, job->hosts);
	tfh_run_hosts_free(&hosts);
}

static int print(const struct tfh_command_line *args, struct tfh_ranks *job)
{
	const struct tfh_ranks_style style = {
		.color = tfh_use_color(tfh_line_get(args, "color"), stdout),
		.all = tfh_line_get(args, "all"),
		.columns = tfh_use_columns(stdout)};

	if (tfh_line_get(args, "html"))
		return tfh_page_write_many(tfh_line_get(args, "html"), job);
	if (tfh_line_get(args, "json"))
		return tfh_ranks_json(stdout, job);
	if (job->asked)
		tfh_ranks_step_text(stdout, job, &style);
	else if (tfh_line_get(args, "ranks"))
		tfh_ranks_table(stdout, job);
	else
		tfh_ranks_text(stdout, job, &style);
	return 0;
}

/* Whether an option requests details of a single run's calls, or a document of another schema. */
static bool is_for_another(const struct tfh_command_line *args)
{
	static const char *const names[] = {"kernels", "transfers", "input", "where", "folded",
					    "memory",  "machine",   "steps", "csv"};
	const char *whole[] = {"json", "html", "step"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (tfh_line_get(args, names[i]))
			return true;
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (tfh_line_get(args, whole[i]) && !tfh_line_get(args, "ranks"))
			return true;
	return false;
}

static bool is_short(const struct tfh_ranks *job)
{
	return job->unread || job->others || job->n_missing;
}

bool tfh_report_many(const struct tfh_command_line *args, int *status)
{
	struct host_digests x;
	struct tfh_ranks *job;
	struct tfh_err err = {0};
	char dir[4096];

	if (is_for_another(args) || !find(args, dir, sizeof(dir), &x))
		return false;
	const char *text = tfh_line_get(args, "step");
	char *end = NULL;
	uint64_t step = text ? strtoull(text, &end, 10) : 0;
	int rc = tfh_ranks_find(x.path, x.n, text ? &step : NULL, &job, &err);
	if (!rc && text && (!*text || *end || !job->slowest[0].ranks)) {
		tfh_say("report: no rank has a step %s", text);
		*status = TFH_EXIT_USAGE;
		tfh_ranks_free(job);
	} else if (rc) {
		tfh_say_why(&err, rc);
		*status = tfh_exit_code(rc);
	} else {
		say_stale(dir, job);
		*status = print(args, job)				  ? TFH_EXIT_UNREADABLE
			  : tfh_line_get(args, "strict") && is_short(job) ? TFH_EXIT_INCOMPLETE
									  : TFH_EXIT_OK;
		tfh_ranks_free(job);
	}
	free_digests(&x);
	return true;
}
