#include "hook/torch/torch.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "hook/driver/driver.h"
#include "hook/python/handled.h"
#include "record/process/settings.h"
#include "record/process/steady.h"

/* ---- torch's side (ATen/record_function.h), the same from 1.12 on ---- */

#define SCOPES 10
#define SCOPE_USER 7

/* at::RecordFunctionCallback, passed by value. */
struct torch_callback {
	void *(*begin)(void **context, const void *range);
	void (*end)(const void *range, void *context);
	double share;
	bool scope[SCOPES];
	bool needs_inputs, needs_outputs, needs_ids;
};
_Static_assert(sizeof(struct torch_callback) == 40, "at::RecordFunctionCallback");

static struct torch_functions {
	uint64_t (*add)(struct torch_callback);
	const char *(*name)(const void *range);
} torch;

/* The first two are called. The others only show that the callback has the layout above: they came
 * with torch 1.12. */
static const char *const symbols[] = {
	"_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE",
	"_ZNK2at14RecordFunction4nameEv",
	"_ZN2at14RecordFunctionC1EONS_13StepCallbacksE",
	"_ZN2at14RecordFunctionC1ENS_11RecordScopeE",
};
#define SYMBOLS (sizeof(symbols) / sizeof(symbols[0]))

/* ---- open ranges ---- */

#define OPEN 1024u
#define PROBES 16u
#define NAME_BYTES 255u

/* Kept here and not on the thread's stack, since a range may end on another thread than it began
 * on. */
static struct torch_range {
	uint64_t range;	  /* atomic: address of torch's object; 0: free */
	uint64_t begin;	  /* ticks; 0: not recorded */
	uint64_t handled; /* of a get-next: tfh_py_stop_iteration() at its beginning */
	uint32_t name, generation;
	uint16_t fn;  /* of a get-next; 0: a range */
	uint8_t kind; /* enum tft_range */
} * open;	      /* atomic: [OPEN] */

static struct torch_range *slot(const struct torch_range *of, uint64_t range, uint32_t probe)
{
	return (struct torch_range *)&of[((range >> 4 ^ range >> 14) + probe) % OPEN];
}

static struct torch_range *claim(uint64_t range)
{
	struct torch_range *of = tfh_memory(&open, OPEN * sizeof(*of), "PyTorch's ranges");

	for (uint32_t i = 0; of && i < PROBES; i++) {
		struct torch_range *r = slot(of, range, i);
		uint64_t none = 0;
		if (__atomic_compare_exchange_n(&r->range, &none, range, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return r;
	}
	return NULL;
}

static struct torch_range *find(uint64_t range)
{
	struct torch_range *of = __atomic_load_n(&open, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; of && i < PROBES; i++) {
		struct torch_range *r = slot(of, range, i);
		if (__atomic_load_n(&r->range, __ATOMIC_ACQUIRE) == range)
			return r;
	}
	return NULL;
}

/* ---- what a range is ---- */

/* TFH_FN_NONE: it is not a get-next. */
static uint16_t get_next(const char *name)
{
	if (!tfh_starts_with(name, "enumerate(Data"))
		return TFH_FN_NONE;
	return strstr(name, "_SingleProcess")  ? TFH_FN_torch_single
	       : strstr(name, "_MultiProcess") ? TFH_FN_torch_multi
					       : TFH_FN_torch_loader;
}

static enum tft_range kind_of(const char *name)
{
#define EXCHANGE_NAME(start, kind)                                                                 \
	if (tfh_starts_with(name, start))                                                          \
		return TFT_RANGE_##kind;
#include "base/exchange_names.def"
#undef EXCHANGE_NAME
	return TFT_RANGE_NOTE;
}

/* Whether this range shows that the process trains. Such ranges start a recording; those of a
 * loader's worker do not. */
static bool trains(const struct torch_range *r, const char *name)
{
	return r->fn || tfh_starts_with(name, "Optimizer.step#");
}

/* Like a mark, a range is not an open call: calls inside have the same depth as without it, and
 * samples show what a loader does. */
static void begin(struct torch_range *r, const char *name)
{
	struct tfh_self *self;
	uint64_t now;

	r->fn = get_next(name);
	r->begin = 0;
	self = tfh_enter(trains(r, name) ? TFH_FN_torch_range : TFH_FN_mark_range, 0, &now);
	if (!self)
		return;
	r->kind = (uint8_t)kind_of(name);
	r->name = tfh_text_id(self, r->fn ? TFT_NAME_ITERATOR : TFT_NAME_STRING, name,
			      strnlen(name, NAME_BYTES));
	r->generation = self->seen.generation;
	r->handled = r->fn ? tfh_py_stop_iteration(self) : 0;
	r->begin = now;
	tfh_leave_quiet(self, now);
}

static void end(const struct torch_range *r)
{
	enum tfh_fn fn = r->fn ? r->fn : TFH_FN_mark_range;
	struct tfh_self *self;
	struct tfh_rec *rec;
	uint64_t now, handled;

	/* In a child forked inside the range, the range belongs to the parent. */
	if (!r->begin || (r->generation ^ tfh_generation()) > 1)
		return;
	self = tfh_enter(fn, r->name, &now);
	if (!self)
		return;
	handled = r->fn ? tfh_py_stop_iteration(self) : 0;
	rec = tfh_leave(self, now, fn, r->fn ? TFT_CALL : TFT_RANGE);
	if (!rec)
		return;
	if (handled && handled != r->handled) /* the with statement is left by it */
		rec->flags |= TFT_F_OPTIONAL;
	rec->t_begin = r->begin;
	rec->w[0] = r->name;
	rec->w[1] = r->fn ? 0 : r->kind;
	rec->w[2] = r->fn ? rec->t_end - r->begin : 0;
	tfh_publish(self, 1);
}

/* ---- called by torch ---- */

static void *on_begin(void **context, const void *range)
{
	int saved_errno = errno;
	struct torch_range *r = NULL;
	const char *name;

	*context = NULL;
	if (tfh_mode != TFH_MODE_DEAD)
		r = claim((uint64_t)(uintptr_t)range);
	if (r) {
		name = torch.name(range);
		begin(r, name ? name : "");
	}
	errno = saved_errno;
	return context;
}

static void on_end(const void *range, void *context)
{
	int saved_errno = errno;
	struct torch_range *r = find((uint64_t)(uintptr_t)range);

	(void)context;
	if (r) {
		end(r);
		__atomic_store_n(&r->range, 0, __ATOMIC_RELEASE);
	}
	errno = saved_errno;
}

/* ---- registering with torch ---- */

static int is_torch(struct dl_phdr_info *info, size_t size, void *path)
{
	const char *name = info->dlpi_name, *slash = name ? strrchr(name, '/') : NULL;

	(void)size;
	if (!slash || strcmp(slash, "/libtorch_cpu.so") != 0)
		return 0;
	snprintf(path, PATH_MAX, "%s", name);
	return 1;
}

/* The outcome, for the recording. NULL: torch is not loaded. */
static const char *ask(void)
{
	char path[PATH_MAX] = "";
	void *library, *found[SYMBOLS];

	if (!tfh_each_object(is_torch, path))
		return NULL;
	library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY); /* stays open: it must not be unloaded */
	if (!library) {
		dlerror();
		return NULL;
	}
	tfh_torch_settings(library);
	for (size_t i = 0; i < SYMBOLS; i++) {
		found[i] = dlsym(library, symbols[i]);
		if (!found[i]) {
			dlerror(); /* the job must not see this failure */
			return "not recorded: this version's ranges have another form (known: 1.12 "
			       "and later)";
		}
	}
	torch.add = (uint64_t(*)(struct torch_callback))found[0];
	torch.name = (const char *(*)(const void *))found[1];
	torch.add((struct torch_callback){
		.begin = on_begin, .end = on_end, .share = 1, .scope[SCOPE_USER] = true});
	return "recorded";
}

bool tfh_torch_wanted(void)
{
	return tfh_mode != TFH_MODE_DEAD && tfh_setting(TFH_OPT_TORCH);
}

void tfh_torch_find(void)
{
	static uint32_t state; /* atomic: 0 not asked, 1 being asked, 2 done */
	int saved_errno = errno;
	struct tfh_steady steady;
	const char *what;
	uint32_t none = 0;

	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) || !tfh_torch_wanted() ||
	    !__atomic_compare_exchange_n(&state, &none, 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	tfh_steady_begin(&steady);
	what = ask();
	tfh_steady_end(&steady);
	if (what)
		tfh_note_torch(what);
	__atomic_store_n(&state, what ? 2 : 0, __ATOMIC_RELEASE);
	errno = saved_errno;
}

uint32_t tfh_torch_backward_name(struct tfh_self *self)
{
	static const char name[] = "Engine::execute";

	return tfh_text_id(self, TFT_NAME_OP, name, sizeof(name) - 1);
}
