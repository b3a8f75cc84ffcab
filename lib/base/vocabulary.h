/* Numbers and names of vocabulary.def, which verdicts, breakdowns and reports use.
 *
 * Every enum has _NONE (-1) and _COUNT. The names appear in JSON and reports as they are; the name
 * of _NONE is NULL. */
#ifndef TFH_BASE_VOCABULARY_H
#define TFH_BASE_VOCABULARY_H

enum tfh_class {
	TFH_CLASS_NONE = -1,
#define CLASS(id, name) TFH_CLASS_##id,
#include "base/vocabulary.def"
#undef CLASS
	TFH_CLASS_COUNT
};

enum tfh_part {
	TFH_PART_NONE = -1,
#define BREAKDOWN(id, name, class) TFH_PART_##id,
#include "base/vocabulary.def"
#undef BREAKDOWN
	TFH_PART_COUNT
};

enum tfh_cause {
	TFH_CAUSE_NONE = -1,
#define CAUSE(id, name, class, breakdown) TFH_CAUSE_##id,
#include "base/vocabulary.def"
#undef CAUSE
	TFH_CAUSE_COUNT
};

enum tfh_stage {
	TFH_STAGE_NONE = -1,
#define STAGE(id, name) TFH_STAGE_##id,
#include "base/vocabulary.def"
#undef STAGE
	TFH_STAGE_COUNT
};

enum tfh_segment {
	TFH_SEGMENT_NONE = -1,
#define SEGMENT(id, name) TFH_SEGMENT_##id,
#include "base/vocabulary.def"
#undef SEGMENT
	TFH_SEGMENT_COUNT
};

enum tfh_branch {
	TFH_BRANCH_NONE = -1,
#define BRANCH(id, name) TFH_BRANCH_##id,
#include "base/vocabulary.def"
#undef BRANCH
	TFH_BRANCH_COUNT
};

enum tfh_remove {
	TFH_REMOVE_NONE = -1,
#define REMOVE(id, name, breakdown) TFH_REMOVE_##id,
#include "base/vocabulary.def"
#undef REMOVE
	TFH_REMOVE_COUNT
};

enum tfh_step_clock {
	TFH_STEP_CLOCK_NONE = -1,
#define CLOCK(id, name) TFH_STEP_CLOCK_##id,
#include "base/vocabulary.def"
#undef CLOCK
	TFH_STEP_CLOCK_COUNT
};

enum tfh_confidence {
	TFH_CONFIDENCE_NONE = -1,
#define CONFIDENCE(id, name) TFH_CONFIDENCE_##id,
#include "base/vocabulary.def"
#undef CONFIDENCE
	TFH_CONFIDENCE_COUNT
};

enum tfh_end {
	TFH_END_NONE = -1,
#define END(id, name) TFH_END_##id,
#include "base/vocabulary.def"
#undef END
	TFH_END_COUNT
};

enum tfh_source {
	TFH_SRC_NONE = -1,
#define SOURCE(id, name) TFH_SRC_##id,
#include "base/vocabulary.def"
#undef SOURCE
	TFH_SRC_COUNT
};

/* Name of a member, NULL if it is none. */
const char *tfh_class_name(enum tfh_class x);
const char *tfh_part_name(enum tfh_part x);
const char *tfh_cause_name(enum tfh_cause x);
const char *tfh_stage_name(enum tfh_stage x);
const char *tfh_segment_name(enum tfh_segment x);
const char *tfh_branch_name(enum tfh_branch x);
const char *tfh_remove_name(enum tfh_remove x);
const char *tfh_step_clock_name(enum tfh_step_clock x);
const char *tfh_confidence_name(enum tfh_confidence x);
const char *tfh_end_name(enum tfh_end x);
const char *tfh_source_name(enum tfh_source x);

/* Member of that name, _NONE if there is none (or name is NULL). */
enum tfh_end tfh_end_find(const char *name);
enum tfh_source tfh_source_find(const char *name);

/* The class that a cause indicates, and the part of a step's time where it appears. */
enum tfh_class tfh_cause_class(enum tfh_cause cause);
enum tfh_part tfh_cause_part(enum tfh_cause cause);

/* The class that a part's blocking time counts for. */
enum tfh_class tfh_part_class(enum tfh_part part);

/* The part that a what-if removes; TFH_PART_COUNT: everything but compute. */
enum tfh_part tfh_remove_part(enum tfh_remove what);

#endif
