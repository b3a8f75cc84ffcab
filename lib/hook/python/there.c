/*
 * The stack of another thread of this process, or of another process (sampling/walks.h), as a
 * place.
 *
 * A thread notes the address of its state when it reads its own place. For a thread that has not
 * done so yet (its first call is still under way), the interpreter's list is searched. A state
 * names its thread, which is checked, because the memory of a freed state may belong to another
 * thread by then.
 */
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "hook/python/interned.h"
#include "hook/python/there.h"
#include "hook/python/version.h"
#include "sampling/iterators.h"
#include "record/stacks/pyplaces.h"

#define OTHERS 64u   /* the newest threads, from which one is chosen */
#define THREADS 256u /* indexed by the low bits of the thread's number */

static struct {
	uint64_t state; /* atomic, like the other fields */
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

#define CALLED_MOST 16
#define BUILTIN "<builtin>"

static bool is_told(const char *name)
{
	static const char *const told[] = {
#define CALLED(name) name,
#include "base/called.def"
#undef CALLED
	};

	for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++)
		if (!strcmp(name, told[i]))
			return true;
	return false;
}

/* Adds the C function that is being called from this place. Returns the place itself if there is
 * none worth reporting. */
static uint32_t read_called(const struct tfh_py_target *t, struct tfh_py_copies *copies,
			    const struct tfh_py_frame *frame, uint32_t place)
{
	struct tfh_py_text text;
	char name[CALLED_MOST] = "";
	uint32_t code, inner, bytes;
	uint64_t key;

	if (!place || !tfh_py_callee(t->py, frame, tfh_py_copied, copies, &text) ||
	    text.length >= CALLED_MOST)
		return place;
	bytes = tfh_py_utf8(&text, name, CALLED_MOST - 1);
	if (!is_told(name))
		return place;
	key = tfh_hash_add(tfh_hash_bytes(BUILTIN, strlen(BUILTIN)), tfh_hash_bytes(name, bytes));
	code = tfh_place_code(key);
	if (!code)
		code = tfh_place_code_new(
			key, &(struct tfh_place_texts){BUILTIN, name, strlen(BUILTIN), bytes, 0});
	inner = code ? tfh_place_frame(place, code, 0) : 0;
	return inner ? inner : place;
}

/* Makes the key of a place with a called C function from the frame's mark, which alone is the key
 * of the place without it. */
#define OF_CALLED 0x63616c6cull

static uint32_t with_called(const struct tfh_py_target *t, struct tfh_py_copies *copies,
			    const struct tfh_py_frame *frame, uint32_t place, uint64_t mark)
{
	uint64_t key = tfh_hash_add(mark, OF_CALLED);
	uint32_t noted = mark ? tfh_place_known(key) : 0;

	if (noted)
		return noted;
	place = read_called(t, copies, frame, place);
	if (mark && place && !copies->full)
		tfh_place_keep(key, place);
	return place;
}

/* Reads the loops of one of the process's own threads. Called last, since what is on a thread's
 * stack may lead anywhere and use up the room for copies. */
static void read_loops(const struct tfh_py *py, struct tfh_py_copies *copies,
		       const struct tfh_py_frame *frame, uint32_t n, struct tfh_place_seen *seen)
{
	static struct tfh_py_types types;
	struct tfh_py_loop loop[TFT_LOOPS];

	tfh_map_once(&types.counters, sizeof(*types.counters));
	seen->loops = tfh_py_loops(py, &types, copies, frame, n, loop, TFT_LOOPS);
	for (uint32_t i = 0; i < seen->loops; i++)
		seen->loop[i] = (struct tft_loop){
			.depth = n - loop[i].frame,
			.sure = loop[i].sure,
			.done = loop[i].done,
			.left = loop[i].left == TFH_PY_LEFT_UNKNOWN ? 0 : loop[i].left + 1,
			.count = (uint8_t)loop[i].count};
}

uint32_t tfh_py_sample(struct tfh_py_target *t, struct tfh_place_seen *seen)
{
	const struct tfh_py_frame *frame;
	struct tfh_py_copies *copies;
	uint32_t n = tfh_py_sample_frames(t, &frame, &copies), place;
	struct tfh_py_placed placed;

	if (!n)
		return 0;
	place = tfh_py_place_of(t->py, tfh_py_copied, copies, frame, n, &placed);
	place = with_called(t, copies, frame, place, placed.mark);
	if (copies->full)
		return 0;
	/* Frames are counted from the outermost one, and none may be missing. */
	if (place && seen && seen->wants_loops && !placed.gap)
		read_loops(t->py, copies, frame, n, seen);
	return place;
}

/* As in py_place.c: with several interpreters, nothing shows which one a thread is in. */
static bool several(const struct tfh_py *py)
{
	return py->minor < TFH_PY_PER_THREAD && py->newest_interpreter() != py->main_interpreter();
}

uint32_t tfh_py_there(uint32_t tid, uint64_t pthread, struct tfh_place_seen *seen)
{
	const struct tfh_py *py = tfh_py();
	struct tfh_py_target t = {.py = py, .pid = tfh_recorder.pid, .pthread = pthread};
	uint32_t place;

	if (!py || py->finalizing() || several(py))
		return 0;
	t.interpreter = (uint64_t)(uintptr_t)py->main_interpreter();
	t.state = state_of(tid);
	place = tfh_py_sample(&t, seen);
	if (place) {
		tfh_py_note_state(tid, t.state);
		seen->gil = t.gil;
	}
	return place;
}

static bool among(uint32_t tid, const uint32_t *of, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (of[i] == tid)
			return true;
	return false;
}

uint32_t tfh_py_other(uint64_t random, const uint32_t *but, uint32_t n_but,
		      struct tfh_place_other *out)
{
	const struct tfh_py *py = tfh_py();
	struct tfh_py_thread all[OTHERS];
	struct tfh_py_target t = {.py = py, .pid = tfh_recorder.pid};
	uint32_t n, k = 0;

	if (!py || py->finalizing() || several(py))
		return 0;
	t.interpreter = (uint64_t)(uintptr_t)py->main_interpreter();
	n = tfh_py_threads(&t, all, OTHERS);
	for (uint32_t i = 0; i < n; i++)
		if (all[i].tid && !among(all[i].tid, but, n_but))
			all[k++] = all[i];
	if (!k)
		return 0;
	t.state = all[random % k].state;
	t.pthread = all[random % k].pthread;
	*out = (struct tfh_place_other){all[random % k].tid, k};
	return tfh_py_sample(&t, NULL);
}
