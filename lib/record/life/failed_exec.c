/*
 * exec: the recording is closed before it, as at an exit. If the exec fails, a new recording may
 * begin.
 */
#include <errno.h>
#include <unistd.h>

#include "record/life/life.h"
#include "record/process/lock.h"
#include "record/process/log.h"
#include "record/process/requests.h"
#include "record/process/steady.h"
#include "record/ring/journal.h"
#include "record/ring/rings.h"

static uint32_t exec_closed; /* atomic: this process was closed for an exec */

/* Whether there is a recording to close. If nothing is recorded, no system call is made, since a
 * sandbox may kill the process for one. An exec that is bound to fail (a search along PATH) is not
 * worth closing and restarting the recording. */
static bool exec_closes(const char *path)
{
	uint32_t mode;

	if (tfh_confined(&tfh_self))
		return false;
	tfh_start_wait(1000);
	mode = __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE);
	return (mode == TFH_MODE_ON || mode == TFH_MODE_OFF) &&
	       tfh_raw_getpid() == tfh_recorder.pid && (!path || !access(path, X_OK));
}

void tfh_exec_begin(const char *path)
{
	int saved = errno;

	if (exec_closes(path)) {
		tfh_finish(true);
		__atomic_store_n(&exec_closed, tfh_flusher_closed(), __ATOMIC_RELEASE);
	}
	errno = saved;
}

/* Other threads may be inside calls that end on the old recording's rings: see journal_maps.c,
 * early_calls.c. */
static void begin_anew(void)
{
	if (!__atomic_exchange_n(&exec_closed, 0, __ATOMIC_ACQ_REL) || !tfh_flusher_closed())
		return; /* several threads came back, and another one did it */
	if (!tfh_rings_quiet()) {
		tfh_log(1, "recording ended at an exec that failed: a thread was just beginning");
		return;
	}
	tfh_journal_release(&tfh_journal);
	tfh_early_renew();
	tfh_forget_recording();
	__atomic_store_n(&tfh_mode, TFH_MODE_COLD, __ATOMIC_RELEASE);
}

void tfh_exec_failed(void)
{
	static uint32_t lock TFH_LOCK_WORD;
	struct tfh_steady steady;
	int saved = errno;

	/* If nothing was recorded, no system call is made. */
	if (!__atomic_load_n(&exec_closed, __ATOMIC_ACQUIRE) ||
	    tfh_raw_getpid() != tfh_recorder.pid)
		return;
	tfh_steady_begin(&steady);
	if (tfh_lock(&lock)) {
		begin_anew();
		tfh_unlock(&lock);
	}
	tfh_steady_end(&steady);
	errno = saved;
}
