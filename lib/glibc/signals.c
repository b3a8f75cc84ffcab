/* The untranslated name of a signal: since 2.32 a function, before that a table. */
#include <signal.h>

extern const char *const table[65] __asm__("sys_siglist");

const char *sigdescr_np(int signal)
{
	return signal >= 0 && signal < 65 ? table[signal] : NULL;
}
