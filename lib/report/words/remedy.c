/*
 * Advice for each cause. For the input pipeline, it depends on the type of the slow stage: stages
 * that call a function differ in how they can run several calls at once, and some cannot.
 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "model/symbols/pylines.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

static const char slow_map[] = "a map function of the input pipeline is too slow";
static const char slow_function[] = "a function that the input pipeline calls is too slow";

/* Stages that need other advice than most of their cause.
 * The first row whose word is in the stage's type applies. */
static const struct remedy_row {
	enum tfh_cause cause;
	const char *word;
	struct tfh_remedy remedy;
} rows[] = {
	{TFH_CAUSE_INPUT_MAP,
	 "Skip",
	 {"elements that skip() drops go through the map first",
	  "call skip() before map(), or skip whole files"}},
	{TFH_CAUSE_INPUT_MAP,
	 "Shard",
	 {"elements that shard() drops go through the map first",
	  "call shard() before map(), or shard the file names"}},
	{TFH_CAUSE_INPUT_MAP,
	 "Filter",
	 {slow_function, "filter() calls it for one element at a time: compute its condition in a "
			 "map(..., num_parallel_calls=tf.data.AUTOTUNE) before it"}},
	{TFH_CAUSE_INPUT_MAP,
	 "Scan",
	 {slow_function,
	  "scan() calls it for one element at a time: move what needs no state into a "
	  "map(..., num_parallel_calls=tf.data.AUTOTUNE)"}},
	{TFH_CAUSE_INPUT_MAP,
	 "FlatMap",
	 {slow_function, "interleave(..., num_parallel_calls=tf.data.AUTOTUNE) instead of "
			 "flat_map(), which reads one data set after the other"}},
	{TFH_CAUSE_INPUT_MAP,
	 "GroupBy",
	 {slow_function, "make it cheaper, or do its work in a map(..., "
			 "num_parallel_calls=tf.data.AUTOTUNE)"}},
	{TFH_CAUSE_INPUT_MAP,
	 "TakeWhile",
	 {slow_function,
	  "take_while() calls it for one element at a time: compute its condition in a "
	  "map(..., num_parallel_calls=tf.data.AUTOTUNE) before it"}},
};

/* The same in every job; the last row is for causes without one. */
static const struct {
	enum tfh_cause cause;
	struct tfh_remedy remedy;
} of_cause[] = {
	{TFH_CAUSE_INPUT_READ,
	 {"reading the data is too slow",
	  "read several files at once (interleave with num_parallel_calls), or cache()"}},
	{TFH_CAUSE_INPUT_DECODE,
	 {"decoding the records is too slow",
	  "parse a whole batch in one call (tf.io.parse_example after batch), several at once "
	  "(num_parallel_calls), or store the data decoded"}},
	{TFH_CAUSE_INPUT_MAP,
	 {slow_map, "map(..., num_parallel_calls=tf.data.AUTOTUNE), or cache() after it"}},
	{TFH_CAUSE_INPUT_GENERATOR,
	 {"a Python generator feeds the pipeline too slowly",
	  "generate in several processes, or write the data to TFRecord files once"}},
	{TFH_CAUSE_INPUT_BATCH,
	 {"assembling batches is too slow",
	  "batch before map where the function allows it, or batch(..., num_parallel_calls=...)"}},
	{TFH_CAUSE_INPUT_SHUFFLE,
	 {"shuffling is too slow",
	  "shuffle file names, or records that are not decoded yet, with a smaller buffer"}},
	{TFH_CAUSE_INPUT_CACHE,
	 {"reading from the cache is too slow",
	  "cache in memory where it fits (cache() without a file), or on a faster disk"}},
	{TFH_CAUSE_INPUT_REMOTE,
	 {"the tf.data service does not keep up",
	  "more workers, or look at what their pipeline waits for (tfhook run on a worker)"}},
	{TFH_CAUSE_INPUT_DATALOADER,
	 {"the DataLoader does not keep up",
	  "more workers (num_workers, prefetch_factor), pin_memory=True, or cheaper transforms"}},
	{TFH_CAUSE_INPUT_UNKNOWN,
	 {"batches come later than they are needed",
	  "make batches ahead, in other threads or processes (prefetch, num_parallel_calls), or do "
	  "less for each"}},
	{TFH_CAUSE_TRANSFER_H2D_PAGEABLE,
	 {"data is copied from pageable memory",
	  "copy asynchronously from pinned memory, one step ahead; copy smaller types"}},
	{TFH_CAUSE_TRANSFER_H2D_PINNED,
	 {"copies are not hidden behind computing",
	  "copy on a separate stream, one step ahead; copy less"}},
	{TFH_CAUSE_TRANSFER_D2H,
	 {"results are copied back while the device waits",
	  "copy to pinned memory on a separate stream while the next step computes; copy less, "
	  "or "
	  "every n-th step only"}},
	{TFH_CAUSE_TRANSFER_D2D,
	 {"the device moves its own memory instead of computing",
	  "work in place, keep one memory layout, and do not fill what is overwritten anyway"}},
	{TFH_CAUSE_TRANSFER_P2P,
	 {"copies between devices are not hidden behind computing",
	  "copy on a separate stream while the devices compute, or keep data where it is used"}},
	{TFH_CAUSE_TRANSFER_SMALL_COPIES,
	 {"very many small copies", "collect them in one buffer and copy that"}},
	{TFH_CAUSE_TRANSFER_MANAGED,
	 {"managed memory moves between host and device",
	  "leave it where it is used, prefetch it a step ahead (cudaMemPrefetchAsync), or use "
	  "device memory and copies"}},
	{TFH_CAUSE_TRANSFER_FALLBACK,
	 {"an op of the step runs on the CPU",
	  "use an op or a type that the device has a kernel for, or move it into the input "
	  "pipeline"}},
	{TFH_CAUSE_COMPUTE_DENSE,
	 {"computing takes most of the step",
	  "faster kernels (lower precision, fewer passes over memory), or more devices"}},
	{TFH_CAUSE_COMPUTE_UNDERFILLED,
	 {"kernels too small to fill the device", "larger batches, or fused kernels"}},
	{TFH_CAUSE_COMPUTE_DOMINANT_OP,
	 {"one op takes most of the computing",
	  "see what limits it (Nsight Compute), and look for a cheaper algorithm, another layout, "
	  "or a fused kernel"}},
	{TFH_CAUSE_COMPUTE_IMBALANCE,
	 {"the devices compute for unequal times",
	  "give the device that computes longest less of each batch (or fewer layers), and the "
	  "others more"}},
	{TFH_CAUSE_COMPUTE_CPU,
	 {"the step computes on the CPU",
	  "if a GPU should do it, check that the framework finds one "
	  "(tf.config.list_physical_devices(), jax.devices()); otherwise cheaper ops or more "
	  "CPUs"}},
	{TFH_CAUSE_COMPUTE_CONTENTION,
	 {"other processes use the GPU",
	  "nvidia-smi lists them: stop them, or give this job a GPU of its own "
	  "(CUDA_VISIBLE_DEVICES); jobs that must share one lose less under MPS"}},
	{TFH_CAUSE_HOST_LAUNCH,
	 {"many small launches",
	  "capture the step in a graph, fuse kernels (jit), or use larger batches"}},
	{TFH_CAUSE_HOST_SYNC,
	 {"the program waits for the device too often",
	  "read results (.item(), .numpy(), synchronize) every n-th step only"}},
	{TFH_CAUSE_HOST_CONTENTION,
	 {"the machine has too few CPUs for what runs on it",
	  "stop other programs, or give this job CPUs of its own (taskset, cpuset, a larger "
	  "share)"}},
	{TFH_CAUSE_HOST_CALLBACK,
	 {"callbacks, metrics or logging delay the training loop",
	  "run them every n-th step, or in a thread"}},
	{TFH_CAUSE_HOST_CHECKPOINT, {"checkpoints delay the training loop", TFH_SAVE_LESS}},
	{TFH_CAUSE_HOST_LOGGING,
	 {"logging holds up the training loop",
	  "log only every n-th step, or in a thread; flush less often; leave the formatting of "
	  "arguments to the logger"}},
	{TFH_CAUSE_HOST_GIL,
	 {"the training loop waits for the GIL",
	  "move the Python code of other threads to processes of their own, or to native code that "
	  "releases the GIL"}},
	{TFH_CAUSE_HOST_GC,
	 {"the training loop collects garbage",
	  "leave out gc.collect() and what calls it, or do it every n-th step; gc.freeze() after the "
	  "set-up exempts what was made until then"}},
	{TFH_CAUSE_HOST_LOCK,
	 {"the training loop waits for another thread",
	  "let that thread work ahead, or do less while it holds the lock"}},
	{TFH_CAUSE_HOST_SLEEP,
	 {"the training loop sleeps",
	  "look for sleeps and polling, and wait for the event itself"}},
	{TFH_CAUSE_HOST_WAIT,
	 {"the training loop waits for another process or machine",
	  "ask it earlier, or in a thread; look at what it does meanwhile"}},
	{TFH_CAUSE_HOST_CODE,
	 {"the step waits for the program's own code",
	  "see which functions run (record the job once under `perf record -g`), and call them "
	  "less often, in another thread, or while the device computes"}},
	{TFH_CAUSE_HOST_COMPILE,
	 {"training steps compile or load kernels or functions",
	  "keep shapes and static arguments (jit) the same from step to step, and cache what was "
	  "compiled"}},
	{TFH_CAUSE_HOST_ALLOC,
	 {"training steps allocate device or pinned memory",
	  "allocate once and reuse, or take memory from a pool (cudaMallocAsync)"}},
	{TFH_CAUSE_COMMUNICATION_TRANSFER,
	 {"collectives are not hidden behind computing",
	  "overlap the exchange with the backward pass, exchange less often or in fewer, larger "
	  "pieces"}},
	{TFH_CAUSE_COMMUNICATION_JITTER,
	 {"some ranks arrive late at the collectives",
	  "look at the rank that waits least: whatever delays it delays all"}},
	{TFH_CAUSE_NONE,
	 {"the step waits for the program's own code",
	  "see what that thread does (while the job runs: py-spy top, perf top), and do it less "
	  "often, in another process, or while the device computes"}},
};

static const struct tfh_software *loaded(const struct tfh_result *r, const char *software)
{
	const struct tfh_process *p;
	uint32_t n = r->run ? tfh_run_processes(r->run, &p) : 0;

	return r->process < n ? tfh_find_software(&p[r->process], software) : NULL;
}

bool tfh_runs(const struct tfh_result *r, const char *software)
{
	return loaded(r, software) != NULL;
}

bool tfh_torch_lacks_cuda(const struct tfh_result *r)
{
	const struct tfh_software *torch = loaded(r, "PyTorch");

	return torch && tfh_ends_with(torch->version, "+cpu");
}

enum tfh_framework tfh_framework(const struct tfh_result *r)
{
	const struct tfh_process *p;
	uint32_t n = r->run ? tfh_run_processes(r->run, &p) : 0;
	bool tf = tfh_runs(r, "TensorFlow"), jax = tfh_runs(r, "JAX");

	if (r->found.torch)
		return TFH_FRAMEWORK_TORCH;
	if (tf || jax) /* JAX's programs may read their data with TensorFlow */
		return tf + jax + tfh_runs(r, "PyTorch") > 1 ? TFH_FRAMEWORK_UNKNOWN
		       : tf				     ? TFH_FRAMEWORK_TENSORFLOW
							     : TFH_FRAMEWORK_JAX;
	/* PyTorch and TensorFlow are known by their calls, even where no list of software was
	 * recorded. */
	return r->found.imported || r->process >= n ||
			       (!p[r->process].n_software && p[r->process].has_tf)
		       ? TFH_FRAMEWORK_UNKNOWN
		       : TFH_FRAMEWORK_OTHER;
}

struct tfh_remedy tfh_remedy_of(enum tfh_cause cause)
{
	size_t i = 0;

	while (of_cause[i].cause != TFH_CAUSE_NONE && of_cause[i].cause != cause)
		i++;
	return of_cause[i].remedy;
}

struct tfh_remedy tfh_plain_remedy(enum tfh_cause cause)
{
	static const struct {
		enum tfh_cause cause;
		struct tfh_remedy remedy;
	} plain[] = {
		{TFH_CAUSE_INPUT_READ,
		 {"reading the data is too slow",
		  "read the next batches ahead, in other threads or processes, or keep the data in "
		  "memory or on a faster disk"}},
		{TFH_CAUSE_INPUT_DECODE,
		 {"decoding the data is too slow",
		  "decode the next batches ahead, in other processes, or store the data decoded"}},
		{TFH_CAUSE_INPUT_MAP,
		 {"transforming the data is too slow",
		  "transform the next batches ahead, in other processes, or on the device"}},
		{TFH_CAUSE_INPUT_REMOTE,
		 {"batches come over a socket, later than they are needed",
		  "ask for the next batch ahead, in a thread, many records at once, over "
		  "kept connections; or see why the other end or the way is slow (40 ms: "
		  "TCP_NODELAY)"}},
		{TFH_CAUSE_INPUT_BATCH,
		 {"assembling batches is too slow",
		  "assemble the next batches ahead, in other processes, from arrays rather than "
		  "lists"}},
	};

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (plain[i].cause == cause)
			return plain[i].remedy;
	return tfh_remedy_of(cause);
}

/* Whether a flat_map() joins the rows of window()'s data sets. */
static bool joins_windows(const struct tfh_result *r)
{
	const char *above = r->input[0].prefix;
	size_t n = strlen(above);

	for (uint32_t i = 1; i < r->n_input && strstr(r->input[0].name, "FlatMap"); i++)
		if (!strncmp(r->input[i].prefix, above, n) && !strcmp(r->input[i].name, "Window"))
			return true;
	return false;
}

/* Whether most elements that a map in front of the slow filter makes are dropped there. */
static bool drops_most(const struct tfh_result *r)
{
	const struct tfh_input_stage *filter = &r->input[0], *s = filter + 1;

	for (; strstr(filter->name, "Filter") && s < filter + r->n_input; s++)
		if (strstr(s->name, "Map") && !strstr(s->name, "FlatMap") &&
		    tfh_starts_with(s->prefix, filter->prefix) &&
		    s->calls_per_step > 2 * filter->calls_per_step)
			return true;
	return false;
}

/* Whether a stage only passes on, divides or joins elements. */
static bool hands_on(const struct tfh_input_stage *s)
{
	static const char *const words[] = {"TensorSlice", "Shuffle", "Repeat", "Zip",
					    "Range",	   "Take",    "Skip",	"Cache",
					    "Prefetch",	   "Batch"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(s->name, words[i]) && !strstr(s->name, "Map"))
			return true;
	return false;
}

/* Whether many elements are passed on one by one for each batch, and passing them on is all the
 * work. */
static bool goes_singly(const struct tfh_result *r)
{
	const struct tfh_input_stage *slow = &r->input[0];
	double most = 0;

	for (uint32_t i = 0; i < r->n_input; i++)
		if (tfh_starts_with(r->input[i].prefix, slow->prefix))
			most = fmax(most, r->input[i].calls_per_step);
	for (uint32_t i = 0; i < r->n_input; i++)
		if (2 * r->input[i].calls_per_step > most && !hands_on(&r->input[i]))
			return false;
	return most >= TFH_REPORT_ELEMENTS && hands_on(slow) &&
	       slow->self_s_per_step < most * TFH_REPORT_ELEMENT_S;
}

struct tfh_remedy tfh_stage_remedy(const struct tfh_result *r, enum tfh_cause cause)
{
	static const struct tfh_remedy windows = {
		"every window is a data set of its own, whose rows are copied one by one",
		"cut the windows from an array (timeseries_dataset_from_array, or tf.gather in a "
		"map), or shift them by more than one row"};
	static const struct tfh_remedy dropped = {
		"elements that filter() drops go through the map first",
		"call filter() before map(), with a function that makes only what the condition needs"};
	static const struct tfh_remedy singly = {
		"elements go through the pipeline one by one, with next to no work for each",
		"batch() before shuffle() and repeat(); or shuffle indices, and fetch each batch at "
		"once (tf.gather in a map)"};
	const struct tfh_input_stage *stage = &r->input[0];

	if ((cause == TFH_CAUSE_INPUT_BATCH || cause == TFH_CAUSE_INPUT_SHUFFLE) && goes_singly(r))
		return singly;
	if (cause == TFH_CAUSE_INPUT_MAP && drops_most(r))
		return dropped;
	if (cause == TFH_CAUSE_INPUT_MAP && joins_windows(r))
		return windows;
	/* One call at a time is not parallel, even if asynchronous. */
	if (cause == TFH_CAUSE_INPUT_MAP && stage->async && stage->parallelism != 1)
		return (struct tfh_remedy){
			slow_map,
			strstr(stage->name, "AndBatch")
				? "batch() before map() where the function can take a whole batch; "
				  "else make it cheaper or cache its result: TensorFlow joined the "
				  "two stages and runs them in parallel already"
				: "make the mapped function cheaper or cache its "
				  "result; it runs in parallel already"};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].cause == cause && strstr(stage->name, rows[i].word))
			return rows[i].remedy;
	return tfh_remedy_of(cause);
}

static bool is_called(const struct tfh_seen_node *node, const char *function)
{
	return node->file && tfh_is_in_package(node->file, "/keras/") &&
	       tfh_ends_with(node->function, function);
}

/* Seconds per step in which a method of Keras makes pipelines. The innermost method counts: a
 * callback may call predict() within fit(). */
static double makes(const struct tfh_result *r, const char *method)
{
	static const char *const methods[] = {".predict", ".evaluate", ".fit"};
	const struct tfh_seen_node *node = r->found.node;
	double s = 0;

	for (uint32_t i = 0; i < r->found.n_node; i++) {
		const char *by = NULL;
		if (!is_called(&node[i], "EpochIterator.__init__"))
			continue;
		for (uint32_t k = i; !by && node[k].parent != k; k = node[k].parent)
			for (size_t m = 0; m < sizeof(methods) / sizeof(*methods); m++)
				if (is_called(&node[node[k].parent], methods[m]))
					by = methods[m];
		s += by && !strcmp(by, method) ? node[i].s_per_step : 0;
	}
	return s;
}

/* Whether most of the time is one method's, or that of two that both matter. */
static bool make(const struct tfh_result *r, const char *const name[2], double all)
{
	double first = makes(r, name[0]), second = name[1] ? makes(r, name[1]) : 0;

	if (name[1] && fmin(first, second) < TFH_REPORT_OTHER_SHARE * all)
		return false;
	return 2 * (first + second) > all;
}

bool tfh_remedy_anew(const struct tfh_result *r, struct tfh_remedy *out)
{
	static const struct {
		const char *name[2];
		struct tfh_remedy remedy;
	} method[] = {
		{{".predict", ".fit"},
		 {"each call of predict() and of fit() makes an input pipeline, and compiles it "
		  "again",
		  "call the model itself, model(x), or predict_on_batch(x), and "
		  "train_on_batch(x, y)"}},
		{{".predict"},
		 {"each call of predict() makes an input pipeline, and compiles it again",
		  "call the model itself, model(x), or predict_on_batch(x); or predict() once for "
		  "all examples"}},
		{{".evaluate"},
		 {"each call of evaluate() makes an input pipeline, and compiles it again",
		  "test_on_batch(x, y), or evaluate() once for all examples"}},
		{{".fit"},
		 {"each call of fit() makes an input pipeline, and compiles it again",
		  "train_on_batch(x, y), or fit() once, with epochs=..."}}};
	double all = 0;

	for (uint32_t i = 0; i < r->found.n_node; i++)
		all += r->found.node[i].parent == i ? r->found.node[i].s_per_step : 0;
	for (size_t i = 0; i < sizeof(method) / sizeof(method[0]); i++)
		if (make(r, method[i].name, all)) {
			*out = method[i].remedy;
			return true;
		}
	return false;
}

bool tfh_runs_python(const struct tfh_result *r)
{
	const struct tfh_seen_workers *k = &r->found.workers;
	double all = 0;

	for (uint32_t i = 0; i < k->n_node; i++)
		all += k->node[i].parent == i ? k->node[i].s_per_step : 0;
	return 2 * tfh_called_python_s(k) > all;
}

/* Whether torch.compile made kernels of the step: their names begin with triton_ and list what was
 * fused. */
static bool is_compiled(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_kernels; i++)
		if (tfh_starts_with(r->kernels[i].name, "triton_") &&
		    strstr(r->kernels[i].name, "_fused_"))
			return true;
	return false;
}

/* Whether weights are changed: inference has no optimizer to speak of. */
static bool optimizes(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_kernels; i++)
		if (tfh_kernel_family(r->kernels[i].name) == TFH_FAMILY_OPTIMIZER ||
		    strstr(r->kernels[i].name, "backward"))
			return true;
	return false;
}

/* Values that the step reads back one by one, as .item() does; NULL: few of them. */
static const struct tfh_transfer *values_read(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_transfers; i++) {
		const struct tfh_transfer *t = &r->transfers[i];
		if (t->dir == TFH_DIR_D2H && t->calls_per_step >= TFH_REPORT_READS &&
		    t->bytes_per_step < TFH_VALUE_BYTES * t->calls_per_step)
			return t;
	}
	return NULL;
}

/* Whether the library's file that makes the launches makes these copies, too: of arguments that are
 * arrays of the host, as numba and PyCUDA accept them. */
static bool is_of_launches(const struct tfh_result *r, const struct tfh_transfer *t)
{
	const char *file = r->found.line.callee_file;

	return file && strstr(t->where, tfh_short_file(file));
}

const char *tfh_launch_advice(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_transfer *read = values_read(r);

	if (tfh_makes_graphs(r))
		return NULL; /* the remedy is about them */
	if (r->found.cpu_only)
		return r->found.torch	 ? "compile the step (torch.compile), or use larger batches"
		       : r->found.graphs ? "use larger batches, or several steps per call (Keras: "
					   "steps_per_execution)"
					 : "run the step in one tf.function (Keras: "
					   "run_eagerly=False)";
	if (read && is_of_launches(r, read))
		return tfh_phrase(w,
				  "pass arrays of the device (numba: cuda.to_device(), PyCUDA: "
				  "gpuarray), and fetch results once: these launches copy their "
				  "arguments there and back, %.0f a step",
				  read->calls_per_step);
	if (read)
		return tfh_phrase(w,
				  "read values (.item(), .numpy()) less often: a step reads %.0f, "
				  "and the device waits after each of them; when it no longer "
				  "does, capture the step in a graph",
				  read->calls_per_step);
	if (r->found.replays)
		return NULL; /* the remedy is about what is not in them */
	if (is_compiled(r))
		return optimizes(r)
			       ? "it is compiled: capture more of it in a graph "
				 "(mode=\"reduce-overhead\", the optimizer, too), or use larger "
				 "batches"
			       : "it is compiled: capture more of it in a graph "
				 "(mode=\"reduce-overhead\"), or use larger batches";
	return r->found.torch ? "compile the step into CUDA graphs (torch.compile, "
				"mode=\"reduce-overhead\"), or use larger batches"
			      : NULL;
}
