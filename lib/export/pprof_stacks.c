#include "export/pprof_stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/hash.h"

/* Field numbers of profile.proto. */
enum {
	PROFILE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_TEXT = 6,
	PROFILE_START = 9,
	PROFILE_DURATION = 10,
	PROFILE_COMMENT = 13,
	PROFILE_SHOWN = 14
};
enum { TYPE_NAME = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER };
/* Without a system name: pprof takes names that equal theirs for C++, and leaves out what is in
 * parentheses. */
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_FILE = 4 };

enum pprof_known { KNOWN_TEXT = 1, KNOWN_FUNCTION, KNOWN_FRAME, KNOWN_PLACE, KNOWN_STACK };

/* The id of what has these numbers, 0 if it is new; NULL when out of memory. */
static uint64_t *known(struct tfh_pprof *p, enum pprof_known kind, uint64_t a, uint64_t b,
		       uint64_t c)
{
	uint64_t key = tfh_hash_add(tfh_hash_add(tfh_hash_add((uint64_t)kind, a), b), c);
	uint64_t *id = tfh_map_put(&p->known, key, NULL);

	if (!id)
		p->out.failed = true;
	return id;
}

/* The first text of the table is "", with number 0. */
uint32_t tfh_pprof_text(struct tfh_pprof *p, const char *text)
{
	if (!p->texts)
		tfh_proto_text(&p->out, PROFILE_TEXT, "");
	p->texts += !p->texts;
	uint64_t *id = *text ? known(p, KNOWN_TEXT, tfh_hash_str(text), 0, 0) : NULL;
	if (id && !*id) {
		*id = p->texts++;
		tfh_proto_text(&p->out, PROFILE_TEXT, text);
	}
	return id ? (uint32_t)*id : 0;
}

static uint32_t function_of(struct tfh_pprof *p, uint32_t name, uint32_t file)
{
	uint64_t *id = known(p, KNOWN_FUNCTION, name, file, 0);

	if (id && !*id) {
		*id = ++p->functions;
		size_t one = tfh_proto_begin(&p->out, PROFILE_FUNCTION);
		tfh_proto_uint(&p->out, FUNCTION_ID, *id);
		tfh_proto_uint(&p->out, FUNCTION_NAME, name);
		tfh_proto_uint(&p->out, FUNCTION_FILE, file);
		tfh_proto_end(&p->out, one);
	}
	return id ? (uint32_t)*id : 0;
}

uint32_t tfh_pprof_frame(struct tfh_pprof *p, const char *function, const char *file, uint32_t line)
{
	uint32_t name = tfh_pprof_text(p, function);
	uint32_t of = function_of(p, name, tfh_pprof_text(p, file));
	uint64_t *id = known(p, KNOWN_FRAME, of, line, 0);

	if (id && !*id) {
		*id = ++p->frames;
		size_t one = tfh_proto_begin(&p->out, PROFILE_LOCATION);
		tfh_proto_uint(&p->out, LOCATION_ID, *id);
		size_t at = tfh_proto_begin(&p->out, LOCATION_LINE);
		tfh_proto_uint(&p->out, LINE_FUNCTION, of);
		tfh_proto_uint(&p->out, LINE_NUMBER, line);
		tfh_proto_end(&p->out, at);
		tfh_proto_end(&p->out, one);
	}
	return id ? (uint32_t)*id : 0;
}

uint32_t tfh_pprof_place(struct tfh_pprof *p, const struct tfh_pprof_place *place)
{
	uint64_t *id = known(p, KNOWN_PLACE, (uint64_t)place->rank << 32 | place->pid,
			     place->thread, (uint64_t)place->device << 32 | place->stream);

	if (id && !*id && !TFH_PUSH(p->place, *place))
		*id = p->place.n;
	p->out.failed |= id && !*id;
	return id ? (uint32_t)*id : 0;
}

uint32_t tfh_pprof_stack(struct tfh_pprof *p, uint32_t parent, uint32_t frame, uint32_t place)
{
	uint64_t *id = known(p, KNOWN_STACK, parent, frame, place);
	struct tfh_pprof_node node = {.parent = parent, .frame = frame, .place = place};

	if (id && !*id && !TFH_PUSH(p->node, node))
		*id = p->node.n;
	return id ? (uint32_t)*id : 0;
}

void tfh_pprof_add(struct tfh_pprof *p, uint32_t stack, enum tfh_pprof_sum sum, int64_t value)
{
	if (stack)
		p->node.v[stack - 1].sum[sum] += value;
	else
		p->out.failed = true;
}

/* ---- writing ---- */

static void put_type(struct tfh_pprof *p, const char *name, const char *unit)
{
	uint32_t name_id = tfh_pprof_text(p, name), unit_id = tfh_pprof_text(p, unit);
	size_t one = tfh_proto_begin(&p->out, PROFILE_TYPE);

	tfh_proto_uint(&p->out, TYPE_NAME, name_id);
	tfh_proto_uint(&p->out, TYPE_UNIT, unit_id);
	tfh_proto_end(&p->out, one);
}

static const struct {
	const char *name, *unit;
} sums[TFH_PPROF_SUMS] = {[TFH_PPROF_CALLS] = {"calls", "count"},
			  [TFH_PPROF_HOST] = {"host", "nanoseconds"},
			  [TFH_PPROF_OPS] = {"ops", "count"},
			  [TFH_PPROF_DEVICE] = {"device", "nanoseconds"},
			  [TFH_PPROF_PYTHON] = {"python_per_step", "nanoseconds"}};

static void put_head(struct tfh_pprof *p, const struct tfh_pprof_head *head)
{
	for (int i = 0; i < TFH_PPROF_SUMS; i++)
		put_type(p, sums[i].name, sums[i].unit);
	uint32_t shown = tfh_pprof_text(p, sums[head->shown].name);
	uint32_t comment = tfh_pprof_text(p, head->comment);
	tfh_proto_uint(&p->out, PROFILE_SHOWN, shown);
	tfh_proto_uint(&p->out, PROFILE_COMMENT, comment);
	tfh_proto_uint(&p->out, PROFILE_START, (uint64_t)head->start_ns);
	tfh_proto_uint(&p->out, PROFILE_DURATION, (uint64_t)head->duration_ns);
}

enum { LABELS = 5 };

static void put_labels(struct tfh_pprof *p, const struct tfh_pprof_place *at,
		       const uint32_t key[LABELS])
{
	const uint32_t text[LABELS] = {at->rank, at->pid, at->thread, at->device, at->stream};

	for (int i = 0; i < LABELS; i++) {
		if (!text[i])
			continue;
		size_t one = tfh_proto_begin(&p->out, SAMPLE_LABEL);
		tfh_proto_uint(&p->out, LABEL_KEY, key[i]);
		tfh_proto_uint(&p->out, LABEL_TEXT, text[i]);
		tfh_proto_end(&p->out, one);
	}
}

/* The innermost frame comes first. */
static void put_sample(struct tfh_pprof *p, const struct tfh_pprof_node *n,
		       const uint32_t key[LABELS])
{
	bool any = false;

	for (int i = 0; i < TFH_PPROF_SUMS; i++)
		any |= n->sum[i] != 0;
	if (!any)
		return;
	size_t one = tfh_proto_begin(&p->out, PROFILE_SAMPLE);
	for (const struct tfh_pprof_node *at = n;; at = &p->node.v[at->parent - 1]) {
		tfh_proto_uint(&p->out, SAMPLE_LOCATION, at->frame);
		if (!at->parent)
			break;
	}
	for (int i = 0; i < TFH_PPROF_SUMS; i++)
		tfh_proto_uint(&p->out, SAMPLE_VALUE, (uint64_t)n->sum[i]);
	if (n->place)
		put_labels(p, &p->place.v[n->place - 1], key);
	tfh_proto_end(&p->out, one);
}

static int gzip(const uint8_t *from, size_t size, FILE *out)
{
	uint8_t room[1 << 16];
	z_stream z = {.next_in = (uint8_t *)from};
	int said = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8,
				Z_DEFAULT_STRATEGY);
	int rc = said == Z_OK ? 0 : -ENOMEM;

	while (!rc && said != Z_STREAM_END) {
		size_t left = size - (size_t)(z.next_in - from);
		z.avail_in = left < sizeof(room) ? (uInt)left : sizeof(room);
		z.next_out = room;
		z.avail_out = sizeof(room);
		said = deflate(&z, left <= sizeof(room) ? Z_FINISH : Z_NO_FLUSH);
		size_t n = sizeof(room) - z.avail_out;
		errno = 0;
		if (fwrite(room, 1, n, out) != n)
			rc = errno ? -errno : -EIO;
	}
	deflateEnd(&z);
	return rc;
}

int tfh_pprof_write(struct tfh_pprof *p, const struct tfh_pprof_head *head, FILE *out)
{
	static const char *const labels[LABELS] = {"rank", "pid", "thread", "device", "stream"};
	uint32_t key[LABELS];

	for (int i = 0; i < LABELS; i++)
		key[i] = tfh_pprof_text(p, labels[i]);
	put_head(p, head);
	for (size_t i = 0; i < p->node.n; i++)
		put_sample(p, &p->node.v[i], key);
	return p->out.failed ? -ENOMEM : gzip(p->out.v, p->out.n, out);
}

void tfh_pprof_free(struct tfh_pprof *p)
{
	tfh_proto_free(&p->out);
	tfh_map_free(&p->known);
	free(p->place.v);
	free(p->node.v);
}
