#include "record/runjson.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/redact.h"
#include "record/internal.h"
#include "tfhook/version.h"

#define ARGS_BYTES 65536
#define ARGS_MAX 4096

/* Calls `each` for every argument of this process as it may be told. */
static void each_argument(void (*each)(void *to, const char *text, size_t len), void *to)
{
	static char bytes[ARGS_BYTES]; /* only the starter comes here, on any stack */
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
	for (size_t i = 0; i < argc; i++) {
		size_t told = tfh_told_length(argv, i);
		static char shown[4096];

		if (told == strlen(argv[i])) {
			each(to, argv[i], told);
		} else {
			int n = snprintf(shown, sizeof(shown), "%.*s" TFH_REDACTED,
					 (int)(told < 4000 ? told : 4000), argv[i]);

			each(to, shown, (size_t)n);
		}
	}
}

struct text {
	char *at;
	size_t size, len;
};

static void add_word(void *to, const char *word, size_t len)
{
	struct text *t = to;

	if (t->len && t->len + 1 < t->size)
		t->at[t->len++] = ' ';
	for (size_t i = 0; i < len && t->len + 1 < t->size; i++)
		t->at[t->len++] = word[i];
	t->at[t->len] = '\0';
}

void tfh_command_line(char *text, size_t size)
{
	struct text t = {text, size, 0};

	text[0] = '\0';
	each_argument(add_word, &t);
}

static void add_json(void *to, const char *word, size_t len)
{
	tfh_json_strn(to, word, len);
}

static void write_env(struct tfh_json *j)
{
	tfh_json_key(j, "env");
	tfh_json_object(j);
	for (char **e = environ; e && *e; e++) {
		const char *equal = strchr(*e, '=');
		size_t len = equal ? (size_t)(equal - *e) : 0;
		char name[256];

		if (!len || len >= sizeof(name) || !tfh_env_told(*e, len))
			continue;
		memcpy(name, *e, len);
		name[len] = '\0';
		tfh_json_kstr(j, name, equal + 1);
	}
	tfh_json_end(j);
}

static int write_document(FILE *out, const char *launch)
{
	struct tfh_json j;
	static char cwd[PATH_MAX];
	char utc[32];
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%SZ", &tm);
	tfh_json_init(&j, out, 1);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "schema", "tfhook.run/1");
	tfh_json_kstr(&j, "launch", launch);
	tfh_json_key(&j, "command");
	tfh_json_array(&j);
	each_argument(add_json, &j);
	tfh_json_end(&j);
	tfh_json_kstr(&j, "exe", tfh_p.exe);
	tfh_json_kstr(&j, "cwd", getcwd(cwd, sizeof(cwd)));
	tfh_json_kstr(&j, "host", tfh_p.host);
	tfh_json_kstr(&j, "start_utc", utc);
	tfh_json_ki64(&j, "world", tfh_p.dir.rank.world);
	tfh_json_kstr(&j, "tfhook", TFHOOK_VERSION);
	write_env(&j);
	tfh_json_end(&j);
	return tfh_json_finish(&j);
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
