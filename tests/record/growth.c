/* growth: 600 marks at once, more than half of a small ring, and again after a flush. Prints the most pages that a single
 * mark touched first. */
#include <stdio.h>
#include <sys/resource.h>

#include "tfhook/tfhook.h"

static long pages(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_minflt;
}

int main(void)
{
	long most = 0;

	tfhook_step();
	tfhook_step(); /* the first record: the recorder and the first ring are set up */
	for (int round = 0; round < 4; round++) {
		tfhook_flush(60000);
		for (int i = 0; i < 600; i++) {
			long before = pages();
			tfhook_step();
			long touched = pages() - before;
			most = touched > most ? touched : most;
		}
	}
	printf("%ld\n", most);
	return 0;
}
