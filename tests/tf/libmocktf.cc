/*
 * A stand-in for TensorFlow's libraries: the same mangled names, class shapes and calls across
 * them, in 300 lines.
 *
 * Status is returned through a hidden pointer here; libmocktfreg.cc builds the same file with a
 * Status in a register. Left out on purpose: IteratorGetNextAsOptionalOp, so that a missing symbol
 * is part of every test.
 */
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#define SHOWN __attribute__((visibility("default")))
/* TensorFlow calls these from another library. Weak: no compiler takes the call within this file
 * for a local one. */
#define ACROSS __attribute__((visibility("default"), weak))

namespace tensorflow
{
class Tensor
{
};
class OpKernelContext
{
};

#ifdef STATUS_IN_REGISTER
struct Status {
	long code;
};
#else
struct Status {
	long code;
	Status(long c) : code(c)
	{
	}
	Status(const Status &other) : code(other.code)
	{
	}
	~Status()
	{
	}
};
#endif

namespace data
{
class IteratorContext
{
};

class IteratorBase
{
      public:
	virtual ~IteratorBase()
	{
	}
	virtual Status GetNext(IteratorContext *, std::vector<Tensor> *, bool *) = 0;

      protected:
	std::vector<int> cleanup_;
	const IteratorBase *parent_ = nullptr;
	uint64_t id_ = 0, parent_id_ = 0;
};

class SHOWN DatasetBaseIterator : public IteratorBase
{
      public:
	DatasetBaseIterator(const std::string &prefix, const DatasetBaseIterator *parent);
	ACROSS ~DatasetBaseIterator() override;
	Status GetNext(IteratorContext *, std::vector<Tensor> *, bool *) final;
	std::string BuildTraceMeName();
	virtual Status GetNextInternal(IteratorContext *, std::vector<Tensor> *, bool *) = 0;

      protected:
	void *dataset_ = nullptr;
	std::string prefix_;
};

DatasetBaseIterator::DatasetBaseIterator(const std::string &prefix,
					 const DatasetBaseIterator *parent)
    : prefix_(parent ? parent->prefix_ + "::" + prefix : prefix)
{
	parent_ = parent;
	id_ = std::hash<std::string>()(prefix_) ^ reinterpret_cast<uint64_t>(this);
	parent_id_ = parent ? parent->id_ : 0;
}

DatasetBaseIterator::~DatasetBaseIterator()
{
}

Status DatasetBaseIterator::GetNext(IteratorContext *ctx, std::vector<Tensor> *out, bool *end)
{
	return GetNextInternal(ctx, out, end);
}

std::string DatasetBaseIterator::BuildTraceMeName()
{
	std::string text = prefix_ + "#name=mock,shapes=[?],id=" + std::to_string(id_);
	if (parent_id_)
		text += ",parent_id=" + std::to_string(parent_id_);
	return text + "#";
}

enum Fault { NONE, THROW, EXIT, JUMP, TRACE };
static Fault fault;
static jmp_buf escape;
static bool trace_whole;
static unsigned source_us;

/* The stack can be walked through every wrapper, out to the function that the test program called.
 */
static bool reaches_caller(void *const *stack, int n)
{
	Dl_info info;

	for (int i = 0; i < n; i++) {
		if (dladdr(stack[i], &info) && info.dli_sname &&
		    !strcmp(info.dli_sname, "mock_run"))
			return true;
	}
	return false;
}

/* The innermost stage: does what the test wants to go wrong. */
class Range : public DatasetBaseIterator
{
      public:
	Range(const DatasetBaseIterator *parent, int n)
	    : DatasetBaseIterator("Range", parent), left_(n)
	{
	}
	Status GetNextInternal(IteratorContext *, std::vector<Tensor> *, bool *end) override
	{
		void *stack[64];

		if (source_us)
			usleep(source_us);
		switch (fault) {
		case THROW:
			throw std::runtime_error("out of batches");
		case EXIT:
			pthread_exit(reinterpret_cast<void *>(77));
		case JUMP:
			longjmp(escape, 1);
		case TRACE:
			trace_whole = reaches_caller(stack, backtrace(stack, 64));
			break;
		case NONE:
			break;
		}
		*end = left_-- <= 0;
		return Status{0};
	}

      private:
	int left_;
};

class Stage : public DatasetBaseIterator
{
      public:
	Stage(const char *name, const DatasetBaseIterator *parent)
	    : DatasetBaseIterator(name, parent)
	{
	}
	~Stage() override
	{
		delete input_;
	}
	Status GetNextInternal(IteratorContext *ctx, std::vector<Tensor> *out, bool *end) override
	{
		return input_->GetNext(ctx, out, end);
	}
	IteratorBase *input_ = nullptr;
};

class SHOWN IteratorResource
{
      public:
	Status GetNext(OpKernelContext *, std::vector<Tensor> *, bool *);
	void Set(int n);
	~IteratorResource()
	{
		delete root_;
	}

      private:
	Stage *root_ = nullptr;
};

void IteratorResource::Set(int n)
{
	delete root_;
	root_ = new Stage("Iterator::Root", nullptr);
	Stage *batch = new Stage("BatchV2", root_);
	root_->input_ = batch;
	batch->input_ = new Range(batch, n);
}

Status IteratorResource::GetNext(OpKernelContext *, std::vector<Tensor> *out, bool *end)
{
	IteratorContext ctx;

	return static_cast<IteratorBase *>(root_)->GetNext(&ctx, out, end);
}

class SHOWN IteratorGetNextOp
{
      public:
	virtual ~IteratorGetNextOp()
	{
	}
	virtual Status DoCompute(OpKernelContext *ctx);
	IteratorResource *resource = nullptr;
	bool end = false;
};

Status IteratorGetNextOp::DoCompute(OpKernelContext *ctx)
{
	std::vector<Tensor> out;

	return resource->GetNext(ctx, &out, &end);
}
} // namespace data
} // namespace tensorflow

using namespace tensorflow;
using namespace tensorflow::data;

/* ---- the C interface ---- */

struct TFE_Op {
	const char *name;
};
struct TF_Output {
	const char **operation;
	int index;
};

extern "C" {
SHOWN const char *TFE_OpGetName(TFE_Op *op, void *status)
{
	return status ? op->name : nullptr;
}

SHOWN void *TF_NewStatus(void)
{
	return calloc(1, 16);
}

SHOWN const char *TF_OperationName(const char **operation)
{
	return *operation;
}

ACROSS void TFE_Execute(TFE_Op *op, void **out, int *count, void *status)
{
	(void)status;
	out[0] = op;
	*count = 1;
}

static long session_sum;

ACROSS void TF_SessionRun(void *session, const void *options, const TF_Output *inputs,
			  void *const *values, int ninputs, const TF_Output *outputs,
			  void **output_values, int noutputs, const void *const *targets,
			  int ntargets, void *metadata, void *status)
{
	session_sum = (long)session + (long)options * 2 + (long)inputs * 3 + (long)values * 4 +
		      ninputs * 5 + (outputs ? 6 : 0) + (long)output_values * 7 + noutputs * 8 +
		      (targets ? 9 : 0) + ntargets * 10 + (long)metadata * 11 + (long)status * 12;
}
}

/* ---- cases, called by mock.cc ---- */

static Status once(IteratorGetNextOp *op)
{
	OpKernelContext ctx;

	return op->DoCompute(&ctx);
}

static void *exiting(void *op)
{
	once(static_cast<IteratorGetNextOp *>(op));
	return nullptr;
}

static bool throws(IteratorGetNextOp *op)
{
	try {
		once(op);
	} catch (const std::runtime_error &error) {
		return !strcmp(error.what(), "out of batches");
	}
	return false;
}

static int bad_ways_out(IteratorGetNextOp *op)
{
	pthread_t thread;
	void *result = nullptr;

	fault = THROW;
	for (int i = 0; i < 3; i++) {
		if (!throws(op))
			return 10;
	}
	fault = EXIT;
	pthread_create(&thread, nullptr, exiting, op);
	pthread_join(thread, &result);
	if (result != reinterpret_cast<void *>(77))
		return 11;
	fault = JUMP;
	if (!setjmp(escape))
		once(op);
	fault = TRACE;
	once(op);
	fault = NONE;
	return trace_whole ? 0 : 12;
}

extern "C" SHOWN int mock_run(int batches, unsigned us, int faults)
{
	IteratorResource resource;
	IteratorGetNextOp op;
	int n = 0, result = 0;

	source_us = us;
	resource.Set(batches);
	op.resource = &resource;
	if (faults) {
		resource.Set(1000000);
		result = bad_ways_out(&op);
		resource.Set(batches);
	}
	for (op.end = false; !op.end; n++) {
		if (once(&op).code)
			return 20;
	}
	resource.Set(batches); /* a second epoch, likely at the same addresses */
	for (op.end = false; !op.end; n++)
		once(&op);
	return result ? result : n == 2 * (batches + 1) ? 0 : 21;
}

extern "C" SHOWN int mock_eager(int n)
{
	static const char *names[] = {"MatMul", "AddV2", "__inference_train_step_42"};
	TFE_Op op;
	void *out[1];

	for (int i = 0; i < n; i++) {
		int count = 7;

		op.name = names[i % 3];
		TFE_Execute(&op, out, &count, nullptr);
		if (count != 1 || out[0] != &op)
			return 30;
	}
	return 0;
}

extern "C" SHOWN int mock_session(int n)
{
	static const char *train = "train_op", *loss = "loss";
	const TF_Output outputs[] = {{&loss, 0}};
	const void *const targets[] = {&train};

	for (long i = 0; i < n; i++) {
		TF_SessionRun((void *)i, (void *)2, (TF_Output *)3, (void **)4, 5, outputs,
			      (void **)7, 1, targets, 1, (void *)11, (void *)12);
		if (session_sum != i + 4 + 9 + 16 + 25 + 6 + 49 + 8 + 9 + 10 + 121 + 144)
			return 40;
	}
	return 0;
}
