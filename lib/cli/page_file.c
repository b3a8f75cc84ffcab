#include "cli/page_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report/page/sheet.h"

/* What else asks for an output of its own. */
static const char *const others[] = {"all",    "kernels", "transfers", "input",	  "where",
				     "folded", "memory",  "ranks",     "machine", "steps",
				     "step",   "csv",	  "json",      "wide"};

bool tfh_page_allowed(const struct tfh_command_line *args, int *status)
{
	const char *path = tfh_line_get(args, "html");

	*status = TFH_EXIT_USAGE;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (tfh_line_get(args, others[i])) {
			tfh_say("report: --html and --%s exclude each other: the page holds everything",
				others[i]);
			return false;
		}
	if (!*path) {
		tfh_say("report: --html needs the name of a file");
		return false;
	}
	*status = TFH_EXIT_UNREADABLE;
	if (!faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW)) {
		tfh_say("report: %s exists; remove it, or name another file", path);
		return false;
	}
	if (errno != ENOENT) {
		tfh_say("report: cannot write %s: %s", path, strerror(errno));
		return false;
	}
	return true;
}

/* From its temporary name to its own, which nobody else may have taken meanwhile. */
static int publish(const char *temporary, const char *path)
{
	if (!link(temporary, path))
		return unlink(temporary) ? -errno : 0;
	if (errno == EEXIST)
		return -EEXIST;
	/* A file system without links. */
	return rename(temporary, path) ? -errno : 0;
}

static int write_all(int fd, struct tfh_run *run, const struct tfh_result *r)
{
	FILE *out = fdopen(fd, "w");
	struct tfh_wording words;

	(void)run;
	if (!out) {
		int err = errno;
		close(fd);
		return -err;
	}
	tfh_wording_make(&words, r);
	int rc = tfh_report_page(out, &words);
	tfh_wording_free(&words);
	errno = 0;
	if (ferror(out) | fclose(out))
		return rc && rc != -EIO ? rc : errno ? -errno : -EIO;
	return rc;
}

int tfh_page_write(const char *path, struct tfh_run *run, const struct tfh_result *r)
{
	char temporary[4096];
	int n = snprintf(temporary, sizeof(temporary), "%s.%d.part", path, (int)getpid());
	int fd = n < 0 || (size_t)n >= sizeof(temporary)
			 ? (errno = ENAMETOOLONG, -1)
			 : open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	int rc = fd < 0 ? -errno : write_all(fd, run, r);

	if (!rc)
		rc = publish(temporary, path);
	if (!rc)
		return TFH_EXIT_OK;
	if (fd >= 0)
		unlink(temporary);
	if (rc == -EEXIST)
		tfh_say("report: %s exists; remove it, or name another file", path);
	else
		tfh_say("report: cannot write %s: %s", path, strerror(-rc));
	return TFH_EXIT_UNREADABLE;
}
