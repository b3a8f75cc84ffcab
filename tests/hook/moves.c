/*
 * Prints every copy of a recording as the analysis sees it, as JSON lines: which way it goes and
 * whether the host side is pageable follows from addresses, not from the record alone. Argument: a run
 * directory.
 */
#include <inttypes.h>
#include <stdio.h>

#include "model/model.h"

static const char *const directions[] = {"", "H2D", "D2H", "D2D", "H2H", "P2P", "ANY"};

int main(int argc, char **argv)
{
	const char *const *paths = (const char *const *)argv + 1;
	const struct tfh_thread_info *threads;
	struct tfh_event ev;
	struct tfh_merge *m;
	struct tfh_run *run;
	struct tfh_err err;

	if (argc < 2 || tfh_run_open(paths, (uint32_t)argc - 1, &run, &err) ||
	    tfh_merge_open(run, UINT32_MAX, &m, &err)) {
		fprintf(stderr, "%s\n", argc < 2 ? "no run directory" : err.text);
		return 1;
	}
	tfh_run_threads(run, &threads);
	while (tfh_merge_next(m, &ev)) /* samples name the copy that they fall into */
		if (ev.kind == TFT_CALL && ev.fn->args == TFH_ARGS_COPY)
			printf("{\"tid\":%" PRIu32 ",\"seq\":%" PRIu32
			       ",\"dir\":\"%s\",\"pageable\":%s}\n",
			       threads[ev.thread].tid, (uint32_t)ev.number, directions[ev.dir],
			       ev.pageable ? "true" : "false");
	int status = tfh_merge_error(m, &err);
	if (status)
		fprintf(stderr, "%s\n", err.text);
	tfh_merge_close(m);
	tfh_run_close(run);
	return status != 0;
}
