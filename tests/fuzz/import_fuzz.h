/* What the fuzzers of the importers share: import, and if that made a run, read all of it. */
#ifndef TFH_IMPORT_FUZZ_H
#define TFH_IMPORT_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int (*tfh_fuzz_reader)(struct tfh_builder *b, const void *data, size_t n, const char *path,
			       struct tfh_err *err);

static void tfh_fuzz_read(struct tfh_run *run)
{
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(run, &p), n_threads;
	const struct tfh_thread_info *threads;
	struct tfh_err err;

	n_threads = tfh_run_threads(run, &threads);
	for (uint32_t i = 0; i < n; i++) {
		int64_t last = INT64_MIN;
		struct tfh_merge *merge;
		struct tfh_event ev;
		struct tfh_ops *ops;
		struct tfh_op op;
		if (tfh_merge_open(run, i, &merge, &err))
			abort();
		while (tfh_merge_next(merge, &ev)) {
			if (ev.t1 < last || ev.t0 > ev.t1 || ev.thread >= n_threads || !ev.fn->name)
				abort();
			last = ev.t1;
		}
		tfh_merge_close(merge);
		if (tfh_ops_open(run, i, &ops, &err))
			abort();
		for (last = INT64_MIN; tfh_ops_next(ops, &op); last = op.t0)
			if (op.t0 < last || op.t1 < op.t0 || !op.name ||
			    (op.thread != UINT32_MAX && op.thread >= n_threads))
				abort();
		tfh_ops_close(ops);
	}
}

static void tfh_fuzz_import(tfh_fuzz_reader reader, const void *data, size_t size)
{
	struct tfh_builder *b;
	struct tfh_run *run;
	struct tfh_err err = {0};

	if (tfh_build_new(TFH_SRC_KINETO, "fuzz", &b))
		return;
	int rc = reader(b, data, size, "fuzz", &err);
	if (rc && !*err.text)
		abort(); /* every refusal says why */
	if (rc || tfh_build_run(b, &run, &err)) {
		tfh_build_free(b);
		return;
	}
	tfh_fuzz_read(run);
	tfh_run_close(run);
}

#ifdef TFH_FUZZ_MAIN
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		static uint8_t data[16 << 20];
		FILE *f = fopen(argv[i], "rb");
		size_t n = f ? fread(data, 1, sizeof(data), f) : 0;
		if (f)
			fclose(f);
		LLVMFuzzerTestOneInput(data, n);
		printf("%s\n", argv[i]);
	}
	return 0;
}
#endif

#endif
