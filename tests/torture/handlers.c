/* Exit handlers, in a program with a calloc of its own: handlers WAY N. */
#include "job.h"

#define HANDLERS 1040 /* bytes in which glibc keeps 32 exit handlers */

extern void *__libc_calloc(size_t, size_t);
static volatile int asked, slow;

/* Memory for exit handlers comes late: libc holds the lock of their list meanwhile. */
void *calloc(size_t n, size_t size)
{
	if (n * size == HANDLERS) {
		asked++;
		if (slow)
			nap_ms(100);
	}
	return __libc_calloc(n, size);
}

static void nothing(void)
{
}

/* A child that is forked while another thread's first call registers what is done at the exit. */
static int exit_list(int n, char **more)
{
	int before, bad;
	pthread_t t;
	pid_t pid;

	(void)more;
	for (int i = 0; i < 100 && !asked; i++)
		atexit(nothing);
	for (int i = 0; i < 31; i++)
		atexit(nothing);
	before = asked;
	slow = 1;
	t = spawn(steps_thread, n);
	for (int i = 0; i < 1000 && asked == before; i++)
		nap_ms(1);
	pid = fork();
	if (!pid) {
		alarm(20);
		exit(3);
	}
	bad = ended(pid) != 3;
	pthread_join(t, NULL);
	printf("bad %d\n", bad);
	return 7;
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {{"forked", exit_list}, {NULL, NULL}};

	return choose(ways, argc, argv);
}
