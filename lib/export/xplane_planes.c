#include "export/xplane_planes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

#define AT_ONCE (256u << 10) /* bytes of a line that are written as a line of their own */
#define AT_HAND (32u << 20)  /* bytes held for all lines of a plane */

enum { SPACE_PLANE = 1 };
enum { PLANE_ID = 1, PLANE_NAME, PLANE_LINE, PLANE_EVENT_NAME, PLANE_STAT_NAME, PLANE_STAT };
enum { LINE_ID = 1, LINE_NAME, LINE_START, LINE_EVENT };
enum { EVENT_NAME = 1, EVENT_OFFSET, EVENT_DURATION, EVENT_STAT };
enum { STAT_NAME = 1, STAT_INT = 4, STAT_TEXT = 5 };

/* Writes an entry of a plane's maps from ids to names. */
static void put_name(struct tfh_proto *to, uint32_t field, uint64_t id, const char *name)
{
	size_t entry = tfh_proto_begin(to, field);

	tfh_proto_uint(to, 1, id);
	size_t value = tfh_proto_begin(to, 2);
	tfh_proto_uint(to, 1, id);
	tfh_proto_text(to, 2, name);
	tfh_proto_end(to, value);
	tfh_proto_end(to, entry);
}

int tfh_plane_open(struct tfh_plane *p, const char *name, int64_t start_ns)
{
	static const char *const stats[] = {
		[TFH_STAT_GROUP] = "group_id",	      [TFH_STAT_CORRELATION] = "correlation_id",
		[TFH_STAT_KERNEL] = "kernel_details", [TFH_STAT_COPY] = "memcpy_details",
		[TFH_STAT_SET] = "memset_details",    [TFH_STAT_VENDOR] = "device_vendor"};
	int fd = tfh_big_file();

	memset(p, 0, sizeof(*p));
	if (fd < 0)
		return -errno;
	p->lines = fdopen(fd, "w+");
	if (!p->lines) {
		close(fd);
		return -ENOMEM;
	}
	p->start_ns = start_ns;
	snprintf(p->name, sizeof(p->name), "%s", name);
	for (uint32_t i = 1; i < sizeof(stats) / sizeof(*stats); i++)
		put_name(&p->names, PLANE_STAT_NAME, i, stats[i]);
	return 0;
}

void tfh_plane_vendor(struct tfh_plane *p, const char *vendor)
{
	size_t one = tfh_proto_begin(&p->names, PLANE_STAT);

	tfh_proto_uint(&p->names, STAT_NAME, TFH_STAT_VENDOR);
	tfh_proto_text(&p->names, STAT_TEXT, vendor);
	tfh_proto_end(&p->names, one);
}

void tfh_plane_free(struct tfh_plane *p)
{
	for (size_t i = 0; i < p->line.n; i++)
		tfh_proto_free(&p->line.v[i].events);
	tfh_big_free(p->line.v);
	tfh_proto_free(&p->names);
	tfh_map_free(&p->name_of);
	tfh_map_free(&p->line_of);
	if (p->lines)
		fclose(p->lines);
}

struct tfh_plane_line *tfh_plane_line_of(struct tfh_plane *p, int64_t id, const char *name)
{
	uint64_t *index = tfh_map_put(&p->line_of, tfh_hash_u64((uint64_t)id + 1), NULL);

	if (!index)
		return NULL;
	if (!*index) {
		struct tfh_plane_line line = {.id = id};
		snprintf(line.name, sizeof(line.name), "%s", name);
		if (TFH_PUSH(p->line, line))
			return NULL;
		*index = p->line.n;
	}
	return &p->line.v[*index - 1];
}

/* ---- events ---- */

static uint64_t number_of(struct tfh_plane *p, const char *name)
{
	bool fresh;
	uint64_t *id = tfh_map_put(&p->name_of, tfh_hash_str(name), &fresh);

	if (!id) {
		p->names.failed = true;
		return 0;
	}
	if (fresh) {
		*id = p->name_of.n;
		put_name(&p->names, PLANE_EVENT_NAME, *id, name);
	}
	return *id;
}

size_t tfh_plane_event(struct tfh_plane *p, struct tfh_plane_line *l, const char *name, int64_t t0,
		       int64_t t1)
{
	size_t event = tfh_proto_begin(&l->events, LINE_EVENT);

	tfh_proto_uint(&l->events, EVENT_NAME, number_of(p, name));
	tfh_proto_uint(&l->events, EVENT_OFFSET, (uint64_t)t0 * 1000);
	tfh_proto_uint(&l->events, EVENT_DURATION, (uint64_t)(t1 - t0) * 1000);
	return event;
}

void tfh_plane_int(struct tfh_plane_line *l, uint32_t stat, int64_t value)
{
	size_t one = tfh_proto_begin(&l->events, EVENT_STAT);

	tfh_proto_uint(&l->events, STAT_NAME, stat);
	tfh_proto_uint(&l->events, STAT_INT, (uint64_t)value);
	tfh_proto_end(&l->events, one);
}

void tfh_plane_text(struct tfh_plane_line *l, uint32_t stat, const char *text)
{
	size_t one = tfh_proto_begin(&l->events, EVENT_STAT);

	tfh_proto_uint(&l->events, STAT_NAME, stat);
	tfh_proto_text(&l->events, STAT_TEXT, text);
	tfh_proto_end(&l->events, one);
}

/* Writes the events so far as a line: readers merge lines with the same id. */
static int flush_line(struct tfh_plane *p, struct tfh_plane_line *l)
{
	struct tfh_proto head = {.v = NULL};

	tfh_proto_uint(&head, LINE_ID, (uint64_t)l->id);
	tfh_proto_text(&head, LINE_NAME, l->name);
	tfh_proto_uint(&head, LINE_START, (uint64_t)p->start_ns);
	size_t n = head.n;
	int rc = tfh_proto_flush_head(PLANE_LINE, n + l->events.n, p->lines);
	if (!rc)
		rc = tfh_proto_flush_bytes(&head, p->lines);
	if (!rc)
		rc = tfh_proto_flush_bytes(&l->events, p->lines);
	tfh_proto_free(&head);
	return rc;
}

static int flush_lines(struct tfh_plane *p)
{
	int rc = 0;

	for (size_t i = 0; i < p->line.n && !rc; i++) {
		if (p->line.v[i].events.n)
			rc = flush_line(p, &p->line.v[i]);
		tfh_proto_free(&p->line.v[i].events);
	}
	p->held = 0;
	return rc;
}

int tfh_plane_event_end(struct tfh_plane *p, struct tfh_plane_line *l, size_t event)
{
	tfh_proto_end(&l->events, event);
	if (l->events.failed || p->names.failed)
		return -ENOMEM;
	p->held += l->events.n - event;
	if (p->held >= AT_HAND)
		return flush_lines(p);
	return l->events.n >= AT_ONCE ? flush_line(p, l) : 0;
}

/* ---- the plane ---- */

static int copy(FILE *from, FILE *to)
{
	char block[1 << 14];
	size_t n;

	rewind(from);
	while ((n = fread(block, 1, sizeof(block), from)))
		if (fwrite(block, 1, n, to) != n)
			return -EIO;
	return ferror(from) ? -EIO : 0;
}

int tfh_plane_write(struct tfh_plane *p, int64_t id, FILE *out)
{
	struct tfh_proto head = {.v = NULL};
	int rc = flush_lines(p);

	if (!rc && fflush(p->lines))
		rc = -errno;
	long bytes = rc ? -1 : ftell(p->lines);
	if (!rc && bytes < 0)
		rc = -errno;
	tfh_proto_uint(&head, PLANE_ID, (uint64_t)id);
	tfh_proto_text(&head, PLANE_NAME, p->name);
	if (!rc)
		rc = tfh_proto_flush_head(SPACE_PLANE, head.n + (size_t)bytes + p->names.n, out);
	if (!rc)
		rc = tfh_proto_flush_bytes(&head, out);
	if (!rc)
		rc = copy(p->lines, out);
	if (!rc)
		rc = tfh_proto_flush_bytes(&p->names, out);
	tfh_proto_free(&head);
	return rc;
}
