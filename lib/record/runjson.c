#include "record/runjson.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/redact.h"
#include "base/runjson.h"
#include "record/internal.h"

#define ARGS_BYTES 65536
#define ARGS_MAX 4096

/* The arguments of this process; only the starter comes here, on any stack. */
static char *const *arguments(void)
{
	static char bytes[ARGS_BYTES];
	static char *argv[ARGS_MAX + 1];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, bytes, sizeof(bytes) - 1) : 0;
	size_t argc = 0;

	if (fd >= 0)
		close(fd);
	if (len < 0)
		len = 0;
	bytes[len] = '\0';
	for (char *a = bytes; a < bytes + len && argc < ARGS_MAX; a += strlen(a) + 1)
		argv[argc++] = a;
	argv[argc] = NULL;
	return argv;
}

void tfh_command_line(char *text, size_t size)
{
	char *const *argv = arguments();
	size_t len = 0;

	for (size_t i = 0; argv[i]; i++) {
		const char *word = tfh_told_text(argv, i);

		if (len && len + 1 < size)
			text[len++] = ' ';
		while (*word && len + 1 < size)
			text[len++] = *word++;
	}
	text[len] = '\0';
}

static int write_document(FILE *out, const char *launch)
{
	const struct tfh_run_facts facts = {.launch = launch,
					    .exe = tfh_p.exe,
					    .argv = arguments(),
					    .world = tfh_p.dir.rank.world};

	return tfh_runjson_print(out, &facts);
}

/* Growing a file beyond its limit raises SIGXFSZ, which kills; the flusher alone has it blocked. */
static bool too_large(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < ARGS_BYTES;
}

int tfh_runjson_write(const char *dir, const char *launch)
{
	static char path[PATH_MAX + 16], temp[PATH_MAX + 128];
	FILE *out;
	int fd, err;

	if (too_large())
		return -EFBIG;
	snprintf(path, sizeof(path), "%s/run.json", dir);
	snprintf(temp, sizeof(temp), "%s/.run.json.%s.%d", dir, tfh_p.host, (int)tfh_p.pid);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return -errno;
	out = fdopen(fd, "w");
	if (!out) {
		err = -errno;
		close(fd);
		unlink(temp);
		return err;
	}
	err = write_document(out, launch);
	if (fclose(out) && !err)
		err = -errno;
	/* A link appears with all its content, and only if the name is free. */
	if (!err && link(temp, path))
		err = -errno;
	if ((err == -EPERM || err == -EOPNOTSUPP || err == -ENOSYS) && access(path, F_OK))
		err = rename(temp, path) ? -errno : 0; /* a file system without links */
	unlink(temp);
	return err;
}
