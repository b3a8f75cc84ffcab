/* Host events of other tools' traces, by their names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "import/import.h"

static int name_word(struct tfh_builder *b, uint32_t process, enum tft_name kind, const char *text,
		     uint64_t *word)
{
	int64_t id = tfh_build_name(b, process, kind, text);

	*word = id < 0 ? 0 : (uint64_t)id;
	return id < 0 ? (int)id : 0;
}

/* The kind of a range whose source does not give its kind. The name of an op has a namespace, or is
 * that of an op's backward form. */
static enum tft_range range_of(const char *name)
{
#define EXCHANGE_NAME(start, kind)                                                                 \
	if (tfh_starts_with(name, start))                                                          \
		return TFT_RANGE_##kind;
#include "base/exchange_names.def"
#undef EXCHANGE_NAME
	if (strstr(name, "::"))
		return TFT_RANGE_OP;
	const char *at = strstr(name, "Backward");
	return at && !strpbrk(name, " #.(") ? TFT_RANGE_OP : TFT_RANGE_NOTE;
}

bool tfh_import_step(const char *name, uint64_t *number)
{
	static const char step[] = "ProfilerStep#";

	if (!tfh_starts_with(name, step))
		return false;
	*number = strtoull(name + sizeof(step) - 1, NULL, 10);
	return true;
}

int tfh_import_host_event(struct tfh_builder *b, const char *name, enum tft_range kind,
			  struct tfh_event *ev)
{
	enum tft_range known = kind == TFT_RANGE_PYTHON ? kind : range_of(name);

	if (tfh_import_step(name, &ev->w[0])) {
		ev->kind = TFT_MARK;
		ev->fn = &tfh_fn_table[TFH_FN_mark_step];
		return name_word(b, ev->process, TFT_NAME_STRING, "ProfilerStep", &ev->w[1]);
	}
	if (tfh_starts_with(name, "enumerate(DataLoader)") ||
	    tfh_starts_with(name, "enumerate(DataPipe)")) {
		ev->kind = TFT_CALL;
		ev->fn = tfh_build_fn(b, name, &tfh_fn_table[TFH_FN_user_getnext]);
		return ev->fn ? name_word(b, ev->process, TFT_NAME_ITERATOR, name, &ev->w[0])
			      : -ENOMEM;
	}
	ev->kind = TFT_RANGE;
	ev->fn = &tfh_fn_table[TFH_FN_mark_range];
	ev->w[1] = known == TFT_RANGE_NOTE ? kind : known;
	return name_word(b, ev->process, TFT_NAME_STRING, name, &ev->w[0]);
}

int tfh_import_fn(struct tfh_builder *b, struct tfh_map *known, const char *name,
		  const struct tfh_fn_info **fn)
{
	uint64_t *row = tfh_map_put(known, tfh_hash_str(name), NULL);

	if (!row)
		return -ENOMEM;
	if (!*row) {
		const struct tfh_fn_info *like = tfh_import_call(name);
		if (!like && !tfh_starts_with(name, "cu") && !tfh_starts_with(name, "hip"))
			like = tfh_import_other_call(name);
		*fn = like ? tfh_build_fn(b, name, like) : NULL;
		if (like && !*fn)
			return -ENOMEM;
		*row = *fn ? (uint64_t)(uintptr_t)*fn : 1;
	}
	*fn = *row == 1 ? NULL : (const struct tfh_fn_info *)(uintptr_t)*row;
	return 0;
}

uint32_t tfh_import_stream(int64_t *first, int64_t device, int64_t stream)
{
	if (*first < 0)
		*first = device;
	if (stream < 0 || stream > UINT32_MAX)
		stream = 0;
	return device == *first ? (uint32_t)stream
				: (uint32_t)(stream + (((device & 0xfff) + 1) & 0xfff) * (1 << 20));
}
