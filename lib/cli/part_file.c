#include "cli/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A stream that remembers why writing failed, so that the writer need not check every call. */
struct part_sink {
	int fd, error;
};

static ssize_t sink_write(void *cookie, const char *data, size_t n)
{
	struct part_sink *s = cookie;
	size_t done = 0;

	while (done < n && !s->error) {
		ssize_t wrote = write(s->fd, data + done, n - done);
		if (wrote > 0)
			done += (size_t)wrote;
		else if (wrote < 0 && errno != EINTR)
			s->error = errno;
	}
	return s->error ? 0 : (ssize_t)n;
}

static int sink_close(void *cookie)
{
	struct part_sink *s = cookie;

	if (close(s->fd) && !s->error)
		s->error = errno;
	return s->error ? -1 : 0;
}

int tfh_part_write(int fd, tfh_write_fn write_to, void *arg)
{
	static const cookie_io_functions_t functions = {.write = sink_write, .close = sink_close};
	struct part_sink sink = {.fd = fd};
	FILE *out = fopencookie(&sink, "w", functions);

	if (!out) {
		close(fd);
		return -ENOMEM;
	}
	setvbuf(out, NULL, _IOFBF, 1u << 16);
	int rc = write_to(arg, out);
	if (fclose(out) && !rc)
		rc = -EIO;
	return sink.error ? -sink.error : rc;
}

/* Gives the temporary file its final name, if there is no file of that name, or one that may be
 * replaced. */
static int publish(const char *temporary, const char *path, tfh_may_replace may)
{
	if (!link(temporary, path))
		return unlink(temporary) ? -errno : 0;
	int rc = errno == EEXIST ? may(path) : 0;
	if (rc && rc != -ENOENT)
		return rc;
	/* The file system has no hard links, or the file is replaced. */
	return rename(temporary, path) ? -errno : 0;
}

int tfh_part_file(const char *path, tfh_may_replace may, tfh_write_fn write_to, void *arg)
{
	char temporary[4096];
	int len = snprintf(temporary, sizeof(temporary), "%s.%d.part", path, (int)getpid());

	if (len < 0 || (size_t)len >= sizeof(temporary))
		return -ENAMETOOLONG;
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	int rc = tfh_part_write(fd, write_to, arg);
	if (!rc)
		rc = publish(temporary, path, may);
	if (rc)
		unlink(temporary);
	return rc;
}
