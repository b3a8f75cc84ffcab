/* Private to blame.c, blame_causes.c and stalls.c: charging the moments of one window. */
#ifndef TFH_JUDGE_ACCOUNT_BLAME_H
#define TFH_JUDGE_ACCOUNT_BLAME_H

#include "judge/account/device.h"

struct tfh_blame {
	struct tfh_slice *sl;
	struct tfh_account *a;
	size_t window;
	int depth;
	uint32_t other_op; /* an op of another device whose delay is being charged; TFH_NO: none */
	uint32_t late_op;  /* an op whose late launch is being charged; TFH_NO: none */
	bool turns;	   /* a launch came late because its thread waited for another device */
};

/* Charges [t0, t1) to a cause; `direct`: it was observed, not inferred. */
void tfh_blame_cause(struct tfh_blame *b, int64_t t0, int64_t t1, enum tfh_cause cause,
		     bool direct);
/* Charges [t0, t1) of a thread's pause that began at `from` and lasts until `end`: the program's
 * own code between calls. `handed`: the part in which it waited for another thread was charged to
 * that thread. */
void tfh_blame_pause(struct tfh_blame *b, uint32_t thread, int64_t from, int64_t t0, int64_t t1,
		     int64_t end, bool handed);
/* Charges the end of [t0, t1) to host function f, which something may have waited for, back to the
 * function's begin. Returns the end of the remaining time before it. */
int64_t tfh_blame_function(struct tfh_blame *b, uint32_t f, int64_t t0, int64_t t1);

/* How much of [lo, hi), in which nothing known held op k, the device would have waited for the host
 * anyway (stalls.c); `thread`: the one that it waited for. */
int64_t tfh_hidden_stall(const struct tfh_slice *sl, uint32_t k, int64_t lo, int64_t hi,
			 uint32_t *thread);

/* Cause of the time that an op runs, that submitting it takes, and that a copying call takes. */
enum tfh_cause tfh_cause_of_work(const struct tfh_device_op *o);
enum tfh_cause tfh_cause_of_launch(const struct tfh_slice *sl, const struct tfh_device_op *o);
enum tfh_cause tfh_cause_of_copy(const struct tfh_host_span *s);

#endif
