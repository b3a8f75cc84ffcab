#include "record/process/thread.h"

#include <sched.h>
#include <signal.h>

#include "base/refused.h"
#include "record/record.h"
#include "record/process/recorder.h"
#include "record/process/sanitizer.h"

#define STACK_BYTES (2u << 20)

int tfh_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

/* A thread inherits the CPU affinity of its creator. If the job has pinned that thread to a single
 * processor, ours would compete with it, so it gets the affinity that the process was started
 * with. */
static void leave_pinned_processor(void)
{
	cpu_set_t now;

	if (!sched_getaffinity(0, sizeof(now), &now) && CPU_COUNT(&now) == 1 &&
	    CPU_COUNT(&tfh_recorder.processors) > 1)
		sched_setaffinity(0, sizeof(tfh_recorder.processors), &tfh_recorder.processors);
}

void tfh_thread_begin(const char *name)
{
	tfh_self.guard = 1;
	tfh_self.guard_at = UINT64_MAX;
	tfh_sanitizer_ignore_begin();
	if (tfh_may_call(TFH_CALL_THREAD))
		pthread_setname_np(pthread_self(), name);
	leave_pinned_processor();
}

void tfh_thread_end(void)
{
	tfh_sanitizer_ignore_end();
}
