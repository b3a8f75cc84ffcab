/*
 * All accesses use the directory's descriptor, and no link is followed. So a user who may change
 * the parent folder cannot make this remove anything else.
 */
#include "cli/prune.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/text.h"
#include "cli/digests.h"
#include "format/journal_view.h"
#include "model/host_files.h"

/* A recording that has gone on for this long without writing is hung rather than running.
 * Recordings on other hosts cannot be queried, and `tfhook run` may have been killed before it
 * wrote end.json. */
#define QUIET_S 86400

static bool is_segment(const char *name)
{
	return tfh_ends_with(name, ".tft") && !tfh_ends_with(name, TFH_DIGEST_NAME);
}

typedef int (*each_fn)(void *arg, int dir, const char *name, const struct stat *st);

/* Calls `fn` for each regular file until it returns a value other than 0, which is returned. */
static int each_file(int dir, each_fn fn, void *arg)
{
	DIR *d = tfh_list_names(dir);
	struct dirent *e;
	struct stat st;
	int rc = 0;

	if (!d)
		return -errno;
	while (!rc && (e = readdir(d)))
		if (!fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
			rc = fn(arg, dir, e->d_name, &st);
	closedir(d);
	return rc;
}

static int add_up(void *arg, int dir, const char *name, const struct stat *st)
{
	struct tfh_prunable *run = arg;

	(void)dir;
	if (st->st_mtim.tv_sec > run->newest_s)
		run->newest_s = st->st_mtim.tv_sec;
	if (is_segment(name)) {
		run->bytes += (uint64_t)st->st_size;
		run->files++;
	}
	return 0;
}

static bool is_run(int dir)
{
	char text[4096];

	return !tfh_read_small_at(dir, "run.json", text, sizeof(text)) &&
	       strstr(text, "\"schema\": \"tfhook.run/");
}

int tfh_prune_open(int at, const char *name, struct tfh_prunable *out)
{
	int dir = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc = 0;
	struct stat st;

	*out = (struct tfh_prunable){0};
	if (dir < 0)
		return errno == ELOOP || errno == ENOTDIR || errno == ENOENT ? -ENOMSG : -errno;
	if (fstat(dir, &st))
		rc = -errno;
	else if (!is_run(dir))
		rc = -ENOMSG;
	else if (st.st_uid != geteuid())
		rc = -EPERM;
	if (!rc)
		rc = each_file(dir, add_up, out);
	/* -ENOENT: a job that ends removes a directory into which nothing was recorded. */
	if (rc == -ENOENT || (!rc && !out->files))
		rc = -ENOMSG;
	if (!rc)
		return dir;
	close(dir);
	return rc;
}

/* ---- whether segments may be removed ---- */

static void note_journal(void *arg, const struct tft_found *found)
{
	const char **why = arg;

	*why = !found->code && tft_view_life(found->view) == TFT_DEAD
		       ? "a journal holds records that no segment has: tfhook repair --left"
		       : "it is being recorded";
}

/* Whether the digest was made from all existing segments, as they are now. Segments that it lists
 * may be gone, if an earlier prune was interrupted. */
static bool has_all(const struct tfh_run_digest *d, const struct tfh_inputs *in)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DINP);
	const struct tfh_digest_input *row = p->row;

	for (uint32_t i = 0; i < in->n; i++) {
		uint32_t k = 0;
		while (k < p->n && strcmp(tfh_digest_text(p, row[k].name), in->v[i].name) != 0)
			k++;
		if (k == p->n || row[k].bytes != in->v[i].bytes || row[k].check != in->v[i].check)
			return false;
	}
	return true;
}

/* Whether the digest of that name has all segments of a host (NULL: of all). */
static bool is_digested_in(int dir, const char *name, const char *host)
{
	struct tfh_inputs in = {.n = 0};
	struct tfh_run_digest *d;
	char folder[64], path[512];
	struct stat st;
	bool all = false;

	snprintf(folder, sizeof(folder), "/proc/self/fd/%d/.", dir);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
	    !tfh_digest_check(path) || tfh_digest_open(path, &d, NULL))
		return false;
	if (!tfh_inputs_find(folder, host, &in))
		all = has_all(d, &in);
	tfh_inputs_free(&in);
	tfh_digest_close(d);
	return all;
}

/* Whether one digest of the whole run, or one for each of its hosts, has all segments. */
static bool is_digested(int dir, const struct tfh_prunable *run)
{
	struct tfh_run_hosts hosts = {.n = 0};
	char folder[64], name[TFH_HOST_NAME + 32];
	bool all = is_digested_in(dir, TFH_DIGEST_NAME, NULL);
	uint64_t bytes = 0;

	if (all)
		return true;
	snprintf(folder, sizeof(folder), "/proc/self/fd/%d/.", dir);
	if (tfh_run_hosts_find(folder, &hosts))
		return false;
	all = hosts.n > 0;
	for (uint32_t i = 0; i < hosts.n && all; i++) {
		snprintf(name, sizeof(name), "%s.%s", hosts.name[i], TFH_DIGEST_NAME);
		all = is_digested_in(dir, name, hosts.name[i]);
		bytes += hosts.bytes[i];
	}
	tfh_run_hosts_free(&hosts);
	return all && bytes == run->bytes; /* a segment whose name shows no host is in no digest */
}

const char *tfh_prune_refused(int dir, const struct tfh_prunable *run)
{
	char link[64], real[PATH_MAX];
	const char *why = NULL;
	struct stat st;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	ssize_t n = readlink(link, real, sizeof(real) - 1);
	if (n < 0)
		return "its path is unknown (is /proc mounted?)";
	real[n] = '\0';
	tft_journals_of(real, note_journal, &why);
	if (why)
		return why;
	bool ended = !fstatat(dir, "end.json", &st, AT_SYMLINK_NOFOLLOW);
	if (!ended && run->newest_s > (int64_t)time(NULL) - QUIET_S)
		return "it may still be recorded elsewhere: no end.json, and files younger than a "
		       "day";
	if (!is_digested(dir, run))
		return "it has no digest of all its segments: tfhook digest DIR";
	return NULL;
}

/* ---- removing them ---- */

static int drop(void *arg, int dir, const char *name, const struct stat *st)
{
	const struct tfh_prunable *run = arg;

	if (st->st_mtim.tv_sec > run->newest_s)
		return 0;
	return is_segment(name) && unlinkat(dir, name, 0) && errno != ENOENT ? -errno : 0;
}

int tfh_prune_drop(int dir, const struct tfh_prunable *run)
{
	return each_file(dir, drop, (void *)run);
}
