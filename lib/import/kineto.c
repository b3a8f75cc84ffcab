/*
 * PyTorch's profiler writes Chrome's trace format: an object with `traceEvents`, or a plain list of
 * events. Names have changed over the years. This file parses the text into entries; kineto_entry.c
 * interprets them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "import/kineto.h"

/* The category of an entry, from the text in `cat`. All versions: 2020 (Operator, Runtime, Kernel),
 * since 2022 (cpu_op, cuda_runtime, kernel), and the first profiler, which had none except for its
 * arrows' names. */
static uint8_t category_of(const char *text)
{
	static const struct {
		const char *name;
		uint8_t category;
	} all[] = {
		{"kernel", TFH_KINETO_KERNEL},
		{"concurrent_kernel", TFH_KINETO_KERNEL},
		{"cpu_op", TFH_KINETO_OP},
		{"operator", TFH_KINETO_HOST},
		{"user_annotation", TFH_KINETO_HOST},
		{"python_function", TFH_KINETO_PYTHON},
		{"cuda_runtime", TFH_KINETO_CALL},
		{"runtime", TFH_KINETO_CALL},
		{"cuda_driver", TFH_KINETO_CALL},
		{"driver", TFH_KINETO_CALL},
		{"hip_runtime", TFH_KINETO_CALL},
		{"xpu_runtime", TFH_KINETO_CALL}, /* Intel */
		{"xpu_driver", TFH_KINETO_CALL},
		{"privateuse1_runtime", TFH_KINETO_CALL}, /* devices outside PyTorch's tree */
		{"privateuse1_driver", TFH_KINETO_CALL},
		{"mtia_runtime", TFH_KINETO_CALL}, /* Meta */
		{"mtia_ccp_events", TFH_KINETO_UNIT},
		{"gpu_memcpy", TFH_KINETO_COPY},
		{"memcpy", TFH_KINETO_COPY},
		{"gpu_memset", TFH_KINETO_MEMSET},
		{"memset", TFH_KINETO_MEMSET},
		{"cuda_sync", TFH_KINETO_SYNC},
		{"cuda_event", TFH_KINETO_SYNC},
		{"gpu_user_annotation", TFH_KINETO_NOTE},
		{"ac2g", TFH_KINETO_ARROW},
		{"async_cpu_to_gpu", TFH_KINETO_ARROW},
		{"async", TFH_KINETO_ARROW},
		{"cpu_to_cuda", TFH_KINETO_ARROW},
		{"HostToDevice", TFH_KINETO_NPU_ARROW}, /* Ascend's */
		{"dequeue", TFH_KINETO_OP},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcasecmp(text, all[i].name))
			return all[i].category;
	return TFH_KINETO_OTHER;
}

/* The side (host or device) of an entry from before Kineto (until 2021), where two processes stood
 * for categories. */
static uint8_t home_of(const char *pid)
{
	return !strcmp(pid, "CPU functions")	? TFH_KINETO_HOST
	       : !strcmp(pid, "CUDA functions") ? TFH_KINETO_KERNEL
						: TFH_KINETO_OTHER;
}

static uint8_t category_at_home(const struct tfh_kineto_entry *e)
{
	if (e->home != TFH_KINETO_KERNEL)
		return e->home;
	return tfh_starts_with(e->name, "Memcpy")   ? TFH_KINETO_COPY
	       : tfh_starts_with(e->name, "Memset") ? TFH_KINETO_MEMSET
						    : TFH_KINETO_KERNEL;
}

/* Categories of Meta's accelerator units; "events" are its own bookkeeping. */
static uint8_t category_of_unit(const char *name)
{
	return tfh_starts_with(name, "event_") ? TFH_KINETO_OTHER
	       : tfh_starts_with(name, "dma_") ? TFH_KINETO_COPY
					       : TFH_KINETO_KERNEL;
}

/* ---- one entry ---- */

/* A path of Windows, as PyTorch wrote it until 2023: with backslashes that are no escapes, so that
 * "torch\nn" has a new line. Letters that were lost are put back. */
static void path_of_windows(char *name, size_t cap)
{
	static const char lost[] = "\b\f\n\r\t", letter[] = "bfnrt";
	char *p = strpbrk(name, "\\\b\f\n\r\t");

	if (!p || !strstr(name, ".py("))
		return;
	for (size_t n = strlen(name); p; p = strpbrk(p, "\\\b\f\n\r\t")) {
		const char *at = strchr(lost, *p);
		*p++ = '/';
		if (!at || n + 1 >= cap)
			continue;
		memmove(p + 1, p, (size_t)(name + ++n - p));
		*p = letter[at - lost];
	}
}

/* "25738", 25738, "stream 7", "GPU 0": the trailing number, if any. */
static int64_t trailing_number(const char *text, bool *other)
{
	const char *p = text + strlen(text);
	int64_t v = 0, scale = 1;

	while (p > text && (p[-1] == ' ' || p[-1] == '\t'))
		p--;
	const char *end = p;
	while (p > text && p[-1] >= '0' && p[-1] <= '9' && end - p < 18) {
		v += (*--p - '0') * scale;
		scale *= 10;
	}
	if (p > text && p[-1] == '-')
		v = -v, p--;
	*other = p != text || p == end;
	return p == end ? -1 : v;
}

/* A process' number. Where ranks were joined into one file it may follow the rank's name
 * ("[TP01] 25738"), which keeps equal numbers apart. */
static int64_t process_number(const char *text, bool *named)
{
	const char *end = *text == '[' ? strstr(text, "] ") : NULL;
	int64_t pid = trailing_number(end ? end + 2 : text, named);

	if (!end || *named || pid < 0)
		return pid;
	return (int64_t)(tfh_hash_bytes(text, (size_t)(end - text)) >> 33 << 32) |
	       (pid & UINT32_MAX);
}

/* [x, y, z] */
static void three(struct tfh_scan *s, uint32_t v[3])
{
	uint32_t i = 0;

	if (!tfh_scan_enter_or_skip(s, '['))
		return;
	while (tfh_scan_item(s)) {
		int64_t n = tfh_scan_int(s);
		if (i < 3)
			v[i++] = n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
	}
}

enum argument {
	A_CORRELATION,
	A_STREAM,
	A_DEVICE,
	A_CONTEXT,
	A_BYTES,
	A_GRAPH,
	A_NODE,
	A_WAIT,
	A_WAIT_STREAM,
	A_BEGIN,
	A_END,
	A_THREADS,
	A_GROUP,
	A_SHARED,
	A_GRID,
	A_BLOCK,
	A_NAME,
	A_TASK
};
static const struct {
	const char *key;
	uint8_t what;
} arguments[] = {
	{"correlation", A_CORRELATION},
	{"stream", A_STREAM},
	{"device", A_DEVICE},
	{"context", A_CONTEXT},
	{"bytes", A_BYTES},
	{"Bytes", A_BYTES},
	{"grid", A_GRID},
	{"block", A_BLOCK},
	{"shared memory", A_SHARED},
	{"name", A_NAME},
	{"graph id", A_GRAPH},
	{"graph node id", A_NODE},
	{"wait_on_cuda_event_record_corr_id", A_WAIT},
	{"wait_on_stream", A_WAIT_STREAM},
	{"sycl queue", A_STREAM},
	{"BeginNs", A_BEGIN}, /* these are rocprof's */
	{"EndNs", A_END},
	{"grd", A_THREADS},
	{"wgr", A_GROUP},
	{"lds", A_SHARED},
	{"gpu-id", A_DEVICE},
	{"dev-id", A_DEVICE},
	{"queue-id", A_STREAM},
	{"Task Type", A_TASK}, /* these are Ascend's */
	{"task type", A_TASK},
	{"stream-id", A_STREAM},
};

static void argument(struct tfh_scan *s, const char *key, struct tfh_kineto_entry *e)
{
	size_t i = 0, n = sizeof(arguments) / sizeof(*arguments);
	int64_t *number[] = {&e->correlation, &e->stream,   &e->device, &e->context,
			     &e->bytes,	      &e->graph,    &e->node,	&e->wait_record,
			     &e->wait_stream, &e->begin_ns, &e->end_ns, &e->threads,
			     &e->group};

	while (i < n && strcmp(arguments[i].key, key))
		i++;
	if (i == n) {
		tfh_scan_skip(s);
		return;
	}
	switch (arguments[i].what) {
	case A_GRID:
		three(s, e->grid);
		break;
	case A_BLOCK:
		three(s, e->block);
		break;
	case A_SHARED: {
		int64_t v = tfh_scan_int(s);
		e->shared = v > 0 && v <= UINT32_MAX ? (uint32_t)v : 0;
		break;
	}
	case A_NAME:
		tfh_scan_text(s);
		tfh_copy_text(e->label, sizeof(e->label), s->text, s->length);
		break;
	case A_TASK:
		e->task = true;
		tfh_scan_skip(s);
		break;
	default:
		*number[arguments[i].what] = tfh_scan_int(s);
	}
}

static void begin_entry(struct tfh_kineto_entry *e)
{
	e->phase = '\0';
	e->category = TFH_KINETO_OTHER;
	e->named_pid = e->task = false;
	e->home = TFH_KINETO_OTHER;
	e->ts = e->dur = 0;
	e->pid = e->tid = e->id = -1;
	e->correlation = e->stream = e->device = e->context = e->bytes = -1;
	e->graph = e->node = e->wait_record = e->wait_stream = -1;
	e->begin_ns = e->end_ns = e->threads = e->group = -1;
	memset(e->grid, 0, sizeof(e->grid));
	memset(e->block, 0, sizeof(e->block));
	e->shared = 0;
	e->name[0] = e->label[0] = '\0';
}

static void field(struct tfh_scan *s, const char *key, struct tfh_kineto_entry *e)
{
	bool other;

	if (!strcmp(key, "args") && tfh_scan_peek(s) == '{') {
		tfh_scan_enter(s, '{');
		while ((key = tfh_scan_key(s)))
			argument(s, key, e);
	} else if (!strcmp(key, "ph")) {
		e->phase = *tfh_scan_text(s);
	} else if (!strcmp(key, "cat")) {
		e->category = category_of(tfh_scan_text(s));
	} else if (!strcmp(key, "name")) {
		tfh_scan_text(s);
		tfh_copy_text(e->name, sizeof(e->name), s->text, s->length);
		path_of_windows(e->name, sizeof(e->name));
	} else if (!strcmp(key, "ts")) {
		e->ts = tfh_scan_thousandths(s);
	} else if (!strcmp(key, "dur")) {
		e->dur = tfh_scan_thousandths(s);
	} else if (!strcmp(key, "pid")) {
		e->pid = process_number(tfh_scan_text(s), &e->named_pid);
		e->home = e->named_pid ? home_of(s->text) : TFH_KINETO_OTHER;
	} else if (!strcmp(key, "tid")) {
		e->tid = trailing_number(tfh_scan_text(s), &other);
	} else if (!strcmp(key, "id")) {
		e->id = trailing_number(tfh_scan_text(s), &other);
	} else {
		tfh_scan_skip(s);
	}
}

/* ---- the file ---- */

static int entries(struct tfh_scan *s, struct tfh_kineto_ranks *k, struct tfh_kineto_entry *e)
{
	const char *key;
	int rc = 0;

	if (!tfh_scan_enter_or_skip(s, '['))
		return 0;
	while (!rc && tfh_scan_object(s)) {
		begin_entry(e);
		while ((key = tfh_scan_key(s)))
			field(s, key, e);
		if (e->category == TFH_KINETO_OTHER)
			e->category = category_at_home(e);
		else if (e->category == TFH_KINETO_UNIT)
			e->category = category_of_unit(e->name);
		if (!s->error)
			rc = tfh_kineto_ranks_add(k, e);
	}
	return rc;
}

static void distributed(struct tfh_scan *s, struct tfh_kineto_facts *facts)
{
	const char *key;

	if (!tfh_scan_enter_or_skip(s, '{'))
		return;
	while ((key = tfh_scan_key(s))) {
		if (!strcmp(key, "rank"))
			facts->rank = tfh_scan_int(s);
		else if (!strcmp(key, "world_size"))
			facts->world = tfh_scan_int(s);
		else
			tfh_scan_skip(s);
	}
}

/* [{"id": 0, "numSms": 108, ...}, ...] */
static void devices(struct tfh_scan *s, struct tfh_kineto_facts *facts)
{
	const size_t n = sizeof(facts->processors) / sizeof(*facts->processors);

	if (!tfh_scan_enter_or_skip(s, '['))
		return;
	while (tfh_scan_object(s)) {
		int64_t id = -1, count = 0;
		const char *key;

		while ((key = tfh_scan_key(s))) {
			if (!strcmp(key, "id"))
				id = tfh_scan_int(s);
			else if (!strcmp(key, "numSms"))
				count = tfh_scan_int(s);
			else
				tfh_scan_skip(s);
		}
		if (id >= 0 && id < (int64_t)n && count > 0 && count < 1 << 16)
			facts->processors[id] = (uint32_t)count;
	}
}

/* What kind of file a key indicates, for the error message; NULL: unknown. */
static const char *other_format(const char *key)
{
	static const struct {
		const char *key, *what;
	} all[] = {
		{"rocprofiler-sdk-tool", " (rocprofv3's own: use PyTorch's or JAX's profile)"},
		{"nodes", " (an execution graph without times: use the profiler's trace)"},
		{"profiles", " (speedscope's: use the trace that it was made from)"},
		{"stringTable", " (a sampling profiler's)"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(key, all[i].key))
			return all[i].what;
	return NULL;
}

static int whole(struct tfh_scan *s, struct tfh_kineto_ranks *k, struct tfh_kineto_entry *e,
		 struct tfh_kineto_facts *facts, bool *known)
{
	const char *key;
	int rc = 0;

	facts->json = true;
	if (tfh_scan_peek(s) == '[') {
		*known = true;
		return entries(s, k, e);
	}
	facts->json = tfh_scan_enter(s, '{');
	while (facts->json && !rc && (key = tfh_scan_key(s))) {
		if (!strcmp(key, "traceEvents")) {
			*known = true;
			rc = entries(s, k, e);
		} else if (!strcmp(key, "distributedInfo")) {
			distributed(s, facts);
		} else if (!strcmp(key, "deviceProperties")) {
			devices(s, facts);
		} else if (!strcmp(key, "baseTimeNanoseconds")) {
			facts->base_ns = tfh_scan_int(s);
		} else {
			facts->other = facts->other ? facts->other : other_format(key);
			tfh_scan_skip(s);
		}
	}
	return rc;
}

/* `other` (NULL: nobody can read the file again): who reads it instead. */
static int import(struct tfh_builder *b, struct tfh_bytes *bytes, const char *path,
		  tfh_reads_json **other, struct tfh_err *err)
{
	struct tfh_kineto_facts facts = {.rank = -1, .world = -1};
	struct tfh_scan *s = malloc(sizeof(*s));
	struct tfh_kineto_entry *e = malloc(sizeof(*e));
	struct tfh_kineto_ranks *k = tfh_kineto_ranks_new(b);
	bool known = false;
	int rc = -ENOMEM;

	if (s && e && k) {
		tfh_scan_init(s, bytes);
		rc = whole(s, k, e, &facts, &known);
		if (!rc)
			rc = tfh_scan_finish(s, path, err);
		else
			tfh_err_set(err, rc, "%s: %s", path,
				    rc == -E2BIG ? "more events or processes than fit in memory"
						 : "out of memory");
		if (!rc && !known)
			rc = tfh_err_set(err, -ENOMSG, "%s: %s%s", path,
					 facts.json ? "JSON, but no trace: no traceEvents"
						    : "no JSON: if it is packed, unpack it first",
					 facts.other ? facts.other : "");
		if (!rc && other && (*other = tfh_kineto_other(tfh_kineto_ranks_first(k))))
			rc = -ENODATA;
		else if (!rc && !tfh_kineto_ranks_count(k))
			rc = tfh_err_set(err, -ENODATA, "%s: %s", path,
					 tfh_kineto_nothing(tfh_kineto_ranks_first(k)));
		if (!rc && (rc = tfh_kineto_ranks_end(k, &facts)))
			tfh_err_set(err, rc, "out of memory");
	} else {
		tfh_err_set(err, rc, "out of memory");
	}
	tfh_kineto_ranks_free(k);
	free(e);
	free(s);
	return rc;
}

int tfh_import_kineto(struct tfh_builder *b, const char *path, struct tfh_err *err)
{
	struct tfh_bytes *bytes;
	tfh_reads_json *other = NULL;
	int rc = tfh_bytes_open(path, &bytes, err);

	if (rc)
		return rc;
	rc = import(b, bytes, path, &other, err);
	tfh_bytes_close(bytes);
	if (!other || (rc = tfh_bytes_open(path, &bytes, err)))
		return rc;
	rc = other(b, bytes, path, err);
	tfh_bytes_close(bytes);
	return rc;
}

int tfh_import_kineto_stream(struct tfh_builder *b, int fd, const void *head, size_t n,
			     const char *path, struct tfh_err *err)
{
	struct tfh_bytes *bytes;
	int rc = tfh_bytes_stream(fd, head, n, &bytes, err);

	if (rc) {
		close(fd);
		return rc;
	}
	rc = import(b, bytes, path, NULL, err);
	tfh_bytes_close(bytes);
	return rc;
}

int tfh_import_kineto_bytes(struct tfh_builder *b, const void *data, size_t n, const char *path,
			    struct tfh_err *err)
{
	struct tfh_bytes *bytes;
	tfh_reads_json *other = NULL;
	int rc = tfh_bytes_of(data, n, &bytes, err);

	if (rc)
		return rc;
	rc = import(b, bytes, path, &other, err);
	tfh_bytes_close(bytes);
	if (!other || (rc = tfh_bytes_of(data, n, &bytes, err)))
		return rc;
	rc = other(b, bytes, path, err);
	tfh_bytes_close(bytes);
	return rc;
}
