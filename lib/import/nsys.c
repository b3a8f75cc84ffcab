/* Nsight Systems' export (`nsys export --type sqlite`): a database with a table for each kind of
 * event. Tables and columns differ between versions and by what was recorded; none of them is
 * required but one with calls or ops. */
#include "import/nsys.h"

#include <errno.h>
#include <stdlib.h>

/* What a database without any of nsys' tables may be instead. */
static const char *other_database(struct tfh_tables *t)
{
	static const char rocprofs[] = "rocprof's database: use the results.json written with it",
			  dlprofs[] =
				  "DLProf's database: use the nsys export that it was made from";
	static const struct {
		const char *table, *what;
	} all[] = {
		{"STR_TABLE", rocprofs},
		{"KERN", rocprofs}, /* what it writes of kernels alone, and of calls */
		{"COPY", rocprofs},
		{"StringTable",
		 "nvprof's database: not supported; record the job with nsys or `tfhook run`"},
		{"CANN_API",
		 "the database of Ascend's profiler: use the trace_view.json or msprof_*.json "
		 "written with it"},
		{"dl_ops", dlprofs},
		{"read_only_ops", dlprofs},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (tfh_tables_have(t, all[i].table))
			return all[i].what;
	return "an SQLite database, but not exported by nsys";
}

static int by_rank(const void *a, const void *b)
{
	const struct tfh_nsys_process *x = a, *y = b;

	if (x->id >> 24 != y->id >> 24)
		return x->id >> 24 < y->id >> 24 ? -1 : 1;
	return x->device < y->device ? -1 : x->device > y->device;
}

/* nsys does not record ranks. Processes that all communicate, each with one device of its own, are
 * the ranks of one job; they are numbered in the order of their devices. */
static void number_ranks(struct tfh_nsys *n)
{
	bool ranks = n->processes.n > 1;

	qsort(n->processes.v, n->processes.n, sizeof(*n->processes.v), by_rank);
	for (uint32_t i = 0; i < n->processes.n && ranks; i++) {
		const struct tfh_nsys_process *p = &n->processes.v[i];
		ranks = p->communicates && !p->several && p->rank < 0 && !(i && !by_rank(p - 1, p));
	}
	for (uint32_t i = 0; i < n->processes.n && ranks; i++) {
		n->processes.v[i].rank = (int32_t)i;
		n->processes.v[i].world = (int32_t)n->processes.n;
	}
}

static int finish(struct tfh_nsys *n)
{
	int rc = 0;

	number_ranks(n);
	for (uint32_t i = 0; i < n->processes.n && !rc; i++) {
		const struct tfh_nsys_process *p = &n->processes.v[i];
		tfh_build_processors(n->b, p->index, n->multiprocessors);
		tfh_build_shift(n->b, p->index, n->shift);
		rc = tfh_build_identity(n->b, p->index, p->name, (uint32_t)p->id & 0xffffff,
					p->rank, p->world);
	}
	return rc;
}

static void drop(struct tfh_nsys *n)
{
	tfh_map_free(&n->text);
	tfh_map_free(&n->domain);
	tfh_map_free(&n->process);
	tfh_map_free(&n->thread);
	tfh_map_free(&n->fn);
	tfh_map_free(&n->wait);
	free(n->processes.v);
	free(n->waits.v);
	tfh_arena_free(&n->arena);
}

static int read_export(struct tfh_builder *b, struct tfh_tables *t, const char *path,
		       struct tfh_err *err)
{
	struct tfh_nsys n = {.b = b, .host = ""};
	int rc;

	tfh_arena_init(&n.arena, 0);
	if (!tfh_tables_have(t, "StringIds"))
		rc = tfh_err_set(err, -ENOMSG, "%s: %s", path, other_database(t));
	else
		rc = tfh_nsys_read(tfh_nsys_tables, t, &n, err);
	if (!rc && !n.work)
		rc = tfh_err_set(
			err, -ENODATA,
			n.processes.n
				? "%s: exported by nsys, but without a single launch, kernel or "
				  "copy: the program gave the device no work while nsys recorded"
				: "%s: exported by nsys, but without a single CUDA call, kernel or "
				  "copy: record the job with `nsys profile --trace=cuda,nvtx`",
			path);
	if (!rc && (rc = finish(&n)))
		tfh_err_set(err, rc, "out of memory");
	drop(&n);
	return rc;
}

int tfh_import_nsys(struct tfh_builder *b, const char *path, struct tfh_err *err)
{
	struct tfh_tables *t;
	int rc = tfh_tables_open(path, &t, err);

	if (rc)
		return rc;
	*err = (struct tfh_err){0};
	rc = tfh_tables_have(t, "rocpd_string") ? tfh_import_rocpd(b, t, path, err)
						: read_export(b, t, path, err);
	tfh_tables_close(t);
	return rc;
}
