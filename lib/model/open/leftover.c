/*
 * Reads journals that are not segment files yet, because their process was just killed or still
 * runs. They are converted through a temporary file in a private directory and are not changed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/journal_view.h"

#include "model/open/opening.h"

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

static void read_journal(struct tfh_run *run, struct tft_view *view, unsigned flags, bool live)
{
	struct tft_salvaged got = {0};
	struct tfh_err err;
	const char *dir = temp_dir(run);
	int code = dir ? tft_salvage_view(view, dir, flags, &got, &err) : -ENOENT;

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

static void look_at(void *arg, const struct tft_found *found)
{
	const struct tfh_run *run = arg;

	if (found->code)
		return;
	if (run->only_host && strcmp(tft_view_header(found->view)->host, run->only_host))
		return;
	enum tft_life life = tft_view_life(found->view);
	if (found->copy) /* the run directory itself, maybe written on another host */
		read_journal(arg, found->view, TFT_SALVAGE_BESIDE, false);
	else if (life != TFT_ELSEWHERE)
		read_journal(arg, found->view, life == TFT_ALIVE ? TFT_SALVAGE_SNAPSHOT : 0,
			     life == TFT_ALIVE);
}

void tfh_run_add_journals(struct tfh_run *run, const char *dir)
{
	char *real = realpath(dir, NULL);

	if (real)
		tft_journals_of(real, look_at, run);
	free(real);
}
