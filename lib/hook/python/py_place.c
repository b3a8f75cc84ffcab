/*
 * The calling thread's stack as a place (record/stacks/pyplaces.h).
 *
 * The frames are read directly, in about 1 us, if nothing can free their memory meanwhile. This is
 * so if the thread holds the GIL or is the main thread, which is the one that shuts the interpreter
 * down. It must not be in a signal handler either, since the signal may have interrupted the
 * interpreter while it entered or left a frame. Otherwise the frames are read from copies made by
 * the kernel, in about 15 us: threads that released the GIL may lose their state at any moment when
 * the process ends.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "hook/python/interned.h"
#include "hook/python/there.h"
#include "hook/python/version.h"
#include "record/process/recorder.h"
#include "record/process/steady.h"
#include "record/process/lock.h"
#include "record/stacks/pyplaces.h"

/* Frames kept of a deeper stack: the innermost ones. */
#define FRAMES 256

struct reading {
	const struct tfh_py *py;
	uint64_t state;
	tfh_py_view view;
	void *how;
};

/* A thread that blocks more signals counts as in a handler: checking each of them costs a system
 * call. */
#define BLOCKED_MOST 8

/* Whether the thread may be in a signal handler: it blocks a signal that has a handler, or one that
 * its own code can raise. A blocked signal without a handler proves nothing: some launchers leave
 * one blocked. */
static bool in_handler(void)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	struct sigaction action;
	sigset_t set, none;
	int n = 0;

	sigemptyset(&none);
	if (pthread_sigmask(SIG_BLOCK, NULL, &set))
		return true;
	if (!memcmp(&set, &none, NSIG / 8))
		return false;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (sigismember(&set, own[i]))
			return true;
	for (int i = 1; i < NSIG; i++)
		if (sigismember(&set, i) == 1 &&
		    (++n > BLOCKED_MOST || sigaction(i, NULL, &action) ||
		     (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)))
			return true;
	return false;
}

/* The thread's state, and whether it may be read directly. 0: the thread runs no Python, or none
 * that can be read. */
static uint64_t state_of(const struct tfh_py *py, const struct tfh_self *self, bool *straight)
{
	void *state = py->state_of_thread(), *attached = state ? py->state_attached() : NULL;
	bool main = self->ring->tid == (uint32_t)tfh_recorder.pid;
	bool holds = py->minor >= TFH_PY_PER_THREAD ? attached != NULL : attached == state;

	if (!state || (!holds && !main && py->finalizing()))
		return 0;
	if (py->minor >= TFH_PY_PER_THREAD && attached)
		state = attached;
	/* Up to 3.11, only one state of a thread can be queried, whichever interpreter the thread
	 * is in. */
	if (py->minor < TFH_PY_PER_THREAD && py->newest_interpreter() != py->main_interpreter())
		return 0;
	*straight = (holds || main) && !in_handler();
	return (uint64_t)state;
}

static uint32_t __attribute__((noinline)) read_stack(const struct reading *r)
{
	struct tfh_py_frame frame[FRAMES];
	uint32_t n = tfh_py_frames(r->py, r->state, r->view, r->how, frame, FRAMES);
	struct tfh_py_placed placed;

	return tfh_py_place_of(r->py, r->view, r->how, frame, n, &placed);
}

/* Number of threads that can read at the same time. Each room takes at most 550 KB, as far as used.
 * A thread that finds no free room does without. */
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
		tfh_py_copies_begin(&copies[i], tfh_recorder.pid);
		r->view = tfh_py_copied;
		r->how = &copies[i];
		place = read_stack(r);
		place = copies[i].full ? 0 : place;
		tfh_unlock(&lock[i]);
	}
	tfh_steady_end(&steady);
	return place;
}

static bool exists(void)
{
	return tfh_py() || tfh_py_refusal();
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
	/* Copied while the interpreter was shutting down, from a stack that no longer exists. */
	if (!straight && py->finalizing())
		place = 0;
	errno = saved;
	return place;
}

__attribute__((constructor)) static void attach(void)
{
	static const struct tfh_place_source source = {.look = tfh_py_find,
						       .refusal = tfh_py_refusal,
						       .exists = exists,
						       .here = here,
						       .there = tfh_py_there,
						       .other = tfh_py_other,
						       .child = tfh_py_child};

	tfh_places_attach(&source);
}
