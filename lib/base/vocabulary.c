#include "base/vocabulary.h"

#include <stddef.h>
#include <string.h>

static const char *name_of(const char *const *names, int count, int x)
{
	return x >= 0 && x < count ? names[x] : NULL;
}

/* Lookup functions of one list and its table of names. */
#define LIST(type, PREFIX)                                                                         \
	const char *tfh_##type##_name(enum tfh_##type x)                                           \
	{                                                                                          \
		return name_of(type##_names, TFH_##PREFIX##_COUNT, x);                             \
	}

static const char *const class_names[] = {
#define CLASS(id, name) name,
#include "base/vocabulary.def"
#undef CLASS
};
LIST(class, CLASS)

static const char *const part_names[] = {
#define BREAKDOWN(id, name, class) name,
#include "base/vocabulary.def"
#undef BREAKDOWN
};
LIST(part, PART)

static const char *const cause_names[] = {
#define CAUSE(id, name, class, breakdown) name,
#include "base/vocabulary.def"
#undef CAUSE
};
LIST(cause, CAUSE)

static const char *const stage_names[] = {
#define STAGE(id, name) name,
#include "base/vocabulary.def"
#undef STAGE
};
LIST(stage, STAGE)

static const char *const segment_names[] = {
#define SEGMENT(id, name) name,
#include "base/vocabulary.def"
#undef SEGMENT
};
LIST(segment, SEGMENT)
static const char *const branch_names[] = {
#define BRANCH(id, name) name,
#include "base/vocabulary.def"
#undef BRANCH
};
LIST(branch, BRANCH)

static const char *const remove_names[] = {
#define REMOVE(id, name, breakdown) name,
#include "base/vocabulary.def"
#undef REMOVE
};
LIST(remove, REMOVE)

static const char *const step_clock_names[] = {
#define CLOCK(id, name) name,
#include "base/vocabulary.def"
#undef CLOCK
};
LIST(step_clock, STEP_CLOCK)

static const char *const confidence_names[] = {
#define CONFIDENCE(id, name) name,
#include "base/vocabulary.def"
#undef CONFIDENCE
};
LIST(confidence, CONFIDENCE)

static const char *const end_names[] = {
#define END(id, name) name,
#include "base/vocabulary.def"
#undef END
};
LIST(end, END)

static const char *const source_names[] = {
#define SOURCE(id, name) name,
#include "base/vocabulary.def"
#undef SOURCE
};
LIST(source, SRC)

static int find(const char *const *names, int count, const char *name)
{
	for (int i = 0; name && i < count; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

enum tfh_end tfh_end_find(const char *name)
{
	return (enum tfh_end)find(end_names, TFH_END_COUNT, name);
}

enum tfh_source tfh_source_find(const char *name)
{
	return (enum tfh_source)find(source_names, TFH_SRC_COUNT, name);
}

enum tfh_class tfh_cause_class(enum tfh_cause cause)
{
	static const signed char classes[] = {
#define CAUSE(id, name, class, breakdown) TFH_CLASS_##class,
#include "base/vocabulary.def"
#undef CAUSE
	};

	return cause >= 0 && cause < TFH_CAUSE_COUNT ? classes[cause] : TFH_CLASS_NONE;
}

enum tfh_part tfh_cause_part(enum tfh_cause cause)
{
	static const signed char parts[] = {
#define CAUSE(id, name, class, breakdown) TFH_PART_##breakdown,
#include "base/vocabulary.def"
#undef CAUSE
	};

	return cause >= 0 && cause < TFH_CAUSE_COUNT ? parts[cause] : TFH_PART_NONE;
}

enum tfh_class tfh_part_class(enum tfh_part part)
{
	static const signed char classes[] = {
#define BREAKDOWN(id, name, class) TFH_CLASS_##class,
#include "base/vocabulary.def"
#undef BREAKDOWN
	};

	return part >= 0 && part < TFH_PART_COUNT ? classes[part] : TFH_CLASS_NONE;
}

enum tfh_part tfh_remove_part(enum tfh_remove what)
{
	static const signed char parts[] = {
#define REMOVE(id, name, breakdown) TFH_PART_##breakdown,
#include "base/vocabulary.def"
#undef REMOVE
	};

	return what >= 0 && what < TFH_REMOVE_COUNT ? parts[what] : TFH_PART_NONE;
}
