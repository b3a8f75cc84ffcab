/*
 * The `*.trace.json.gz` that TensorFlow's and JAX's profilers write for a viewer: the planes of an
 * XPlane trace as processes of Chrome's format, their lines as threads, stats as arguments. It
 * holds at most a million events, and times in decimal microseconds; the .xplane.pb beside it has
 * all of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "import/scan.h"
#include "import/xplane.h"

#define MAX_LINES (1u << 16)

struct viewer_line {
	int64_t pid, tid;
	char name[128];
	bool begun, left_out;
	struct tfh_xplace place;
};

struct viewer {
	struct tfh_builder *b;
	struct tfh_xplane *x; /* once there is an entry */
	struct tfh_map plane; /* pid -> device number + 3 */
	struct tfh_map tpu;   /* pid of a TPU */
	struct tfh_map line;  /* pid and tid -> index in `lines` + 1 */
	struct viewer_line *lines;
	uint32_t n_line, cap_line;
	struct tfh_xevent event;
	char phase, label[128];
	char whole[TFH_XPLANE_NAME]; /* a TPU's op as the .xplane.pb has it; its name is a part */
	int64_t pid, tid;
};

bool tfh_viewer_plane(const char *name)
{
	return tfh_starts_with(name, "/device:") || tfh_starts_with(name, "/host:");
}

static struct viewer_line *line_of(struct viewer *v, int64_t pid, int64_t tid)
{
	uint64_t *at = tfh_map_put(&v->line,
				   tfh_hash_add(tfh_hash_u64((uint64_t)pid), (uint64_t)tid), NULL);

	if (!at)
		return NULL;
	if (*at)
		return &v->lines[*at - 1];
	if (v->n_line == v->cap_line) {
		uint32_t want = v->cap_line ? v->cap_line * 2 : 64;
		struct viewer_line *more =
			v->n_line < MAX_LINES ? realloc(v->lines, want * sizeof(*more)) : NULL;
		if (!more)
			return NULL;
		v->lines = more;
		v->cap_line = want;
	}
	v->lines[v->n_line] = (struct viewer_line){.pid = pid, .tid = tid};
	*at = ++v->n_line;
	return &v->lines[v->n_line - 1];
}

static int add_label(struct viewer *v)
{
	if (!strcmp(v->event.name, "process_name") && tfh_viewer_plane(v->label)) {
		uint64_t key = tfh_hash_u64((uint64_t)v->pid);
		uint64_t *plane = tfh_map_put(&v->plane, key, NULL);
		if (!plane)
			return -ENOMEM;
		*plane = (uint64_t)(tfh_xplane_device(v->label) + 3);
		if (tfh_xplane_is_tpu(v->label) && !tfh_map_put(&v->tpu, key, NULL))
			return -ENOMEM;
	} else if (!strcmp(v->event.name, "thread_name")) {
		struct viewer_line *l = line_of(v, v->pid, v->tid);
		if (!l)
			return -ENOMEM;
		memcpy(l->name, v->label, sizeof(l->name));
	}
	return 0;
}

/* Starts a line at its first event, or returns to it. */
static int enter_line(struct viewer *v, struct viewer_line *l)
{
	uint64_t key = tfh_hash_u64((uint64_t)l->pid);
	const uint64_t *plane = tfh_map_get(&v->plane, key);
	int64_t device = plane ? (int64_t)*plane - 3 : TFH_XPLANE_OTHER, id = l->tid;
	enum tfh_xline what;
	int rc;

	if (l->begun) {
		tfh_xplane_back(v->x, l->place);
		return 0;
	}
	l->begun = true;
	l->left_out = !tfh_xplane_kind(l->name, device, tfh_map_get(&v->tpu, key), &what, &id);
	if (l->left_out)
		return 0;
	rc = tfh_xplane_line(v->x, what, l->name, id, device >= 0 ? (uint32_t)device : 0);
	l->place = tfh_xplane_here(v->x);
	return rc;
}

static int add_event(struct viewer *v)
{
	struct tfh_xevent *e = &v->event;
	struct viewer_line *l;
	int rc;

	if (v->phase == 'M')
		return add_label(v);
	if (v->phase != 'X' || e->t0 < -TFH_IMPORT_TIME || e->t0 > TFH_IMPORT_TIME || e->t1 < 0 ||
	    e->t1 > TFH_IMPORT_LENGTH)
		return 0;
	e->t1 += e->t0;
	if (!v->x && !(v->x = tfh_xplane_new(v->b, "")))
		return -ENOMEM;
	l = line_of(v, v->pid, v->tid);
	rc = l ? enter_line(v, l) : -ENOMEM;
	return rc || l->left_out ? rc : tfh_xplane_event(v->x, e);
}

/* ---- the text ---- */

static void argument(struct tfh_scan *s, const char *key, struct viewer *v)
{
	enum tfh_xstat what = tfh_xplane_stat(key);
	struct tfh_xevent *e = &v->event;
	bool name = !strcmp(key, "name");

	tfh_scan_text(s);
	if (name)
		tfh_copy_text(v->label, sizeof(v->label), s->text, s->length);
	else if (!strcmp(key, "long_name"))
		tfh_copy_text(v->whole, sizeof(v->whole), s->text, s->length);
	else if (what == TFH_XSTAT_KERNEL)
		tfh_copy_text(e->kernel, sizeof(e->kernel), s->text, s->length);
	else if (what == TFH_XSTAT_COPY)
		tfh_copy_text(e->copy, sizeof(e->copy), s->text, s->length);
	else if (what == TFH_XSTAT_MEMSET)
		tfh_copy_text(e->memset, sizeof(e->memset), s->text, s->length);
	else if (what != TFH_XSTAT_OTHER)
		e->number[what] = tfh_xplane_number(what, s->text, s->length);
}

static void field(struct tfh_scan *s, const char *key, struct viewer *v)
{
	if (!strcmp(key, "args") && tfh_scan_peek(s) == '{') {
		tfh_scan_enter(s, '{');
		while ((key = tfh_scan_key(s)))
			argument(s, key, v);
	} else if (!strcmp(key, "ph")) {
		v->phase = *tfh_scan_text(s);
	} else if (!strcmp(key, "name")) {
		tfh_scan_text(s);
		tfh_copy_text(v->event.name, sizeof(v->event.name), s->text, s->length);
	} else if (!strcmp(key, "ts")) {
		v->event.t0 = tfh_scan_thousandths(s);
	} else if (!strcmp(key, "dur")) {
		v->event.t1 = tfh_scan_thousandths(s);
	} else if (!strcmp(key, "pid")) {
		v->pid = tfh_scan_int(s);
	} else if (!strcmp(key, "tid")) {
		v->tid = tfh_scan_int(s);
	} else {
		tfh_scan_skip(s);
	}
}

static int entries(struct tfh_scan *s, struct viewer *v)
{
	const char *key;
	int rc = 0;

	if (!tfh_scan_enter_or_skip(s, '['))
		return 0;
	while (!rc && tfh_scan_object(s)) {
		tfh_xplane_clear(&v->event);
		v->event.t0 = v->event.t1 = v->pid = v->tid = 0;
		v->phase = v->label[0] = v->whole[0] = '\0';
		while ((key = tfh_scan_key(s)))
			field(s, key, v);
		if (*v->whole)
			memcpy(v->event.name, v->whole, sizeof(v->event.name));
		rc = s->error ? 0 : add_event(v);
	}
	return rc;
}

static int read_all(struct tfh_scan *s, struct viewer *v)
{
	const char *key;
	int rc = 0;

	if (!tfh_scan_enter(s, '{'))
		return 0;
	while (!rc && (key = tfh_scan_key(s)))
		if (!strcmp(key, "traceEvents"))
			rc = entries(s, v);
		else
			tfh_scan_skip(s);
	return rc;
}

int tfh_import_viewer(struct tfh_builder *b, struct tfh_bytes *bytes, const char *path,
		      struct tfh_err *err)
{
	struct tfh_scan *s = malloc(sizeof(*s));
	struct viewer *v = calloc(1, sizeof(*v));
	int rc = s && v ? 0 : -ENOMEM;

	if (!rc) {
		v->b = b;
		tfh_build_source(b, TFH_SRC_XPLANE);
		tfh_scan_init(s, bytes);
		rc = read_all(s, v);
	}
	if (rc)
		tfh_err_set(err, rc, "%s: %s", path,
			    rc == -E2BIG ? "more events than fit in memory" : "out of memory");
	else if (!(rc = tfh_scan_finish(s, path, err)) && (!v->x || !tfh_xplane_count(v->x)))
		rc = tfh_err_set(
			err, -ENODATA,
			"%s: written for a viewer, without a single event of a thread or stream: "
			"use the .xplane.pb beside it",
			path);
	else if (!rc && (rc = tfh_xplane_end(v->x)))
		tfh_err_set(err, rc, "out of memory");
	if (v) {
		tfh_xplane_free(v->x);
		tfh_map_free(&v->plane);
		tfh_map_free(&v->tpu);
		tfh_map_free(&v->line);
		free(v->lines);
	}
	free(v);
	free(s);
	return rc;
}
