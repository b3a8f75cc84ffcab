/* The run directory: its name and creation, run.json and end.json, and its removal if it stayed
 * empty. */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/runjson.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/run.h"

/* The program's name as part of a file name: at most 40 characters, none special to a shell. */
static void plain_name(const char *program, char out[41])
{
	size_t n = 0;

	for (const char *base = tfh_file_of(program); *base && n < 40; base++) {
		bool plain = (*base >= 'a' && *base <= 'z') || (*base >= 'A' && *base <= 'Z') ||
			     (*base >= '0' && *base <= '9') || (*base && strchr("._+-", *base));
		out[n++] = plain ? *base : '_';
	}
	out[n] = '\0';
}

static void utc(char out[20], const char *form)
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(out, 20, form, &tm);
}

static int cannot_make(const char *dir, int error, struct tfh_err *err)
{
	const char *remedy = "name another directory: tfhook run -o DIR, or TFHOOK_DIR";

	if (error == ENOSPC || error == EDQUOT)
		return tfh_err_set(err, -error,
				   "no space for the recording in %s: %s; free some, or %s", dir,
				   strerror(error), remedy);
	if (error == ENOENT)
		return tfh_err_set(err, -error,
				   "cannot create %s: its parent directory does not exist; %s", dir,
				   remedy);
	return tfh_err_set(err, -error, "cannot write the recording to %s: %s; %s", dir,
			   strerror(error), remedy);
}

static bool is_empty(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool empty = true;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			empty = false;
	if (d)
		closedir(d);
	return d && empty;
}

/* -o DIR: a new directory, or an existing empty one. */
static int make_given(struct tfh_place *place, const char *output, struct tfh_err *err)
{
	struct stat st;

	if (!*output)
		return tfh_err_set(err, -EINVAL, "-o needs the name of a directory");
	int code = tfh_make_dir(output, &place->access);
	if (!code) {
		place->made = true;
	} else if (code != -EEXIST) {
		return cannot_make(output, -code, err);
	} else if (stat(output, &st) || !S_ISDIR(st.st_mode)) {
		return tfh_err_set(err, -EEXIST,
				   "%s exists and is not a directory; name another with -o",
				   output);
	} else if (access(output, W_OK | X_OK)) {
		return cannot_make(output, errno, err);
	} else if (!is_empty(output)) {
		return tfh_err_set(
			err, -EEXIST,
			"%s exists and is not empty, and nothing is ever overwritten; name a new "
			"directory with -o, or omit -o",
			output);
	}
	if (!realpath(output, place->dir))
		return cannot_make(output, errno, err);
	return 0;
}

/* tfhook-<exe>-<UTC>-<4 hex> below TFHOOK_DIR or ".". */
static int make_named(struct tfh_place *place, const char *program, struct tfh_err *err)
{
	const char *below = getenv("TFHOOK_DIR");
	char base[PATH_MAX], exe[41], when[20], path[PATH_MAX + 128];

	if (!below || !*below)
		below = ".";
	if (!realpath(below, base))
		return cannot_make(below, errno, err);
	plain_name(program, exe);
	for (int attempt = 0; attempt < 16; attempt++) {
		unsigned short id = (unsigned short)getpid();
		if (getrandom(&id, sizeof(id), GRND_NONBLOCK) < 0)
			id = (unsigned short)(id + attempt);
		utc(when, "%Y%m%dT%H%M%SZ");
		int n = snprintf(path, sizeof(path), "%s/tfhook-%s-%s-%04x",
				 strcmp(base, "/") ? base : "", exe, when, id);
		if (n >= PATH_MAX)
			return cannot_make(base, ENAMETOOLONG, err);
		int code = tfh_make_dir(path, &place->access);
		if (!code) {
			place->made = true;
			memcpy(place->dir, path, (size_t)n + 1);
			return 0;
		}
		if (code != -EEXIST)
			return cannot_make(base, -code, err);
	}
	return cannot_make(base, EEXIST, err);
}

/* The job gets the group as a number, so that it need not query a network for it. */
static void find_access(struct tfh_place *place)
{
	const char *name = getenv("TFHOOK_GROUP");
	char number[16];

	if (!name || !*name)
		return;
	const struct group *g = getgrnam(name);
	if (g) {
		snprintf(number, sizeof(number), "%u", (unsigned)g->gr_gid);
		setenv("TFHOOK_GROUP", number, 1);
	}
	int code = tfh_access_find(&place->access, g ? number : name);
	if (!code)
		return;
	tfh_say("TFHOOK_GROUP=%s: %s; only the owner can read the recording", name,
		code == -ENOENT ? "there is no such group" : "this user is not in that group");
	unsetenv("TFHOOK_GROUP");
}

int tfh_place_make(struct tfh_place *place, const char *output, const char *program,
		   struct tfh_err *err)
{
	memset(place, 0, sizeof(*place));
	find_access(place);
	int code = output ? make_given(place, output, err) : make_named(place, program, err);
	if (code)
		return code;
	place->fd = tfh_open_own_dir(place->dir);
	if (place->fd == -EPERM)
		return tfh_err_set(err, -EPERM,
				   "%s is another user's directory; name another with -o",
				   place->dir);
	return place->fd < 0 ? cannot_make(place->dir, -place->fd, err) : 0;
}

int64_t tfh_place_room(const char *dir, uint64_t *floor)
{
	struct statvfs st;
	const uint64_t least = 2ull << 30;

	*floor = least;
	if (statvfs(dir, &st))
		return INT64_MAX;
	uint64_t twentieth = (uint64_t)st.f_blocks * st.f_frsize / 20;
	if (twentieth > least)
		*floor = twentieth;
	return (int64_t)((uint64_t)st.f_bavail * st.f_frsize) - (int64_t)*floor;
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end);
}

unsigned tfh_place_traces(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		n += ends_with(e->d_name, ".tft");
	if (d)
		closedir(d);
	return n;
}

void tfh_place_remove_unused(const struct tfh_place *place)
{
	static const char *const own[] = {"run.json", "end.json", "start.json"};

	if (!tfh_place_traces(place->dir))
		for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
			unlinkat(place->fd, own[i], 0);
	if (place->made)
		rmdir(place->dir);
}

/* ---- run.json, end.json ---- */

int tfh_place_create(const struct tfh_place *place, const char *name, FILE **out)
{
	int fd = tfh_make_file(place->fd, name, &place->access);

	if (fd < 0)
		return fd;
	*out = fdopen(fd, "w");
	if (!*out)
		close(fd);
	return *out ? 0 : -ENOMEM;
}

int tfh_place_write_end(const struct tfh_place *place, pid_t pid, int status, int64_t start_ns,
			int64_t end_ns, const struct tfh_ends *ends)
{
	struct tfh_json j;
	char when[32];
	FILE *out;
	int err = tfh_place_create(place, "end.json", &out);

	if (err)
		return err;
	tfh_utc_text(when, end_ns);
	tfh_json_init(&j, out, 2);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "how", WIFSIGNALED(status) ? "signal" : "exit");
	tfh_json_ki64_if(&j, "code", !WIFSIGNALED(status), WEXITSTATUS(status));
	tfh_json_ki64_if(&j, "signal", WIFSIGNALED(status), WTERMSIG(status));
	tfh_json_ki64(&j, "pid", pid);
	tfh_json_kstr(&j, "end_utc", when);
	tfh_json_kf64(&j, "wall_s", (double)(end_ns - start_ns) * 1e-9);
	tfh_json_key(&j, "processes");
	tfh_json_array(&j);
	for (uint32_t i = 0; ends && i < ends->n; i++) {
		tfh_json_array(&j);
		tfh_json_i64(&j, ends->of[i].pid);
		tfh_json_u64(&j, ends->of[i].start);
		tfh_json_i64(&j, ends->of[i].status);
		tfh_json_end(&j);
	}
	tfh_json_end(&j);
	tfh_json_end(&j);
	err = tfh_json_finish(&j);
	return fclose(out) ? -EIO : err;
}

int tfh_place_write_run(const struct tfh_place *place, char *const *argv)
{
	char launch[128];
	const struct tfh_run_facts facts = {.launch = launch, .argv = argv, .world = -1};
	FILE *out;
	int err = tfh_place_create(place, "run.json", &out);

	tfh_launch_id(launch, sizeof(launch));
	if (err)
		return err;
	err = tfh_runjson_print(out, &facts);
	return fclose(out) ? -EIO : err;
}
