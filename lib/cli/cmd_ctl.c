/* `tfhook ctl`: steers running jobs through the control word of their journals. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/journals.h"
#include "format/journal.h"

#define MAX_JOURNALS 1024

/* GPU_ON and GPU_OFF are written as two words. */
enum verb { STOP, START, FLUSH, GPU_ON, GPU_OFF, VERBS };
static const struct {
	const char *name;
	uint32_t set, clear;
} verbs[VERBS] = {{"stop", TFT_CTL_STOP, 0},
		  {"start", 0, TFT_CTL_STOP},
		  {"flush", TFT_CTL_FLUSH, 0},
		  {"gpu on", TFT_CTL_GPU_ON, TFT_CTL_GPU_OFF},
		  {"gpu off", TFT_CTL_GPU_OFF, TFT_CTL_GPU_ON}};

/* The flusher clears the bit when the chunk is written; it looks every 100 ms. */
static bool wait_for_flush(const char *path)
{
	struct tft_view *view;
	bool done = false;

	if (tft_view_open(path, &view, NULL))
		return true; /* the job ended meanwhile, and that writes everything */
	const uint64_t *word = &tft_view_header(view)->control;
	for (int i = 0; i < 200 && !done; i++) {
		struct timespec nap = {0, 20000000};
		/* acquire: pairs with the flusher's clearing after its write */
		done = !(__atomic_load_n(word, __ATOMIC_ACQUIRE) & TFT_CTL_FLUSH) ||
		       tft_view_life(view) != TFT_ALIVE;
		if (!done)
			nanosleep(&nap, NULL);
	}
	tft_view_close(view);
	return done;
}

/* 0 or -errno; -ETIMEDOUT: told, but the flush was not seen to end. */
static int tell(const char *path, enum verb verb, uint32_t steps, struct tfh_err *err)
{
	int code = tft_journal_control(path, verbs[verb].set, verbs[verb].clear, steps, err);

	return code || verb != FLUSH || wait_for_flush(path) ? code : -ETIMEDOUT;
}

static int usage(void)
{
	tfh_say("ctl: usage: tfhook ctl DIR|PID start|stop|flush|gpu on|gpu off [--steps N]");
	return TFH_EXIT_USAGE;
}

static int parse_steps(const char *text, uint32_t *steps)
{
	char *end;

	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || !n || n > UINT32_MAX) {
		tfh_say("ctl: --steps needs a number from 1 on, not '%s'", text);
		return -EINVAL;
	}
	*steps = (uint32_t)n;
	return 0;
}

/* A run directory, or the number of a process. */
static int find_target(const char *target, struct tfh_found_journal *found, unsigned *n)
{
	char dir[4096], *end;
	struct stat st;
	long pid = strtol(target, &end, 10);

	if (!stat(target, &st) && S_ISDIR(st.st_mode) && realpath(target, dir)) {
		*n = tfh_journals_find(dir, 0, found, MAX_JOURNALS);
	} else if (!*end && pid > 0) {
		*n = tfh_journals_find(NULL, (pid_t)pid, found, MAX_JOURNALS);
	} else {
		tfh_say("ctl: '%s' is neither a run directory nor the number of a process", target);
		return -EINVAL;
	}
	if (*n > MAX_JOURNALS)
		*n = MAX_JOURNALS;
	return 0;
}

int tfh_cmd_ctl(const struct tfh_line *args)
{
	const char *limit = tfh_line_get(args, "steps");
	unsigned n = 0, told = 0, failed = 0, late = 0;
	uint32_t steps = 0;
	char words[32];
	int verb = 0;

	if (args->operands < 2 || args->operands > 3)
		return usage();
	snprintf(words, sizeof(words), "%s%s%s", args->operand[1], args->operands == 3 ? " " : "",
		 args->operands == 3 ? args->operand[2] : "");
	while (verb < VERBS && strcmp(words, verbs[verb].name))
		verb++;
	if (verb == VERBS || (limit && verb != START && verb != GPU_ON))
		return usage();
	if (limit && parse_steps(limit, &steps))
		return TFH_EXIT_USAGE;
	struct tfh_found_journal *found = calloc(MAX_JOURNALS, sizeof(*found));
	if (!found || find_target(args->operand[0], found, &n)) {
		free(found);
		return TFH_EXIT_USAGE;
	}
	for (unsigned i = 0; i < n; i++) {
		if (!found[i].live)
			continue;
		struct tfh_err err;
		int code = tell(found[i].path, (enum verb)verb, steps, &err);
		if (code && code != -ETIMEDOUT) {
			tfh_say("process %d: %s", (int)found[i].pid, err.text);
			failed++;
			continue;
		}
		told++;
		late += code == -ETIMEDOUT;
	}
	free(found);
	if (!told && !failed) {
		tfh_say("no process of %s records now on this host (it ended, runs on another "
			"host, or has made no GPU or "
			"tf.data call yet)",
			args->operand[0]);
		return TFH_EXIT_NOTHING;
	}
	tfh_say("%s: %u process%s%s", verbs[verb].name, told, told == 1 ? "" : "es",
		late ? "; the writing is not finished after 4 s (is the disk full, or the process "
		       "stopped?)"
		     : "");
	return failed || late ? TFH_EXIT_GATE : TFH_EXIT_OK;
}
