/* The slow path of a hooked call. It sets up what the process or the thread lacks, or refuses the
 * call. */
#include <errno.h>

#include "record/life/life.h"
#include "record/process/sanitizer.h"
#include "record/ring/journal.h"
#include "record/ring/rings.h"
#include "record/ring/switch.h"

#define REARM_MAX 3 /* PTHREAD_DESTRUCTOR_ITERATIONS is 4 */

static void count_beyond(void)
{
	struct tft_journal *j = __atomic_load_n(&tfh_journal.head, __ATOMIC_ACQUIRE);
	uint64_t now = tfh_ticks(), zero = 0;

	if (!j) {
		__atomic_fetch_add(&tfh_recorder.beyond_early, 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_compare_exchange_n(&j->beyond_first, &zero, now, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	__atomic_store_n(&j->beyond_last, now, __ATOMIC_RELAXED);
	__atomic_fetch_add(&j->beyond, 1, __ATOMIC_RELEASE);
}

/* While recording is off, trigger calls of the training loop are counted: a window of steps may
 * begin. */
static void count_step_off(enum tfh_fn fn)
{
	uint64_t n;

	if (fn != TFH_FN_mark_step &&
	    (tfh_fn_table[fn].family != TFH_FAM_CONSUMER || tfh_self.depth > 0))
		return;
	n = __atomic_add_fetch(&tfh_recorder.steps_off, 1, __ATOMIC_RELAXED);
	if (tfh_recorder.window_off && tfh_recorder.window_first && n >= tfh_recorder.window_first)
		tfh_window_begin();
}

static int begin_and_take(struct tfh_self *self, enum tfh_fn fn, const struct tfh_steady *steady)
{
	uint32_t mode;

	if (__atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE) == TFH_MODE_COLD &&
	    tfh_fn_table[fn].props & TFH_FN_TRIGGER)
		tfh_start(steady);
	if (__atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE) == TFH_MODE_OFF &&
	    !(tfh_fn_table[fn].props & TFH_FN_ALWAYS))
		count_step_off(fn);
	mode = __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE);
	if (mode == TFH_MODE_HOLD || mode == TFH_MODE_DEAD ||
	    (mode == TFH_MODE_OFF && !(tfh_fn_table[fn].props & TFH_FN_ALWAYS)))
		return -ECANCELED;
	return tfh_thread_ring(self) ? 0 : -EAGAIN;
}

/* Sets up everything that a first call may need. Returns 0 when the thread has a ring, otherwise
 * the reason. */
static int prepare(struct tfh_self *self, enum tfh_fn fn, const struct tfh_steady *steady)
{
	int err;

	err = tfh_process_check();
	if (err) {
		if (err == -EAGAIN)
			count_beyond();
		return err;
	}
	err = tfh_taking_begin() ? begin_and_take(self, fn, steady) : -ECANCELED;
	if (err == -EAGAIN)
		count_beyond();
	tfh_taking_end();
	return err;
}

/* A call during the recorder's own work on this thread, or where the thread may not be recorded. */
static void count_unrecorded(struct tfh_self *self, uint32_t mode)
{
	if (tfh_confined(self) && (mode == TFH_MODE_ON || mode == TFH_MODE_COLD))
		tfh_confined_call(self);
	else if (self->guard & TFH_GUARD_FILLING && tfh_own_ring(self))
		tfh_count_drop(self->ring);
}

/* Sets this thread up, and begins the recording if it is time. Returns whether the call is to be
 * recorded. */
static bool set_up(struct tfh_self *self, enum tfh_fn fn)
{
	struct tfh_steady steady;
	int err;

	tfh_steady_begin(&steady);
	tfh_guard_begin(self);
	tfh_sanitizer_ignore_begin();
	err = prepare(self, fn, &steady);
	tfh_sanitizer_ignore_end();
	tfh_guard_end(self);
	tfh_steady_end(&steady);
	return !err;
}

struct tfh_self *tfh_enter_slow(enum tfh_fn fn, uint64_t arg, struct tfh_record_frame place,
				uint64_t *begin)
{
	struct tfh_self *self = tfh_here();
	uint32_t mode = __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE);
	int saved = errno;
	bool may;

	/* Within another call, or after a pause. */
	if (mode == TFH_MODE_ON && !self->guard && tfh_up_to_date(self))
		return tfh_enter_inner(self, fn, arg, place, begin);
	if (tfh_passes(mode, fn))
		return NULL;
	if (self->guard)
		tfh_settle_at(self, place.at);
	errno = saved;
	if (self->guard) {
		count_unrecorded(self, mode);
		return NULL;
	}
	if (mode == TFH_MODE_HOLD)
		tfh_exit_wait(fn);
	if (mode == TFH_MODE_HOLD || mode == TFH_MODE_DEAD || self->rearmed > REARM_MAX)
		return NULL;
	if (mode == TFH_MODE_OFF && !(tfh_fn_table[fn].props & TFH_FN_ALWAYS)) {
		count_step_off(fn);
		mode = __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE);
		if (mode != TFH_MODE_ON)
			return NULL;
	}
	/* The common slow call: this thread is set up, and no recording is to begin. */
	if (self->ring && self->seen.generation == tfh_generation() &&
	    (mode != TFH_MODE_COLD || !(tfh_fn_table[fn].props & TFH_FN_TRIGGER))) {
		tfh_handles_renew(self);
		return tfh_enter_inner(self, fn, arg, place, begin);
	}
	tfh_guard_begin(self);
	may = tfh_may_begin();
	tfh_guard_end(self);
	if (!may)
		return NULL;
	if (!self->room && tfh_counter_refused()) {
		tfh_confine();
		tfh_confined_call(self);
		return NULL;
	}
	bool ready = set_up(self, fn);
	errno = saved;
	return ready ? tfh_enter_inner(self, fn, arg, place, begin) : NULL;
}

struct tfh_self *tfh_back_elsewhere(enum tfh_fn fn, uint64_t begin)
{
	struct tfh_self *self;
	int saved = errno;
	uint64_t now;

	tfh_close_elsewhere(begin);
	self = tfh_enter_slow(fn, 0, (struct tfh_record_frame){tfh_stack(), 0}, &now);
	errno = saved;
	if (!self)
		return NULL;
	if (self->depth > TFT_OPEN_SLOTS || begin < self->since) {
		tfh_leave_quiet(self, now);
		return NULL;
	}
	tfh_poke(&self->ring->open[self->depth - 1].t_begin, begin);
	return self;
}
