#include "cli/digests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/print.h"
#include "model/big.h"
#include "report/format.h"

int tfh_digest_make(const char *path, const char *host, int fd, struct tfh_err *err)
{
	struct tfh_inputs in = {.n = 0};
	struct tfh_run *run = NULL;
	/* Lists the files before reading them: a file that is added meanwhile makes the digest
	 * stale. */
	int rc = tfh_inputs_find(path, host, &in);

	if (rc)
		tfh_err_set(err, rc, "%s: %s", path, strerror(-rc));
	else
		rc = host ? tfh_run_open_host(path, host, &run, err)
			  : tfh_progress_open(&path, 1, &run, err);
	if (rc) {
		close(fd);
	} else {
		tfh_say_left_out(run);
		struct tfh_progress *progress = tfh_progress_start(run);
		rc = tfh_digest_write(run, &in, fd, err);
		tfh_progress_stop(progress);
	}
	tfh_run_close(run);
	tfh_inputs_free(&in);
	return rc;
}

static int make_unnamed(const char *path, struct tfh_run_digest **out, struct tfh_err *err)
{
	int fd = tfh_big_file(), kept = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	char name[64];

	if (kept < 0) {
		int rc = -errno;
		if (fd >= 0)
			close(fd);
		return tfh_err_set(err, rc, "no room for a temporary file: set TMPDIR");
	}
	int rc = tfh_digest_make(path, NULL, fd, err);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", kept);
	if (!rc)
		rc = tfh_digest_open(name, out, err);
	close(kept);
	return rc;
}

static int open_in(const char *dir, bool if_fresh, struct tfh_run_digest **out)
{
	struct tfh_inputs in = {.n = 0};
	char path[8192];

	snprintf(path, sizeof(path), "%s/%s", dir, TFH_DIGEST_NAME);
	int rc = tfh_digest_open(path, out, NULL);
	if (rc || !if_fresh)
		return rc;
	rc = tfh_inputs_find(dir, NULL, &in);
	if (!rc && !tfh_digest_is_fresh(*out, &in))
		rc = -ESTALE;
	tfh_inputs_free(&in);
	if (rc) {
		tfh_digest_close(*out);
		*out = NULL;
	}
	return rc;
}

int tfh_digest_here(const char *path, bool stale, struct tfh_run_digest **out)
{
	struct stat st;

	*out = NULL;
	if (stat(path, &st))
		return -errno;
	return S_ISDIR(st.st_mode)   ? open_in(path, !stale, out)
	       : S_ISREG(st.st_mode) ? tfh_digest_open(path, out, NULL)
				     : -ENOENT;
}

int tfh_digest_get(const char *path, struct tfh_run_digest **out, struct tfh_err *err)
{
	struct stat st;

	*out = NULL;
	if (stat(path, &st))
		return tfh_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode) && !open_in(path, true, out))
		return 0;
	if (S_ISREG(st.st_mode)) {
		int rc = tfh_digest_open(path, out, err);
		if (rc != -ENOMSG) /* neither a recording nor a trace */
			return rc;
	}
	int rc = make_unnamed(path, out, err);
	if (rc == -ENODATA && S_ISDIR(st.st_mode) && !open_in(path, false, out))
		return 0;
	return rc;
}

static int skip_row(void *arg, const struct tfh_digest_row *row)
{
	(void)row;
	++*(uint64_t *)arg;
	return 0;
}

static int skip_anchor(void *arg, const struct tfh_digest_anchor *row)
{
	(void)arg;
	(void)row;
	return 0;
}

bool tfh_digest_check(const char *path)
{
	struct tfh_run_digest *d;
	uint64_t rows = 0;

	if (tfh_digest_open(path, &d, NULL))
		return false;
	int rc = tfh_digest_each_step(d, skip_row, &rows, NULL);
	if (!rc)
		rc = tfh_digest_each_anchor(d, skip_anchor, NULL, NULL);
	tfh_digest_close(d);
	return !rc;
}

static void print_gone(const struct tfh_digest_part *p)
{
	const struct tfh_digest_gone *gone = p->row;
	char steps[TFH_TEXT], time[TFH_TEXT];

	for (uint32_t i = 0; i < p->n; i++)
		tfh_print(stdout, "deleted    %s steps in %s of rank %u\n",
			  tfh_fmt_count(steps, gone[i].steps),
			  tfh_fmt_time(time, (double)(gone[i].end_ns - gone[i].begin_ns) * 1e-9),
			  gone[i].rank);
}

bool tfh_digest_print(const char *path)
{
	struct tfh_run_digest *d;
	uint64_t rows = 0;

	if (tfh_digest_open(path, &d, NULL))
		return false;
	const struct tfh_digest_part *ranks = tfh_digest_part_of(d, TFT_DRNK),
				     *files = tfh_digest_part_of(d, TFT_DINP),
				     *keys = tfh_digest_part_of(d, TFT_DKEY);
	const struct tfh_digest_key *key = keys->row;
	tfh_digest_each_step(d, skip_row, &rows, NULL);
	tfh_print(stdout, "digest     %s\nranks      %u\nsteps      %llu\nfiles      %u%s\n", path,
		  ranks->n, (unsigned long long)rows, files->n,
		  strcmp(tfh_digest_fact(d, "judge") ? tfh_digest_fact(d, "judge") : "",
			 tfh_judge_id())
			  ? "   (judged by another version of tfhook)"
			  : "");
	print_gone(tfh_digest_part_of(d, TFT_DGON));
	for (uint32_t i = 0; i < keys->n; i++)
		tfh_print(stdout, "  %s=%s\n", tfh_digest_text(keys, key[i].name),
			  tfh_digest_text(keys, key[i].value));
	tfh_digest_close(d);
	return true;
}
