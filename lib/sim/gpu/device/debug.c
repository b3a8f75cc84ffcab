/*
 * Debugging functions: core dump settings, which are stored per process for all contexts; the error
 * log, which is always empty; notifications, which are never sent.
 */
#include "sim/gpu/objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- core dumps ---- */
enum { ON_EXCEPTION = 1, TRIGGER_HOST, LIGHTWEIGHT, USER_TRIGGER, FILE_NAME, PIPE, GENERATION };
enum { TEXT = 1024 };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static bool flags[USER_TRIGGER + 1] = {[TRIGGER_HOST] = true};
static char text[2][TEXT];
static unsigned generation;

/* With mu: where the value of a setting is, and its size. */
static void *value_of(int what, size_t *n)
{
	static const char *const names[] = {"core.cuda", "corepipe.cuda"};
	if (what >= ON_EXCEPTION && what <= USER_TRIGGER) {
		*n = sizeof(bool);
		return &flags[what];
	}
	if (what == GENERATION) {
		*n = sizeof(generation);
		return &generation;
	}
	if (what != FILE_NAME && what != PIPE)
		return NULL;
	char *t = text[what - FILE_NAME], host[65] = "";
	if (!*t) {
		gethostname(host, sizeof(host) - 1);
		snprintf(t, TEXT, "%s.%s.%d", names[what - FILE_NAME], host, (int)getpid());
	}
	*n = strlen(t) + 1;
	return t;
}

static CUresult get_setting(struct sim_call *c, int what, void *value, size_t *size)
{
	size_t n = 0;
	(void)c;
	pthread_mutex_lock(&mu);
	const void *v = size ? value_of(what, &n) : NULL;
	CUresult r = v && (!value || *size >= n) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (!r && value)
		memcpy(value, v, n);
	if (!r)
		*size = n;
	pthread_mutex_unlock(&mu);
	return r;
}

static CUresult set_setting(struct sim_call *c, int what, const void *value, size_t *size)
{
	size_t n = 0;
	(void)c;
	if (!value || !size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&mu);
	void *v = value_of(what, &n);
	bool is_text = what == FILE_NAME || what == PIPE;
	bool fits = v && (is_text ? *size && *size <= TEXT : *size == n);
	if (fits) {
		memcpy(v, value, *size);
		if (is_text)
			((char *)v)[*size < TEXT ? *size : TEXT - 1] = 0;
	}
	pthread_mutex_unlock(&mu);
	return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- the error log ---- */
static CUresult log_current(struct sim_call *c, unsigned *iterator, unsigned none)
{
	(void)c;
	if (!iterator || none)
		return CUDA_ERROR_INVALID_VALUE;
	*iterator = 0;
	return CUDA_SUCCESS;
}

static CUresult log_to_file(struct sim_call *c, unsigned *iterator, const char *path, unsigned none)
{
	(void)c;
	(void)iterator;
	FILE *f = path && !none ? fopen(path, "ae") : NULL;
	if (!f)
		return CUDA_ERROR_INVALID_VALUE;
	fclose(f);
	return CUDA_SUCCESS;
}

static CUresult log_to_memory(struct sim_call *c, unsigned *iterator, char *buffer, size_t *size,
			      unsigned none)
{
	(void)c;
	(void)iterator;
	if (!buffer || !size || !*size || none)
		return CUDA_ERROR_INVALID_VALUE;
	*buffer = 0;
	*size = 0;
	return CUDA_SUCCESS;
}

/* ---- callbacks that are never called ---- */
struct registered {
	struct registered *next;
};
static struct registered *list;

static CUresult enter(struct registered **out)
{
	struct registered *r = malloc(sizeof(*r));
	pthread_mutex_lock(&mu);
	r->next = list;
	list = r;
	pthread_mutex_unlock(&mu);
	*out = r;
	return CUDA_SUCCESS;
}

static CUresult drop(struct registered *r)
{
	pthread_mutex_lock(&mu);
	struct registered **at = &list;
	while (*at && *at != r)
		at = &(*at)->next;
	bool there = *at != NULL;
	if (there)
		*at = r->next;
	pthread_mutex_unlock(&mu);
	if (there)
		free(r);
	return there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult log_register(struct sim_call *c, void (*fn)(void), void *arg,
			     struct registered **out)
{
	(void)c;
	(void)arg;
	return fn && out ? enter(out) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult log_unregister(struct sim_call *c, struct registered *r)
{
	(void)c;
	return drop(r);
}

static CUresult notify_register(struct sim_call *c, CUdevice d, void (*fn)(void), void *arg,
				struct registered **out)
{
	return sim_is_device(d) ? log_register(c, fn, arg, out) : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult notify_unregister(struct sim_call *c, CUdevice d, struct registered *r)
{
	(void)c;
	return sim_is_device(d) ? drop(r) : CUDA_ERROR_INVALID_DEVICE;
}

SIM_API(cuCoredumpGetAttribute, SIM_NEED_CTX, get_setting, (int what, void *v, size_t *n),
	(what, v, n))
SIM_API(cuCoredumpGetAttributeGlobal, SIM_NEED_INIT, get_setting, (int what, void *v, size_t *n),
	(what, v, n))
SIM_API(cuCoredumpSetAttribute, SIM_NEED_CTX, set_setting, (int what, void *v, size_t *n),
	(what, v, n))
SIM_API(cuCoredumpSetAttributeGlobal, SIM_NEED_INIT, set_setting, (int what, void *v, size_t *n),
	(what, v, n))
SIM_API(cuLogsCurrent, SIM_NEED_INIT, log_current, (unsigned *it, unsigned none), (it, none))
SIM_API(cuLogsDumpToFile, SIM_NEED_INIT, log_to_file,
	(unsigned *it, const char *path, unsigned none), (it, path, none))
SIM_API(cuLogsDumpToMemory, SIM_NEED_INIT, log_to_memory,
	(unsigned *it, char *buffer, size_t *n, unsigned none), (it, buffer, n, none))
SIM_API(cuLogsRegisterCallback, SIM_NEED_INIT, log_register,
	(void (*fn)(void), void *arg, struct registered **out), (fn, arg, out))
SIM_API(cuLogsUnregisterCallback, SIM_NEED_INIT, log_unregister, (struct registered * r), (r))
SIM_API(cuDeviceRegisterAsyncNotification, SIM_NEED_INIT, notify_register,
	(CUdevice d, void (*fn)(void), void *arg, struct registered **out), (d, fn, arg, out))
SIM_API(cuDeviceUnregisterAsyncNotification, SIM_NEED_INIT, notify_unregister,
	(CUdevice d, struct registered *r), (d, r))
