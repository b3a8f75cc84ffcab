#include "record/process/steady.h"

#include <pthread.h>
#include <stddef.h>

/* The thread's own actions raise these. If they were blocked, they would end the process. */
static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

static void all_others(sigset_t *set)
{
	sigfillset(set);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(set, own[i]);
}

void tfh_steady_begin(struct tfh_steady *s)
{
	sigset_t set;

	all_others(&set);
	s->blocked = !pthread_sigmask(SIG_BLOCK, &set, &s->old);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &s->cancel);
}

void tfh_steady_long(const struct tfh_steady *s)
{
	struct sigaction action;
	sigset_t set;

	sigemptyset(&set);
	for (int i = 1; i < NSIG; i++)
		if (sigismember(&s->old, i) == 0 && !sigaction(i, NULL, &action) &&
		    action.sa_handler == SIG_DFL)
			sigaddset(&set, i);
	if (s->blocked)
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void tfh_steady_end(const struct tfh_steady *s)
{
	pthread_setcancelstate(s->cancel, NULL);
	if (s->blocked)
		pthread_sigmask(SIG_SETMASK, &s->old, NULL);
}
