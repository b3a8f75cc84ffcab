/* Internal interface between the parts of the survey. */
#ifndef TFH_JUDGE_FACTS_SURVEY_H
#define TFH_JUDGE_FACTS_SURVEY_H

#include "judge/facts/facts.h"

/* stage.c: like tfh_stage_index(), looking the name up on first use. */
int32_t tfh_stage_learn(struct tfh_facts *facts, uint32_t id);
/* The same without caching the result for the id. */
int32_t tfh_stage_place(struct tfh_facts *facts, uint32_t id);

/* made_stages.c: notes an op if it made a stage. 0 or -ENOMEM */
int tfh_note_made_stage(struct tfh_facts *facts, const struct tfh_event *ev);
/* Notes the op that made a stage, from TensorFlow's name of the stage. */
void tfh_note_maker(struct tfh_facts *facts, struct tfh_stage_use *s, const char *text);

/* batches.c: adds a get-next of a consumer, or (`loop`) of a dataset loop inside a graph;
 * tfh_exec_event() adds a call that executed an op or a graph. 0 or -ENOMEM. */
int tfh_batch_event(struct tfh_facts *facts, const struct tfh_event *ev, bool loop);
int tfh_exec_event(struct tfh_facts *facts, const struct tfh_event *ev);

/* token.c: to be called before a token is added */
void tfh_note_order(struct tfh_facts *facts, const struct tfh_token *t);
/* Adds a call of that kind to the tokens. 0 or -ENOMEM */
int tfh_keep_token(struct tfh_facts *facts, const struct tfh_event *ev, uint32_t kind);

void tfh_sort_tokens(struct tfh_facts *facts);

/* launch_rows.c: after a launch that was handled like any call, takes the available launches that
 * follow it without a pause and are not long; adds their number to *launches. 0 or -ENOMEM */
int tfh_take_launches(struct tfh_facts *facts, const struct tfh_event *ev, uint64_t *launches);

/* eager.c: keeps an op that was executed by itself as a token, unless something else shows the
 * steps. 0 or -ENOMEM */
int tfh_eager_event(struct tfh_facts *facts, const struct tfh_event *ev);
/* Forgets these tokens: for the first token of a driver call. */
void tfh_eager_drop(struct tfh_facts *facts);
/* After the survey: forgets them if they are not needed. */
void tfh_eager_end(struct tfh_facts *facts);

/* range_names.c: adds a range if it is an optimizer's step or the execution of a program. 0 or
 * -ENOMEM. */
int tfh_range_event(struct tfh_facts *facts, const struct tfh_event *ev);
/* After the survey: sorts the executions of programs and keeps those of one thread, the one that
 * makes most. Each device may have a thread that executes the same ones. 0 or -ENOMEM. */
int tfh_programs_end(struct tfh_facts *facts);

/* torch_batches.c: after the survey, finds what the batches are for. 0 or -ENOMEM. */
int tfh_torch_batches(struct tfh_facts *facts);

/* loader_passes.c: sets in `tests`, for each batch, whether it is one of a pass that evaluates, if
 * only launches show it. 1: some are; 0: none, or it is not known; or -ENOMEM. */
int tfh_mark_tested(const struct tfh_facts *facts, bool *tests);

/* adapting.c: after the survey, finds batches that fit a preprocessing layer. 0 or -ENOMEM. */
int tfh_find_adapting(struct tfh_facts *facts);

/* quiet.c: records that nothing was launched between facts->launched and t1. 0 or -ENOMEM. */
int tfh_quiet_keep(struct tfh_facts *facts, int64_t t1);
/* held_locks.c: a sample of a thread that waits for a mutex. 0 or -ENOMEM. */
int tfh_lock_event(struct tfh_facts *facts, const struct tfh_event *ev);
/* seen_loops.c: keeps the loops that a sample shows. 0 or -ENOMEM. */
int tfh_loops_event(struct tfh_facts *facts, const struct tfh_event *ev);
static inline int tfh_quiet_until(struct tfh_facts *facts, int64_t t1)
{
	int rc = t1 - facts->launched >= facts->quiet_ns ? tfh_quiet_keep(facts, t1) : 0;

	facts->launched = t1;
	return rc;
}

/* remade.c: replaces launches of kernels that are compiled again and again by launches of the first
 * of them, if no launch is missing among the tokens. 0 or -ENOMEM. */
int tfh_find_remade(struct tfh_facts *facts);

/* startup.c: notes the first occurrence of each phase. */
void tfh_startup_event(struct tfh_facts *facts, const struct tfh_event *ev);

/* heap.c: use of device memory. `wall`: duration of the run, ns. */
struct tfh_heap *tfh_heap_new(void);
void tfh_heap_free(struct tfh_heap *h);
int tfh_heap_event(struct tfh_heap *h, const struct tfh_event *ev, int64_t wall);
const struct tfh_heap_sum *tfh_heap_end(struct tfh_heap *h);

/* batches.c: after the last get-next of a trace nothing is launched if it found no more batches, or
 * if the trace ended before that: no step begins there. Expects sorted batches and tokens. */
void tfh_end_batches(struct tfh_facts *facts);
/* batches.c: another profiler's last mark is no step if its thread launches, but nothing from its
 * begin on (without a device: executes ops). Expects sorted marks. */
void tfh_end_marks(struct tfh_facts *facts);
/* After the survey: finds out whether batches start the pipeline anew. Making their iterators is
 * then part of waiting for them. */
void tfh_find_restarts(struct tfh_facts *facts);

#endif
