/* Advice for a cause. */
#ifndef TFH_REPORT_WORDS_REMEDY_H
#define TFH_REPORT_WORDS_REMEDY_H

#include "judge/result.h"

/* Texts that more than one table has. */
#define TFH_PROCESS_ANEW "the steps start a process anew"
#define TFH_POOL_ANEW "the steps make a pool of processes or threads anew"
#define TFH_SAVE_LESS "save less often, or in a thread while training goes on"
#define TFH_CHEAPER_CALLBACKS "make them cheaper, or let the framework compute the same"
#define TFH_JIT_OPS                                                                                \
	"jax.jit around what the line calls, or around the whole step: one call then does all "    \
	"of its operations"

struct tfh_remedy {
	const char *finding, *todo; /* static texts */
};

/* Finding and advice for this cause in any job. For causes without words of their own and for
 * TFH_CAUSE_NONE: advice about the program's own code. */
struct tfh_remedy tfh_remedy_of(enum tfh_cause cause);

/* The same if no stage of an input pipeline is known: the program's own code makes the batches. */
struct tfh_remedy tfh_plain_remedy(enum tfh_cause cause);

/* kind_remedies.c: finding and advice for this cause in this job. */
struct tfh_remedy tfh_remedy_in(const struct tfh_result *r, enum tfh_cause cause);
/* Whether samples show that most of the thread's waits for other threads are for a lock that one of
 * them holds; with `work`, that it mostly waits for another thread to do something, rather than
 * running. */
bool tfh_seen_mostly(const struct tfh_result *r, bool work);
/* Whether training steps unload most of the modules that they load: a compiler keeps them. */
bool tfh_unloads(const struct tfh_result *r);
/* Whether logging for this cause is a profiler's work, or measuring the machine. */
bool tfh_measures_itself(const struct tfh_result *r, enum tfh_cause cause);
/* Whether logging for this cause mostly encodes images or draws figures. */
bool tfh_saves_images(const struct tfh_result *r, enum tfh_cause cause);

/* Whether the callback that the verdict is about mostly evaluates; advice about it. */
bool tfh_callback_evaluates(const struct tfh_result *r, enum tfh_cause cause);
bool tfh_remedy_evaluates(const struct tfh_result *r, enum tfh_cause cause, struct tfh_remedy *out);

/* task_costs.c: whether the line that makes batches mostly opens a file or an archive. */
bool tfh_opens_anew(const struct tfh_result *r);
/* Whether the time of this cause is mostly that of loading whole files. */
bool tfh_loads_files(const struct tfh_result *r, enum tfh_cause cause);
/* Whether the step waits for a pool's results although the tasks are so short that, even one after
 * the other, they would not fill the wait: sending them takes the time. */
bool tfh_sends_tasks(const struct tfh_result *r);
/* Whether most of the verdict's time at its line is a wait for a pool of processes or threads. */
bool tfh_waits_for_pool(const struct tfh_result *r);
/* Whether it is single processes that the steps start anew, rather than a pool. */
bool tfh_starts_process(const struct tfh_result *r);
/* Whether each step creates a new pool or process, and the cause is about that or about what the
 * pool does. */
bool tfh_makes_pools(const struct tfh_result *r, enum tfh_cause cause);

/* Finding and advice if the slow stage of the input pipeline, the first in the list, is slow for
 * this cause. */
struct tfh_remedy tfh_stage_remedy(const struct tfh_result *r, enum tfh_cause cause);

/* If most of what was seen in steps is a method of Keras that makes an input pipeline in each call:
 * advice about it. */
bool tfh_remedy_anew(const struct tfh_result *r, struct tfh_remedy *out);

/* Whether the input pipeline runs functions of the program, as far as was seen.
 * Only one of them runs at a time. */
bool tfh_runs_python(const struct tfh_result *r);

/* The framework that computes, by what the process had loaded.
 * UNKNOWN: no software was recorded, or it had several. */
enum tfh_framework {
	TFH_FRAMEWORK_UNKNOWN,
	TFH_FRAMEWORK_OTHER,
	TFH_FRAMEWORK_TORCH,
	TFH_FRAMEWORK_TENSORFLOW,
	TFH_FRAMEWORK_JAX,
	TFH_FRAMEWORKS
};
enum tfh_framework tfh_framework(const struct tfh_result *r);

/* families.c: what to do about much time in kernels of a family, in terms of the framework;
 * NULL: nothing. */
const char *tfh_family_todo(enum tfh_kernel_family family, enum tfh_framework in,
			    const char **finding);

/* Whether the judged process has loaded that software, "JAX" for example. */
bool tfh_runs(const struct tfh_result *r, const char *software);
/* Whether it runs a build of PyTorch for CPUs only. */
bool tfh_torch_lacks_cuda(const struct tfh_result *r);

#endif
