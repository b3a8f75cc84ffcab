#include "record/runjson.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "record/internal.h"
#include "tfhook/version.h"

#define REDACTED "[redacted]"
#define ARGS_MAX 65536

/* Environment names worth keeping; one that ends in _ is a prefix. */
static const char *const kept[] = {
	"TFHOOK", "TFHOOK_", "SLURM_", "CUDA_", "NCCL_", "TF_", "XLA_FLAGS", "OMP_", "KMP_", "MKL_", "PBS_JOBID",
	"LSB_JOBID", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK",
	"TORCHELASTIC_", "MASTER_ADDR", "MASTER_PORT", "OMPI_COMM_WORLD_", "PMI_", "PMIX_RANK", "HOROVOD_",
	"JOB_COMPLETION_INDEX", "SM_HOSTS", "SM_CURRENT_HOST", "CONDA_DEFAULT_ENV", "VIRTUAL_ENV", "PYTHONPATH",
	"LD_PRELOAD", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES",
};

bool tfh_is_secret(const char *name, size_t len)
{
	static const char *const words[] = {"token", "key", "secret", "passw", "credential"};

	for (size_t i = 0; i < len; i++)
		for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
			if (strlen(words[w]) <= len - i && !strncasecmp(name + i, words[w], strlen(words[w])))
				return true;
	return false;
}

static bool is_kept(const char *entry, size_t len)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		size_t n = strlen(kept[i]);

		if (n <= len && !strncmp(entry, kept[i], n) && (n == len || kept[i][n - 1] == '_'))
			return true;
	}
	return false;
}

/*
 * Calls `each` for every argument as it may be shown: the value of --api-key=V, and the argument after --api-key, are
 * left out.
 */
static void each_argument(void (*each)(void *to, const char *text), void *to)
{
	static char args[ARGS_MAX];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, args, sizeof(args) - 1) : 0;
	bool hide_next = false;

	if (fd >= 0)
		close(fd);
	args[len > 0 ? len : 0] = '\0';
	for (const char *a = args; len > 0 && a < args + len; a += strlen(a) + 1) {
		const char *equal = strchr(a, '=');
		size_t name = equal ? (size_t)(equal - a) : strlen(a);
		char shown[4096];

		if (hide_next && a[0] != '-') {
			each(to, REDACTED);
		} else if (equal && tfh_is_secret(a, name) && !memchr(a, ' ', name) && !memchr(a, '/', name)) {
			snprintf(shown, sizeof(shown), "%.*s=" REDACTED, (int)(name < 4000 ? name : 4000), a);
			each(to, shown);
		} else {
			each(to, a);
		}
		hide_next = a[0] == '-' && !equal && tfh_is_secret(a, name) && !memchr(a, ' ', name);
	}
}

struct text {
	char *at;
	size_t size, len;
};

static void add_word(void *to, const char *word)
{
	struct text *t = to;

	for (const char *c = t->len ? " " : ""; *c && t->len + 1 < t->size; c++)
		t->at[t->len++] = *c;
	for (; *word && t->len + 1 < t->size; word++)
		t->at[t->len++] = *word;
	t->at[t->len] = '\0';
}

void tfh_command_line(char *text, size_t size)
{
	struct text t = {text, size, 0};

	text[0] = '\0';
	each_argument(add_word, &t);
}

static void add_json(void *to, const char *word)
{
	tfh_json_str(to, word);
}

static void write_env(struct tfh_json *j)
{
	tfh_json_key(j, "env");
	tfh_json_object(j);
	for (char **e = environ; e && *e; e++) {
		const char *equal = strchr(*e, '=');
		size_t len = equal ? (size_t)(equal - *e) : 0;
		char name[256];

		if (!len || len >= sizeof(name) || !is_kept(*e, len))
			continue;
		memcpy(name, *e, len);
		name[len] = '\0';
		tfh_json_kstr(j, name, tfh_is_secret(name, len) ? REDACTED : equal + 1);
	}
	tfh_json_end(j);
}

static int write_document(FILE *out, const char *launch)
{
	struct tfh_json j;
	char utc[32], cwd[PATH_MAX];
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

int tfh_runjson_write(const char *dir, const char *launch)
{
	char path[PATH_MAX + 16], temp[PATH_MAX + 128];
	FILE *out;
	int fd, err;

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
