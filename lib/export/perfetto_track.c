/* The packets of a Perfetto file: tracks, slices and counters. */
#include <errno.h>

#include "base/hash.h"
#include "export/perfetto.h"

/* Field numbers. */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60
};
enum { INTERNED_CATEGORY = 1, INTERNED_NAME = 2 };
enum {
	EVENT_CATEGORY = 3,
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME = 10,
	EVENT_TRACK = 11,
	EVENT_VALUE = 44,
	EVENT_FLOW = 47,
	EVENT_LAST_OF_FLOW = 48
};
enum { ANNOTATION_NAME = 10, ANNOTATION_UINT = 3, ANNOTATION_DOUBLE = 5, ANNOTATION_TEXT = 6 };
enum { TRACK_UUID = 1, TRACK_NAME, TRACK_PROCESS, TRACK_THREAD, TRACK_PARENT, TRACK_COUNTER = 8 };
enum { TYPE_BEGIN = 1, TYPE_END, TYPE_COUNTER = 4 };
#define MOST_ROWS 16384u
#define OTHER_STREAMS UINT64_MAX
#define CLOCK_REAL 1u
#define STATE_CLEARED 1u
#define STATE_NEEDED 2u

/* ---- packets ---- */

static void begin_packet(struct perfetto *f, int64_t t)
{
	tfh_proto_uint(&f->p, PACKET_TIME, (uint64_t)(tfh_export_start_ns(f->x) + t));
	tfh_proto_uint(&f->p, PACKET_SEQUENCE, 1);
	tfh_proto_uint(&f->p, PACKET_FLAGS, STATE_NEEDED);
}

static int end_packet(struct perfetto *f)
{
	return tfh_proto_flush(&f->p, TRACE_PACKET, f->out);
}

/* The id of a text, which this packet defines if it is new. Must precede the packet's event. */
static uint64_t intern(struct perfetto *f, uint32_t field, const char *text)
{
	bool fresh;
	uint64_t *id = tfh_map_put(&f->names, tfh_hash_add(tfh_hash_str(text), field), &fresh);

	if (!id) {
		f->p.failed = true;
		return 0;
	}
	if (!fresh)
		return *id;
	*id = f->names.n;
	size_t data = tfh_proto_begin(&f->p, PACKET_INTERNED), one = tfh_proto_begin(&f->p, field);
	tfh_proto_uint(&f->p, 1, *id);
	tfh_proto_text(&f->p, 2, text);
	tfh_proto_end(&f->p, one);
	tfh_proto_end(&f->p, data);
	return *id;
}

/* ---- tracks ---- */

static uint64_t uuid_of(const struct perfetto *f, enum perfetto_row_kind kind, uint64_t of,
			uint32_t lane)
{
	uint64_t h = tfh_hash_add(tfh_hash_u64(f->process + 1), (uint64_t)kind + 1);

	return tfh_hash_add(tfh_hash_add(h, of), lane);
}

static void track_begin(struct perfetto *f, size_t *track, uint64_t uuid)
{
	begin_packet(f, 0);
	*track = tfh_proto_begin(&f->p, PACKET_TRACK);
	tfh_proto_uint(&f->p, TRACK_UUID, uuid);
}

static int track_end(struct perfetto *f, size_t track)
{
	tfh_proto_end(&f->p, track);
	return end_packet(f);
}

static int named_track(struct perfetto *f, uint64_t uuid, const char *name, const char *unit)
{
	size_t track;

	track_begin(f, &track, uuid);
	tfh_proto_uint(&f->p, TRACK_PARENT, f->process_uuid);
	tfh_proto_text(&f->p, TRACK_NAME, name);
	if (unit) {
		size_t counter = tfh_proto_begin(&f->p, TRACK_COUNTER);
		tfh_proto_text(&f->p, 6, unit);
		tfh_proto_end(&f->p, counter);
	}
	return track_end(f, track);
}

static int thread_track(struct perfetto *f, uint64_t uuid, uint32_t thread)
{
	size_t track, inner;

	track_begin(f, &track, uuid);
	inner = tfh_proto_begin(&f->p, TRACK_THREAD);
	tfh_proto_uint(&f->p, 1, tfh_export_pid(f->x, f->process));
	tfh_proto_uint(&f->p, 2, tfh_export_tid(f->x, thread));
	if (f->thread[thread].name)
		tfh_proto_text(&f->p, 5, tfh_export_thread(f->x, thread));
	tfh_proto_end(&f->p, inner);
	return track_end(f, track);
}

/* Describes a lane of a row. */
static int describe(struct perfetto *f, const struct perfetto_row *r, uint32_t lane)
{
	static const char *const names[] = {[ROW_STEPS] = "Steps", [ROW_CLASSES] = "Classes"};
	char name[96];

	if (r->kind == ROW_THREAD && !lane)
		return thread_track(f, r->uuid[lane], (uint32_t)r->of);
	if (r->kind == ROW_THREAD)
		snprintf(name, sizeof(name), "thread %u, overlapping",
			 tfh_export_tid(f->x, (uint32_t)r->of));
	else if (r->kind == ROW_STREAM && r->of == OTHER_STREAMS)
		snprintf(name, sizeof(name), "other GPU streams%s", lane ? ", overlapping" : "");
	else if (r->kind == ROW_STREAM)
		snprintf(name, sizeof(name), "GPU %u stream %u%s", (uint32_t)(r->of >> 32),
			 (uint32_t)r->of, lane ? ", overlapping" : "");
	else
		snprintf(name, sizeof(name), "%s", names[r->kind]);
	return named_track(f, r->uuid[lane], name, NULL);
}

struct perfetto_row *tfh_perfetto_row(struct perfetto *f, enum perfetto_row_kind kind, uint64_t of)
{
	/* A damaged trace may have a stream for every op. */
	if (kind == ROW_STREAM && f->row.n >= MOST_ROWS &&
	    !tfh_map_get(&f->row_of, uuid_of(f, kind, of, 0)))
		of = OTHER_STREAMS;
	uint64_t *index = tfh_map_put(&f->row_of, uuid_of(f, kind, of, 0), NULL);

	if (!index)
		return NULL;
	if (!*index) {
		struct perfetto_row row = {.kind = kind, .of = of};
		if (TFH_PUSH(f->row, row))
			return NULL;
		*index = f->row.n;
	}
	return &f->row.v[*index - 1];
}

/* ---- slices ---- */

static int end_slice(void *arg, uint32_t lane, int64_t t)
{
	struct perfetto *f = arg;

	begin_packet(f, t);
	size_t event = tfh_proto_begin(&f->p, PACKET_EVENT);
	tfh_proto_uint(&f->p, EVENT_TYPE, TYPE_END);
	tfh_proto_uint(&f->p, EVENT_TRACK, f->current->uuid[lane]);
	tfh_proto_end(&f->p, event);
	return end_packet(f);
}

int tfh_perfetto_slice(struct perfetto *f, struct perfetto_row *r, int64_t t0, int64_t t1,
		       const char *category, const char *name, struct perfetto_event *out)
{
	if (!r)
		return -ENOMEM;
	f->current = r;
	int lane = tfh_lanes_take(&r->lanes, t0, &t1, end_slice, f);
	if (lane < 0)
		return lane == -1 ? 1 : lane;
	if (!r->uuid[lane]) {
		r->uuid[lane] = uuid_of(f, r->kind, r->of, (uint32_t)lane);
		int rc = describe(f, r, (uint32_t)lane);
		if (rc)
			return rc;
	}
	begin_packet(f, t0);
	uint64_t name_id = intern(f, INTERNED_NAME, name);
	uint64_t category_id = intern(f, INTERNED_CATEGORY, category);
	out->begin = tfh_proto_begin(&f->p, PACKET_EVENT);
	tfh_proto_uint(&f->p, EVENT_TYPE, TYPE_BEGIN);
	tfh_proto_uint(&f->p, EVENT_TRACK, r->uuid[lane]);
	tfh_proto_uint(&f->p, EVENT_NAME, name_id);
	tfh_proto_uint(&f->p, EVENT_CATEGORY, category_id);
	return 0;
}

int tfh_perfetto_done(struct perfetto *f, const struct perfetto_event *e)
{
	tfh_proto_end(&f->p, e->begin);
	return end_packet(f);
}

void tfh_perfetto_uint(struct perfetto *f, const char *name, uint64_t value)
{
	size_t one = tfh_proto_begin(&f->p, EVENT_ANNOTATION);

	tfh_proto_text(&f->p, ANNOTATION_NAME, name);
	tfh_proto_uint(&f->p, ANNOTATION_UINT, value);
	tfh_proto_end(&f->p, one);
}

void tfh_perfetto_double(struct perfetto *f, const char *name, double value)
{
	size_t one = tfh_proto_begin(&f->p, EVENT_ANNOTATION);

	tfh_proto_text(&f->p, ANNOTATION_NAME, name);
	tfh_proto_double(&f->p, ANNOTATION_DOUBLE, value);
	tfh_proto_end(&f->p, one);
}

void tfh_perfetto_text(struct perfetto *f, const char *name, const char *value)
{
	size_t one = tfh_proto_begin(&f->p, EVENT_ANNOTATION);

	tfh_proto_text(&f->p, ANNOTATION_NAME, name);
	tfh_proto_text(&f->p, ANNOTATION_TEXT, value);
	tfh_proto_end(&f->p, one);
}

void tfh_perfetto_flow(struct perfetto *f, uint64_t call, bool last)
{
	tfh_proto_fixed64(&f->p, last ? EVENT_LAST_OF_FLOW : EVENT_FLOW,
			  tfh_hash_add(f->process_uuid, call));
}

/* ---- counters ---- */

int tfh_perfetto_value(struct perfetto *f, const char *name, const char *unit, int64_t t,
		       double value)
{
	struct perfetto_row *r = tfh_perfetto_row(f, ROW_COUNTER, tfh_hash_str(name));
	int rc = r ? 0 : -ENOMEM;

	if (!rc && !r->uuid[0]) {
		r->uuid[0] = uuid_of(f, ROW_COUNTER, r->of, 0);
		rc = named_track(f, r->uuid[0], name, unit);
	}
	if (rc)
		return rc;
	begin_packet(f, t);
	size_t event = tfh_proto_begin(&f->p, PACKET_EVENT);
	tfh_proto_uint(&f->p, EVENT_TYPE, TYPE_COUNTER);
	tfh_proto_uint(&f->p, EVENT_TRACK, r->uuid[0]);
	tfh_proto_double(&f->p, EVENT_VALUE, value);
	tfh_proto_end(&f->p, event);
	return end_packet(f);
}

/* ---- the file ---- */

int tfh_perfetto_begin(struct perfetto *f)
{
	tfh_proto_uint(&f->p, PACKET_SEQUENCE, 1);
	tfh_proto_uint(&f->p, PACKET_FLAGS, STATE_CLEARED);
	size_t defaults = tfh_proto_begin(&f->p, PACKET_DEFAULTS);
	tfh_proto_uint(&f->p, PACKET_CLOCK, CLOCK_REAL);
	tfh_proto_end(&f->p, defaults);
	size_t clocks = tfh_proto_begin(&f->p, PACKET_CLOCKS), one = tfh_proto_begin(&f->p, 1);
	tfh_proto_uint(&f->p, 1, CLOCK_REAL);
	tfh_proto_uint(&f->p, 2, (uint64_t)tfh_export_start_ns(f->x));
	tfh_proto_end(&f->p, one);
	tfh_proto_uint(&f->p, 2, CLOCK_REAL);
	tfh_proto_end(&f->p, clocks);
	return end_packet(f);
}

int tfh_perfetto_process(struct perfetto *f, uint32_t process, const char *name)
{
	size_t track, inner;

	f->process = process;
	f->process_uuid = uuid_of(f, ROW_COUNTER, UINT64_MAX, 0);
	track_begin(f, &track, f->process_uuid);
	inner = tfh_proto_begin(&f->p, TRACK_PROCESS);
	tfh_proto_uint(&f->p, 1, tfh_export_pid(f->x, process));
	tfh_proto_text(&f->p, 6, name);
	tfh_proto_end(&f->p, inner);
	return track_end(f, track);
}

int tfh_perfetto_close_rows(struct perfetto *f)
{
	int rc = 0;

	for (size_t i = 0; i < f->row.n; i++) {
		f->current = &f->row.v[i];
		int end = tfh_lanes_close(&f->row.v[i].lanes, end_slice, f);
		rc = rc ? rc : end;
	}
	return rc;
}

void tfh_perfetto_free(struct perfetto *f)
{
	for (size_t i = 0; i < f->row.n; i++)
		tfh_lanes_free(&f->row.v[i].lanes);
	tfh_big_free(f->row.v);
	tfh_map_free(&f->row_of);
	tfh_map_free(&f->names);
	tfh_proto_free(&f->p);
}
