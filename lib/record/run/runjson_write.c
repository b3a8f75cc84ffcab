#include "record/run/runjson_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/redact.h"
#include "base/runjson.h"
#include "record/process/recorder.h"

#define ARGS_BYTES 65536
#define ARGS_MAX 4096

/* The arguments of this process. Only the starter gets here, on any stack. */
static char *const *arguments(void)
{
	static char *const none[1];
	static struct {
		char *argv[ARGS_MAX + 1];
		char bytes[ARGS_BYTES];
	} * args;
	int fd = tfh_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len;
	size_t argc = 0;

	if (fd < 0)
		return none;
	len = tfh_map_once(&args, sizeof(*args)) ? tfh_read(fd, args->bytes, ARGS_BYTES - 1) : -1;
	tfh_close(fd);
	if (len < 0)
		return none;
	args->bytes[len] = '\0';
	for (char *a = args->bytes; a < args->bytes + len && argc < ARGS_MAX; a += strlen(a) + 1)
		args->argv[argc++] = a;
	args->argv[argc] = NULL;
	return args->argv;
}

void tfh_command_line(char *text, size_t size)
{
	char *const *argv = arguments();
	size_t len = 0;

	for (size_t i = 0; argv[i]; i++) {
		const char *word = tfh_redact_arg(argv, i);

		if (len && len + 1 < size)
			text[len++] = ' ';
		while (*word && len + 1 < size)
			text[len++] = *word++;
	}
	text[len] = '\0';
}

/* The whole document is made before any of it is written. A file system may block. */
int tfh_runjson_make(struct tfh_runjson *document, const char *launch)
{
	struct tfh_run_facts facts = {.launch = launch,
				      .exe = tfh_recorder.exe,
				      .argv = arguments(),
				      .world = tfh_recorder.rank.world};
	FILE *out = open_memstream(&document->text, &document->len);
	int err;

	if (!out)
		return -errno;
	err = tfh_runjson_print(out, &facts);
	if (fclose(out) && !err)
		err = -errno;
	if (err)
		tfh_runjson_free(document);
	return err;
}

void tfh_runjson_free(struct tfh_runjson *document)
{
	free(document->text);
	document->text = NULL;
}

/* Growing a file beyond its limit raises SIGXFSZ, which kills; only the flusher has it blocked. */
static bool too_large(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < ARGS_BYTES;
}

/* A link appears with all its content, and only if the name is free. */
static int put_in_place(int dir, const char *temp)
{
	struct stat st;
	int err = linkat(dir, temp, dir, "run.json", 0) ? -errno : 0;
	bool no_links = err == -EPERM || err == -EOPNOTSUPP || err == -ENOSYS;

	if (no_links && fstatat(dir, "run.json", &st, AT_SYMLINK_NOFOLLOW))
		err = renameat(dir, temp, dir, "run.json") ? -errno : 0;
	unlinkat(dir, temp, 0);
	return err;
}

/* The temporary name must be unique. One made of host and pid alone might exist already, from a
 * start that was killed or from a process with the same pid in another container of this host. */
int tfh_runjson_write(int dir, const struct tfh_runjson *document, const struct tfh_access *access)
{
	char temp[128];
	FILE *out;
	int fd, err;

	if (too_large())
		return -EFBIG;
	snprintf(temp, sizeof(temp), ".run.json.%s.%d.%llx", tfh_recorder.host,
		 (int)tfh_recorder.pid, (unsigned long long)tfh_clock_ns(CLOCK_REALTIME));
	fd = tfh_make_file(dir, temp, access);
	if (fd < 0)
		return fd;
	out = fdopen(fd, "w");
	if (!out) {
		err = -errno;
		tfh_close(fd);
	} else {
		err = fwrite(document->text, 1, document->len, out) != document->len ? -errno : 0;
		if (fclose(out) && !err)
			err = -errno;
	}
	if (!err)
		return put_in_place(dir, temp);
	unlinkat(dir, temp, 0);
	return err;
}
