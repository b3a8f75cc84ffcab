/*
 * A stand-in for torch's library: the same mangled names, the same classes as far as callbacks see them, and functions
 * that do what torch's Python does with ranges. liboldtorch.cc is one of before 1.12.
 */
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define SHOWN __attribute__((visibility("default")))

namespace at
{
class Tensor
{
};
struct ObserverContext {
	virtual ~ObserverContext() = default;
};
enum class RecordScope : uint8_t { FUNCTION = 0, USER_SCOPE = 7, NUM_SCOPES = 10 };
class StepCallbacks
{
};
class RecordFunction;

struct RecordFunctionCallback {
	std::unique_ptr<ObserverContext> (*start)(const RecordFunction &);
	void (*end)(const RecordFunction &, ObserverContext *);
	double sampling_prob;
	bool scopes[10];
	bool needs_inputs, needs_outputs, needs_ids;
};

static RecordFunctionCallback callback;
static int callbacks;

SHOWN uint64_t addGlobalCallback(RecordFunctionCallback cb)
{
	callback = cb;
	return (uint64_t)++callbacks;
}

class RecordFunction
{
	std::string text;
	std::unique_ptr<ObserverContext> context;

      public:
	SHOWN explicit RecordFunction(RecordScope scope);
	SHOWN explicit RecordFunction(StepCallbacks &&steps);
	SHOWN const char *name() const;
	void before(const char *what)
	{
		text = what;
		if (callbacks)
			context = callback.start(*this);
	}
	void end()
	{
		if (callbacks)
			callback.end(*this, context.get());
	}
};
#ifndef OLD
RecordFunction::RecordFunction(RecordScope)
{
}
RecordFunction::RecordFunction(StepCallbacks &&)
{
}
const char *RecordFunction::name() const
{
	return text.c_str();
}
#endif
} // namespace at

namespace torch::autograd
{
struct Edge {
};
struct Engine {
	SHOWN __attribute__((weak)) std::vector<at::Tensor>
	execute(const std::vector<Edge> &roots, const std::vector<at::Tensor> &inputs, bool keep,
		bool create, bool accumulate, const std::vector<Edge> &outputs);
};
std::vector<at::Tensor> Engine::execute(const std::vector<Edge> &roots,
					const std::vector<at::Tensor> &inputs, bool keep,
					bool create, bool accumulate,
					const std::vector<Edge> &outputs)
{
	if (create)
		throw std::runtime_error("backward fails");
	return std::vector<at::Tensor>(roots.size() + 10 * inputs.size() + 100 * outputs.size() +
				       keep + accumulate);
}
} // namespace torch::autograd

#ifndef OLD
/* For ctypes: a range begins, and ends on whichever thread. */
extern "C" SHOWN void *range_begin(const char *name)
{
	auto *r = new at::RecordFunction(at::RecordScope::USER_SCOPE);
	r->before(name);
	return r;
}

extern "C" SHOWN void range_end(void *range)
{
	auto *r = static_cast<at::RecordFunction *>(range);
	r->end();
	delete r;
}

extern "C" SHOWN int registered()
{
	return at::callbacks;
}

static int callback_size_ok()
{
	const at::RecordFunctionCallback &c = at::callback;

	return c.sampling_prob == 1 && c.scopes[7] && !c.scopes[0] && !c.needs_inputs &&
	       !c.needs_outputs && !c.needs_ids;
}

extern "C" SHOWN int registered_well()
{
	return at::callbacks == 1 && callback_size_ok();
}

/* Nested ranges on threads at the same time. */
extern "C" SHOWN void many_ranges(int threads, int n)
{
	std::vector<std::thread> all;

	for (int t = 0; t < threads; t++)
		all.emplace_back([n] {
			for (int i = 0; i < n; i++) {
				void *outer = range_begin("outer"), *inner = range_begin("inner");
				range_end(inner);
				range_end(outer);
			}
		});
	for (auto &t : all)
		t.join();
}
#endif

/* -1: it threw. */
extern "C" SHOWN int backward(int fails)
{
	torch::autograd::Engine engine;
	std::vector<torch::autograd::Edge> roots(2), outputs(4);
	std::vector<at::Tensor> inputs(3);

	try {
		return (int)engine.execute(roots, inputs, true, fails, true, outputs).size();
	} catch (const std::runtime_error &e) {
		return strcmp(e.what(), "backward fails") ? -2 : -1;
	}
}

extern "C" SHOWN void PyInit_mock()
{
}
