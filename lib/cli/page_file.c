#include "cli/page_file.h"
#include "cli/judged.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/part_file.h"
#include "digest/digest_restore.h"
#include "model/big.h"

/* Flags that select another output. */
static const char *const others[] = {"all",    "kernels", "transfers", "input", "where",
				     "folded", "memory",  "machine",   "steps", "step",
				     "csv",    "json",	  "wide"};

/* 0: an earlier page of ours, which may be replaced; -ENOENT: no file; -EEXIST: another kind of
 * file. */
static int may_replace(const char *path)
{
	char begin[4096];
	struct stat st;

	if (lstat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EEXIST;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, begin, sizeof(begin) - 1);
	int rc = n < 0 ? -errno : 0;
	close(fd);
	begin[n > 0 ? n : 0] = '\0';
	return rc ? rc : tfh_is_page(begin) ? 0 : -EEXIST;
}

static void say_refused(const char *path, int rc)
{
	if (rc == -EEXIST)
		tfh_say("report: %s exists and is not a tfhook page; remove it, or name another "
			"file",
			path);
	else
		tfh_say("report: cannot write %s: %s", path, strerror(-rc));
}

bool tfh_page_allowed(const struct tfh_command_line *args, int *status)
{
	const char *path = tfh_line_get(args, "html");

	*status = TFH_EXIT_USAGE;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (tfh_line_get(args, others[i])) {
			tfh_say("report: --html and --%s exclude each other: the page holds "
				"everything",
				others[i]);
			return false;
		}
	if (!*path) {
		tfh_say("report: --html needs the name of a file");
		return false;
	}
	*status = TFH_EXIT_UNREADABLE;
	int rc = may_replace(path);
	if (!rc || rc == -ENOENT)
		return true;
	say_refused(path, rc);
	return false;
}

struct page_text {
	const struct tfh_result *r;
	const struct tfh_page_parts *parts;
};

static int write_text(void *arg, FILE *out)
{
	const struct page_text *text = arg;
	struct tfh_wording words;

	tfh_wording_make(&words, text->r);
	int rc = tfh_report_page(out, &words, &text->parts->shown, &text->parts->curves);
	tfh_wording_free(&words);
	return rc;
}

int tfh_page_analyze(struct tfh_run *run, struct tfh_page_parts *parts, struct tfh_result **out,
		     struct tfh_err *err)
{
	struct tfh_steps_wanted wanted = {tfh_shown_choose, &parts->shown, TFH_NO_STEP};
	bool ranks = tfh_curves_wanted(run);

	parts->curves.wall_s = (double)tfh_run_wall_ns(run) * 1e-9;
	return tfh_analyze_steps(run, &wanted, ranks ? tfh_curves_add : NULL, &parts->curves, out,
				 err);
}

/* The ranks' curves, from the steps that a digest keeps. */
static int curves_of(const struct tfh_judged *j, struct tfh_curves *out, struct tfh_err *err)
{
	const struct tfh_digest_part *ranks = tfh_digest_part_of(j->digest, TFT_DRNK);
	const struct tfh_digest_rank *rank = ranks->row;
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(j->run, &p);
	int rc = 0;

	*out = (struct tfh_curves){.wall_s = (double)tfh_run_wall_ns(j->run) * 1e-9};
	if (!tfh_curves_wanted(j->run))
		return 0;
	for (uint32_t i = 0; i < ranks->n && !rc; i++) {
		struct tfh_result one = {.process = 0};
		while (one.process < n && (p[one.process].rank + 1 != (int32_t)rank[i].rank ||
					   p[one.process].pid != rank[i].pid))
			one.process++;
		/* Those of other starts than the judged one come last. */
		if (one.process == n || rank[i].generation != rank[0].generation)
			continue;
		rc = tfh_digest_steps_of(j->digest, i, &one, err);
		if (!rc)
			rc = tfh_curves_add(out, &one, err);
		tfh_big_free(one.step);
	}
	return rc;
}

static int write_many(void *job, FILE *out)
{
	return tfh_ranks_page(out, job);
}

int tfh_page_write_many(const char *path, struct tfh_ranks *job)
{
	int rc = tfh_part_file(path, may_replace, write_many, job);

	if (rc)
		say_refused(path, rc);
	return rc;
}

int tfh_page_write(const char *path, const struct tfh_judged *j, struct tfh_page_parts *parts)
{
	struct tfh_err err = {0};
	int rc = j->digest ? curves_of(j, &parts->curves, &err) : 0;

	if (rc) {
		tfh_say_why(&err, rc);
		return tfh_exit_code(rc);
	}
	struct page_text text = {.r = j->result, .parts = parts};
	rc = tfh_part_file(path, may_replace, write_text, &text);
	if (rc)
		say_refused(path, rc);
	return rc ? TFH_EXIT_UNREADABLE : TFH_EXIT_OK;
}

void tfh_page_free(struct tfh_page_parts *parts)
{
	tfh_shown_free(&parts->shown);
	tfh_curves_free(&parts->curves);
}
