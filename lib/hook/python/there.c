/*
 * The stack of another thread of this process, which goes on meanwhile: two walks over copies, one right after the other,
 * and of them the outer frames that are equal in both. What is deeper is cut, and no look is given up for it: those that
 * agree altogether would be of the moments when nothing changes (true shares of 40 % came out as 1 to 8 %). Of the first
 * frame that differs the function is known where that is the same: it is at another instruction.
 *
 * Where a thread's state lies it says itself when it takes a place of its own; of one that has not yet (its first call
 * is still under way), the interpreter's list is searched. A state tells whose it is: the memory of one that is gone may
 * be another thread's by then.
 */
#include <string.h>

#include "base/map.h"
#include "hook/python/interned.h"
#include "hook/python/there.h"
#include "record/pyplaces.h"

#define FRAMES 256
#define THREADS 256u /* by the low bits of their number: those that share them take turns */

static struct {
	uint64_t state; /* atomic, as all */
	uint32_t tid;
} known[THREADS];

void tfh_py_note_state(uint32_t tid, uint64_t state)
{
	uint32_t i = tid % THREADS;

	if (__atomic_load_n(&known[i].state, __ATOMIC_RELAXED) == state &&
	    __atomic_load_n(&known[i].tid, __ATOMIC_RELAXED) == tid)
		return;
	__atomic_store_n(&known[i].tid, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&known[i].state, state, __ATOMIC_RELEASE);
	__atomic_store_n(&known[i].tid, tid, __ATOMIC_RELEASE);
}

static uint64_t state_of(uint32_t tid)
{
	uint32_t i = tid % THREADS;
	uint64_t state = __atomic_load_n(&known[i].tid, __ATOMIC_ACQUIRE) == tid
				 ? __atomic_load_n(&known[i].state, __ATOMIC_ACQUIRE)
				 : 0;

	return __atomic_load_n(&known[i].tid, __ATOMIC_ACQUIRE) == tid ? state : 0;
}

/* The flusher's. */
static struct walks {
	struct tfh_py_copies copies[2];
	struct tfh_py_frame frame[2][FRAMES];
} * walks;

/* How many of the outer frames of both are the same, n and m of them, the innermost first. */
static uint32_t common(const struct walks *w, uint32_t n, uint32_t m)
{
	uint32_t k = 0;

	while (k < n && k < m && w->frame[0][n - 1 - k].code == w->frame[1][m - 1 - k].code &&
	       w->frame[0][n - 1 - k].at == w->frame[1][m - 1 - k].at)
		k++;
	if (k < n && k < m && w->frame[0][n - 1 - k].code == w->frame[1][m - 1 - k].code)
		k++;
	return k;
}

#define STATES_MOST 1024u

/* Is it the state of the thread that is looked for? */
static bool is_of(const struct tfh_py_target *t, struct tfh_py_copies *c)
{
	const uint8_t *p =
		t->state && t->pthread
			? tfh_py_copied(c, t->state + t->py->at.state_thread, sizeof(uint64_t))
			: NULL;

	return p && tfh_py_word(p) == t->pthread;
}

/* In the list of the interpreter, the newest first, which changes meanwhile. */
static bool search(struct tfh_py_target *t, struct tfh_py_copies *c)
{
	uint64_t at = t->interpreter;
	uint32_t offset = t->py->at.threads;

	for (uint32_t i = 0; at && i < STATES_MOST; i++, offset = TFH_PY_STATE_NEXT) {
		const uint8_t *p = tfh_py_copied(c, at + offset, sizeof(uint64_t));

		at = p ? tfh_py_word(p) : 0;
		t->state = at ? at : t->state;
		if (is_of(t, c))
			return true;
	}
	return !t->pthread && t->state;
}

/* The frames of a walk over copies of their own; 0: there are none, or more than are kept. */
static uint32_t walk(struct tfh_py_target *t, int i)
{
	struct tfh_py_copies *c = &walks->copies[i];
	uint32_t n;

	tfh_py_copies_begin(c, t->pid);
	if (!is_of(t, c) && !search(t, c))
		return 0;
	n = tfh_py_frames(t->py, t->state, tfh_py_copied, c, walks->frame[i], FRAMES);
	return n < FRAMES ? n : 0;
}

uint32_t tfh_py_look_frames(struct tfh_py_target *t, const struct tfh_py_frame **frame,
			    struct tfh_py_copies **copies)
{
	uint32_t n, same;

	if (!tfh_map_once(&walks, sizeof(*walks)))
		return 0;
	*copies = &walks->copies[0];
	n = walk(t, 0);
	same = common(walks, n, walk(t, 1));
	*frame = &walks->frame[0][n - same];
	tfh_py_fetch_codes(t->py, *copies, *frame, same);
	return walks->copies[0].full || walks->copies[1].full ? 0 : same;
}

uint32_t tfh_py_look_at(struct tfh_py_target *t)
{
	const struct tfh_py_frame *frame;
	struct tfh_py_copies *copies;
	uint32_t n = tfh_py_look_frames(t, &frame, &copies), place;

	if (!n)
		return 0;
	place = tfh_py_place_of(t->py, tfh_py_copied, copies, frame, n);
	return copies->full ? 0 : place;
}

/* As in py_place.c: of the states of several interpreters nothing tells which one a thread is in. */
static bool several(const struct tfh_py *py)
{
	return py->minor < TFH_PY_PER_THREAD && py->newest_interpreter() != py->main_interpreter();
}

uint32_t tfh_py_there(uint32_t tid, uint64_t pthread)
{
	const struct tfh_py *py = tfh_py();
	struct tfh_py_target t = {.py = py, .pid = tfh_p.pid, .pthread = pthread};
	uint32_t place;

	if (!py || py->finalizing() || several(py))
		return 0;
	t.interpreter = (uint64_t)(uintptr_t)py->main_interpreter();
	t.state = state_of(tid);
	place = tfh_py_look_at(&t);
	if (place)
		tfh_py_note_state(tid, t.state);
	return place;
}
