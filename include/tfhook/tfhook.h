/*
 * Marks that a program may set for tfhook: steps, ranges, pause and resume.
 *
 * Header only. The functions look up the preloaded library on their first call. In a run without it
 * they do nothing and cost one comparison. C and C++; with glibc before 2.34 link with -ldl. Marks
 * belong to the calling thread. Strings are copied.
 *
 *	tfhook_step_begin("train");
 *	tfhook_range_push("loss");  ...  tfhook_range_pop();
 *	tfhook_step_end();
 *
 * or, where that fits the loop better, one call of tfhook_step() per iteration.
 */
#ifndef TFHOOK_TFHOOK_H
#define TFHOOK_TFHOOK_H

#include <dlfcn.h>
#include <stddef.h>

typedef void (*tfhook_fn_)(void);
typedef void (*tfhook_text_fn_)(const char *);
typedef int (*tfhook_int_fn_)(void);
typedef int (*tfhook_wait_fn_)(unsigned);

/* The library's function, or NULL. The result is cached in *slot. (void *)0 is glibc's
 * RTLD_DEFAULT. */
static inline tfhook_fn_ tfhook_find_(void **slot, const char *name)
{
	union {
		void *object;
		tfhook_fn_ function;
	} found;

	found.object = __atomic_load_n(slot, __ATOMIC_RELAXED);
	if (!found.object) {
		found.object = dlsym((void *)0, name);
		if (!found.object)
			found.object = (void *)slot; /* looked up, and missing */
		__atomic_store_n(slot, found.object, __ATOMIC_RELAXED);
	}
	if (found.object == (void *)slot)
		found.object = NULL;
	return found.function;
}

#define TFHOOK_CALL_(type, name, args)                                                             \
	do {                                                                                       \
		static void *slot_;                                                                \
		tfhook_fn_ found_ = tfhook_find_(&slot_, name);                                    \
		if (found_)                                                                        \
			((type)found_) args;                                                       \
	} while (0)

/* Begins a step. `name` distinguishes kinds of steps ("train", "eval") and may be NULL. Steps do
 * not nest. */
static inline void tfhook_step_begin(const char *name)
{
	TFHOOK_CALL_(tfhook_text_fn_, "tfhook_step_begin", (name));
}

/* Ends the step that this thread began. Does nothing without one. */
static inline void tfhook_step_end(void)
{
	TFHOOK_CALL_(tfhook_fn_, "tfhook_step_end", ());
}

/* Marks a boundary: the time between two calls on a thread is one step. */
static inline void tfhook_step(void)
{
	TFHOOK_CALL_(tfhook_fn_, "tfhook_step", ());
}

/* Begins a named range. Ranges nest up to 64 deep. */
static inline void tfhook_range_push(const char *name)
{
	TFHOOK_CALL_(tfhook_text_fn_, "tfhook_range_push", (name));
}

static inline void tfhook_range_pop(void)
{
	TFHOOK_CALL_(tfhook_fn_, "tfhook_range_pop", ());
}

/* Stops recording until tfhook_resume() was called as often as tfhook_pause(). */
static inline void tfhook_pause(void)
{
	TFHOOK_CALL_(tfhook_fn_, "tfhook_pause", ());
}

static inline void tfhook_resume(void)
{
	TFHOOK_CALL_(tfhook_fn_, "tfhook_resume", ());
}

/* Writes everything recorded so far and waits for that at most `milliseconds`. Returns 0 or a
 * negative errno; 0 without the library. */
static inline int tfhook_flush(unsigned milliseconds)
{
	static void *slot;
	tfhook_wait_fn_ flush = (tfhook_wait_fn_)tfhook_find_(&slot, "tfhook_flush");

	return flush ? flush(milliseconds) : 0;
}

/* Returns 1 if the library is loaded and recording, else 0. */
static inline int tfhook_active(void)
{
	static void *slot;
	tfhook_int_fn_ active = (tfhook_int_fn_)tfhook_find_(&slot, "tfhook_active");

	return active ? active() : 0;
}

#endif
