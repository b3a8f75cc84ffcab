/* The parts of the verdict from samples alone (sampled.c). */
#ifndef TFH_JUDGE_VERDICT_SAMPLED_H
#define TFH_JUDGE_VERDICT_SAMPLED_H

#include "judge/verdict/verdict.h"
#include "model/start.h"
#include "model/vec.h"

/* Whether a thread only waits for a process that it has started. */
bool tfh_sampled_launches(int state, const struct tfh_model_line *frame, uint32_t n);

/* sampled_roles.c: whether a thread imports a module; also in a library's function that imports
 * when it is used. */
bool tfh_sampled_imports(const struct tfh_model_line *frame, uint32_t n);
/* What a sample's stack is about. In a library's iterator, waiting for another thread is waiting at
 * a queue, and all else a loader's work. */
enum tfh_role tfh_sampled_role(const struct tfh_start_sample *k, const struct tfh_model_line *frame,
			       uint32_t n);

/* start_lines.c: what the main thread did before and after the steps, by r->tree, which begins with
 * the process. 0 or -ENOMEM. */
int tfh_sampled_start(const struct tfh_start *s, int64_t born, struct tfh_result *r);

/* What other threads of the process, or other processes, were doing. */
struct tfh_making_seen {
	bool busy;	 /* enough samples show one at work */
	bool calls_back; /* mostly threads of a library, which calls functions of the program */
	enum tfh_cause cause; /* of most of that work: input.*, input.unknown if not known */
	double ns;	      /* of all of that work, and its samples in order of time */
	struct tfh_start_sample *work;
	uint32_t n_work;
};

/* sampled_others.c: fills r->found.workers with the other threads of the process while its main
 * thread waited; if none was busy, with the other processes. 0 or -ENOMEM. out->work is freed with
 * free(), also after an error. */
int tfh_sampled_others(const struct tfh_feed *feed, struct tfh_result *r,
		       struct tfh_making_seen *out);

/* sampled_pool.c: whether the main thread has given all the work to others and waits for what they
 * return: the line where it waits most, or none. Others' samples then have, together, the main
 * thread's time. 0 or -ENOMEM. */
int tfh_sampled_pool(const struct tfh_start *s, struct tfh_making_seen *others,
		     struct tfh_pool_wait *out);

/* Whether a function is of a framework that computes, and does not only apply functions to trees of
 * arrays. */
bool tfh_computes_in(const struct tfh_model_line *frame);
/* Whether a library's function that computes is only a part of a step that others may do without:
 * no framework's, none that trains a model or applies one, and not arithmetic of arrays. */
bool tfh_may_leave_out(const struct tfh_model_line *callee);

/* What a function of the program was seen to call. */
struct tfh_library_use {
	struct tfh_model_line function;
	bool framework, arrays;	     /* arrays: NumPy and what is built on it */
	double held_ns, released_ns; /* of what it does itself, with and without Python's lock */
};

struct tfh_libraries {
	bool jax, framework; /* anywhere in the run */
	bool serves;	     /* the program answers requests */
	TFH_VEC(struct tfh_library_use) use;
};

/* sampled_libraries.c; 0 or -ENOMEM. use.v is freed with free(), also after an error. */
int tfh_find_libraries(const struct tfh_start *s, struct tfh_libraries *out);
/* Whether the innermost function of the program in this stack works on arrays for a model that is a
 * framework's. */
bool tfh_prepares_arrays(const struct tfh_libraries *l, const struct tfh_model_line *frame,
			 uint32_t n);

/* Whether native code that a function of the program calls itself is one of many short calls: the
 * function, which a step calls, is in Python code about as long. */
bool tfh_calls_briefly(const struct tfh_libraries *l, const struct tfh_model_line *frame,
		       uint32_t n);
/* Whether a module of PyTorch's computes there. */
bool tfh_in_module(const struct tfh_model_line *frame, uint32_t n);

/* Whether a thread that waits for another one there waits for JAX, which computes on threads of its
 * own: in a function of JAX or of a library built on it, or in a jitted function, which is in C and
 * called by the program itself. */
bool tfh_awaits_jax(const struct tfh_libraries *l, const struct tfh_model_line *frame, uint32_t n);
/* Whether the program's innermost function makes operations of JAX's, one by one, outside of a
 * jitted function; also by mapping a function over arrays, if that runs native code. Tracing and
 * compiling look the same, but have a role (sampled_roles.c). */
bool tfh_launches_jax_ops(const struct tfh_model_line *frame, uint32_t n, bool native);

/* Whether a function of JAX is traced there, and not compiled. */
bool tfh_sampled_traces(const struct tfh_model_line *frame, uint32_t n);

/* What decides about the causes of all samples of a thread. */
struct tfh_sampled_causes {
	struct tfh_making_seen making;
	struct tfh_libraries libraries;
	bool fed;     /* by a queue that another thread fills */
	bool starved; /* that thread is the bottleneck: it has hardly a pause */
};

/* sampled_causes.c */
enum tfh_cause tfh_sampled_cause(const struct tfh_sampled_causes *x,
				 const struct tfh_start_sample *k,
				 const struct tfh_model_line *frame, uint32_t n);

#endif
