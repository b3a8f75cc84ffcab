/*
 * Journals that nobody has turned into files yet: the process was killed a moment ago, or still
 * runs. They are read through a file in a private directory, and stay as they are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/journal.h"

#include "model/open.h"

static const char *temp_dir(struct tfh_run *run)
{
	const char *base = getenv("TMPDIR");
	char path[4096];

	if (!run->temp_dir) {
		snprintf(path, sizeof(path), "%s/tfhook.XXXXXX", base && *base ? base : "/tmp");
		run->temp_dir = mkdtemp(path) ? strdup(path) : NULL;
	}
	return run->temp_dir;
}

static void read_journal(struct tfh_run *run, const char *path, unsigned flags, bool live)
{
	struct tft_salvaged got = {0};
	struct tfh_err err;
	const char *dir = temp_dir(run);
	int code = dir ? tft_salvage(path, dir, flags, &got, &err) : -ENOENT;

	if (code == -EALREADY)
		tfh_run_leave_out(run, err.text);
	if (code || !*got.path)
		return;
	if (tfh_run_add_file(run, got.path, true, &err)) {
		remove(got.path);
		return;
	}
	run->proc[run->file[run->n_file - 1].process].pub.live |= live;
}

struct looking {
	struct tfh_run *run;
	const char *dir;
	bool beside; /* the journals lie in that directory */
};

static void look_at(void *arg, const char *path, const char *name, struct tft_view *view, int code)
{
	const struct looking *l = arg;

	(void)name;
	if (code)
		return;
	const struct tft_journal *j = tft_view_header(view);
	bool ours = !strncmp(j->run_dir, l->dir, sizeof(j->run_dir));
	enum tft_life life = tft_view_life(view);
	tft_view_close(view);
	if (!ours && l->beside) /* a copy of the directory, maybe from another host */
		read_journal(l->run, path, TFT_SALVAGE_BESIDE, false);
	else if (ours && life != TFT_ELSEWHERE)
		read_journal(l->run, path, life == TFT_ALIVE ? TFT_SALVAGE_SNAPSHOT : 0,
			     life == TFT_ALIVE);
}

void tfh_run_add_journals(struct tfh_run *run, const char *dir)
{
	char *real = realpath(dir, NULL);
	struct looking l = {run, real, true};

	if (!real)
		return;
	tft_journals_in(real, look_at, &l);
	l.beside = false;
	tft_journals_in("/dev/shm", look_at, &l);
	free(real);
}
