/*
 * Preloaded beside the recorder: every process begins to record before its main function runs, and
 * every forked child anew. Programs that never touch a GPU or tf.data would record nothing, and
 * prove nothing.
 */
#include <pthread.h>

#include "tfhook/tfhook.h"

/* The first mark only begins a step; recording begins with the end of one. */
static void record(void)
{
	tfhook_step();
	tfhook_step();
}

__attribute__((constructor)) static void begin(void)
{
	record();
	pthread_atfork(NULL, NULL, record);
}
