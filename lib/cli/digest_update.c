/* Makes the digests of a run directory that are missing or out of date. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/access.h"
#include "base/print.h"
#include "cli/digests.h"
#include "model/host_files.h"
#include "model/open/opening.h"
#include "report/format.h"

/* The new file replaces the old one atomically, or not at all. */
static int write_beside(const char *from, const char *host, const char *to,
			const struct tfh_access *access, struct tfh_err *err)
{
	char beside[8192];

	snprintf(beside, sizeof(beside), "%s.%d.new", to, (int)getpid());
	int fd = tfh_make_file(AT_FDCWD, beside, access);
	if (fd < 0)
		return tfh_err_set(err, fd, "%s: %s", beside, strerror(-fd));
	int rc = tfh_digest_make(from, host, fd, err);
	if (!rc && rename(beside, to))
		rc = tfh_err_set(err, -errno, "%s: %s", to, strerror(errno));
	if (rc)
		unlink(beside);
	return rc;
}

static bool is_fresh(const char *from, const char *host, const char *to)
{
	struct tfh_inputs in = {.n = 0};
	struct tfh_run_digest *d;
	bool fresh = false;

	if (tfh_digest_open(to, &d, NULL))
		return false;
	if (!tfh_inputs_find(from, host, &in))
		fresh = tfh_digest_is_fresh(d, &in);
	tfh_inputs_free(&in);
	tfh_digest_close(d);
	return fresh;
}

/* -EEXIST for a file that is not a digest: only what can be made again may be overwritten. */
static int may_replace(const char *to, struct tfh_err *err)
{
	struct tfh_run_digest *d;
	int rc = tfh_digest_open(to, &d, NULL);

	tfh_digest_close(rc ? NULL : d);
	if (!rc || rc == -ENOENT || rc == -EBADMSG || rc == -EPROTO)
		return 0;
	return tfh_err_set(err, -EEXIST, "%s exists, is not a digest, and is not overwritten", to);
}

static void print_made(const char *to)
{
	struct stat st = {0};
	char bytes[TFH_TEXT];

	stat(to, &st);
	tfh_print(stdout, "%s: %s\n", to, tfh_fmt_bytes(bytes, (double)st.st_size));
}

static int update_one(const char *from, const char *host, const char *to,
		      const struct tfh_access *access, struct tfh_err *err)
{
	if (is_fresh(from, host, to)) {
		tfh_print(stdout, "%s: up to date\n", to);
		return 0;
	}
	int rc = may_replace(to, err);
	if (!rc)
		rc = write_beside(from, host, to, access, err);
	if (!rc)
		print_made(to);
	return rc;
}

/* Removes the digest that was made before other hosts recorded here. Once only digests are left, it
 * would be mistaken for the digest of the whole run. `all`: every host that can have a digest has
 * one; otherwise this is checked. */
static void remove_earlier(const char *from, const struct tfh_run_hosts *hosts, bool all)
{
	struct tfh_run_digest *d;
	char path[8192];

	for (uint32_t i = 0; i < hosts->n && !all; i++) {
		snprintf(path, sizeof(path), "%s/%s.%s", from, hosts->name[i], TFH_DIGEST_NAME);
		if (access(path, F_OK))
			return;
	}
	snprintf(path, sizeof(path), "%s/%s", from, TFH_DIGEST_NAME);
	if (!tfh_digest_open(path, &d, NULL)) {
		tfh_digest_close(d);
		unlink(path);
	}
}

/* A host of which nothing can be judged gets no digest, but at least one host must get one. */
static int update_hosts(const char *from, const struct tfh_run_hosts *hosts, const char *only,
			const struct tfh_access *access, struct tfh_err *err)
{
	int rc = -ENODATA, first = 0;
	bool any = false;

	for (uint32_t i = 0; i < hosts->n; i++) {
		char to[8192];
		if (only && strcmp(hosts->name[i], only))
			continue;
		snprintf(to, sizeof(to), "%s/%s.%s", from, hosts->name[i], TFH_DIGEST_NAME);
		rc = update_one(from, hosts->name[i], to, access, err);
		any |= !rc;
		first = rc && rc != -ENODATA && !first ? rc : first;
	}
	if (any)
		remove_earlier(from, hosts, !only && !first);
	return first ? first : any ? 0 : rc;
}

bool tfh_run_began_at(const char *dir, const char *host)
{
	struct tfh_arena arena;
	struct tfh_meta meta;

	tfh_arena_init(&arena, 0);
	tfh_meta_read(&arena, dir, &meta);
	bool here = !meta.host || !*meta.host || !strcmp(meta.host, host);
	tfh_arena_free(&arena);
	return here;
}

static bool has_host(const struct tfh_run_hosts *hosts, const char *name)
{
	for (uint32_t i = 0; i < hosts->n; i++)
		if (!strcmp(hosts->name[i], name))
			return true;
	return false;
}

int tfh_digest_update(const char *from, const char *out, const char *only, const struct stat *st,
		      struct tfh_err *err)
{
	struct tfh_access access = tfh_access_like(st);
	struct tfh_run_hosts hosts = {.n = 0};
	char to[4500];
	int rc;

	if (!out && !S_ISDIR(st->st_mode))
		return tfh_err_set(err, -EINVAL, "digest: %s is a file: name the digest with -o",
				   from);
	if (!out)
		tfh_run_hosts_find(from, &hosts);
	bool here = only && has_host(&hosts, only);
	/* A request for a host that did not record here updates the digests of all hosts. */
	if (hosts.n > 1 || (here && !tfh_run_began_at(from, only))) {
		rc = update_hosts(from, &hosts, here ? only : NULL, &access, err);
	} else {
		if (out)
			snprintf(to, sizeof(to), "%s", out);
		else
			snprintf(to, sizeof(to), "%s/%s", from, TFH_DIGEST_NAME);
		rc = update_one(from, NULL, to, &access, err);
	}
	tfh_run_hosts_free(&hosts);
	return rc;
}
