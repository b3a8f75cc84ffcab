#include "cli/job_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "cli/cli.h"
#include "format/journal_view.h"
#include "model/model.h"

#define MOST_PROCESSES 4096u

static void take_dir(void *arg, const struct tft_found *found)
{
	char *dir = arg;

	if (!found->code && !*dir && tft_view_life(found->view) != TFT_DEAD)
		snprintf(dir, PATH_MAX, "%s", tft_view_header(found->view)->run_dir);
}

static pid_t parent_of(pid_t pid)
{
	char path[64], text[1024];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	tfh_read_small(path, text, sizeof(text));
	const char *end = strrchr(text, ')');
	int parent = 0;
	return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* The process itself and all its descendants. Returns their number. */
static uint32_t family_of(pid_t pid, pid_t out[MOST_PROCESSES])
{
	static struct {
		pid_t pid, parent;
	} all[32768];
	uint32_t n = 0, found = 1;
	DIR *d = opendir("/proc");
	struct dirent *e;

	out[0] = pid;
	while (d && (e = readdir(d)) && n < sizeof(all) / sizeof(all[0])) {
		pid_t each = (pid_t)strtol(e->d_name, NULL, 10);
		if (each <= 0)
			continue;
		all[n].pid = each;
		all[n++].parent = parent_of(each);
	}
	if (d)
		closedir(d);
	for (uint32_t at = 0; at < found; at++)
		for (uint32_t i = 0; i < n && found < MOST_PROCESSES; i++)
			if (all[i].parent == out[at] && all[i].pid != pid)
				out[found++] = all[i].pid;
	return found;
}

/* Whether the directory can be reached. A process in a container names it as seen from there. */
static bool reach(pid_t pid, char dir[PATH_MAX])
{
	char seen[PATH_MAX + 64];
	struct stat st;

	if (!stat(dir, &st) && S_ISDIR(st.st_mode))
		return true;
	snprintf(seen, sizeof(seen), "/proc/%d/root%s", (int)pid, dir);
	if (strlen(seen) >= PATH_MAX || stat(seen, &st) || !S_ISDIR(st.st_mode))
		return false;
	memcpy(dir, seen, strlen(seen) + 1);
	return true;
}

static int of_process(pid_t pid, char dir[PATH_MAX])
{
	static pid_t family[MOST_PROCESSES];
	uint32_t n = family_of(pid, family);
	int first = 0;

	dir[0] = '\0';
	for (uint32_t i = 0; i < n && !*dir; i++) {
		int code = tft_journals_of_process(family[i], take_dir, dir);
		first = i ? first : code;
		pid = family[i];
	}
	if (*dir && reach(pid, dir))
		return 0;
	if (*dir)
		tfh_say("process %d records to %s, which cannot be reached from here", (int)pid,
			dir);
	else if (first == -ESRCH || first == -ENOENT)
		tfh_say("there is no process %d", (int)pid);
	else if (first == -EACCES || first == -EPERM)
		tfh_say("no permission to inspect process %d: %s; name its run directory, or be "
			"its user",
			(int)pid, strerror(-first));
	else
		tfh_say("process %d does not record, and neither does one that it started; start "
			"the job with `tfhook run`",
			(int)pid);
	return *dir || first ? TFH_EXIT_UNREADABLE : TFH_EXIT_NOTHING;
}

int tfh_job_dir(const char *target, char dir[PATH_MAX])
{
	char newest[PATH_MAX], *end;
	struct stat st;

	if (!target) {
		if (!tfh_run_newest(newest, sizeof(newest))) {
			tfh_say("no run directory of yours here; name one, or the process of a job "
				"that `tfhook run` has started");
			return TFH_EXIT_NOTHING;
		}
		target = newest;
	}
	if (!stat(target, &st) && S_ISDIR(st.st_mode)) {
		if (realpath(target, dir))
			return 0;
		tfh_say("%s: %s", target, strerror(errno));
		return TFH_EXIT_UNREADABLE;
	}
	long pid = strtol(target, &end, 10);
	if (!*end && pid > 0 && pid <= INT_MAX)
		return of_process((pid_t)pid, dir);
	tfh_say("'%s' is neither a run directory nor a process id", target);
	return TFH_EXIT_USAGE;
}
