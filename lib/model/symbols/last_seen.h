/* Where a process was last seen that ended in the middle of its work. */
#ifndef TFH_MODEL_SYMBOLS_LAST_SEEN_H
#define TFH_MODEL_SYMBOLS_LAST_SEEN_H

#include "model/model.h"
#include "model/symbols/pylines.h"

/* The last sample and the last call with a line of Python, of the thread that made the first call;
 * 0: none. */
struct tfh_last_seen {
	bool begun;
	uint32_t thread, place, stack;
	int64_t place_ns, stack_ns;
};

/* Events in order of time; begin with zeros. */
void tfh_last_seen_note(struct tfh_last_seen *x, const struct tfh_event *ev);
/* The later of both lines. But when an exception ends a program, the interpreter cleans up last, so
 * a line outside of libraries is preferred to one in a library. False: no line is known. */
bool tfh_last_seen_line(struct tfh_run *run, uint32_t process, const struct tfh_last_seen *x,
			struct tfh_model_line *out, int64_t *at_ns);

#endif
