/*
 * Ascend's profiler (trace_view.json of torch_npu, msprof's JSON) writes Chrome's format. Entries
 * of PyTorch have the categories of its own profiler; those of the NPU and of its runtime have
 * none: their process shows what they are.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "import/kineto.h"

/* Rows of exchanges are not streams of the device, so they get numbers above those of all
 * streams. */
#define EXCHANGES 100000

/* Ops are named after functions (trans_TransData_0, MEMCPY_ASYNC); waits and signals of a stream
 * have names in capitals (EVENT_WAIT) or of several words (Notify Wait). "Other" is what the
 * profiler has no name for, such as the waits and copies of an exchange; it does not count as
 * computing. */
static uint8_t task_of(const char *name)
{
	const char *p = name;

	if (tfh_starts_with(name, "MEMCPY"))
		return TFH_KINETO_COPY;
	if (tfh_starts_with(name, "MEMSET"))
		return TFH_KINETO_MEMSET;
	if (!strcasecmp(name, "Other"))
		return TFH_KINETO_OTHER;
	while (*p && !islower((unsigned char)*p))
		p++;
	return *p && !strchr(name, ' ') ? TFH_KINETO_KERNEL : TFH_KINETO_OTHER;
}

/* MindSpore's steps, in a row of the device: "Iteration 7". */
static uint8_t step_of(struct tfh_kineto_entry *e)
{
	static const char step[] = "Iteration ";
	unsigned long long n;
	char *end;

	if (!tfh_starts_with(e->name, step))
		return TFH_KINETO_OTHER;
	n = strtoull(e->name + sizeof(step) - 1, &end, 10);
	if (*end || end == e->name + sizeof(step) - 1)
		return TFH_KINETO_OTHER;
	snprintf(e->name, sizeof(e->name), "ProfilerStep#%llu", n);
	return TFH_KINETO_NOTE;
}

/* Calls of the runtime (AscendCL). Other layers repeat them, and calls that launch ops are known by
 * their arrows. */
static uint8_t call_of(struct tfh_kineto_entry *e)
{
	static const char runtime[] = "AscendCL@aclrt";
	size_t n = sizeof("AscendCL@") - 1;

	if (!tfh_starts_with(e->name, runtime) || strstr(e->name, "Async"))
		return TFH_KINETO_OTHER;
	memmove(e->name, e->name + n, strlen(e->name + n) + 1);
	return tfh_import_other_call(e->name) ? TFH_KINETO_CALL : TFH_KINETO_OTHER;
}

bool tfh_ascend_entry(struct tfh_kineto_entry *e, const char *label)
{
	bool device = !strcmp(label, "Ascend Hardware"), calls = !strcmp(label, "CANN");

	if (!device && !calls && strcmp(label, "HCCL") && strcmp(label, "Communication"))
		return false;
	e->named_pid = true; /* not the program's, which has its own entries */
	e->device = 0;
	e->stream = device ? e->tid : EXCHANGES + e->tid;
	if (calls)
		e->category = call_of(e);
	else if (device)
		e->category = e->task ? task_of(e->name) : step_of(e);
	else if (!e->task) /* a whole exchange; its tasks have rows of their own */
		e->category = TFH_KINETO_KERNEL;
	return true;
}
