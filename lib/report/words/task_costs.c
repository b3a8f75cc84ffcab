/* Batches that the program's own code makes, where something else takes longer than making them. */
#include <string.h>

#include "base/text.h"
#include "judge/facts/served.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

static bool is_pool(const char *file)
{
	return file &&
	       (strstr(file, "/multiprocessing/pool.py") || strstr(file, "/concurrent/futures/"));
}

bool tfh_waits_for_pool(const struct tfh_result *r)
{
	return r->found.line.callee && is_pool(r->found.line.callee_file);
}

bool tfh_starts_process(const struct tfh_result *r)
{
	const struct tfh_seen_line *l = &r->found.new_pool;

	return l->file && l->callee_file && strstr(l->callee_file, "/multiprocessing/process.py");
}

bool tfh_makes_pools(const struct tfh_result *r, enum tfh_cause cause)
{
	const struct tfh_seen_line *pool = &r->found.new_pool;

	if (!pool->file || cause == TFH_CAUSE_NONE)
		return false;
	if (tfh_cause_part(cause) == TFH_PART_INPUT)
		return tfh_waits_for_pool(r) ||
		       (tfh_starts_process(r) && r->found.line.callee_file &&
			strstr(r->found.line.callee_file, "/multiprocessing/"));
	if ((cause == TFH_CAUSE_HOST_WAIT || cause == TFH_CAUSE_HOST_LOCK) && tfh_waits_for_pool(r))
		return true;
	return (cause == TFH_CAUSE_HOST_PYTHON || cause == TFH_CAUSE_HOST_WAIT ||
		cause == TFH_CAUSE_HOST_LOCK || cause == TFH_CAUSE_HOST_UNKNOWN) &&
	       2 * pool->s_per_step > r->found.cause_s[cause];
}

bool tfh_sends_tasks(const struct tfh_result *r)
{
	const struct tfh_seen_workers *k = &r->found.workers;

	return k->processes && tfh_waits_for_pool(r) && !r->found.new_pool.file &&
	       k->processes * k->busy * tfh_step_s(r) < r->breakdown[TFH_PART_INPUT].s_per_step;
}

/* Whether a function opens a file or an archive and reads its directory or header. */
static bool opens(const struct tfh_seen_node *n)
{
	static const struct {
		const char *file, *function;
	} open[] = {
		{"/zipfile", "ZipFile.__init__"},   {"/tarfile.py", "TarFile.__init__"},
		{"/h5py/_hl/files.py", "__init__"}, {"/numpy/lib/", "NpzFile.__init__"},
		{"/pyarrow/parquet/", "__init__"},  {"/xarray/backends/api.py", "open_dataset"},
		{"/rasterio/__init__.py", "open"},  {"/zarr/", "open_group"},
	};

	for (size_t i = 0; n->file && n->function && i < sizeof(open) / sizeof(*open); i++)
		if (strstr(n->file, open[i].file) && tfh_ends_with(n->function, open[i].function))
			return true;
	return false;
}

bool tfh_opens_anew(const struct tfh_result *r)
{
	const struct tfh_seen_workers *k = &r->found.workers;
	const struct tfh_seen_node *node = k->processes && k->n_node ? k->node : r->found.node;
	uint32_t n = k->processes && k->n_node ? k->n_node : r->found.n_node;
	double all = 0, opening = 0;

	for (uint32_t i = 0; i < n; i++) {
		bool opened = false;
		for (uint32_t at = i;; at = node[at].parent) {
			opened |= opens(&node[at]);
			if (tfh_is_at_line(&node[at], &r->found.line)) {
				all += node[i].own_s;
				opening += opened ? node[i].own_s : 0;
				break;
			}
			if (node[at].parent == at)
				break;
		}
	}
	return tfh_cause_part(r->steady.cause) == TFH_PART_INPUT && 2 * opening > all;
}

/* json.load(), np.load(), pd.read_csv(), where batches are made or requests answered. */
bool tfh_loads_files(const struct tfh_result *r, enum tfh_cause cause)
{
	const char *callee = r->found.line.callee;

	return (cause == TFH_CAUSE_INPUT_DECODE || cause == TFH_CAUSE_INPUT_READ ||
		cause == TFH_CAUSE_HOST_PYTHON) &&
	       !r->found.workers.processes && callee && tfh_loads_file_by(callee);
}
