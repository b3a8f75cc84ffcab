/* Finds journals, and decides which run directory or process they belong to. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "format/journal_open.h"

#define SHM "/dev/shm"

static bool ends_in_journal(const char *name)
{
	size_t n = strlen(name);

	return n > 8 && !strcmp(name + n - 8, ".journal");
}

void tft_journals_in(const char *place, tft_found_fn fn, void *arg)
{
	DIR *d = opendir(place);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct tft_found found = {0};
		char path[8192];
		if (!ends_in_journal(e->d_name) ||
		    (size_t)snprintf(path, sizeof(path), "%s/%s", place, e->d_name) >= sizeof(path))
			continue;
		int dir = fcntl(dirfd(d), F_DUPFD_CLOEXEC, 0);
		found.code = tft_view_open_at(dir < 0 ? -errno : dir, path, &found.view, NULL);
		if (found.view)
			fn(arg, &found);
		tft_view_close(found.view);
	}
	if (d)
		closedir(d);
}

/* ---- journals of a run directory ---- */

struct looking {
	const char *dir;
	uid_t owner; /* owner of the run directory */
	tft_found_fn fn;
	void *arg;
};

static void beside(void *arg, const struct tft_found *found)
{
	const struct looking *l = arg;
	struct tft_found f = *found;

	f.copy = !f.code && strcmp(tft_view_header(f.view)->run_dir, l->dir) != 0;
	l->fn(l->arg, &f);
}

/* Anyone may write to /dev/shm, so only journals of users who could write to the run directory
 * itself are trusted. */
static void in_shm(void *arg, const struct tft_found *found)
{
	const struct looking *l = arg;
	uid_t owner = tft_view_stat(found->view)->st_uid;

	if (!found->code && (owner == geteuid() || owner == 0 || owner == l->owner) &&
	    !strcmp(tft_view_header(found->view)->run_dir, l->dir))
		l->fn(l->arg, found);
}

void tft_journals_of(const char *dir, tft_found_fn fn, void *arg)
{
	struct looking l = {dir, geteuid(), fn, arg};
	struct stat st;

	if (!stat(dir, &st))
		l.owner = st.st_uid;
	tft_journals_in(dir, beside, &l);
	if (strcmp(dir, SHM))
		tft_journals_in(SHM, in_shm, &l);
}

/* ---- journals of a process ---- */

struct process {
	pid_t pid;
	uint32_t number; /* its pid in its own namespace, as in its journal */
	uint64_t start;
	unsigned uid[4]; /* real, effective, saved and file system user ids */
};

static bool look_up(pid_t pid, struct process *p)
{
	char path[64], text[8192];

	*p = (struct process){.pid = pid, .start = tfh_process_start(pid)};
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	tfh_read_small(path, text, sizeof(text));
	const char *uids = strstr(text, "\nUid:"), *numbers = strstr(text, "\nNSpid:");
	if (!uids ||
	    sscanf(uids, "\nUid: %u %u %u %u", &p->uid[0], &p->uid[1], &p->uid[2], &p->uid[3]) != 4)
		return false;
	p->number = (uint32_t)pid;
	char *at = numbers ? (char *)numbers + 7 : NULL;
	while (at && (*at == '\t' || *at == ' '))
		p->number = (uint32_t)strtoul(at + 1, &at, 10);
	return true;
}

/* Whether a mapped file is the process's journal: owned by its user, and naming this process. A
 * process may map any file. */
static bool is_of(const struct tft_view *v, const struct process *p)
{
	const struct tft_journal *j = tft_view_header(v);
	uid_t owner = tft_view_stat(v)->st_uid;
	bool known = owner == geteuid();

	for (int i = 0; i < 4; i++)
		known |= owner == p->uid[i];
	return known && j->pid == p->number && j->process_start == p->start;
}

/* Opens a mapped path as the process sees it, which may have another root directory. */
static void look_at_mapped(const struct process *p, const char *mapped, tft_found_fn fn, void *arg)
{
	struct tft_found found = {0};
	char parent[8192];

	snprintf(parent, sizeof(parent), "/proc/%d/root%.*s", (int)p->pid,
		 (int)(strrchr(mapped, '/') - mapped + 1), mapped);
	int dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	found.code = tft_view_open_at(dir < 0 ? -errno : dir, mapped, &found.view, NULL);
	if (found.view && !found.code && is_of(found.view, p))
		fn(arg, &found);
	tft_view_close(found.view);
}

/* A file that was named after its creation (O_TMPFILE) stays mapped as "DIR/#INODE (deleted)". Its
 * name is searched in that directory, as the process sees it. Returns false if it has none. */
static bool name_of_nameless(pid_t pid, const char *line, char *mapped, size_t size)
{
	static const char end[] = " (deleted)";
	char *slash = strrchr(mapped, '/'), path[8192];
	size_t n = strlen(mapped);
	unsigned long inode;
	bool found = false;
	struct dirent *e;

	if (slash[1] != '#' || n < sizeof(end) || strcmp(mapped + n - (sizeof(end) - 1), end) ||
	    sscanf(line, "%*s %*s %*s %*s %lu", &inode) != 1)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root%.*s", (int)pid, (int)(slash - mapped + 1),
		 mapped);
	DIR *d = opendir(path);
	while (d && !found && (e = readdir(d)))
		found = e->d_ino == inode && ends_in_journal(e->d_name) &&
			(size_t)snprintf(slash + 1, size - (size_t)(slash + 1 - mapped), "%s",
					 e->d_name) < size - (size_t)(slash + 1 - mapped);
	if (d)
		closedir(d);
	return found;
}

int tft_journals_of_process(pid_t pid, tft_found_fn fn, void *arg)
{
	char path[64], mapped[4096], last[4096] = "", *line = NULL;
	struct process p;
	size_t cap = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *f = look_up(pid, &p) ? fopen(path, "re") : NULL;
	if (!f)
		return errno ? -errno : -ESRCH;
	errno = 0;
	while (getline(&line, &cap, f) > 0) {
		const char *at = strchr(line, '/');
		line[strcspn(line, "\n")] = '\0';
		if (!at || !strcmp(at, last) || strlen(at) >= sizeof(mapped))
			continue; /* one mapping may have several lines */
		snprintf(last, sizeof(last), "%s", at);
		snprintf(mapped, sizeof(mapped), "%s", at);
		if (ends_in_journal(mapped) || name_of_nameless(pid, line, mapped, sizeof(mapped)))
			look_at_mapped(&p, mapped, fn, arg);
	}
	int code = ferror(f) ? -errno : 0;
	free(line);
	fclose(f);
	return code;
}
