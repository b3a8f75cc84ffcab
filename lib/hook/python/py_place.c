/*
 * The calling thread's stack as a place (record/stacks/pyplaces.h).
 *
 * Read straight, at about 1 us, while nothing can take the memory of its frames away: the thread holds the GIL, or is the
 * main one, which is the one that takes the interpreter down, and is not in a signal handler, which may have come while
 * the interpreter was entering or leaving a frame. Else from copies made by the kernel, at some 15 us: threads that gave
 * the GIL away may lose their state at any moment when the process ends.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/map.h"
#include "hook/python/interned.h"
#include "hook/python/there.h"
#include "hook/python/version.h"
#include "record/process/recorder.h"
#include "record/process/steady.h"
#include "record/process/lock.h"
#include "record/stacks/pyplaces.h"

/* Kept of a deeper stack: the innermost. */
#define FRAMES 256

struct reading {
	const struct tfh_py *py;
	uint64_t state;
	tfh_py_view view;
	void *how;
};

/* Does the kernel keep a signal back, as it does in the handler of one? */
static bool signals_blocked(void)
{
	sigset_t set, none;

	sigemptyset(&none);
	return pthread_sigmask(SIG_BLOCK, NULL, &set) || memcmp(&set, &none, NSIG / 8);
}

/* The thread's state, and whether it may be read straight. 0: the thread runs no Python, or none that can be read. */
static uint64_t state_of(const struct tfh_py *py, const struct tfh_self *self, bool *straight)
{
	void *state = py->state_of_thread(), *attached = state ? py->state_attached() : NULL;
	bool main = self->ring->tid == (uint32_t)tfh_p.pid;
	bool holds = py->minor >= TFH_PY_PER_THREAD ? attached != NULL : attached == state;

	if (!state || (!holds && !main && py->finalizing()))
		return 0;
	if (py->minor >= TFH_PY_PER_THREAD && attached)
		state = attached;
	/* Up to 3.11 a thread has only one state that it can be asked for, whichever interpreter it is in. */
	if (py->minor < TFH_PY_PER_THREAD && py->newest_interpreter() != py->main_interpreter())
		return 0;
	*straight = (holds || main) && !signals_blocked();
	return (uint64_t)state;
}

static uint32_t __attribute__((noinline)) read_stack(const struct reading *r)
{
	struct tfh_py_frame frame[FRAMES];
	uint32_t n = tfh_py_frames(r->py, r->state, r->view, r->how, frame, FRAMES);

	if (r->how)
		tfh_py_fetch_codes(r->py, r->how, frame, n);
	return tfh_py_place_of(r->py, r->view, r->how, frame, n);
}

/* So many threads at a time, 550 KB each at most, as much as is used; whoever comes meanwhile goes without. */
#define ROOMS 8

static uint32_t read_copied(struct reading *r)
{
	static uint32_t lock[ROOMS] TFH_LOCK_WORD;
	static struct tfh_py_copies *copies;
	struct tfh_steady steady;
	uint32_t place = 0, i = 0;

	tfh_steady_begin(&steady);
	if (tfh_memory(&copies, ROOMS * sizeof(*copies),
		       "lines of Python in threads without the GIL")) {
		while (i < ROOMS && !tfh_lock_try(&lock[i]))
			i++;
	} else {
		i = ROOMS;
	}
	if (i < ROOMS) {
		tfh_py_copies_begin(&copies[i], tfh_p.pid);
		r->view = tfh_py_copied;
		r->how = &copies[i];
		place = read_stack(r);
		place = copies[i].full ? 0 : place;
		tfh_unlock(&lock[i]);
	}
	tfh_steady_end(&steady);
	return place;
}

static uint32_t here(const struct tfh_self *self)
{
	const struct tfh_py *py = tfh_py();
	struct reading r = {.py = py, .view = tfh_py_straight};
	bool straight = false;
	uint32_t place = 0;
	int saved = errno;

	if (!py || tfh_confined(self) || !(r.state = state_of(py, self, &straight)))
		return 0;
	tfh_py_note_state(self->ring->tid, r.state);
	place = straight ? read_stack(&r) : read_copied(&r);
	/* Copied while the interpreter went down: of a stack that is no more. */
	if (!straight && py->finalizing())
		place = 0;
	errno = saved;
	return place;
}

__attribute__((constructor)) static void attach(void)
{
	static const struct tfh_place_source source = {tfh_py_look,  tfh_py_refusal, here,
						       tfh_py_there, tfh_py_other,   tfh_py_child};

	tfh_places_attach(&source);
}
