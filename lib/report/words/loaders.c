/* What to tell a library's loader so that other processes make the batches. */
#include <string.h>

#include "model/symbols/pylines.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

/* Where it makes them in the calling thread. */
static const struct {
	const char *file, *before, *after; /* the number */
} loaders[] = {
	{"/keras/src/trainers/data_adapters/py_dataset",
	 "workers=", ", use_multiprocessing=True for the PyDataset"},
	{"/grain/_src/", "worker_count=", " for Grain's DataLoader (of a dataset: mp_prefetch())"},
};

/* Whether half of the wait for batches is at lines of such files, or in what they call. */
static bool makes(const struct tfh_result *r, const char *file)
{
	double all_s = 0, most_s = 0;

	for (uint32_t i = 0; i < r->found.n_node; i++) {
		const struct tfh_seen_node *n = &r->found.node[i];
		all_s += n->parent == i ? n->s_per_step : 0;
		if (n->s_per_step > most_s && tfh_is_in_package(n->file, file))
			most_s = n->s_per_step;
	}
	return most_s > 0 && 2 * most_s >= r->breakdown[TFH_PART_INPUT].share * all_s;
}

const char *tfh_loader_workers(struct tfh_wording *w, uint32_t workers)
{
	for (size_t i = 0; i < sizeof(loaders) / sizeof(*loaders); i++)
		if (makes(w->r, loaders[i].file))
			return tfh_phrase(w, "%s%u%s", loaders[i].before, workers,
					  loaders[i].after);
	return NULL;
}
