/*
 * Which Python is in the process. It may be the program itself (Debian's python3) or
 * libpython3.x.so, loaded at the start or by dlopen. Its symbols are looked up on the flusher,
 * since that takes the loader's lock; after that, the loader is not needed.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "hook/driver/driver.h"
#include "hook/python/version.h"
#include "record/process/log.h"
#include "record/process/recorder.h"

static struct tfh_py found;
static const struct tfh_py *here; /* atomic: &found, once it is filled */
static const char *refusal;	  /* atomic */

const struct tfh_py *tfh_py(void)
{
	return __atomic_load_n(&here, __ATOMIC_ACQUIRE);
}

const char *tfh_py_refusal(void)
{
	return __atomic_load_n(&refusal, __ATOMIC_ACQUIRE);
}

static void refuse(const char *why)
{
	__atomic_store_n(&refusal, why, __ATOMIC_RELEASE);
	tfh_log(1, "no lines of Python: %s", why);
}

/* ---- what the interpreter exports ---- */

struct names {
	const char *runtime;
	const void *code_type, *stop_iteration;
	const unsigned long *version;	   /* from 3.11 on */
	const char *(*version_text)(void); /* "3.10.13 (main, ..." */
	void *state_of_thread, *state_attached, *finalizing, *newest, *main;
};

static void *name_in(void *handle, const char *name)
{
	void *at = tfh_next_dlsym(handle, name);

	if (!at)
		dlerror();
	return at;
}

/* Looks up either of two names: some became public with 3.13. */
static void *either_in(void *handle, const char *name, const char *older)
{
	void *at = name_in(handle, name);

	return at ? at : name_in(handle, older);
}

static bool read_names(void *handle, struct names *n)
{
	n->runtime = name_in(handle, "_PyRuntime");
	n->code_type = name_in(handle, "PyCode_Type");
	n->stop_iteration = name_in(handle, "PyExc_StopIteration");
	n->version = name_in(handle, "Py_Version");
	n->version_text = (const char *(*)(void))name_in(handle, "Py_GetVersion");
	n->state_of_thread = name_in(handle, "PyGILState_GetThisThreadState");
	n->state_attached =
		either_in(handle, "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
	n->finalizing = either_in(handle, "Py_IsFinalizing", "_Py_IsFinalizing");
	n->newest = name_in(handle, "PyInterpreterState_Head");
	n->main = name_in(handle, "PyInterpreterState_Main");
	return n->runtime && n->code_type && (n->version || n->version_text) &&
	       n->state_of_thread && n->state_attached && n->finalizing && n->newest && n->main;
}

static bool read_version(const struct names *n, unsigned *minor)
{
	unsigned major = 0;

	*minor = 0;
	if (n->version) {
		major = (unsigned)(*n->version >> 24);
		*minor = (unsigned)(*n->version >> 16) & 0xff;
	} else {
		sscanf(n->version_text(), "%u.%u", &major, minor);
	}
	return major == 3;
}

/* ---- deciding ---- */

static const char *judge(const struct names *n, struct tfh_py *py)
{
	if (!read_version(n, &py->minor))
		py->minor = 0;
	return tfh_py_unreadable(py->minor, n->version ? *n->version : 0, n->runtime, &py->at);
}

static void take(const struct names *n)
{
	const char *why = judge(n, &found);

	if (why) {
		refuse(why);
		return;
	}
	found.runtime = n->runtime;
	found.code_type = (uint64_t)(uintptr_t)n->code_type;
	found.stop_iteration = n->stop_iteration;
	found.state_of_thread = (void *(*)(void))n->state_of_thread;
	found.state_attached = (void *(*)(void))n->state_attached;
	found.finalizing = (int (*)(void))n->finalizing;
	found.newest_interpreter = (void *(*)(void))n->newest;
	found.main_interpreter = (void *(*)(void))n->main;
	__atomic_store_n(&here, &found, __ATOMIC_RELEASE);
	tfh_log(1, "lines of Python 3.%u", found.minor);
}

/* ---- looking ---- */

#define PATHS 4

struct search {
	unsigned long long changes, known;
	char path[PATHS][PATH_MAX]; /* "": the program */
	unsigned n;
};

/* Runs under the loader's lock, so it only copies. */
static int collect(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	const char *file = tfh_file_of(info->dlpi_name);
	size_t bytes = strlen(info->dlpi_name) + 1;

	(void)size;
	s->changes = info->dlpi_adds + info->dlpi_subs;
	if (s->changes == s->known)
		return 1;
	if ((!*file || !strncmp(file, "libpython3", 10)) && s->n < PATHS && bytes <= PATH_MAX)
		memcpy(s->path[s->n++], info->dlpi_name, bytes);
	return 0;
}

/* A library that is found stays loaded: its symbols are used for as long as the process lives. */
static bool look_in(const char *path)
{
	void *handle = dlopen(*path ? path : NULL, RTLD_NOLOAD | RTLD_LAZY);
	struct names n;
	bool python;

	if (!handle) {
		dlerror();
		return false;
	}
	python = name_in(handle, "_PyRuntime") != NULL;
	if (!python) {
		dlclose(handle);
		return false;
	}
	if (read_names(handle, &n))
		take(&n);
	else
		refuse("the interpreter does not export what is needed to read its stacks");
	return true;
}

void tfh_py_find(void)
{
	static unsigned long long known;
	struct search s;

	if (tfh_py() || tfh_py_refusal())
		return;
	s.n = 0;
	s.known = known;
	tfh_each_object(collect, &s);
	known = s.changes;
	for (unsigned i = 0; i < s.n; i++)
		if (look_in(s.path[i]))
			return;
}
