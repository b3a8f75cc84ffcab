#include "cli/start_samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/proc.h"
#include "cli/start_outside.h"
#include "sampling/moments.h"

extern char **environ;

#define MEAN_NS 10000000ull
#define SHARE 200u	     /* one part in SHARE of the interval is the sampler's processor time */
#define FIRST_NS 10000000ull /* plus this much processor time, once */
#define DOUBLED 2000u
#define CHOOSE_NS 100000000u
/* A process whose last so many samples show it waiting is sampled IDLE_TIMES less often: trackers
 * and managers of a pool do nothing, and would have as many samples as its workers. */
#define IDLE_LEAST 8u
#define IDLE_TIMES 4u
#define TICK_NS 10000000 /* resolution of times in /proc/PID/stat */
#define SEARCH_MOST_NS 2000000000ll

static int64_t now_ns(void)
{
	return tfh_clock_ns(CLOCK_MONOTONIC);
}

static void plan(struct tfh_start_samples *s)
{
	s->next_ns = now_ns() + (int64_t)tfh_draw_wait(&s->random, s->mean_ns);
}

struct tfh_start_samples *tfh_start_samples_new(const struct tfh_place *place, pid_t pid)
{
	struct tfh_start_samples *s = NULL;
	struct tfh_options options;

	tfh_options_read(&options, environ);
	if (tfh_opt_bool(&options, TFH_OPT_ENABLED) && tfh_opt_bool(&options, TFH_OPT_SAMPLES))
		s = calloc(1, sizeof(*s));
	if (!s || !(s->places = tfh_start_places_new())) {
		free(s);
		return NULL;
	}
	s->to = place;
	s->lines = tfh_opt_bool(&options, TFH_OPT_PYTHON);
	s->mean_ns = MEAN_NS;
	s->cost_ns = MEAN_NS / SHARE;
	s->random = ((uint64_t)now_ns() ^ (uint64_t)pid << 40) | 1;
	s->process[s->n_process++] =
		(struct tfh_outside_process){.pid = pid, .fd = -1, .start = tfh_process_start(pid)};
	plan(s);
	return s;
}

int64_t tfh_start_samples_wait(const struct tfh_start_samples *s)
{
	int64_t left;

	if (!s || s->done)
		return -1;
	left = s->next_ns - now_ns();
	return left > 0 ? left : 0;
}

/* ---- samples ---- */

/* Fills in the sample's place, its loops, and who held the GIL. */
static void read_frames(struct tfh_start_samples *s, struct tfh_outside_process *p,
			struct tfh_outside_sample *out)
{
	struct tfh_py_target t = {.py = &p->outside.py,
				  .pid = p->pid,
				  .interpreter = p->outside.interpreter,
				  .state = p->state};
	const struct tfh_py_frame *frame;
	struct tfh_py_copies *copies;
	const char *why = NULL;
	uint32_t n;
	int err;

	if (!s->lines || p->refused || (!p->python && now_ns() < p->search_ns))
		return;
	if (!p->python) {
		err = tfh_py_find_outside(p->pid, &p->outside, &why);
		p->python = !err;
		p->refused = err && err != -ENOENT && err != -ESRCH;
		if (why)
			snprintf(p->why, sizeof(p->why), "%s", why);
		else if (err)
			tfh_outside_why(p, "the memory", err);
		p->search_ns = now_ns() + p->wait_ns;
		p->wait_ns = p->wait_ns < SEARCH_MOST_NS ? 2 * p->wait_ns : p->wait_ns;
		if (err)
			return;
	}
	n = tfh_py_sample_frames(&t, &frame, &copies);
	p->state = t.state;
	out->gil = (uint8_t)t.gil;
	/* A program that has just started may not show its interpreter yet. */
	p->python = n || now_ns() < p->search_ns;
	if (!n)
		return;
	tfh_py_fetch_codes(&p->outside.py, copies, frame, n);
	out->place = tfh_start_place(s->places, &p->outside.py, copies, frame, n);
	p->types.counters = &p->counters;
	/* Last: what is on the stack may lead anywhere, and use up the room for copies. */
	out->loops = tfh_start_loops_take(&s->loops, &p->outside.py, &p->types, copies, frame, n);
}

/* The GIL is a lock inside of the interpreter's own data. */
static uint8_t state_of(const struct tfh_outside_process *p, const struct tfh_waiting *seen)
{
	uint64_t runtime = (uint64_t)(uintptr_t)p->outside.py.runtime;
	bool gil = p->python && seen->state == TFT_STATE_LOCK &&
		   seen->what - runtime < p->outside.runtime_bytes;

	return gil ? TFT_STATE_GIL : (uint8_t)seen->state;
}

/* How often a process is sampled, relative to others. */
static uint32_t turns_of(const struct tfh_outside_process *p)
{
	return p->idle < IDLE_LEAST ? IDLE_TIMES : 1;
}

/* `of`: one sample in so many is of this process. */
static void look_at(struct tfh_start_samples *s, struct tfh_outside_process *p, double of)
{
	int64_t since = now_ns() - (int64_t)(p->start * TICK_NS);
	double weight = (double)(s->mean_ns + s->late_ns) * of / 1000;
	struct tfh_outside_sample sample = {.process = (uint32_t)(p - s->process)};
	struct tfh_waiting seen, after;
	int err = tfh_waiting_sample(p->fd, p->pid, (uint32_t)p->pid, &seen);

	if (err) {
		tfh_outside_why(p, "/proc/PID/syscall", err);
		p->ended = err == -ESRCH;
		tfh_outside_leave(p);
		return;
	}
	read_frames(s, p, &sample);
	/* Still the same process? Its pid may have been reused. */
	if (tfh_waiting_sample(p->fd, p->pid, (uint32_t)p->pid, &after))
		return;
	sample.us = since > 0 ? (uint64_t)since / 1000 : 0;
	sample.weight_us = weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
	p->idle = seen.state == TFT_STATE_RUNNING ? 0 : p->idle + 1;
	sample.state = state_of(p, &seen);
	sample.others = tfh_others_ran(&p->others, p->pid);
	s->sample[s->n++] = sample;
	p->placed += sample.place != 0;
	p->placed_us += sample.place ? sample.weight_us : 0;
	if (p->python && s->lines && seen.state != TFT_STATE_RUNNING)
		tfh_start_others_take(&s->others, p->pid, &p->outside, s->places, &s->random,
				      (struct tfh_other_sample){.us = sample.us,
								.process = sample.process,
								.weight_us = sample.weight_us});
}

static bool is_open(const struct tfh_outside_process *p)
{
	return p->fd >= 0 && !p->ended;
}

/* Samples one process at random; false: there is none. */
static bool look_at_one(struct tfh_start_samples *s)
{
	uint32_t turns = 0, at;

	for (uint32_t i = 0; i < s->n_process; i++)
		turns += is_open(&s->process[i]) ? turns_of(&s->process[i]) : 0;
	if (!turns)
		return false;
	at = (uint32_t)(tfh_draw(&s->random) % turns);
	for (uint32_t i = 0; i < s->n_process; i++) {
		uint32_t own = is_open(&s->process[i]) ? turns_of(&s->process[i]) : 0;
		if (at < own) {
			look_at(s, &s->process[i], (double)turns / own);
			break;
		}
		at -= own;
	}
	return true;
}

/* ---- when ---- */

static uint64_t used_ns(void)
{
	return (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Sets the mean interval. `cost`: of one sample; sleeping and waking cost as much again. */
static void pace(struct tfh_start_samples *s, uint64_t cost)
{
	uint64_t mean = MEAN_NS << (s->n / DOUBLED), most = 4 * s->cost_ns;

	s->spent_ns += 2 * cost;
	s->cost_ns += (2 * cost < most ? 2 * cost : most) / 16 - s->cost_ns / 16;
	if (s->spent_ns > FIRST_NS && mean < s->cost_ns * SHARE)
		mean = s->cost_ns * SHARE;
	s->mean_ns = mean;
}

/* Looks for new processes at intervals of at least a tenth of a second, and longer if that is
 * expensive. */
static void choose_if_time(struct tfh_start_samples *s, int64_t now)
{
	uint64_t before = used_ns(), cost;

	if (now < s->choose_ns)
		return;
	tfh_outside_choose(s);
	cost = (used_ns() - before) * SHARE;
	s->choose_ns = now + (cost > CHOOSE_NS ? (int64_t)cost : CHOOSE_NS);
	for (uint32_t i = 0; i < s->n_process; i++)
		if (!s->process[i].records && !s->process[i].ended)
			return;
	tfh_outside_write(s);
}

void tfh_start_samples_take(struct tfh_start_samples *s)
{
	int64_t now = now_ns();
	uint64_t before;

	if (!s || s->done || now < s->next_ns)
		return;
	s->late_ns = (uint64_t)(now - s->next_ns);
	choose_if_time(s, now);
	if (s->done)
		return;
	before = used_ns();
	if (!look_at_one(s)) {
		s->next_ns = s->choose_ns;
		return;
	}
	pace(s, used_ns() - before);
	if (s->n == TFH_OUTSIDE_SAMPLES)
		tfh_outside_write(s);
	plan(s);
}

void tfh_start_samples_end(struct tfh_start_samples *s)
{
	if (!s)
		return;
	tfh_outside_find_recording(s);
	if (!s->done)
		tfh_outside_write(s);
	for (uint32_t i = 0; i < s->n_process; i++) {
		tfh_outside_leave(&s->process[i]);
		if (!s->process[i].records)
			tfh_ends_drop(&s->ends, s->process[i].pid, s->process[i].start);
	}
	tfh_ends_ask(&s->ends);
}

const struct tfh_ends *tfh_start_samples_ends(const struct tfh_start_samples *s)
{
	return s ? &s->ends : NULL;
}

bool tfh_start_samples_kept(const struct tfh_start_samples *s)
{
	return s && s->kept;
}

uint32_t tfh_start_samples_placed(const struct tfh_start_samples *s)
{
	uint32_t most = 0;

	for (uint32_t i = 0; s && i < s->n_process; i++)
		most = s->process[i].placed > most ? s->process[i].placed : most;
	return most;
}

void tfh_start_samples_free(struct tfh_start_samples *s)
{
	if (s)
		free(s->places);
	free(s);
}
