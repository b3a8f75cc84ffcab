/*
 * The dlsym hook: decides what dlsym.S returns instead of the result of the real dlsym or dlvsym.
 */
#include "hook/driver/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "hook/cupti/cupti.h"
#include "hook/nccl.h"
#include "hook/torch/torch.h"
#include "hook/within.h"
#include "record/record.h"

#pragma GCC visibility push(hidden)
/* This library's own export; `dlsym` itself may be bound to another object here. */
void *tfh_dlsym(void *handle, const char *name);
void *tfh_dlvsym(void *handle, const char *name, const char *version);
void *tfh_filter_dlsym(void *handle, const char *name, const void *caller);
void *tfh_filter_dlvsym(void *handle, const char *name, const char *version, const void *caller);
#pragma GCC visibility pop

static bool cupti_name(const char *name)
{
	return !strncmp(name, "cupti", 5);
}

/* Whether a hook may exist for the name. */
static bool our_name(const char *name)
{
	return tfh_driver_name(name) || cupti_name(name) || tfh_nccl_name(name);
}

/* Returns the answer that replaces `found`. */
static void *routed(const char *name, void *found, const void *caller)
{
	if (cupti_name(name)) {
		void *hook = tfh_in_vendor(caller) ? NULL : tfh_share_hook(name, found);
		return hook ? hook : found;
	}
	if (tfh_nccl_name(name)) {
		void *hook = tfh_nccl_hook(name, found);
		return hook ? hook : found;
	}
	enum tfh_fn fn = tfh_fn_find(name);

	if (fn == TFH_FN_NONE) {
		if (!tfh_left_alone(name, false) && tfh_in_driver(found) && !tfh_in_vendor(caller))
			tfh_unhooked(name);
		return found;
	}
	if (tfh_is_hook(found) || tfh_in_vendor(caller))
		return found;
	/* If a second preload replaces the driver's functions, its function is in `real`, and the
	 * hook calls it. */
	if (found == tfh_real_find(fn))
		return tfh_hook_of(fn);
	if (tfh_in_driver(found))
		tfh_unhooked(name); /* of a second driver */
	return found;
}

/* For the audit library (lib/audit), which sees bindings that bypass a preload. Returns what a
 * program that asked for `name` gets instead of the driver's function `found`. */
__attribute__((visibility("default"))) void *tfhook_route(const char *name, void *found);

void *tfhook_route(const char *name, void *found)
{
	tfh_lookup_init();
	return our_name(name) ? routed(name, found, NULL) : found;
}

/* Lookups by tfhook itself, and by a preload that replaces the driver's functions, may re-enter
 * here. */
static __thread tfh_within looking __attribute__((tls_model("initial-exec")));

static bool concerns_us(void *handle, const char *name)
{
	tfh_lookup_init();
	/* RTLD_DEFAULT and RTLD_NEXT refer to the caller's scope; tfhook's exports come first in
	 * the global one. */
	return name && our_name(name) && handle != RTLD_DEFAULT && handle != RTLD_NEXT &&
	       !tfh_is_within(looking, TFH_HERE);
}

/* Python looks up such a name in every module, and torch's own module comes with its libraries. */
static bool python_module(const char *name)
{
	return name && name[0] == 'P' && !strncmp(name, "PyInit_", strlen("PyInit_"));
}

void *tfh_filter_dlsym(void *handle, const char *name, const void *caller)
{
	int saved_errno = errno;
	void *found = NULL;

	if (tfh_unlikely(python_module(name)))
		tfh_torch_find();
	if (tfh_unlikely(concerns_us(handle, name))) {
		looking = TFH_HERE;
		/* NULL: the jump that follows repeats the lookup, so the job reads its own error.
		 */
		found = tfh_next_dlsym(handle, name);
		if (found)
			found = routed(name, found, caller);
		looking = NULL;
	}
	errno = saved_errno;
	return found;
}

void *tfh_filter_dlvsym(void *handle, const char *name, const char *version, const void *caller)
{
	int saved_errno = errno;
	void *found = NULL;

	tfh_lookup_init();
	/* If an earlier preload looks up the next dlsym by version, it means this one, but glibc
	 * then ignores names without a version. */
	if (tfh_unlikely(name && handle == RTLD_NEXT && name[0] == 'd') &&
	    tfh_loaded_before_us(caller)) {
		if (!strcmp(name, "dlsym"))
			found = (void *)tfh_dlsym;
		else if (!strcmp(name, "dlvsym"))
			found = (void *)tfh_dlvsym;
	} else if (tfh_unlikely(concerns_us(handle, name))) {
		looking = TFH_HERE;
		found = tfh_next_dlvsym(handle, name, version);
		if (found)
			found = routed(name, found, caller);
		looking = NULL;
	}
	errno = saved_errno;
	return found;
}
