#include "cli/start_samples.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/options.h"
#include "base/proc.h"
#include "cli/start_loops.h"
#include "cli/start_others.h"
#include "cli/start_places.h"
#include "sampling/moments.h"
#include "sampling/outside.h"
#include "sampling/waiting.h"

extern char **environ;

#define MEAN_NS 10000000ull
#define SHARE 200u	     /* one part in SHARE of the interval is the sampler's processor time */
#define FIRST_NS 10000000ull /* plus this much processor time, once */
#define DOUBLED 2000u
#define MOST_SAMPLES 16384u
#define PROCESSES 64u
/* What a process needs in order to be worth a report though it recorded nothing: so much time at
 * its lines, which few samples cover where each of them is expensive (deep stacks, a busy machine),
 * and as many of them as say anything. */
#define WORTH_US 600000u
#define WORTH_LEAST 10u
#define CHOOSE_NS 100000000u
/* Every so many searches for children, those of other threads than the main one are looked for. */
#define SEARCHES 10u
/* A process whose last so many samples show it waiting is sampled IDLE_TIMES less often: trackers
 * and managers of a pool do nothing, and would have as many samples as its workers. */
#define IDLE_LEAST 8u
#define IDLE_TIMES 4u
#define TICK_NS 10000000 /* resolution of times in /proc/PID/stat */
/* First time between two searches for an interpreter, which a program does not have yet when it
 * starts. */
#define SEARCH_NS 20000000ll
#define SEARCH_MOST_NS 2000000000ll

struct start_process {
	int32_t pid;
	int fd; /* shows what the main thread waits for; -1: not sampled (any more) */
	struct tfh_others_cpu others;
	uint64_t start; /* field 22 of /proc/PID/stat */
	dev_t device;	/* of the program, to detect an exec */
	ino_t inode;
	bool python, refused; /* its interpreter is known; it has none that can be read */
	bool records, ended;
	uint32_t idle;	 /* last samples in a row in which it did not run */
	uint32_t placed; /* samples with a line */
	uint64_t placed_us;
	int64_t search_ns, wait_ns; /* time of the next search, and the wait after it */
	struct tfh_py_outside outside;
	struct tfh_py_types types;
	struct tfh_py_counters counters;
	uint64_t state;
	char why[160];
};

struct start_sample {
	uint64_t us;
	uint32_t process, place, weight_us;
	uint8_t state, gil; /* enum tft_state, enum tft_gil */
	uint8_t others;	    /* tfh_others_ran() */
	struct tfh_sample_loops loops;
};

struct tfh_start_samples {
	const struct tfh_place *to;
	struct tfh_start_places *places;
	bool lines, done, kept;
	int64_t next_ns, choose_ns;
	uint64_t mean_ns, cost_ns, spent_ns, random;
	uint64_t late_ns; /* delay of this sample: a busy job delays it, an idle one does not */
	struct start_process process[PROCESSES];
	uint32_t n_process, searches;
	struct tfh_ends ends; /* of the children, in the end of those that record */
	uint32_t n;
	struct start_sample sample[MOST_SAMPLES];
	struct tfh_start_loops loops;
	struct tfh_start_others others;
};

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
		(struct start_process){.pid = pid, .fd = -1, .start = tfh_process_start(pid)};
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

/* ---- which processes ---- */

static void say_why(struct start_process *p, const char *what, int err)
{
	if (!*p->why && err != -ESRCH && err != -ENOENT)
		snprintf(p->why, sizeof(p->why), "%s of process %d: %s", what, (int)p->pid,
			 strerror(-err));
}

static void leave(struct start_process *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

/* If it now executes another program, what was found out about it is invalid. */
static void follow_exec(struct start_process *p)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", p->pid);
	if (stat(path, &st)) {
		p->ended = errno == ENOENT;
		say_why(p, "/proc/PID/exe", -errno);
		return;
	}
	if (st.st_ino == p->inode && st.st_dev == p->device)
		return;
	p->inode = st.st_ino;
	p->device = st.st_dev;
	p->python = p->refused = false;
	p->types = (struct tfh_py_types){0};
	p->counters = (struct tfh_py_counters){.n = 0};
	p->others = (struct tfh_others_cpu){0};
	p->search_ns = 0;
	p->wait_ns = SEARCH_NS;
	p->why[0] = '\0';
	leave(p);
	p->fd = tfh_waiting_open(p->pid, (uint32_t)p->pid);
	if (p->fd < 0)
		say_why(p, "/proc/PID/syscall", p->fd);
}

/* Its end is awaited from here on, since it may record and end before the next look at the
 * directory. */
static void add_child(struct tfh_start_samples *s, int32_t pid)
{
	struct start_process *p = &s->process[s->n_process];

	for (uint32_t i = 0; i < s->n_process; i++)
		if (s->process[i].pid == pid)
			return;
	*p = (struct start_process){.pid = pid, .fd = -1, .start = tfh_process_start(pid)};
	s->n_process++;
	tfh_ends_add(&s->ends, p->pid, p->start);
}

/* Adds children: mostly of main threads, which is how launchers start processes; a pool's manager
 * thread may start its workers. Children of a process that records are its workers, which the
 * recorder samples. */
static void add_children(struct tfh_start_samples *s)
{
	bool all = s->searches++ % SEARCHES == SEARCHES - 1;
	int32_t child[PROCESSES];

	for (uint32_t i = 0; i < s->n_process; i++) {
		const struct start_process *p = &s->process[i];
		int32_t pid = p->pid;
		uint32_t n = 0;

		if (!p->records && !p->ended)
			n = all && p->python ? tfh_all_children(pid, child, PROCESSES)
					     : tfh_children(pid, (uint32_t)pid, child, PROCESSES);
		for (uint32_t k = 0; k < n && s->n_process < PROCESSES; k++)
			add_child(s, child[k]);
	}
}

/* Finds processes with a segment, "p.HOST.PID.N.tft". From then on, their recorder samples them. */
static void find_recording(struct tfh_start_samples *s)
{
	int fd = fcntl(s->to->fd, F_DUPFD_CLOEXEC, 0);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!d && fd >= 0)
		close(fd);
	if (d)
		rewinddir(d); /* duplicated descriptors share the read position */
	while (d && (e = readdir(d))) {
		size_t n = strlen(e->d_name);
		for (uint32_t i = 0; i < s->n_process; i++) {
			char part[32];
			snprintf(part, sizeof(part), ".%d.", (int)s->process[i].pid);
			if (n > 4 && !strcmp(e->d_name + n - 4, ".tft") &&
			    strstr(e->d_name, part) && !s->process[i].records) {
				s->process[i].records = true;
				tfh_ends_add(&s->ends, s->process[i].pid, s->process[i].start);
				leave(&s->process[i]);
			}
		}
	}
	if (d)
		closedir(d);
}

/* Whether the samples of a process may be written. */
static bool is_worth(const struct start_process *p)
{
	return p->records || (p->placed >= WORTH_LEAST && p->placed_us >= WORTH_US);
}

/* Removes a process that ended without recording, with its samples. */
static void forget(struct tfh_start_samples *s, uint32_t gone)
{
	uint32_t last = --s->n_process, kept = 0;

	leave(&s->process[gone]);
	tfh_ends_drop(&s->ends, s->process[gone].pid, s->process[gone].start);
	s->process[gone] = s->process[last];
	tfh_start_others_forget(&s->others, gone, last);
	for (uint32_t i = 0; i < s->n; i++) {
		struct start_sample k = s->sample[i];
		if (k.process == gone)
			continue;
		k.process = k.process == last ? gone : k.process;
		s->sample[kept++] = k;
	}
	s->n = kept;
}

static void choose(struct tfh_start_samples *s)
{
	add_children(s);
	find_recording(s);
	for (uint32_t i = 0; i < s->n_process; i++)
		if (!s->process[i].records && !s->process[i].ended)
			follow_exec(&s->process[i]);
	/* A process that recorded nothing may be the only one, so even one that did little is kept
	 * while there is room. */
	for (uint32_t i = s->n_process; i-- > 0 && s->n_process == PROCESSES;)
		if (s->process[i].ended && !is_worth(&s->process[i]))
			forget(s, i);
}

/* ---- samples ---- */

/* Fills in the sample's place, its loops, and who held the GIL. */
static void read_frames(struct tfh_start_samples *s, struct start_process *p,
			struct start_sample *out)
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
			say_why(p, "the memory", err);
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
static uint8_t state_of(const struct start_process *p, const struct tfh_waiting *seen)
{
	uint64_t runtime = (uint64_t)(uintptr_t)p->outside.py.runtime;
	bool gil = p->python && seen->state == TFT_STATE_LOCK &&
		   seen->what - runtime < p->outside.runtime_bytes;

	return gil ? TFT_STATE_GIL : (uint8_t)seen->state;
}

/* How often a process is sampled, relative to others. */
static uint32_t turns_of(const struct start_process *p)
{
	return p->idle < IDLE_LEAST ? IDLE_TIMES : 1;
}

/* `of`: one sample in so many is of this process. */
static void look_at(struct tfh_start_samples *s, struct start_process *p, double of)
{
	int64_t since = now_ns() - (int64_t)(p->start * TICK_NS);
	double weight = (double)(s->mean_ns + s->late_ns) * of / 1000;
	struct start_sample sample = {.process = (uint32_t)(p - s->process)};
	struct tfh_waiting seen, after;
	int err = tfh_waiting_sample(p->fd, p->pid, (uint32_t)p->pid, &seen);

	if (err) {
		say_why(p, "/proc/PID/syscall", err);
		p->ended = err == -ESRCH;
		leave(p);
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

static bool is_open(const struct start_process *p)
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

/* ---- start.json ---- */

/* One digit per sample, which is at `offset` in it. */
static void write_digits(const struct tfh_start_samples *s, uint32_t at, const char *key,
			 size_t offset, struct tfh_json *j)
{
	static char text[MOST_SAMPLES];
	size_t n = 0;

	for (uint32_t i = 0; i < s->n; i++)
		if (s->sample[i].process == at)
			text[n++] = (char)('0' + ((const uint8_t *)&s->sample[i])[offset]);
	tfh_json_key(j, key);
	tfh_json_strn(j, text, n);
}

/* How far loops had come; samples are numbered as in `looks`. */
static void write_loops(const struct tfh_start_samples *s, uint32_t at, struct tfh_json *j)
{
	uint32_t number = 0;

	tfh_json_key(j, "loops");
	tfh_json_array(j);
	for (uint32_t i = 0; i < s->n; i++)
		if (s->sample[i].process == at)
			tfh_start_loops_write(&s->loops, s->sample[i].loops, number++, j);
	tfh_json_end(j);
}

/* What counted each of these, one digit each: enum tfh_py_count. */
static void write_counts(const struct tfh_start_samples *s, uint32_t at, struct tfh_json *j)
{
	static char text[TFH_START_LOOPS];
	size_t n = 0;

	for (uint32_t i = 0; i < s->n; i++)
		if (s->sample[i].process == at)
			n += tfh_start_loops_counts(&s->loops, s->sample[i].loops, text + n);
	tfh_json_key(j, "counted");
	tfh_json_strn(j, text, n);
}

static void write_process(const struct tfh_start_samples *s, uint32_t at, struct tfh_json *j)
{
	const struct start_process *p = &s->process[at];

	tfh_json_object(j);
	tfh_json_ki64(j, "pid", p->pid);
	tfh_json_ku64(j, "start", p->start);
	tfh_json_kstr(j, "why", *p->why ? p->why : NULL);
	tfh_json_kbool(j, "recorded", p->records);
	tfh_json_key(j, "looks");
	tfh_json_array(j);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct start_sample *k = &s->sample[i];
		const uint64_t of[] = {k->us, k->state, k->place, k->weight_us};
		if (k->process == at)
			tfh_json_u64s(j, of, sizeof(of) / sizeof(*of));
	}
	tfh_json_end(j);
	write_digits(s, at, "gil", offsetof(struct start_sample, gil), j);
	write_digits(s, at, "others_ran", offsetof(struct start_sample, others), j);
	write_loops(s, at, j);
	write_counts(s, at, j);
	tfh_start_others_write(&s->others, at, j);
	tfh_json_end(j);
}

static void write_samples(struct tfh_start_samples *s)
{
	bool any = false, records = false;
	struct tfh_json j;
	FILE *out = NULL;

	s->done = true;
	for (uint32_t p = 0; p < s->n_process; p++) {
		any |= is_worth(&s->process[p]);
		records |= s->process[p].records;
	}
	if (!any || tfh_place_create(s->to, "start.json", &out))
		return;
	tfh_json_init(&j, out, 0);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "format", "tfhook.start/1");
	tfh_start_places_write(s->places, &j);
	tfh_json_key(&j, "processes");
	tfh_json_array(&j);
	for (uint32_t p = 0; p < s->n_process; p++)
		if (records ? s->process[p].records : is_worth(&s->process[p]))
			write_process(s, p, &j);
	tfh_json_end(&j);
	tfh_json_end(&j);
	s->kept = !tfh_json_finish(&j);
	fclose(out);
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
	choose(s);
	cost = (used_ns() - before) * SHARE;
	s->choose_ns = now + (cost > CHOOSE_NS ? (int64_t)cost : CHOOSE_NS);
	for (uint32_t i = 0; i < s->n_process; i++)
		if (!s->process[i].records && !s->process[i].ended)
			return;
	write_samples(s);
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
	if (s->n == MOST_SAMPLES)
		write_samples(s);
	plan(s);
}

void tfh_start_samples_end(struct tfh_start_samples *s)
{
	if (!s)
		return;
	find_recording(s);
	if (!s->done)
		write_samples(s);
	for (uint32_t i = 0; i < s->n_process; i++) {
		leave(&s->process[i]);
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
