/* Common start and end of every call; start-up, fork and exit of the driver; time helpers. */
#include "sim/gpu/api.h"
#include "sim/gpu/native.h"
#include "sim/gpu/tools.h"
#include "sim/gpu/entry/variant.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum sim_state sim_state;
__thread bool sim_in_callback;
struct sim_device sim_dev[SIM_MAX_DEVICES];
static uint64_t calls, ids = 100; /* small numbers are reserved for default streams */

long sim_tid(void)
{
	static __thread long tid;
	if (!tid)
		tid = syscall(SYS_gettid);
	return tid;
}

uint64_t sim_new_id(void)
{
	return __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
}

CUresult sim_injected(const char *name)
{
	for (int i = 0; i < sim_cfg.nfails; i++) {
		struct sim_fail *f = &sim_cfg.fails[i];
		if (!strcmp(f->name, name) &&
		    (!f->nth || __atomic_add_fetch(&f->seen, 1, __ATOMIC_RELAXED) == f->nth))
			return (CUresult)f->code;
	}
	return CUDA_SUCCESS;
}

CUresult sim_enter(struct sim_call *c, const char *name, enum sim_need need, bool per_thread)
{
	memset(c, 0, sizeof(*c));
	c->name = name;
	c->per_thread = per_thread;
	if (sim_state == SIM_EXITED)
		return CUDA_ERROR_DEINITIALIZED;
	if (sim_state == SIM_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED;
	sim_config_load();
	c->no = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	if (sim_truth_on)
		c->t0 = sim_now();
	if (sim_tools_on)
		sim_tools_enter(c);
	if (sim_cfg.nfails) {
		CUresult r = sim_injected(name);
		if (r)
			return r;
	}
	if (need == SIM_NEED_NONE)
		return CUDA_SUCCESS;
	if (sim_state != SIM_READY)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sim_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	if (__atomic_load_n(&sim_captures, __ATOMIC_RELAXED)) {
		CUresult r = sim_capture_check(name);
		if (r)
			return r;
	}
	if (need == SIM_NEED_CTX) {
		struct sim_ctx *ctx = sim_ctx_current();
		if (!ctx)
			return CUDA_ERROR_INVALID_CONTEXT;
		if (ctx->magic != SIM_MAGIC_CTX)
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		return ctx->sticky;
	}
	return CUDA_SUCCESS;
}

CUresult sim_leave(struct sim_call *c, CUresult r)
{
	if (c->tool)
		sim_tools_leave(c, r);
	if (c->t0)
		sim_truth_call(c, sim_now(), r);
	return r;
}

static void in_child(void)
{
	if (sim_state == SIM_READY)
		sim_state = SIM_FORKED;
	sim_truth_on = false;
}

static void at_exit(void)
{
	if (sim_state != SIM_READY)
		return;
	sim_state = SIM_EXITED;
	sim_truth_close();
}

/* The engines' threads run code of this library, so it stays loaded after dlclose. */
static void stay(void)
{
	Dl_info self;
	if (dladdr((void *)stay, &self))
		dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static void start(void)
{
	stay();
	sim_truth_open();
	if (sim_cfg.init_delay_ns && !sim_cfg.error[0])
		sim_sleep_until(sim_now() + sim_cfg.init_delay_ns);
	if (sim_cfg.error[0]) {
		fprintf(stderr, "simulated GPU: %s\n", sim_cfg.error);
		return;
	}
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		sim_dev[i].index = i;
	sim_engine_init();
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
	sim_state = SIM_READY;
	if (sim_cfg.self_lookup)
		sim_self_lookup();
}

static CUresult init(struct sim_call *c, unsigned flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_once(&once, start);
	if (sim_cfg.error[0])
		return CUDA_ERROR_SYSTEM_NOT_READY;
	if (sim_truth_on && !c->t0)
		c->t0 = sim_now();
	return sim_cfg.devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

static CUresult version(struct sim_call *c, int *v)
{
	(void)c;
	if (!v)
		return CUDA_ERROR_INVALID_VALUE;
	*v = sim_cfg.driver_version;
	return CUDA_SUCCESS;
}

static const struct {
	int code;
	const char *name;
} errors[] = {
#define SIM_ERROR(name, value) {value, #name},
#include "sim/gpu/errors.def"
#undef SIM_ERROR
};

static CUresult error_name(struct sim_call *c, CUresult e, const char **s)
{
	(void)c;
	if (!s)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].code == (int)e) {
			*s = errors[i].name;
			return CUDA_SUCCESS;
		}
	}
	*s = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult export_table(struct sim_call *c, const void **t, const CUuuid *id)
{
	(void)c;
	if (!t || !id)
		return CUDA_ERROR_INVALID_VALUE;
	*t = NULL;
	if (!memcmp(id->bytes, SIM_TOOLS_UUID, sizeof(id->bytes)))
		*t = &sim_tools_table;
	if (!memcmp(id->bytes, SIM_NATIVE_UUID, sizeof(id->bytes)))
		*t = &sim_native_table;
	return *t ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult nothing(struct sim_call *c)
{
	(void)c;
	return CUDA_SUCCESS;
}

SIM_API(cuInit, SIM_NEED_NONE, init, (unsigned flags), (flags))
SIM_API(cuDriverGetVersion, SIM_NEED_NONE, version, (int *v), (v))
SIM_API(cuGetErrorName, SIM_NEED_NONE, error_name, (CUresult e, const char **s), (e, s))
SIM_API(cuGetErrorString, SIM_NEED_NONE, error_name, (CUresult e, const char **s), (e, s))
SIM_API(cuGetExportTable, SIM_NEED_NONE, export_table, (const void **t, const CUuuid *id), (t, id))
SIM_API(cuProfilerStart, SIM_NEED_CTX, nothing, (void), ())
SIM_API(cuProfilerStop, SIM_NEED_CTX, nothing, (void), ())
