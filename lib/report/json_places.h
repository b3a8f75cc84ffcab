/* Places in the program as JSON: Python frames and native frames. */
#ifndef TFH_REPORT_JSON_PLACES_H
#define TFH_REPORT_JSON_PLACES_H

#include "base/json.h"
#include "judge/result.h"

/* The fields of a line of the program, in an object that is open. */
void tfh_json_line(struct tfh_json *j, const char *file, uint32_t line, const char *function);
/* Begins the object `key` of such a line. False: there is none (file NULL), and null is written. */
bool tfh_json_begin_line(struct tfh_json *j, const char *key, const char *file, uint32_t line,
			 const char *function);

/* The fields "python" and "native" of an object: the frames of a backtrace, innermost first. */
void tfh_json_frames(struct tfh_json *j, const struct tfh_result *r, uint32_t stack);

/* Fields of the last sample of a call in flight: where, state, python. */
void tfh_json_open_place(struct tfh_json *j, const struct tfh_result *r,
			 const struct tfh_in_flight *open);

/* The field "computing": the parts of what is computed on a CPU. */
void tfh_json_computed(struct tfh_json *j, const struct tfh_result *r);

/* The field "places": where most of the time of calls other than copies is spent, and where pauses
 * end. */
void tfh_json_places(struct tfh_json *j, const struct tfh_result *r);

#endif
