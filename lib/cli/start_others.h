/*
 * What a process' other threads do: their CPU time, and samples of its Python threads, taken while
 * its main thread waits: which of them was at work, and where. They are part of start.json
 * (format/FORMAT.md, 5).
 */
#ifndef TFH_CLI_START_OTHERS_H
#define TFH_CLI_START_OTHERS_H

#include "base/json.h"
#include "cli/start_places.h"
#include "sampling/outside.h"

#define TFH_START_OTHERS 4096u

struct tfh_other_sample {
	uint64_t us; /* since the start of the process */
	uint32_t process, tid, place, weight_us;
	uint8_t state, gil; /* enum tft_state, enum tft_gil */
};

struct tfh_start_others {
	struct tfh_other_sample sample[TFH_START_OTHERS];
	uint32_t n; /* no further samples are taken if it is full */
};

/* A process' CPU time without its main thread's at a sample; begins with zeros. */
struct tfh_others_cpu {
	int64_t at_ns, used_ns;
};
/* How much of a CPU the threads other than the main one used since the last call: 0 to
 * TFH_START_WHOLE_CPU, which also stands for more than one CPU; 0 if it is not known. Threads of
 * native code have no frames; this shows whether they work while the main thread waits. */
uint8_t tfh_others_ran(struct tfh_others_cpu *last, int32_t pid);

/* Samples one of the other threads, chosen at random, of process `pid` with the interpreter `py`.
 * `sample` has `us` and `process` filled in, and as `weight_us` the time of the main thread that
 * the sample represents. */
void tfh_start_others_take(struct tfh_start_others *o, int32_t pid, const struct tfh_py_outside *py,
			   struct tfh_start_places *places, uint64_t *random,
			   struct tfh_other_sample sample);
/* Writes the member `others` of a process. */
void tfh_start_others_write(const struct tfh_start_others *o, uint32_t process, struct tfh_json *j);
/* Removes the samples of process `gone`; the process that was number `last` takes its number. */
void tfh_start_others_forget(struct tfh_start_others *o, uint32_t gone, uint32_t last);

#endif
