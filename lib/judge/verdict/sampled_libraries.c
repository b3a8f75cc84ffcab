/*
 * Which libraries do the work of a program's functions, for runs in which no call was recorded. A
 * function from which NumPy was seen to be called, and no framework, works on arrays in a program
 * whose model is a framework's: its native code is not the step's computing, though it runs without
 * Python's lock as well.
 */
#include <fnmatch.h>
#include <string.h>

#include "judge/facts/served.h"
#include "judge/verdict/sampled.h"

static bool is_of(const struct tfh_model_line *frame, const char *const *folders, size_t n)
{
	for (size_t i = 0; frame->library && i < n; i++)
		if (tfh_is_in_package(frame->file, folders[i]))
			return true;
	return false;
}

/* JAX, and what is built on it. */
static bool uses_jax(const struct tfh_model_line *frame)
{
	static const char *const folders[] = {"/jax/",	   "/flax/",	"/optax/",   "/haiku/",
					      "/equinox/", "/numpyro/", "/diffrax/", "/blackjax/"};

	return is_of(frame, folders, sizeof(folders) / sizeof(*folders));
}

static bool is_framework(const struct tfh_model_line *frame)
{
	static const char *const folders[] = {"/torch/", "/tensorflow/"};

	return uses_jax(frame) || is_of(frame, folders, sizeof(folders) / sizeof(*folders));
}

bool tfh_computes_in(const struct tfh_model_line *frame)
{
	return is_framework(frame) && !strstr(frame->file, "/jax/_src/tree_util.py");
}

static bool works_on_arrays(const struct tfh_model_line *frame)
{
	static const char *const folders[] = {"/numpy/", "/scipy/", "/pandas/"};

	return is_of(frame, folders, sizeof(folders) / sizeof(*folders));
}

bool tfh_may_leave_out(const struct tfh_model_line *callee)
{
	static const char *const trains[] = {"*fit*",	  "*train*",	 "update*", "step*",
					     "*predict*", "*transform*", "forward", "__call__"};
	static const char *const others[] = {"/keras/",	   "/xgboost/", "/lightgbm/", "/catboost/",
					     "/tinygrad/", "/mxnet/",	"/paddle/",   "/cupy/"};

	for (size_t i = 0; i < sizeof(trains) / sizeof(*trains); i++)
		if (!fnmatch(trains[i], tfh_last_name(callee->function), 0))
			return false;
	return callee->library && !is_framework(callee) && !works_on_arrays(callee) &&
	       !is_of(callee, others, sizeof(others) / sizeof(*others));
}

/* Whether it applies a function to each array of a tree. */
static bool maps_tree(const struct tfh_model_line *frame)
{
	return frame->library && strstr(frame->file, "/jax/_src/tree_util.py") &&
	       !strncmp(frame->function, "tree_map", sizeof("tree_map") - 1);
}

static struct tfh_library_use *use_of(const struct tfh_libraries *l,
				      const struct tfh_model_line *function)
{
	for (size_t i = 0; i < l->use.n; i++)
		if (tfh_same_function(&l->use.v[i].function, function))
			return &l->use.v[i];
	return NULL;
}

int tfh_find_libraries(const struct tfh_start *s, struct tfh_libraries *out)
{
	uint32_t connection = 0;

	*out = (struct tfh_libraries){.jax = false};
	for (uint32_t i = 0; i < s->n; i++) {
		struct tfh_model_line frame[TFH_VERDICT_FRAMES];
		uint32_t n = tfh_start_frames(s, s->sample[i].place, frame, TFH_VERDICT_FRAMES);
		uint32_t own = tfh_library_frames(frame, n);
		struct tfh_library_use *u = own < n ? use_of(out, &frame[own]) : NULL;

		connection |= tfh_on_connection(frame, n);
		out->serves |= tfh_in_server(frame, n);
		for (uint32_t k = 0; k < n; k++) {
			out->jax |= uses_jax(&frame[k]);
			out->framework |= is_framework(&frame[k]);
		}
		if (own == n || (!u && out->use.n == TFH_VERDICT_LINES))
			continue;
		if (!u && TFH_PUSH(out->use, ((struct tfh_library_use){.function = frame[own]})))
			return -ENOMEM;
		u = u ? u : &out->use.v[out->use.n - 1];
		if (!own && s->sample[i].state == TFT_STATE_RUNNING)
			*(s->sample[i].gil == TFT_GIL_RELEASED ? &u->released_ns : &u->held_ns) +=
				s->sample[i].ns;
		for (uint32_t k = 0; k < own; k++) {
			u->framework |= is_framework(&frame[k]);
			u->arrays |= works_on_arrays(&frame[k]);
		}
	}
	out->serves |= connection == TFH_CONNECTION_BOTH;
	return 0;
}

bool tfh_prepares_arrays(const struct tfh_libraries *l, const struct tfh_model_line *frame,
			 uint32_t n)
{
	uint32_t own = tfh_library_frames(frame, n);
	const struct tfh_library_use *u =
		TFH_DETECT_ARRAYS && l->framework && own < n ? use_of(l, &frame[own]) : NULL;

	return u && u->arrays && !u->framework;
}

bool tfh_calls_briefly(const struct tfh_libraries *l, const struct tfh_model_line *frame,
		       uint32_t n)
{
	/* The program itself, and what it calls first, call everything. */
	bool inner = TFH_DETECT_BRIEF_CALLS && n > 1 && !frame[0].library &&
		     strcmp(frame[0].function, "<module>") != 0 &&
		     strcmp(frame[1].function, "<module>") != 0;
	const struct tfh_library_use *u = inner ? use_of(l, &frame[0]) : NULL;

	return u && u->held_ns >= TFH_VERDICT_BRIEF_CALLS * (u->held_ns + u->released_ns);
}

bool tfh_in_module(const struct tfh_model_line *frame, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (frame[i].library && strstr(frame[i].file, "/torch/nn/modules/module.py") &&
		    !fnmatch("*_call*", frame[i].function, 0))
			return true;
	return false;
}

bool tfh_awaits_jax(const struct tfh_libraries *l, const struct tfh_model_line *frame, uint32_t n)
{
	uint32_t own = tfh_library_frames(frame, n);

	for (uint32_t i = 0; i < own; i++)
		if (uses_jax(&frame[i]))
			return true;
	return n && !own && l->jax;
}

bool tfh_launches_jax_ops(const struct tfh_model_line *frame, uint32_t n, bool native)
{
	uint32_t own = tfh_library_frames(frame, n);

	for (uint32_t i = 0; i < own; i++)
		if (tfh_makes_jax_ops(frame[i].file, frame[i].function) ||
		    (native && maps_tree(&frame[i])))
			return true;
	return false;
}
