#include "cli/ctl_order.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "cli/cli.h"

#define AT (TFT_CTL_GPU_ON_AT | TFT_CTL_GPU_OFF_AT)
static const struct {
	const char *name;
	uint32_t set, clear;
	uint32_t set_at; /* with --at-step */
} verbs[TFH_CTL_VERBS] = {{"stop", TFT_CTL_STOP, 0, 0},
			  {"start", 0, TFT_CTL_STOP, 0},
			  {"flush", TFT_CTL_FLUSH, 0, 0},
			  {"gpu on", TFT_CTL_GPU_ON, TFT_CTL_GPU_OFF | AT, TFT_CTL_GPU_ON_AT},
			  {"gpu off", TFT_CTL_GPU_OFF, TFT_CTL_GPU_ON | AT, TFT_CTL_GPU_OFF_AT}};

#define NAPS 200 /* 4 s */

/* The flusher clears the bits when it has done what they say; it checks every 100 ms. */
static bool wait_for(const struct tft_view *view, uint64_t bits, int *naps)
{
	const struct timespec nap = {0, 20000000};
	bool done = false;
	uint64_t word;

	for (;;) {
		done = tft_view_read(view, &word, sizeof(word),
				     offsetof(struct tft_journal, control)) ||
		       !(word & bits) || tft_view_life(view) != TFT_ALIVE;
		if (done || !*naps)
			return done;
		--*naps;
		nanosleep(&nap, NULL);
	}
}

/* Identifies a process, whichever host or container looks at it. */
static uint64_t key_of(const struct tft_journal *head)
{
	uint64_t key = tfh_hash_str(head->boot_id);

	key = tfh_hash_add(tfh_hash_add(key, head->pid), head->pid_ns);
	return tfh_hash_add(key, head->process_start);
}

/* Whether the command is for this process. */
static bool is_meant(const struct tfh_ctl_order *o, const struct tft_found *found)
{
	if (found->code || tft_view_life(found->view) != TFT_ALIVE)
		return false;
	const struct tft_journal *head = tft_view_header(found->view);
	if (o->host && strncmp(head->host, o->host, sizeof(head->host) - 1) != 0)
		return false;
	for (uint32_t i = 0; i < o->n_had; i++)
		if (o->had[i] == key_of(head))
			return false;
	return true;
}

static int give(const struct tfh_ctl_order *o, const struct tft_view *view, struct tfh_err *err)
{
	if (o->at)
		return tft_view_set_gpu(view, verbs[o->verb].set_at, AT, 0, o->at, o->steps, err);
	if (verbs[o->verb].set_at)
		return tft_view_set_gpu(view, verbs[o->verb].set, verbs[o->verb].clear, o->steps, 0,
					0, err);
	return tft_view_set_control(view, verbs[o->verb].set, verbs[o->verb].clear, o->steps, err);
}

static void control(void *arg, const struct tft_found *found)
{
	struct tfh_ctl_order *o = arg;
	struct tfh_err err;

	if (!is_meant(o, found))
		return;
	if (give(o, found->view, &err)) {
		tfh_say("process %u: %s", tft_view_header(found->view)->pid, err.text);
		o->failed++;
		return;
	}
	if (o->told < TFH_CTL_KEYS)
		o->key[o->told] = key_of(tft_view_header(found->view));
	o->told++;
}

/* What a process will do. */
static void say_answer(struct tfh_ctl_order *o, const char *who, uint64_t first, uint64_t seen)
{
	char last[32] = "", passed[64] = "", none[64] = "";

	if (!o->first_least || first < o->first_least)
		o->first_least = first;
	if (first > o->first_most)
		o->first_most = first;
	if (o->verb == TFH_CTL_GPU_ON && o->steps)
		snprintf(last, sizeof(last), " to %" PRIu64, first + o->steps - 1);
	if (first > o->at)
		snprintf(passed, sizeof(passed),
			 "step %" PRIu64 " has passed or is too near: ", o->at);
	else if (!seen)
		snprintf(none, sizeof(none), " (it has counted no step yet)");
	tfh_say("%s: %s%s from step %" PRIu64 "%s%s", who, passed,
		o->verb == TFH_CTL_GPU_ON ? "device times" : "no device times", first, last, none);
}

static void hear_flush(void *arg, const struct tft_found *found)
{
	struct tfh_ctl_order *o = arg;
	int naps = NAPS;

	o->late += is_meant(o, found) && !wait_for(found->view, TFT_CTL_FLUSH, &naps);
}

/* Waits for the answer of this process and prints it. All processes have received the request
 * before. */
static void hear_step(void *arg, const struct tft_found *found)
{
	const size_t from = offsetof(struct tft_journal, at_step);
	struct tfh_ctl_order *o = arg;
	const struct tft_journal *head;
	uint64_t step, first = 0, seen = 0;
	char who[64], rank[32] = "";
	struct tfh_err err;

	if (!is_meant(o, found) || tft_view_read(found->view, &step, sizeof(step), from) ||
	    step != o->at)
		return;
	head = tft_view_header(found->view);
	if (head->rank >= 0)
		snprintf(rank, sizeof(rank), " (rank %d)", head->rank);
	snprintf(who, sizeof(who), "process %u%s", head->pid, rank);
	if (wait_for(found->view, AT, &o->naps)) {
		if (!tft_view_read(found->view, &first, sizeof(first),
				   offsetof(struct tft_journal, at_answer)) &&
		    !tft_view_read(found->view, &seen, sizeof(seen),
				   offsetof(struct tft_journal, steps)) &&
		    first)
			say_answer(o, who, first, seen);
		return;
	}
	o->late++;
	tft_view_set_gpu(found->view, 0, AT, 0, 0, 0, &err);
	tfh_say("%s: no answer after 4 s, so the command was cancelled (is the process stopped, or "
		"its recorder of an earlier version?)",
		who);
}

const char *tfh_ctl_verb_name(enum tfh_ctl_verb verb)
{
	return verbs[verb].name;
}

enum tfh_ctl_verb tfh_ctl_verb_find(const char *name)
{
	int verb = 0;

	while (verb < TFH_CTL_VERBS && strcmp(name, verbs[verb].name))
		verb++;
	return (enum tfh_ctl_verb)verb;
}

bool tfh_ctl_fits(enum tfh_ctl_verb verb, bool steps, bool at)
{
	return verb < TFH_CTL_VERBS && (!at || verbs[verb].set_at) &&
	       (!steps || verb == TFH_CTL_START || verb == TFH_CTL_GPU_ON);
}

static int each_of(struct tfh_ctl_order *o, const char *dir, pid_t pid, tft_found_fn fn)
{
	if (!dir)
		return tft_journals_of_process(pid, fn, o);
	tft_journals_of(dir, fn, o);
	return 0;
}

int tfh_ctl_give(struct tfh_ctl_order *o, const char *dir, pid_t pid)
{
	return each_of(o, dir, pid, control);
}

void tfh_ctl_hear(struct tfh_ctl_order *o, const char *dir, pid_t pid)
{
	o->naps = NAPS;
	if (o->told && (o->at || o->verb == TFH_CTL_FLUSH))
		each_of(o, dir, pid, o->at ? hear_step : hear_flush);
}
