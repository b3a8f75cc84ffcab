#include "record/process/thread.h"

#include <signal.h>

#include "record/record.h"
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

void tfh_thread_begin(const char *name)
{
	tfh_self.guard = 1;
	tfh_self.guard_at = UINT64_MAX;
	tfh_sanitizer_ignore_begin();
	pthread_setname_np(pthread_self(), name);
}

void tfh_thread_end(void)
{
	tfh_sanitizer_ignore_end();
}
