/* `tfhook report` on the digests of the hosts of one job, without reading a recording. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/many_ranks.h"
#include "ranks/ranks.h"

#define MOST 65536u /* digests */

static int by_text(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

static int add(struct tfh_host_digests *x, const char *dir, const char *name)
{
	char path[8192], **grown = realloc(x->path, (x->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	x->path = grown;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	x->path[x->n] = strdup(path);
	x->n += x->path[x->n] != NULL;
	return x->path[x->n - 1] ? 0 : -ENOMEM;
}

int tfh_host_digests_find(const char *dir, struct tfh_host_digests *out)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	*out = (struct tfh_host_digests){.n = 0};
	while (d && !rc && (e = readdir(d)))
		if (*e->d_name != '.' && tfh_ends_with(e->d_name, "." TFH_DIGEST_NAME))
			rc = out->n < MOST ? add(out, dir, e->d_name) : -E2BIG;
	if (d)
		closedir(d);
	if (out->n)
		qsort(out->path, out->n, sizeof(*out->path), by_text);
	return rc;
}

void tfh_host_digests_free(struct tfh_host_digests *x)
{
	for (uint32_t i = 0; i < x->n; i++)
		free(x->path[i]);
	free(x->path);
	*x = (struct tfh_host_digests){.n = 0};
}

static bool find(const struct tfh_command_line *args, struct tfh_host_digests *out)
{
	char newest[4096];
	const char *path = args->operands == 1 ? args->operand[0] : newest;
	struct stat st;

	if (args->operands > 1 || (!args->operands && !tfh_run_newest(newest, sizeof(newest))))
		return false;
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return false;
	if (tfh_host_digests_find(path, out) || !out->n) {
		tfh_host_digests_free(out);
		return false;
	}
	return true;
}

static int print(const struct tfh_command_line *args, const struct tfh_ranks *job)
{
	const struct tfh_ranks_style style = {.color = tfh_use_color(tfh_line_get(args, "color"),
								     stdout),
					      .all = tfh_line_get(args, "all"),
					      .columns = tfh_use_columns(stdout)};

	if (tfh_line_get(args, "json"))
		return tfh_ranks_json(stdout, job);
	if (tfh_line_get(args, "ranks"))
		tfh_ranks_table(stdout, job);
	else
		tfh_ranks_text(stdout, job, &style);
	return 0;
}

/* What this report has not. */
static const char *not_here(const struct tfh_command_line *args)
{
	static const char *const names[] = {"kernels", "transfers", "input", "where",
					    "folded",  "memory",    "machine", "steps",
					    "step",    "csv",	   "html"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (tfh_line_get(args, names[i]))
			return names[i];
	return NULL;
}

bool tfh_report_many(const struct tfh_command_line *args, int *status)
{
	struct tfh_host_digests x;
	struct tfh_ranks *job;
	struct tfh_err err = {0};

	if (!find(args, &x))
		return false;
	if (not_here(args)) {
		tfh_say("report: --%s is about one host: name its digest (%s)", not_here(args),
			x.path[0]);
		*status = TFH_EXIT_USAGE;
	} else {
		int rc = tfh_ranks_find(x.path, x.n, &job, &err);
		if (!rc) {
			rc = print(args, job);
			*status = rc ? TFH_EXIT_UNREADABLE
				  : tfh_line_get(args, "strict") &&
						  (job->unread || job->n_missing)
					  ? TFH_EXIT_INCOMPLETE
					  : TFH_EXIT_OK;
			tfh_ranks_free(job);
		} else {
			tfh_say_why(&err, rc);
			*status = tfh_exit_code(rc);
		}
	}
	tfh_host_digests_free(&x);
	return true;
}
