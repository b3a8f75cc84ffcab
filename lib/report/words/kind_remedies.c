/*
 * Advice for jobs of a kind, in which the usual advice for the cause would not help.
 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "judge/facts/place_role.h"
#include "model/symbols/pylines.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

double tfh_launches(const struct tfh_result *r)
{
	double calls = 0;

	for (uint32_t i = 0; i < r->n_kernels; i++)
		calls += r->kernels[i].calls_per_step;
	return calls;
}

bool tfh_prepares_launches(const struct tfh_result *r)
{
	return !r->found.cpu_only && 1e9 * r->found.cause_s[TFH_CAUSE_HOST_LAUNCH] >=
					     TFH_FACTS_SAMPLE_PAUSE_NS * fmax(tfh_launches(r), 1);
}

bool tfh_seen_mostly(const struct tfh_result *r, bool work)
{
	const double *part = r->found.seen.part;

	return work ? part[TFH_SEEN_SIGNAL] + part[TFH_SEEN_END] > part[TFT_STATE_RUNNING]
		    : part[TFH_SEEN_MUTEX] >
			       part[TFT_STATE_LOCK] + part[TFH_SEEN_SIGNAL] + part[TFH_SEEN_END];
}

/* Whether workers mostly wait for work although the step waits for its batch, while the thread that
 * takes it runs: unpacking what they send is what takes long. */
static bool unpacks_batches(const struct tfh_result *r, enum tfh_cause cause)
{
	const struct tfh_seen_workers *k = &r->found.workers;
	const struct tfh_seen_sum *seen = &r->found.seen;

	return cause == TFH_CAUSE_INPUT_DATALOADER && k->processes && 2 * k->busy < 1 &&
	       !k->more.to && seen->samples >= TFH_FACTS_SAMPLE_LEAST &&
	       2 * seen->part[TFT_STATE_RUNNING] > 1;
}

bool tfh_saves_images(const struct tfh_result *r, enum tfh_cause cause)
{
	static const char *const encoders[] = {"/PIL/", "/matplotlib/", "/imageio/",
					       "/torchvision/utils.py", "/torchvision/io/"};
	const char *file = cause == TFH_CAUSE_HOST_LOGGING && r->found.line.callee
				   ? r->found.line.callee_file
				   : NULL;
	bool found = false;

	for (size_t i = 0; file && i < sizeof(encoders) / sizeof(*encoders); i++)
		found |= tfh_is_in_package(file, encoders[i]);
	return found;
}

bool tfh_measures_itself(const struct tfh_result *r, enum tfh_cause cause)
{
	const struct tfh_seen_line *l = &r->found.line;

	return cause == TFH_CAUSE_HOST_LOGGING && tfh_profiles(l->callee_file, l->callee);
}

static bool logs_more_and_more(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_LOGGING && tfh_line_grows(r);
}

bool tfh_callback_evaluates(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_CALLBACK && r->found.line.callee &&
	       r->found.line.callee_file && tfh_makes_pass(r->found.line.callee);
}

static bool is_input(enum tfh_cause cause)
{
	return tfh_cause_part(cause) == TFH_PART_INPUT;
}

static bool makes_graphs(const struct tfh_result *r, enum tfh_cause cause)
{
	bool long_calls = cause == TFH_CAUSE_HOST_COMPILE && !r->pattern.recompiles;

	return (cause == TFH_CAUSE_HOST_LAUNCH || long_calls) && tfh_makes_graphs(r);
}

bool tfh_unloads(const struct tfh_result *r)
{
	return r->pattern.recompiles && 2 * r->pattern.unloads >= r->pattern.recompiles;
}

/* Modules that a compiler loads stay in its cache, so modules that are unloaded again are not a
 * compiler's. */
static bool loads_again(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_COMPILE && tfh_unloads(r);
}

/* The launches replay captured graphs, so capturing is no advice. */
static bool replays_graphs(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_LAUNCH && r->found.replays;
}

static bool prepares_launches(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_LAUNCH && tfh_prepares_launches(r);
}

/* That another thread makes the batches is an assumption: it may also be one that takes results and
 * hands back memory. */
static bool supposes_maker(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_INPUT_UNKNOWN && r->found.supposed;
}

static bool starts_process(const struct tfh_result *r, enum tfh_cause cause)
{
	return tfh_starts_process(r) && tfh_makes_pools(r, cause);
}

static bool waits_for_pool(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_INPUT_UNKNOWN && tfh_waits_for_pool(r);
}

static bool restarts_pipeline(const struct tfh_result *r, enum tfh_cause cause)
{
	return is_input(cause) && r->found.restarts;
}

static bool opens_anew(const struct tfh_result *r, enum tfh_cause cause)
{
	return is_input(cause) && tfh_opens_anew(r);
}

static bool sends_tasks(const struct tfh_result *r, enum tfh_cause cause)
{
	return is_input(cause) && tfh_sends_tasks(r);
}

static bool asker_works(const struct tfh_result *r, enum tfh_cause cause)
{
	return is_input(cause) && r->found.asker_works;
}

static bool waits_for_lock(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_LOCK && tfh_seen_mostly(r, false);
}

static bool waits_for_work(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_CODE && tfh_seen_mostly(r, true);
}

static bool computes_more(const struct tfh_result *r, enum tfh_cause cause)
{
	return tfh_cause_part(cause) == TFH_PART_COMPUTE && tfh_computes_more_s(r) > 0;
}

static bool is_of_objects(const struct tfh_seen_node *n)
{
	return n->file && n->function && tfh_is_in_package(n->file, "/torch/distributed/") &&
	       (tfh_ends_with(n->function, "_object") ||
		tfh_ends_with(n->function, "_object_list"));
}

/* Whether most of what exchanges take is that of Python objects (all_gather_object), which the
 * program waits for at that line: nothing goes on meanwhile that could hide it. */
static bool exchanges_objects(const struct tfh_result *r, enum tfh_cause cause)
{
	double s = 0;

	if (cause != TFH_CAUSE_COMMUNICATION_TRANSFER)
		return false;
	for (uint32_t i = 0; i < r->found.n_node; i++)
		s += is_of_objects(&r->found.node[i]) ? r->found.node[i].s_per_step : 0;
	return s > TFH_VERDICT_MOST_SHARE * r->breakdown[TFH_PART_COMMUNICATION].s_per_step;
}

/* PyTorch's profiler shows no GPU, even a busy one, unless it was asked to. */
static bool is_torch_trace(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_COMPUTE_CPU && r->found.torch && r->found.imported;
}

static bool is_torch_on_cpu(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_COMPUTE_CPU && r->found.torch;
}

static bool is_torch_for_cpu(const struct tfh_result *r, enum tfh_cause cause)
{
	return is_torch_on_cpu(r, cause) && tfh_torch_lacks_cuda(r);
}

/* The lines were sampled, so no other tool is needed to find them. */
static bool delays_seen(const struct tfh_result *r, enum tfh_cause cause)
{
	return r->found.n_node &&
	       (cause == TFH_CAUSE_HOST_PYTHON || cause == TFH_CAUSE_HOST_UNKNOWN);
}

static bool delays_cpu_seen(const struct tfh_result *r, enum tfh_cause cause)
{
	return r->found.cpu_only && delays_seen(r, cause);
}

/* On a CPU alone, nothing else computes while the host's code runs. */
static bool delays_cpu(const struct tfh_result *r, enum tfh_cause cause)
{
	return r->found.cpu_only &&
	       (cause == TFH_CAUSE_HOST_PYTHON || cause == TFH_CAUSE_HOST_UNKNOWN);
}

static bool delays_native(const struct tfh_result *r, enum tfh_cause cause)
{
	return r->found.cpu_only && cause == TFH_CAUSE_HOST_CODE;
}

static bool feeds_torch(const struct tfh_result *r, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_INPUT_UNKNOWN && r->found.torch && !r->n_input;
}

/* The first row that applies. */
static const struct {
	bool (*applies)(const struct tfh_result *r, enum tfh_cause cause);
	struct tfh_remedy remedy;
} kinds[] = {
	{makes_graphs,
	 {"steps make a graph instead of launching one again",
	  "keep the executable graph of each shape and launch it again, or update it (cuGraphExecUpdate)"}},
	{loads_again,
	 {"training steps load modules, and unload them again",
	  "load each module once, before the loop, and keep it until the end"}},
	{replays_graphs,
	 {"what is not in the graph is prepared anew in each step",
	  "capture it, too, or copy into memory that is kept (see the line)"}},
	{prepares_launches,
	 {"each step prepares its launches anew",
	  "let the framework keep what it prepared (jit), or capture the step in a graph and launch that"}},
	{unpacks_batches,
	 {"batches take long to unpack, not to make",
	  "return few large tensors from collate_fn (stack them): each is handed over by itself"}},
	{tfh_saves_images,
	 {"saving images holds up the training loop",
	  "save fewer or smaller ones, or do it in a process of its own"}},
	{tfh_measures_itself,
	 {"a profiler or meter is on",
	  "switch it off, or let it record a few steps only (schedule(..., repeat=1)): it slows down "
	  "what it records, too"}},
	{logs_more_and_more,
	 {"what is logged in a step grows from step to step",
	  "write only what is new (append it to the file) instead of all so far, or write every n-th step"}},
	{starts_process,
	 {TFH_PROCESS_ANEW,
	  "start it once, before the loop, and give it its work through a queue, a step ahead"}},
	{tfh_makes_pools,
	 {TFH_POOL_ANEW,
	  "make it once, before the loop, and have it make the next batch meanwhile (map_async, imap, submit)"}},
	{sends_tasks,
	 {"sending tasks to the pool's processes takes long, not their work",
	  "send less with each: large arrays once (the pool's initializer, shared memory), "
	  "then indices; arguments and results are pickled"}},
	{waits_for_pool,
	 {"the step waits for what it has a pool make",
	  "have it make the next batch meanwhile (map_async, imap, submit); more processes, or less work for each"}},
	{supposes_maker,
	 {"the step waits for another thread before it copies its batch",
	  "top -H shows which thread is busy meanwhile: if it makes batches, make them in "
	  "more threads; if it takes results, make that cheaper"}},
	{restarts_pipeline,
	 {"each step starts the input pipeline anew",
	  "make the iterator once, before the loop (batches = iter(data.repeat())), and call next(batches) in each step"}},
	{opens_anew,
	 {"a file is opened anew for each element",
	  "open it once, in each worker when it is first needed, and keep it open"}},
	{tfh_loads_files,
	 {"loading files takes long",
	  "load once, before the loop, what is the same each time; load the rest ahead, in other processes, or store it decoded"}},
	{asker_works,
	 {"the thread that asks for batches is too slow",
	  "make what it does for each batch (a sampler, see the line) cheaper, or do it once "
	  "before the loop: it runs there, however many workers there are"}},
	{waits_for_lock,
	 {"the step waits for a lock that another thread holds",
	  "hold it for less: do what does not need it before taking it, or give each thread what it needs of its own"}},
	{waits_for_work,
	 {"the step waits for the work of another thread",
	  "see what it runs (top -H; record the job once under `perf record -g`): make that "
	  "cheaper, divide it among more threads, or wait for it a step later"}},
	{computes_more,
	 {"this rank computes longer than the others in each step, and they wait for it",
	  "give all ranks as much work in each step: batches of as many tokens, shards that are "
	  "shuffled before they are divided, layers divided by their cost"}},
	{exchanges_objects,
	 {"ranks exchange Python objects, pickled",
	  "exchange tensors instead, of what the others need, or exchange less often"}},
	{feeds_torch,
	 {"batches come later than they are needed",
	  "make batches ahead, in other processes (a DataLoader with num_workers), or do less for "
	  "each"}},
	{is_torch_trace,
	 {"the step computes on the CPU",
	  "if a GPU did the work, record it, too (activities=[CPU, CUDA]); if one should, "
	  "check torch.cuda.is_available(), and that model and batches are on it; otherwise "
	  "cheaper ops or more CPUs"}},
	{is_torch_for_cpu,
	 {"the step computes on the CPU",
	  "this build of PyTorch (+cpu) uses no GPU: if one should compute, install a build with CUDA; "
	  "otherwise bfloat16 (autocast), cheaper ops or more CPUs"}},
	{is_torch_on_cpu,
	 {"the step computes on the CPU",
	  "if a GPU should do it, check torch.cuda.is_available(), and that model and "
	  "batches are on it; otherwise cheaper ops or more CPUs"}},
	{delays_cpu_seen,
	 {"the step waits for the program's own code",
	  "`tfhook report --where` shows where that time goes: do the largest part less often, or in "
	  "another process"}},
	{delays_seen,
	 {"the step waits for the program's own code",
	  "`tfhook report --where` shows where that time goes: do the largest part less often, in "
	  "another process, or while the device computes"}},
	{delays_cpu,
	 {"the step waits for the program's own code",
	  "see what that thread does (while the job runs: py-spy top, perf top), and do it less often, "
	  "or in another process"}},
	{delays_native,
	 {"the step waits for the program's own code",
	  "see which functions run (record the job once under `perf record -g`), and call them less often, "
	  "or in another thread"}},
};

bool tfh_remedy_evaluates(const struct tfh_result *r, enum tfh_cause cause, struct tfh_remedy *out)
{
	if (!tfh_callback_evaluates(r, cause))
		return false;
	bool keras = tfh_is_in_package(r->found.line.callee_file, "/keras/");
	*out = (struct tfh_remedy){
		"a callback evaluates between training steps",
		keras ? "evaluate less often, or fewer samples; each predict() and evaluate() of Keras makes a "
			"pipeline and compiles it, which model(x) and predict_on_batch(x) do not"
		      : "evaluate less often, or on fewer samples"};
	return true;
}

/* Whether processes make the batches already, and neither more of them nor more time ahead helps:
 * they hardly pause, on processors that have nothing left. */
static bool is_full(const struct tfh_result *r, enum tfh_cause cause)
{
	const struct tfh_seen_workers *k = &r->found.workers;
	double all = r->found.machine.processors;
	bool makes = cause == TFH_CAUSE_INPUT_READ || cause == TFH_CAUSE_INPUT_DECODE ||
		     cause == TFH_CAUSE_INPUT_MAP || cause == TFH_CAUSE_INPUT_BATCH;

	return makes && !r->n_input && k->processes && k->busy >= TFH_VERDICT_WORKERS_BUSY &&
	       (!k->more.to || k->more.from) &&
	       (r->found.machine.busy > 0 ||
		(all > 0 && r->found.contended.busy >= TFH_VERDICT_MACHINE_BUSY * all));
}

struct tfh_remedy tfh_remedy_in(const struct tfh_result *r, enum tfh_cause cause)
{
	struct tfh_remedy m;

	if (!r->lead && tfh_remedy_evaluates(r, cause, &m))
		return m;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].applies(r, cause))
			return kinds[i].remedy;
	if (cause == TFH_CAUSE_HOST_LAUNCH && r->found.cpu_only) /* nothing is launched there */
		return (struct tfh_remedy){r->found.graphs
						   ? "the framework's own work around each step"
						   : "many small ops",
					   tfh_remedy_of(cause).todo};
	m = r->n_input && r->input[0].guilty ? tfh_stage_remedy(r, cause) : tfh_plain_remedy(cause);
	if (is_full(r, cause))
		m.todo =
			"its worker processes are busy, and so are all CPUs: do less for each batch "
			"(read in order, keep what is made, cheaper functions), or use more CPUs";
	return m;
}
