/* Reads start.json (format/FORMAT.md, 5), and from end.json how processes ended (6). Entries for
 * processes outside the run are skipped. A malformed file is read up to its first error. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/text.h"
#include "model/open/opening.h"
#include "model/symbols/pylines.h"

#define FUNCTIONS 2048u
#define PLACES 8192u

struct start_reading {
	struct tfh_run *run;
	const struct tfh_start_place *place;
	const struct tfh_start_function *function;
	uint32_t n_place, n_function;
};

/* Moves *p from the bracket or comma in front of an array's next element to that element; false:
 * there is none. */
static bool element(const char **p)
{
	*p = tfh_facts_blanks(*p);
	if (**p != '[' && **p != ',')
		return false;
	*p = tfh_facts_blanks(*p + 1);
	return **p && **p != ']';
}

/* Reads n numbers in brackets and moves *p past them. */
static bool numbers(const char **p, uint64_t *to, unsigned n)
{
	if (**p != '[')
		return false;
	for (unsigned i = 0; i < n; i++) {
		char *end;
		if (!element(p) || **p == '-')
			return false;
		to[i] = strtoull(*p, &end, 10);
		if (end == *p)
			return false;
		*p = end;
	}
	*p = tfh_facts_blanks(*p);
	return *(*p)++ == ']';
}

static int read_functions(struct start_reading *r, const char *p)
{
	struct tfh_start_function *f = tfh_arena_array(&r->run->arena, FUNCTIONS, sizeof(*f));

	if (!f)
		return -ENOMEM;
	r->function = f;
	while (p && r->n_function < FUNCTIONS && element(&p) && *p == '[') {
		const char *file, *name;
		if (!element(&p) || !(file = tfh_facts_string(&r->run->arena, &p)) ||
		    !element(&p) || !(name = tfh_facts_string(&r->run->arena, &p)))
			break;
		p = tfh_facts_blanks(p);
		if (*p++ != ']')
			break;
		f[r->n_function++] =
			(struct tfh_start_function){file, name, tfh_file_of_library(file)};
	}
	return 0;
}

static int read_places(struct start_reading *r, const char *p)
{
	struct tfh_start_place *place = tfh_arena_array(&r->run->arena, PLACES, sizeof(*place));
	uint64_t n[3];

	if (!place)
		return -ENOMEM;
	r->place = place;
	while (p && r->n_place < PLACES && element(&p) && numbers(&p, n, 3)) {
		if (n[0] > r->n_place || !n[1] || n[1] > r->n_function)
			break;
		place[r->n_place++] = (struct tfh_start_place){
			(uint32_t)n[0], (uint32_t)n[1], n[2] <= INT32_MAX ? (uint32_t)n[2] : 0};
	}
	return 0;
}

/* Reads one digit for each sample into the byte at `offset` in it. Older files have none. */
static void read_digits(const char *p, char most, struct tfh_start_sample *sample, size_t offset,
			uint32_t n)
{
	if (!p || *p++ != '"')
		return;
	for (uint32_t i = 0; i < n && *p >= '0' && *p <= most; i++)
		((uint8_t *)&sample[i])[offset] = (uint8_t)(*p++ - '0');
}

/* Time, state, place and weight, with which samples of any thread begin. */
static bool is_sample(const struct start_reading *r, const uint64_t n[4])
{
	return n[0] <= INT64_MAX / 2000 && n[1] < TFT_STATE_COUNT && n[2] <= r->n_place &&
	       n[3] <= UINT32_MAX;
}

static struct tfh_start_sample sample_of(const uint64_t n[4], int64_t born_ns)
{
	return (struct tfh_start_sample){.t = born_ns + (int64_t)n[0] * 1000,
					 .ns = (double)n[3] * 1000,
					 .place = (uint32_t)n[2],
					 .state = (uint8_t)n[1]};
}

static int read_samples(struct start_reading *r, const char *object, struct tfh_model_proc *proc)
{
	const char *p = tfh_facts_value(object, "looks");
	size_t room = p ? strlen(p) / strlen("[0,0,0,0]") + 1 : 1;
	struct tfh_start_sample *sample = tfh_arena_array(&r->run->arena, room, sizeof(*sample));
	uint64_t n[4];
	uint32_t i = 0;

	if (!sample)
		return -ENOMEM;
	while (p && i < room && element(&p) && numbers(&p, n, 4)) {
		if (!is_sample(r, n))
			break;
		sample[i++] = sample_of(n, proc->pub.born_ns);
	}
	read_digits(tfh_facts_value(object, "gil"), '2', sample,
		    offsetof(struct tfh_start_sample, gil), i);
	read_digits(tfh_facts_value(object, "others_ran"), '0' + TFH_START_WHOLE_CPU, sample,
		    offsetof(struct tfh_start_sample, others), i);
	proc->start.sample = sample;
	proc->start.n = i;
	return 0;
}

/* More iterations than a loop can have. */
#define ITERATIONS (1ull << 48)

/* Reads one digit for each loop: `counted`. Older files have none. */
static void read_counts(const char *p, struct tfh_start_loop *loop, uint32_t n)
{
	if (!p || *p++ != '"')
		return;
	for (uint32_t i = 0; i < n && *p >= '0' && *p < '0' + TFH_START_COUNTS; i++)
		loop[i].count = (uint8_t)(*p++ - '0');
}

static int read_loops(struct start_reading *r, const char *p, const char *counted,
		      struct tfh_start *start)
{
	size_t room = p ? strlen(p) / strlen("[0,0,0,0]") + 1 : 1;
	struct tfh_start_loop *loop = tfh_arena_array(&r->run->arena, room, sizeof(*loop));
	uint64_t n[4];
	uint32_t i = 0;

	if (!loop)
		return -ENOMEM;
	while (p && i < room && element(&p) && numbers(&p, n, 4)) {
		if (n[0] >= start->n || (i && n[0] < loop[i - 1].sample) || !n[1] ||
		    n[1] > UINT32_MAX || n[2] > ITERATIONS || n[3] > ITERATIONS)
			break;
		loop[i++] = (struct tfh_start_loop){.sample = (uint32_t)n[0],
						    .depth = (uint32_t)n[1],
						    .done = n[2],
						    .left = (int64_t)n[3] - 1};
	}
	read_counts(counted, loop, i);
	start->loop = loop;
	start->n_loop = i;
	return 0;
}

static int read_others(struct start_reading *r, const char *p, int64_t born_ns,
		       struct tfh_start *start)
{
	size_t room = p ? strlen(p) / strlen("[0,0,0,0,0,0]") + 1 : 1;
	struct tfh_start_other *other = tfh_arena_array(&r->run->arena, room, sizeof(*other));
	uint64_t n[6];
	uint32_t i = 0;

	if (!other)
		return -ENOMEM;
	while (p && i < room && element(&p) && numbers(&p, n, 6)) {
		if (!is_sample(r, n) || n[4] > UINT32_MAX || n[5] > TFT_GIL_RELEASED)
			break;
		other[i] = (struct tfh_start_other){.at = sample_of(n, born_ns),
						    .tid = (uint32_t)n[4]};
		other[i++].at.gil = (uint8_t)n[5];
	}
	start->other = other;
	start->n_other = i;
	return 0;
}

static struct tfh_model_proc *process_at(struct tfh_run *run, uint64_t pid, uint64_t start)
{
	for (uint32_t i = 0; i < run->n_proc; i++)
		if (run->proc[i].pub.pid == pid && run->proc[i].process_start == start)
			return &run->proc[i];
	return NULL;
}

static struct tfh_model_proc *process_of(const struct start_reading *r, const char *object)
{
	const char *pid = tfh_facts_value(object, "pid"), *start = tfh_facts_value(object, "start");

	return process_at(r->run, pid ? strtoull(pid, NULL, 10) : 0,
			  start ? strtoull(start, NULL, 10) : 0);
}

/* The end of the object at p. Braces inside strings do not count. */
static const char *object_end(const char *p)
{
	int depth = 0;

	for (; *p; p++) {
		if (*p == '"') {
			for (p++; *p && *p != '"'; p++)
				p += *p == '\\' && p[1];
			if (!*p)
				break;
		}
		depth += (*p == '{') - (*p == '}');
		if (!depth)
			return p + 1;
	}
	return NULL;
}

static int read_process(struct start_reading *r, const char *object)
{
	struct tfh_model_proc *proc = process_of(r, object);
	const char *why = tfh_facts_value(object, "why");

	if (!proc || proc->start.n)
		return 0;
	proc->start = (struct tfh_start){.place = r->place, .function = r->function};
	if (why && *why == '"')
		proc->start.why = tfh_facts_string(&r->run->arena, &why);
	int rc = read_samples(r, object, proc);
	rc = rc ? rc
		: read_loops(r, tfh_facts_value(object, "loops"),
			     tfh_facts_value(object, "counted"), &proc->start);
	return rc ? rc
		  : read_others(r, tfh_facts_value(object, "others"), proc->pub.born_ns,
				&proc->start);
}

/* The text of start.json; NULL: there is none of a known format. */
static const char *start_text(struct tfh_run *run, const char *dir)
{
	const char *text = tfh_facts_text(&run->arena, dir, "start.json");
	const char *format = text ? tfh_facts_value(text, "format") : NULL;

	return format && tfh_starts_with(format, "\"tfhook.start/1\"") ? text : NULL;
}

int tfh_run_add_sampled(struct tfh_run *run, const char *dir, const char *host)
{
	const char *text = start_text(run, dir), *end;
	const char *p = text ? tfh_facts_value(text, "processes") : NULL;
	uint64_t first = UINT64_MAX;

	while (p && element(&p) && *p == '{' && (end = object_end(p))) {
		char *object = tfh_arena_strndup(&run->arena, p, (size_t)(end - p));
		const char *pid = object ? tfh_facts_value(object, "pid") : NULL;
		const char *start = object ? tfh_facts_value(object, "start") : NULL;
		const char *recorded = object ? tfh_facts_value(object, "recorded") : NULL;
		p = end;
		if (!pid || !start)
			break;
		if (!recorded || !tfh_starts_with(recorded, "false"))
			continue; /* its segments were there */
		if (tfh_room_for((void **)&run->proc, &run->cap_proc, run->n_proc,
				 sizeof(*run->proc)))
			return -ENOMEM;
		struct tfh_model_proc *proc = &run->proc[run->n_proc++];
		*proc = (struct tfh_model_proc){.pub = {.host = host ? host : "",
							.exe = "",
							.pid = (uint32_t)strtoull(pid, NULL, 10),
							.rank = -1,
							.world = -1,
							.local = -1,
							.clean_end = true,
							.by_monotonic = true},
						.process_start = strtoull(start, NULL, 10)};
		first = proc->process_start < first ? proc->process_start : first;
	}
	for (uint32_t i = 0; i < run->n_proc; i++)
		run->proc[i].pub.start_ns =
			(int64_t)(run->proc[i].process_start - first) * TFH_PROCESS_TICK_NS;
	return 0;
}

int tfh_run_read_start(struct tfh_run *run, const char *dir)
{
	const char *text = start_text(run, dir), *p, *end;
	struct start_reading r = {.run = run};
	int rc;

	if (!text)
		return 0;
	rc = read_functions(&r, tfh_facts_value(text, "functions"));
	if (!rc)
		rc = read_places(&r, tfh_facts_value(text, "places"));
	p = tfh_facts_value(text, "processes");
	while (!rc && p && element(&p) && *p == '{' && (end = object_end(p))) {
		char *object = tfh_arena_strndup(&run->arena, p, (size_t)(end - p));
		rc = object ? read_process(&r, object) : -ENOMEM;
		p = end;
	}
	return rc;
}

const struct tfh_start *tfh_run_start(const struct tfh_run *run, uint32_t process)
{
	static const struct tfh_start none;

	return process < run->n_proc ? &run->proc[process].start : &none;
}

uint32_t tfh_start_frames(const struct tfh_start *s, uint32_t place, struct tfh_model_line *frame,
			  uint32_t most)
{
	uint32_t n = 0;

	for (; place && n < most; place = s->place[place - 1].caller) {
		const struct tfh_start_place *at = &s->place[place - 1];
		const struct tfh_start_function *f = &s->function[at->function - 1];
		frame[n++] = (struct tfh_model_line){f->file, f->name, at->line, f->library};
	}
	tfh_own_generated(frame, n);
	return n;
}

void tfh_run_read_ends(struct tfh_run *run, const char *dir)
{
	const char *text = tfh_facts_text(&run->arena, dir, "end.json");
	const char *p = text ? tfh_facts_value(text, "processes") : NULL;
	uint64_t n[3];

	while (p && element(&p) && numbers(&p, n, 3)) {
		struct tfh_model_proc *proc = process_at(run, n[0], n[1]);
		int status = n[2] <= 0xffff ? (int)n[2] : -1;
		if (!proc || status < 0 || (!WIFSIGNALED(status) && !WIFEXITED(status)))
			continue;
		struct tfh_process *pub = &run->process[proc - run->proc];
		pub->end_known = true;
		pub->end = WIFSIGNALED(status) ? TFH_END_SIGNAL : TFH_END_EXIT;
		pub->end_code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	}
}
