#include "sampling/walks.h"

#include "base/map.h"

#define FRAMES 256
#define TRIES 8
#define THREADS 16u
#define PIECES 32u

/* Belongs to the one thread that samples. */
static struct walks {
	struct tfh_py_copies copies[2];
	struct tfh_py_frame frame[2][FRAMES];
	/* Where the frames of threads were last time, by the address of their states. They usually
	 * are there again, and are then copied all at once. */
	struct where {
		uint64_t state;
		int32_t pid;
		uint32_t n;
		struct tfh_py_piece piece[PIECES];
	} where[THREADS];
} * walks;

static struct where *where_of(const struct tfh_py_target *t)
{
	uint64_t hash = (t->state ^ (uint64_t)(uint32_t)t->pid << 32) * 0x9e3779b97f4a7c15ull;

	return &walks->where[(hash >> 32) % THREADS];
}

static void fetch_again(const struct tfh_py_target *t, struct tfh_py_copies *c)
{
	const struct where *w = where_of(t);

	if (t->state && w->state == t->state && w->pid == t->pid)
		tfh_py_fetch(c, w->piece, w->n);
}

/* Keeps the pieces that were needed. */
static void note_where(const struct tfh_py_target *t, const struct tfh_py_copies *c)
{
	struct where *w = where_of(t);

	w->state = t->state;
	w->pid = t->pid;
	w->n = 0;
	for (uint32_t i = 0; i < c->n && w->n < PIECES; i++)
		if (c->copy[i].used)
			w->piece[w->n++] = (struct tfh_py_piece){c->copy[i].from, c->copy[i].bytes};
}

/* How many of the outer frames are equal in both walks, which have n and m frames, innermost
 * first. */
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

/* Whether this is the state of the wanted thread. */
static bool is_of(const struct tfh_py_target *t, struct tfh_py_copies *c)
{
	const uint8_t *p =
		t->state && t->pthread
			? tfh_py_copied(c, t->state + t->py->at.state_thread, sizeof(uint64_t))
			: NULL;

	return p && tfh_py_word(p) == t->pthread;
}

/* Searches the interpreter's list, newest first, which may change meanwhile. */
static bool search(struct tfh_py_target *t, struct tfh_py_copies *c)
{
	uint64_t at = t->interpreter;
	uint32_t offset = t->py->at.threads;

	t->state = t->pthread ? t->state : 0;
	for (uint32_t i = 0; at && i < STATES_MOST; i++, offset = TFH_PY_STATE_NEXT) {
		const uint8_t *p = tfh_py_copied(c, at + offset, sizeof(uint64_t));

		at = p ? tfh_py_word(p) : 0;
		t->state = at ? at : t->state;
		if (is_of(t, c))
			return true;
	}
	return !t->pthread && t->state;
}

uint32_t tfh_py_threads(const struct tfh_py_target *t, struct tfh_py_thread *out, uint32_t most)
{
	uint32_t offset = t->py->at.threads, n = 0, tid_at = TFH_PY_STATE_TID(&t->py->at);
	struct tfh_py_copies *c;
	uint64_t at = t->interpreter;

	if (t->py->minor < TFH_PY_TIDS || !tfh_map_once(&walks, sizeof(*walks)))
		return 0;
	c = &walks->copies[0];
	tfh_py_copies_begin(c, t->pid);
	for (; at && n < most; offset = TFH_PY_STATE_NEXT) {
		const uint8_t *p = tfh_py_copied(c, at + offset, sizeof(uint64_t));

		at = p ? tfh_py_word(p) : 0;
		p = at ? tfh_py_copied(c, at + t->py->at.state_thread, 2 * sizeof(uint64_t)) : NULL;
		if (!p)
			break;
		out[n++] = (struct tfh_py_thread){
			at, tfh_py_word(p),
			(uint32_t)tfh_py_word(p + tid_at - t->py->at.state_thread)};
	}
	return n;
}

/* From 3.12 on, the bit of a thread's status that is set while it is attached to its
 * interpreter. */
#define ACTIVE 0x10

/* A function in C that computes for long releases the GIL meanwhile. */
static enum tft_gil gil_of(const struct tfh_py_target *t, struct tfh_py_copies *c)
{
	const struct tfh_py_layout *at = &t->py->at;
	uint64_t current = (uint64_t)(uintptr_t)t->py->runtime + at->runtime_current;
	const uint8_t *p;
	bool held;

	p = at->runtime_current ? tfh_py_copied(c, current, sizeof(uint64_t))
	    : at->state_status	? tfh_py_copied(c, t->state + at->state_status, sizeof(int32_t))
				: NULL;
	if (!p)
		return TFT_GIL_UNKNOWN;
	held = at->runtime_current ? tfh_py_word(p) == t->state : tfh_py_int(p) & ACTIVE;
	return held ? TFT_GIL_HELD : TFT_GIL_RELEASED;
}

/* Makes a walk over its own copies. Returns the number of frames; 0: there are none, or more than
 * are kept. */
static uint32_t walk(const struct tfh_py_target *t, int i)
{
	uint32_t n = tfh_py_frames(t->py, t->state, tfh_py_copied, &walks->copies[i],
				   walks->frame[i], FRAMES);

	return n < FRAMES ? n : 0;
}

/*
 * If a thread runs Python all the time, a walk may end nowhere, or where a generator stopped. It
 * then starts again: samples without frames would be those of running code, and code that waits
 * would seem to take more time than it does. The memory read before is then read at once, so the
 * thread can do less in between.
 */
uint32_t tfh_py_sample_frames(struct tfh_py_target *t, const struct tfh_py_frame **frame,
			      struct tfh_py_copies **copies)
{
	struct tfh_py_copies *first, *second;
	uint32_t same = 0;

	if (!tfh_map_once(&walks, sizeof(*walks)))
		return 0;
	first = *copies = &walks->copies[0];
	second = &walks->copies[1];
	tfh_py_copies_begin(first, t->pid);
	fetch_again(t, first);
	for (int i = 0; i < TRIES && !same && (is_of(t, first) || search(t, first)); i++) {
		uint32_t n = walk(t, 0);

		t->gil = gil_of(t, first);
		tfh_py_copies_again(second, first);
		same = common(walks, n, walk(t, 1));
		*frame = &walks->frame[0][n - same];
		if (!same)
			tfh_py_copies_again(first, second);
	}
	note_where(t, first);
	return first->full || second->full ? 0 : same;
}
