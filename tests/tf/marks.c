/* Sets marks of every kind through the header. usage: marks [FORK] */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tfhook/tfhook.h"

static void steps(int n)
{
	for (int i = 0; i < n; i++) {
		tfhook_step_begin(i % 2 ? "eval" : "train");
		tfhook_range_push("outer");
		tfhook_range_push("inner");
		usleep(1000);
		tfhook_range_pop();
		tfhook_range_pop();
		tfhook_range_pop(); /* one too many */
		tfhook_step_end();
		tfhook_step_end();
	}
}

int main(int argc, char **argv)
{
	(void)argv;
	steps(10);
	for (int i = 0; i < 5; i++)
		tfhook_step();
	tfhook_pause();
	tfhook_pause();
	tfhook_resume(); /* of two */
	tfhook_range_push("paused");
	tfhook_range_pop();
	tfhook_resume();
	for (int i = 0; i < 100; i++)
		tfhook_range_push("deep");
	for (int i = 0; i < 100; i++)
		tfhook_range_pop();
	if (argc > 1) {
		tfhook_step_begin("parent");
		tfhook_range_push("parent");
		if (!fork()) {
			tfhook_range_pop();
			tfhook_step_end();
			steps(3);
			return 0;
		}
		wait(NULL);
		tfhook_range_pop();
		tfhook_step_end();
	}
	printf("%d\n", tfhook_flush(2000));
	return 0;
}
