#include "format/head.h"

#include <errno.h>
#include <string.h>

#include "format/tft_write.h"

struct head_value {
	uint16_t tag;
	uint16_t reserved;
	uint32_t length; /* of the value; the next entry begins at the next multiple of 8 */
};

struct head_function {
	uint16_t number;
	uint8_t family, args, dir, props;
	uint16_t name_length; /* the name follows, without NUL */
};

void tft_head_clear(struct tft_head *head)
{
	memset(head, 0, sizeof(*head));
	head->rank = head->world = head->local_rank = -1;
	head->host = head->exe = head->command = head->boot_id = "";
	head->tfhook_version = head->job = head->journal_path = "";
}

/* ---- packing ---- */

struct head_output {
	uint8_t *data;
	size_t at, cap;
};

/* Appends `len` bytes if there is room; `at` grows in any case. */
static void put(struct head_output *out, const void *data, size_t len)
{
	if (out->at + len <= out->cap && len)
		memcpy(out->data + out->at, data, len);
	out->at += len;
}

static void pad(struct head_output *out)
{
	static const uint8_t zero[8];

	put(out, zero, -out->at & 7);
}

static void put_entry(struct head_output *out, enum tft_tag tag, const void *value, size_t len)
{
	struct head_value e = {.tag = (uint16_t)tag, .length = (uint32_t)len};

	put(out, &e, sizeof(e));
	put(out, value, len);
	pad(out);
}

static void put_number(struct head_output *out, enum tft_tag tag, int64_t v)
{
	put_entry(out, tag, &v, sizeof(v));
}

static void put_text(struct head_output *out, enum tft_tag tag, const char *text)
{
	if (text && *text)
		put_entry(out, tag, text, strlen(text));
}

static void put_functions(struct head_output *out, const struct tfh_fn_info *fn, uint32_t n)
{
	struct head_value e = {.tag = TFT_TAG_FUNCTIONS};

	for (uint32_t i = 0; i < n; i++)
		if (fn[i].name && *fn[i].name)
			e.length += (uint32_t)(sizeof(struct head_function) + strlen(fn[i].name));
	put(out, &e, sizeof(e));
	for (uint32_t i = 0; i < n; i++) {
		if (!fn[i].name || !*fn[i].name)
			continue;
		struct head_function f = {(uint16_t)i, fn[i].family, fn[i].args,
					  fn[i].dir,   fn[i].props,  (uint16_t)strlen(fn[i].name)};
		put(out, &f, sizeof(f));
		put(out, fn[i].name, f.name_length);
	}
	pad(out);
}

size_t tft_head_pack(const struct tft_head *h, void *buf, size_t cap)
{
	struct head_output out = {buf, 0, cap};

	put_number(&out, TFT_TAG_PID, h->pid);
	put_number(&out, TFT_TAG_PPID, h->ppid);
	put_number(&out, TFT_TAG_RANK, h->rank);
	put_number(&out, TFT_TAG_WORLD, h->world);
	put_number(&out, TFT_TAG_LOCAL_RANK, h->local_rank);
	put_number(&out, TFT_TAG_SEGMENT, h->segment);
	put_text(&out, TFT_TAG_HOST, h->host);
	put_text(&out, TFT_TAG_EXE, h->exe);
	put_text(&out, TFT_TAG_COMMAND, h->command);
	put_text(&out, TFT_TAG_BOOT_ID, h->boot_id);
	put_text(&out, TFT_TAG_TFHOOK_VERSION, h->tfhook_version);
	put_text(&out, TFT_TAG_JOB, h->job);
	put_number(&out, TFT_TAG_START_REALTIME, (int64_t)h->start_realtime_ns);
	put_number(&out, TFT_TAG_START_TICKS, (int64_t)h->start_ticks);
	put_number(&out, TFT_TAG_TICK_HZ, (int64_t)h->tick_hz);
	put_number(&out, TFT_TAG_TICKS_ARE_NS, h->ticks_are_ns);
	put_text(&out, TFT_TAG_JOURNAL_PATH, h->journal_path);
	put_number(&out, TFT_TAG_PROCESS_START, (int64_t)h->journal_start);
	put_functions(&out, h->fn, h->fn_count);
	return out.at;
}

/* ---- unpacking ---- */

static int get_functions(struct tft_head *h, struct tfh_arena *arena, const uint8_t *p, size_t len)
{
	struct head_function f;
	uint32_t count = 0;

	for (size_t at = 0; at < len; at += sizeof(f) + f.name_length) {
		if (len - at < sizeof(f))
			return -EBADMSG;
		memcpy(&f, p + at, sizeof(f));
		if (f.name_length > len - at - sizeof(f))
			return -EBADMSG;
		if (f.number >= count)
			count = f.number + 1u;
	}
	struct tfh_fn_info *fn = tfh_arena_array(arena, count ? count : 1, sizeof(*fn));
	if (!fn)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		fn[i].name = "";
	for (size_t at = 0; at < len; at += sizeof(f) + f.name_length) {
		memcpy(&f, p + at, sizeof(f));
		char *name =
			tfh_arena_strndup(arena, (const char *)p + at + sizeof(f), f.name_length);
		if (!name)
			return -ENOMEM;
		fn[f.number] = (struct tfh_fn_info){name, f.family, f.args, f.dir, f.props};
	}
	h->fn = fn;
	h->fn_count = count;
	return 0;
}

static const char **text_field(struct tft_head *h, uint16_t tag)
{
	switch (tag) {
	case TFT_TAG_HOST:
		return &h->host;
	case TFT_TAG_EXE:
		return &h->exe;
	case TFT_TAG_COMMAND:
		return &h->command;
	case TFT_TAG_BOOT_ID:
		return &h->boot_id;
	case TFT_TAG_TFHOOK_VERSION:
		return &h->tfhook_version;
	case TFT_TAG_JOB:
		return &h->job;
	case TFT_TAG_JOURNAL_PATH:
		return &h->journal_path;
	default:
		return NULL;
	}
}

static void get_number(struct tft_head *h, uint16_t tag, int64_t v)
{
	switch (tag) {
	case TFT_TAG_PID:
		h->pid = (uint32_t)v;
		break;
	case TFT_TAG_PPID:
		h->ppid = (uint32_t)v;
		break;
	case TFT_TAG_RANK:
		h->rank = (int32_t)v;
		break;
	case TFT_TAG_WORLD:
		h->world = (int32_t)v;
		break;
	case TFT_TAG_LOCAL_RANK:
		h->local_rank = (int32_t)v;
		break;
	case TFT_TAG_SEGMENT:
		h->segment = (uint32_t)v;
		break;
	case TFT_TAG_START_REALTIME:
		h->start_realtime_ns = (uint64_t)v;
		break;
	case TFT_TAG_START_TICKS:
		h->start_ticks = (uint64_t)v;
		break;
	case TFT_TAG_TICK_HZ:
		h->tick_hz = (uint64_t)v;
		break;
	case TFT_TAG_TICKS_ARE_NS:
		h->ticks_are_ns = v != 0;
		break;
	case TFT_TAG_PROCESS_START:
		h->journal_start = (uint64_t)v;
		break;
	default: /* of a later minor version */
		break;
	}
}

static int get_entry(struct tft_head *h, struct tfh_arena *arena, const struct head_value *e,
		     const uint8_t *value)
{
	const char **text = text_field(h, e->tag);
	int64_t number;

	if (e->tag == TFT_TAG_FUNCTIONS)
		return get_functions(h, arena, value, e->length);
	if (text) {
		const char *copy = tfh_arena_strndup(arena, (const char *)value, e->length);
		if (!copy)
			return -ENOMEM;
		*text = copy;
	} else if (e->length == sizeof(number)) {
		memcpy(&number, value, sizeof(number));
		get_number(h, e->tag, number);
	}
	return 0;
}

int tft_head_unpack(struct tft_head *h, struct tfh_arena *arena, const void *data, size_t len)
{
	const uint8_t *p = data;
	struct head_value e;

	tft_head_clear(h);
	h->version = TFT_VERSION;
	while (len >= sizeof(e)) {
		memcpy(&e, p, sizeof(e));
		p += sizeof(e);
		len -= sizeof(e);
		if (e.length > len)
			return -EBADMSG;
		int err = get_entry(h, arena, &e, p);
		if (err < 0)
			return err;
		size_t step = ((size_t)e.length + 7) & ~(size_t)7;
		if (step > len)
			step = len;
		p += step;
		len -= step;
	}
	return 0;
}
