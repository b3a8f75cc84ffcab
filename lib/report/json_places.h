/* Places of the program in JSON: frames of Python and of machine code. */
#ifndef TFH_REPORT_JSON_PLACES_H
#define TFH_REPORT_JSON_PLACES_H

#include "base/json.h"
#include "judge/result.h"

/* The fields "python" and "native" of an object: a backtrace as a whole, the innermost frames first. */
void tfh_json_frames(struct tfh_json *j, const struct tfh_result *r, uint32_t stack);

/* Where a call in flight was, last: where, state, python. */
void tfh_json_open_place(struct tfh_json *j, const struct tfh_result *r,
			 const struct tfh_in_flight *open);

/* The field "places": where most of the time of calls other than copies is spent, and where pauses end. */
void tfh_json_places(struct tfh_json *j, const struct tfh_result *r);

#endif
