/*
 * TensorFlow's and JAX's profiler writes one XSpace per worker. It contains planes (the host, each
 * device), these contain lines (threads, streams, derived lines), and these contain events whose
 * names and stats are numbers. This file resolves names and stats; xplane_event.c interprets the
 * events. Field numbers: tsl/profiler/protobuf/xplane.proto.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "import/bytes.h"

#include "import/xplane.h"

#define MAX_FILE (8ll << 30)

/* One plane: its tables by number, as offsets into the file. */
struct plane {
	char name[256];
	struct tfh_map events, stats; /* metadata number -> offset of its name */
	struct tfh_map known;	      /* stat number -> enum tfh_xstat */
	bool tpu;
	const uint8_t *base; /* for the offsets */
};

static void copy_text(char *to, size_t cap, struct tfh_wire w)
{
	tfh_copy_text(to, cap, (const char *)w.p, w.p ? (size_t)(w.end - w.p) : 0);
}

static struct tfh_wire text_field(struct tfh_wire w, uint32_t number)
{
	struct tfh_field f;

	while (tfh_wire_next(&w, &f))
		if (f.number == number && f.bytes.p)
			return f.bytes;
	return (struct tfh_wire){0};
}

/* A map entry: key 1, message 2, which repeats the key as field 1 and has the name as field 2.
 * Stores the name's offset. */
static int add_metadata(struct tfh_map *map, const uint8_t *base, struct tfh_wire entry)
{
	struct tfh_field f, inner;
	struct tfh_wire value = {0}, name;
	uint64_t number = 0, length;

	while (tfh_wire_next(&entry, &f)) {
		if (f.number == 1)
			number = f.value;
		else if (f.number == 2 && f.bytes.p)
			value = f.bytes;
	}
	name = text_field(value, 2);
	if (!name.p)
		return 0;
	for (struct tfh_wire w = value; !number && tfh_wire_next(&w, &inner);)
		if (inner.number == 1)
			number = inner.value;
	uint64_t *at = tfh_map_put(map, tfh_hash_u64(number), NULL);
	if (!at)
		return -ENOMEM;
	length = (uint64_t)(name.end - name.p);
	*at = (uint64_t)(name.p - base) << 24 | (length < 1 << 24 ? length : (1 << 24) - 1);
	return 0;
}

static struct tfh_wire name_of(const struct tfh_map *map, const uint8_t *base, uint64_t number)
{
	const uint64_t *at = tfh_map_get(map, tfh_hash_u64(number));

	return at ? tfh_wire_of(base + (*at >> 24), *at & 0xffffff) : (struct tfh_wire){0};
}

enum tfh_xstat tfh_xplane_stat(const char *name)
{
	static const struct {
		const char *name;
		enum tfh_xstat what;
	} all[] = {
		{"correlation_id", TFH_XSTAT_CORRELATION},
		{"context_id", TFH_XSTAT_CONTEXT},
		{"kernel_details", TFH_XSTAT_KERNEL},
		{"memcpy_details", TFH_XSTAT_COPY},
		{"memset_details", TFH_XSTAT_MEMSET},
		{"group_id", TFH_XSTAT_GROUP},
		{"step_num", TFH_XSTAT_STEP},
		{"cuda_graph_id", TFH_XSTAT_GRAPH},
		{"cuda_graph_node_id", TFH_XSTAT_NODE},
		{"hlo_op", TFH_XSTAT_HLO},
		{"core_count", TFH_XSTAT_CORES},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(name, all[i].name))
			return all[i].what;
	return TFH_XSTAT_OTHER;
}

static uint8_t stat_of(struct plane *p, uint64_t number)
{
	uint64_t *known = tfh_map_put(&p->known, tfh_hash_u64(number), NULL);
	char name[64];

	if (!known)
		return TFH_XSTAT_OTHER;
	if (!*known) {
		copy_text(name, sizeof(name), name_of(&p->stats, p->base, number));
		*known = tfh_xplane_stat(name) + 1u;
	}
	return (uint8_t)(*known - 1);
}

int64_t tfh_xplane_number(enum tfh_xstat what, const char *text, size_t n)
{
	int64_t v = -1;

	if (what == TFH_XSTAT_HLO)
		return n > 0;
	for (size_t i = 0; i < n; i++)
		if (text[i] >= '0' && text[i] <= '9' && v < 1ll << 50)
			v = (v < 0 ? 0 : v) * 10 + (text[i] - '0');
	return v;
}

static void add_stat(struct plane *p, struct tfh_wire stat, struct tfh_xevent *e)
{
	struct tfh_field f;
	struct tfh_wire text = {0};
	uint8_t what = TFH_XSTAT_OTHER;
	int64_t number = -1;

	while (tfh_wire_next(&stat, &f)) {
		if (f.number == 1)
			what = stat_of(p, f.value);
		else if (f.number == 3 || f.number == 4)
			number = (int64_t)f.value;
		else if (f.number == 5 || f.number == 6)
			text = f.bytes;
		else if (f.number == 7) /* the value is a reference to a stat's name */
			text = name_of(&p->stats, p->base, f.value);
	}
	switch (what) {
	case TFH_XSTAT_KERNEL:
		copy_text(e->kernel, sizeof(e->kernel), text);
		break;
	case TFH_XSTAT_COPY:
		copy_text(e->copy, sizeof(e->copy), text);
		break;
	case TFH_XSTAT_MEMSET:
		copy_text(e->memset, sizeof(e->memset), text);
		break;
	case TFH_XSTAT_OTHER:
		break;
	default:
		e->number[what] = text.p ? tfh_xplane_number(what, (const char *)text.p,
							     (size_t)(text.end - text.p))
					 : number;
	}
}

static int64_t bounded(uint64_t v)
{
	return (int64_t)v < -TFH_IMPORT_TIME  ? -TFH_IMPORT_TIME
	       : (int64_t)v > TFH_IMPORT_TIME ? TFH_IMPORT_TIME
					      : (int64_t)v;
}

static int64_t sum(int64_t a, int64_t b)
{
	int64_t v;

	return __builtin_add_overflow(a, b, &v) ? TFH_IMPORT_TIME : bounded((uint64_t)v);
}

void tfh_xplane_clear(struct tfh_xevent *e)
{
	e->name[0] = e->kernel[0] = e->copy[0] = e->memset[0] = '\0';
	for (int i = 0; i < TFH_XSTAT_COUNT; i++)
		e->number[i] = -1;
}

static int event(struct tfh_xplane *x, struct plane *p, struct tfh_wire w, int64_t line_ns,
		 struct tfh_xevent *e)
{
	struct tfh_field f;
	int64_t offset = 0, duration = 0;
	uint64_t name = 0;

	tfh_xplane_clear(e);
	while (tfh_wire_next(&w, &f)) {
		if (f.number == 1)
			name = f.value;
		else if (f.number == 2)
			offset = bounded(f.value) / 1000;
		else if (f.number == 3)
			duration = bounded(f.value) / 1000;
		else if (f.number == 4 && f.bytes.p)
			add_stat(p, f.bytes, e);
	}
	if (w.bad)
		return -EBADMSG;
	copy_text(e->name, sizeof(e->name), name_of(&p->events, p->base, name));
	e->t0 = sum(line_ns, offset);
	e->t1 = duration > 0 ? sum(e->t0, duration) : e->t0;
	return tfh_xplane_event(x, e);
}

/* A TPU has no streams. It has one line for the work of its cores, and one for work that runs
 * beside it. */
static bool tpu_stream(const char *name, int64_t *id)
{
	*id = !strcmp(name, "Async XLA Ops") ? 2 : 1;
	return *id == 2 || !strcmp(name, "XLA Ops");
}

bool tfh_xplane_kind(const char *name, int64_t device, bool tpu, enum tfh_xline *what, int64_t *id)
{
	*what = TFH_XLINE_HOST;
	if (device < 0)
		return device == TFH_XPLANE_CPU;
	if (tpu ? tpu_stream(name, id) : tfh_starts_with(name, "Stream"))
		*what = TFH_XLINE_STREAM;
	else if (!strcmp(name, "Steps"))
		*what = TFH_XLINE_STEPS;
	else if (!strcmp(name, "XLA Modules"))
		*what = TFH_XLINE_MODULES;
	return *what != TFH_XLINE_HOST;
}

static int line(struct tfh_xplane *x, struct plane *p, struct tfh_wire w, int64_t device,
		struct tfh_xevent *e)
{
	struct tfh_wire again = w;
	struct tfh_field f;
	int64_t id = 0, start = 0;
	char name[256] = "";
	enum tfh_xline what;
	int rc;

	while (tfh_wire_next(&w, &f)) {
		if (f.number == 1)
			id = (int64_t)f.value;
		else if (f.number == 2)
			copy_text(name, sizeof(name), f.bytes);
		else if (f.number == 3)
			start = bounded(f.value);
	}
	if (w.bad)
		return -EBADMSG;
	if (!tfh_xplane_kind(name, device, p->tpu, &what, &id))
		return 0;
	rc = tfh_xplane_line(x, what, name, id, device >= 0 ? (uint32_t)device : 0);
	while (!rc && tfh_wire_next(&again, &f))
		if (f.number == 4 && f.bytes.p)
			rc = event(x, p, f.bytes, start, e);
	return rc;
}

int64_t tfh_xplane_device(const char *name)
{
	static const char gpu[] = "/device:GPU:", tpu[] = "/device:TPU:";

	if (tfh_starts_with(name, "/host:CPU") || tfh_starts_with(name, "/host:CUPTI") ||
	    tfh_starts_with(name, "/host:ROCTRACER"))
		return TFH_XPLANE_CPU;
	if (!tfh_starts_with(name, gpu) && !tfh_starts_with(name, tpu))
		return TFH_XPLANE_OTHER;
	return (int64_t)(strtoul(name + sizeof(gpu) - 1, NULL, 10) & 0xffff);
}

static int plane(struct tfh_xplane *x, struct tfh_wire w, struct tfh_xevent *e)
{
	struct tfh_wire again = w;
	struct plane p = {.base = w.p};
	struct tfh_field f;
	int64_t device;
	int rc = 0;

	/* Names and numbers may follow the lines that use them. */
	while (!rc && tfh_wire_next(&w, &f)) {
		if (f.number == 2)
			copy_text(p.name, sizeof(p.name), f.bytes);
		else if (f.number == 4 && f.bytes.p)
			rc = add_metadata(&p.events, p.base, f.bytes);
		else if (f.number == 5 && f.bytes.p)
			rc = add_metadata(&p.stats, p.base, f.bytes);
	}
	if (!rc && w.bad)
		rc = -EBADMSG;
	device = tfh_xplane_device(p.name);
	p.tpu = tfh_xplane_is_tpu(p.name);
	while (!rc && device >= -1 && tfh_wire_next(&again, &f)) {
		if (f.number == 3 && f.bytes.p)
			rc = line(x, &p, f.bytes, device, e);
		else if (f.number == 6 && f.bytes.p && device >= 0) {
			e->number[TFH_XSTAT_CORES] = -1;
			add_stat(&p, f.bytes, e);
			if (e->number[TFH_XSTAT_CORES] > 0 && e->number[TFH_XSTAT_CORES] < 1 << 16)
				tfh_xplane_processors(x, (uint32_t)e->number[TFH_XSTAT_CORES]);
		}
	}
	tfh_map_free(&p.events);
	tfh_map_free(&p.stats);
	tfh_map_free(&p.known);
	return rc;
}

/* Finds the host's name, and whether this is an XSpace: planes with names and no unknown fields.
 * Returns 0, -ENOMSG if it is not, or -EBADMSG if it only starts like one. */
static int look(struct tfh_wire w, char *host, size_t cap)
{
	struct tfh_field f;
	uint32_t planes = 0;

	*host = '\0';
	while (tfh_wire_next(&w, &f)) {
		if (f.number < 1 || f.number > 8 || !f.bytes.p)
			return -ENOMSG;
		if (f.number == 1)
			planes += text_field(f.bytes, 2).p != NULL;
		else if (f.number == 4 && !*host)
			copy_text(host, cap, f.bytes);
	}
	return w.bad ? -EBADMSG : planes ? 0 : -ENOMSG;
}

int tfh_import_xplane_bytes(struct tfh_builder *b, const void *data, size_t n, const char *path,
			    struct tfh_err *err)
{
	struct tfh_wire w = tfh_wire_of(data, n);
	struct tfh_xevent *e = malloc(sizeof(*e));
	struct tfh_xplane *x = NULL;
	struct tfh_field f;
	char host[256];
	int rc = look(w, host, sizeof(host));

	if (!rc && e)
		x = tfh_xplane_new(b, host);
	if (!rc && !x)
		rc = -ENOMEM;
	while (!rc && tfh_wire_next(&w, &f))
		if (f.number == 1 && f.bytes.p)
			rc = plane(x, f.bytes, e);
	if (!rc && w.bad)
		rc = -EBADMSG;
	if (rc == -ENOMSG)
		tfh_err_set(err, rc, "%s: not an XPlane trace", path);
	else if (rc == -EBADMSG)
		tfh_err_set(err, rc, "%s: damaged or truncated: a length points beyond the end",
			    path);
	else if (rc)
		tfh_err_set(err, rc, "%s: %s", path,
			    rc == -E2BIG ? "more events than fit in memory" : "out of memory");
	else if (!tfh_xplane_count(x))
		rc = tfh_err_set(err, -ENODATA, "%s: a trace without a single event", path);
	else if ((rc = tfh_xplane_end(x)))
		tfh_err_set(err, rc, "out of memory");
	tfh_xplane_free(x);
	free(e);
	return rc;
}

/* Reads the whole file. It is not mapped, so that another process that truncates it does no
 * harm. */
static int read_all(const char *path, uint8_t **data, size_t *n, struct tfh_err *err)
{
	int fd = tfh_open_regular(path, err);
	struct stat st;

	*data = NULL;
	*n = 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st)) {
		int code = -errno;
		close(fd);
		return tfh_err_set(err, code, "%s: %s", path, strerror(-code));
	}
	if (st.st_size > MAX_FILE || !(*data = malloc((size_t)st.st_size + 1))) {
		close(fd);
		return tfh_err_set(err, -ENOMEM, "%s: too large", path);
	}
	while (*n < (size_t)st.st_size) {
		ssize_t got = read(fd, *data + *n, (size_t)st.st_size - *n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		*n += (size_t)got;
	}
	close(fd);
	return 0;
}

int tfh_import_xplane(struct tfh_builder *b, const char *path, struct tfh_err *err)
{
	uint8_t *data;
	size_t n;
	int rc = read_all(path, &data, &n, err);

	if (!rc)
		rc = tfh_import_xplane_bytes(b, data, n, path, err);
	free(data);
	return rc;
}
