/*
 * What can be done about a slow stage of the input pipeline, by what the stage is: stages that call
 * a function have different ways to call it several times at once, and some have none.
 */
#include <string.h>

#include "analyze/remedy.h"

static const char slow_map[] = "a map function of the input pipeline is too slow";
static const char slow_function[] = "a function that the input pipeline calls is too slow";
static const char slow_read[] = "reading the data is too slow";

/* The first row whose word is in the stage's type, and whose cause is the one found. */
static const struct row {
	enum tfh_cause cause;
	const char *word;
	struct tfh_remedy remedy;
} rows[] = {
	{TFH_CAUSE_INPUT_MAP,
	 "Filter",
	 {slow_function, "filter() calls it for one element at a time: compute what it asks in a "
			 "map(..., num_parallel_calls=tf.data.AUTOTUNE) before it"}},
	{TFH_CAUSE_INPUT_MAP,
	 "Scan",
	 {slow_function,
	  "scan() calls it for one element at a time: move what needs no state into a "
	  "map(..., num_parallel_calls=tf.data.AUTOTUNE)"}},
	{TFH_CAUSE_INPUT_MAP,
	 "FlatMap",
	 {slow_function, "interleave(..., num_parallel_calls=tf.data.AUTOTUNE) in place of "
			 "flat_map(), which makes one data set after the other"}},
	{TFH_CAUSE_INPUT_MAP,
	 "GroupBy",
	 {slow_function, "make it cheaper, or do its work in a map(..., "
			 "num_parallel_calls=tf.data.AUTOTUNE)"}},
	{TFH_CAUSE_INPUT_MAP,
	 "TakeWhile",
	 {slow_function,
	  "take_while() calls it for one element at a time: compute what it asks in a "
	  "map(..., num_parallel_calls=tf.data.AUTOTUNE) before it"}},
	{TFH_CAUSE_INPUT_MAP,
	 "",
	 {slow_map, "map(..., num_parallel_calls=tf.data.AUTOTUNE), or cache() behind it"}},
	{TFH_CAUSE_INPUT_GENERATOR,
	 "",
	 {"a Python generator feeds the pipeline and cannot keep up",
	  "generate in several processes, or write the data to TFRecord files once"}},
	{TFH_CAUSE_INPUT_READ,
	 "",
	 {slow_read,
	  "read several files at once (interleave with num_parallel_calls), or cache()"}},
	{TFH_CAUSE_INPUT_REMOTE,
	 "",
	 {"the tf.data service does not keep up",
	  "more workers, or look at what their pipeline waits for (tfhook run on a worker)"}},
	{TFH_CAUSE_INPUT_SHUFFLE,
	 "",
	 {"assembling batches is too slow",
	  "batch before map where the function allows it, or batch(..., num_parallel_calls=...)"}},
	{TFH_CAUSE_INPUT_BATCH,
	 "",
	 {"assembling batches is too slow",
	  "batch before map where the function allows it, or batch(..., num_parallel_calls=...)"}},
};

struct tfh_remedy tfh_stage_remedy(const struct tfh_input_stage *stage, enum tfh_cause cause)
{
	/* One call at a time is not parallel, however asynchronous. */
	if (cause == TFH_CAUSE_INPUT_MAP && stage->async && stage->parallelism != 1)
		return (struct tfh_remedy){slow_map,
					   "make the mapped function cheaper or cache its "
					   "result; it runs in parallel already"};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].cause == cause && strstr(stage->name, rows[i].word))
			return rows[i].remedy;
	return (struct tfh_remedy){0};
}
