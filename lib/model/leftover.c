/*
 * Journals that nobody has turned into files yet: the process was killed a moment ago, or still
 * runs. They are read through a file in a private directory, and stay as they are.
 */
#include <dirent.h>
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

static void read_journal(struct tfh_run *run, const char *path, bool live)
{
	struct tft_salvaged got = {0};
	struct tfh_err err;
	const char *dir = temp_dir(run);

	if (!dir || tft_salvage(path, dir, live ? TFT_SALVAGE_SNAPSHOT : 0, &got, &err) ||
	    !*got.path)
		return;
	if (tfh_run_add_file(run, got.path, true, &err)) {
		remove(got.path);
		return;
	}
	run->proc[run->file[run->n_file - 1].process].pub.live |= live;
}

static void look_into(struct tfh_run *run, const char *place, const char *dir)
{
	DIR *d = opendir(place);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		size_t n = strlen(e->d_name);
		struct tft_view *view;
		char path[8192];
		if (n < 9 || strcmp(e->d_name + n - 8, ".journal"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", place, e->d_name);
		if (tft_view_open(path, &view, NULL))
			continue;
		const struct tft_journal *j = tft_view_header(view);
		bool ours = !strncmp(j->run_dir, dir, sizeof(j->run_dir));
		enum tft_life life = tft_view_life(view);
		tft_view_close(view);
		if (ours && life != TFT_ELSEWHERE)
			read_journal(run, path, life == TFT_ALIVE);
	}
	if (d)
		closedir(d);
}

void tfh_run_add_journals(struct tfh_run *run, const char *dir)
{
	char *real = realpath(dir, NULL);

	if (!real)
		return;
	look_into(run, real, real);
	look_into(run, "/dev/shm", real);
	free(real);
}
