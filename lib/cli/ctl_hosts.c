/* `tfhook ctl` on a run directory of several hosts: leaves a request for the others there, and
 * gathers their answers. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/access.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/ctl_request.h"

/* HERE: some or all of its processes got the command from this host */
enum { SILENT, TAKEN, ANSWERED, HERE };

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = number;
}

static double now_s(void)
{
	return (double)tfh_clock_ns(CLOCK_MONOTONIC) * 1e-9;
}

static int by_name(const void *name, const void *of_host)
{
	return strcmp(name, of_host);
}

static uint8_t *state_of(const struct tfh_ctl_asked *a, const char *host)
{
	static uint8_t unknown;
	char(*at)[TFH_HOST_NAME] = a->hosts.n ? bsearch(host, a->hosts.name, a->hosts.n,
							sizeof(*a->hosts.name), by_name)
					      : NULL;

	unknown = HERE;
	return at ? &a->state[at - a->hosts.name] : &unknown;
}

static void note_reached(void *arg, const struct tft_found *found)
{
	if (!found->code && tft_view_life(found->view) == TFT_ALIVE)
		*state_of(arg, tft_view_header(found->view)->host) = HERE;
}

static unsigned count(const struct tfh_ctl_asked *a, bool also_taken)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < a->hosts.n; i++)
		n += a->state[i] == SILENT || (also_taken && a->state[i] == TAKEN);
	return n;
}

/* The file appears when it is complete. */
static int leave(const struct tfh_ctl_asked *a, const struct tfh_ctl_request *r)
{
	const struct tfh_access alone = {.shared = false};
	char name[NAME_MAX + 1], part[64];
	uint64_t id[TFH_CTL_REQUESTS];
	int code = 0;

	if (tfh_ctl_list(a->dir, a->owner, id) == TFH_CTL_REQUESTS)
		return -EBUSY;
	tfh_ctl_name(name, a->id, NULL);
	snprintf(part, sizeof(part), "ctl-%016" PRIx64 ".part", a->id);
	int fd = tfh_make_file(a->dir, part, &alone);
	if (fd < 0)
		return fd;
	if (tfh_write(fd, r, sizeof(*r)) != (ssize_t)sizeof(*r))
		code = -EIO;
	if (close(fd) && !code)
		code = -errno;
	if (!code && renameat(a->dir, part, a->dir, name))
		code = -errno;
	if (code)
		unlinkat(a->dir, part, 0);
	return code;
}

static int ask(const char *dir, const struct tfh_ctl_order *o, const char *here, double wait_s,
	       struct tfh_ctl_asked *a)
{
	const struct sigaction action = {.sa_handler = on_signal};
	struct tfh_ctl_request r = {.at = o->at,
				    .verb = o->verb,
				    .steps = o->steps,
				    .wait_s = (uint32_t)wait_s + 1,
				    .n_had = o->told};
	struct stat st;

	if (o->told > TFH_CTL_KEYS)
		return -E2BIG;
	a->dir = tfh_ctl_dir(dir, &st);
	if (a->dir < 0)
		return a->dir;
	if (getrandom(&a->id, sizeof(a->id), 0) != (ssize_t)sizeof(a->id))
		return -EAGAIN;
	r.id = a->id;
	a->owner = st.st_uid;
	snprintf(r.host, sizeof(r.host), "%.63s", here);
	memcpy(r.had, o->key, o->told * sizeof(*r.had));
	tfh_ctl_request_seal(&r);
	/* A signal must not leave the request behind. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	a->until_s = now_s() + wait_s;
	return leave(a, &r);
}

void tfh_ctl_ask(const char *dir, const struct tfh_ctl_order *o, double wait_s,
		 struct tfh_ctl_asked *a)
{
	char here[TFH_HOST_NAME] = "";

	*a = (struct tfh_ctl_asked){.dir = -1};
	gethostname(here, sizeof(here) - 1);
	if (wait_s <= 0 || tfh_run_hosts_find(dir, &a->hosts) ||
	    !(a->state = calloc(a->hosts.n + 1, 1)))
		return;
	*state_of(a, here) = HERE;
	tft_journals_of(dir, note_reached, a);
	if (!count(a, true))
		return;
	int code = ask(dir, o, here, wait_s, a);
	if (!code)
		return;
	tfh_say("the run's other hosts could not be asked: %s; give the command there",
		strerror(-code));
	a->missing = count(a, true);
	if (a->dir >= 0)
		close(a->dir);
	a->dir = -1;
}

/* ---- answers ---- */

static void say_answer(const struct tfh_ctl_order *o, const char *host,
		       const struct tfh_ctl_answer *n)
{
	char more[3][80] = {"", "", ""};

	if (n->code) {
		tfh_say("host %s: did not obey: %s", host,
			n->code == -EPROTO   ? "its tfhook is of another version"
			: n->code == -ESTALE ? "it was too late"
					     : "the request in the run directory is damaged");
		return;
	}
	if (n->first_most && n->first_most == o->at)
		snprintf(more[0], sizeof(more[0]), ", from step %" PRIu64, o->at);
	else if (n->first_most)
		snprintf(more[0], sizeof(more[0]),
			 ", from step %" PRIu64 " to %" PRIu64 " on: %" PRIu64 " was too near",
			 n->first_least, n->first_most, o->at);
	if (n->failed)
		snprintf(more[1], sizeof(more[1]), "; %u cannot be controlled", n->failed);
	if (n->late)
		snprintf(more[2], sizeof(more[2]), "; %u did not answer in time", n->late);
	tfh_say("host %s: %s: %u process%s%s%s%s", host, tfh_ctl_verb_name(o->verb), n->told,
		n->told == 1 ? "" : "es", more[0], more[1], more[2]);
}

/* An answer that is not complete yet is read again later. */
static void hear(const struct tfh_ctl_order *o, struct tfh_ctl_asked *a, const char *name,
		 const char *host)
{
	uint8_t *state = state_of(a, host);
	char bytes[sizeof(struct tfh_ctl_answer) + 1];
	struct tfh_ctl_answer n;
	struct stat st;

	if (*state != SILENT && *state != TAKEN)
		return;
	ssize_t len = tfh_ctl_read(a->dir, name, a->owner, bytes, sizeof(bytes), &st);
	if (len < 0)
		return;
	*state = TAKEN;
	if (tfh_ctl_answer_parse(bytes, (size_t)len, &n) || n.id != a->id)
		return;
	*state = ANSWERED;
	a->told += n.told;
	a->missing += n.code || n.failed || n.late;
	say_answer(o, host, &n);
}

/* Reads the answers, or removes them. */
static void each_answer(const struct tfh_ctl_order *o, struct tfh_ctl_asked *a, bool remove)
{
	DIR *d = tfh_list_names(a->dir);
	char prefix[32], host[TFH_HOST_NAME], name[NAME_MAX + 1];
	struct dirent *e;

	int n = snprintf(prefix, sizeof(prefix), "ctl-%016" PRIx64 ".", a->id);
	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, prefix, (size_t)n) != 0)
			continue;
		snprintf(host, sizeof(host), "%s", e->d_name + n);
		char *end = strrchr(host, '.');
		*(end ? end : host) = '\0';
		if (!tfh_ctl_name(name, a->id, host) || strcmp(name, e->d_name) != 0)
			continue;
		if (remove)
			unlinkat(a->dir, name, 0);
		else
			hear(o, a, name, host);
	}
	if (d)
		closedir(d);
}

static void say_missing(struct tfh_ctl_asked *a)
{
	for (uint32_t i = 0; i < a->hosts.n; i++) {
		if (a->state[i] == SILENT)
			tfh_say("no follower answers on host %s: run `tfhook digest --follow` "
				"there, or give the command there",
				a->hosts.name[i]);
		if (a->state[i] == TAKEN)
			tfh_say("host %s: its follower has taken the command, but has not said "
				"what became of it",
				a->hosts.name[i]);
	}
	a->missing += count(a, true);
}

void tfh_ctl_gather(const struct tfh_ctl_order *o, struct tfh_ctl_asked *a)
{
	const struct timespec nap = {0, 250000000};
	char name[NAME_MAX + 1];

	if (a->dir >= 0) {
		for (each_answer(o, a, false); count(a, true) && !stopped && now_s() < a->until_s;
		     each_answer(o, a, false))
			nanosleep(&nap, NULL);
		/* From here on, no other host starts to carry out the request. */
		tfh_ctl_name(name, a->id, NULL);
		unlinkat(a->dir, name, 0);
		each_answer(o, a, false);
		say_missing(a);
		each_answer(o, a, true);
		close(a->dir);
	}
	tfh_run_hosts_free(&a->hosts);
	free(a->state);
}
