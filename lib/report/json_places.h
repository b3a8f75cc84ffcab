/* Places in the program as JSON: Python frames and native frames. */
#ifndef TFH_REPORT_JSON_PLACES_H
#define TFH_REPORT_JSON_PLACES_H

#include "base/json.h"
#include "judge/result.h"

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
