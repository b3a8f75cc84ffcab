/*
 * Python's door to lib/hook/python, for tests/python/frames.py: the calling thread's stack as text, one line a frame,
 * "file TAB line TAB function", read straight or from copies. For tests/python/counted.py: what counts the loops of a frame.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sampling/counters.h"
#include "sampling/frames.h"
#include "sampling/iterators.h"
#include "hook/python/there.h"
#include "hook/python/version.h"

#define FRAMES 8192
#define TEXT (1 << 20)
#define NAME 600

#define EXPORT __attribute__((visibility("default")))
EXPORT const char *reader_why(void);
EXPORT int reader_take(int copied);
EXPORT const char *reader_text(void);
EXPORT void reader_spin(int us, int copied);
EXPORT double reader_cost(int copied, int times);
EXPORT int reader_counted(int frame, int64_t *out);
EXPORT int reader_watch(unsigned long pthread, int times, int out);

static __thread struct room {
	struct tfh_py_frame frame[FRAMES];
	struct tfh_py_copies copies;
	struct tfh_py_counters counters;
	char text[TEXT];
} * room;

static const struct room *prepare(void)
{
	if (!room)
		room = calloc(1, sizeof(*room));
	return room;
}

/* "" : stacks can be read. */
const char *reader_why(void)
{
	tfh_py_find();
	return tfh_py() ? "" : tfh_py_refusal() ? tfh_py_refusal() : "there is no Python";
}

static uint32_t frames(const struct tfh_py *py, int copied)
{
	uint64_t state = (uint64_t)py->state_of_thread();
	uint32_t n;

	if (!state || (py->finalizing() && getpid() != gettid()))
		return 0;
	if (!copied)
		return tfh_py_frames(py, state, tfh_py_straight, NULL, room->frame, FRAMES);
	tfh_py_copies_begin(&room->copies, getpid());
	n = tfh_py_frames(py, state, tfh_py_copied, &room->copies, room->frame, FRAMES);
	tfh_py_fetch_codes(py, &room->copies, room->frame, n);
	return n;
}

int reader_take(int copied)
{
	const struct tfh_py *py = tfh_py();
	tfh_py_view view = copied ? tfh_py_copied : tfh_py_straight;
	uint32_t n = prepare() ? frames(py, copied) : 0;
	size_t at = 0;

	room->text[0] = '\0';
	for (uint32_t i = 0; i < n && at < TEXT - 3 * NAME; i++) {
		char file[NAME], name[NAME];
		struct tfh_py_code code;

		if (!tfh_py_code(py, room->frame[i].code, view, &room->copies, &code))
			continue; /* as tfh_py_place_of does */
		at += (size_t)sprintf(room->text + at, "%.*s\t%d\t%.*s\n",
				      (int)tfh_py_utf8(&code.file, file, NAME), file,
				      (int)tfh_py_line_at(py, &code, room->frame[i].at),
				      (int)tfh_py_utf8(&code.name, name, NAME), name);
	}
	return (int)n;
}

const char *reader_text(void)
{
	return room ? room->text : "";
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* One after another for some time. */
void reader_spin(int us, int copied)
{
	double end = now(CLOCK_MONOTONIC) + us * 1e3;

	while (now(CLOCK_MONOTONIC) < end)
		reader_take(copied);
}

/* ns of processor time that a stack takes, names and lines included, without making text of them. */
double reader_cost(int copied, int times)
{
	const struct tfh_py *py = tfh_py();
	tfh_py_view view = copied ? tfh_py_copied : tfh_py_straight;
	double begin;

	if (!prepare())
		return -1;
	begin = now(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < times; i++) {
		uint32_t n = frames(py, copied);

		for (uint32_t k = 0; k < n; k++) {
			struct tfh_py_code code;

			if (tfh_py_code(py, room->frame[k].code, view, &room->copies, &code))
				tfh_py_line_at(py, &code, room->frame[k].at);
		}
	}
	return (now(CLOCK_THREAD_CPUTIME_ID) - begin) / times;
}

/* The loops that a frame of the calling thread (0: the innermost) is in, as struct tfh_py_code_loop and struct tfh_py_counted
 * have them, 8 numbers each; `left` -1: unknown. Returns how many, -1: something changed meanwhile. */
int reader_counted(int of, int64_t *out)
{
	const struct tfh_py *py = tfh_py();
	uint16_t loop[TFH_PY_CODE_LOOPS];
	uint32_t n = prepare() ? frames(py, 1) : 0;
	int loops;

	if (of < 0 || (uint32_t)of >= n)
		return 0;
	loops = tfh_py_loops_at(py, &room->counters, &room->copies, &room->frame[of], loop);
	for (int i = 0; i < loops; i++, out += 8) {
		const struct tfh_py_code_loop *l = &room->counters.loop[loop[i]];
		struct tfh_py_counted c;

		if (!tfh_py_counted(py, &room->counters, &room->copies, &room->frame[of], loop[i],
				    &c))
			return -1;
		out[0] = l->lo;
		out[1] = l->hi;
		out[2] = l->counter.where;
		out[3] = l->counter.index;
		out[4] = c.known;
		out[5] = c.count;
		out[6] = (int64_t)c.done;
		out[7] = c.left == TFH_PY_LEFT_UNKNOWN ? -1 : (int64_t)c.left;
	}
	return loops < 0 ? 0 : loops;
}

/* Looks at another thread so many times, up to 0.2 ms apart, as the recorder does; writes each stack as a line, frames
 * "file TAB line TAB function TAB", the innermost first. Returns how many stacks it saw. */
int reader_watch(unsigned long pthread, int times, int out)
{
	const struct tfh_py *py = tfh_py();
	struct tfh_py_target t = {.py = py, .pid = getpid(), .pthread = pthread};
	int seen = 0;

	if (!prepare())
		return -1;
	t.interpreter = (uint64_t)(uintptr_t)py->main_interpreter();
	for (int k = 0; k < times; k++) {
		const struct tfh_py_frame *frame = NULL;
		struct tfh_py_copies *copies = NULL;
		uint32_t n = tfh_py_sample_frames(&t, &frame, &copies);
		size_t at = 0;

		tfh_py_fetch_codes(py, copies, frame, n);

		for (uint32_t i = 0; i < n && at < TEXT - 3 * NAME; i++) {
			char file[NAME], name[NAME];
			struct tfh_py_code code;

			if (!tfh_py_code(py, frame[i].code, tfh_py_copied, copies, &code))
				continue; /* as tfh_py_place_of does */
			at += (size_t)sprintf(room->text + at, "%.*s\t%d\t%.*s\t",
					      (int)tfh_py_utf8(&code.file, file, NAME), file,
					      (int)tfh_py_line_at(py, &code, frame[i].at),
					      (int)tfh_py_utf8(&code.name, name, NAME), name);
		}
		if (at) {
			room->text[at] = '\n';
			seen += write(out, room->text, at + 1) > 0;
		}
		usleep((unsigned)rand() % 200);
	}
	return seen;
}
