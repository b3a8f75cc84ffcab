/* Where the ranks' devices are: PCIe switches, NVLink domains, and links that are down. */
#include <errno.h>

#include "base/hash.h"
#include "base/key_table.h"
#include "ranks/ranks_parts.h"

/* The number of a place: places of the same name, on the same host if that is not 0, are one.
 * UINT32_MAX: no name; `rc` is set when out of memory. */
static uint32_t number_of(struct tfh_map *m, const char *name, uint32_t host, int *rc)
{
	uint64_t *value;
	bool fresh;

	if (!*name)
		return UINT32_MAX;
	value = tfh_map_put(m, tfh_hash_add(tfh_hash_str(name), host), &fresh);
	if (!value) {
		*rc = -ENOMEM;
		return UINT32_MAX;
	}
	if (fresh)
		*value = m->n - 1;
	return (uint32_t)*value;
}

int tfh_ranks_number_places(struct tfh_ranks *job)
{
	struct tfh_map pcie = {.n = 0}, fabric = {.n = 0};
	int rc = 0;

	for (uint32_t i = 0; i < job->n; i++) {
		struct tfh_ranks_rank *r = &job->rank[i];
		r->pcie = number_of(&pcie, r->pcie_name, r->host + 1, &rc);
		r->fabric = number_of(&fabric, r->fabric_name, 0, &rc);
	}
	job->pcies = pcie.n;
	job->fabrics = fabric.n;
	tfh_map_free(&pcie);
	tfh_map_free(&fabric);
	return rc;
}

/* The number of links that most ranks have is the usual one. */
int tfh_ranks_find_few_links(struct tfh_ranks *job)
{
	uint32_t with[256] = {0};
	int usual = 0;

	for (uint32_t i = 0; i < job->n; i++)
		if (job->rank[i].links >= 0)
			with[job->rank[i].links]++;
	for (int k = 1; k < 256; k++)
		usual = with[k] >= with[usual] ? k : usual;
	for (uint32_t i = 0; i < job->n && with[usual] > job->n / 2; i++) {
		const struct tfh_ranks_rank *r = &job->rank[i];
		if (r->links < 0 || r->links >= usual)
			continue;
		struct tfh_ranks_finding *f = tfh_ranks_add(job, TFH_RANKS_FEW_LINKS);
		if (!f)
			return -ENOMEM;
		f->rank = i;
		f->host = r->host;
		f->rack = job->host[r->host].rack;
		f->local = r->local;
		f->ranks = 1;
		f->s = r->links;
		f->usual_s = usual;
		f->until = 1;
	}
	return 0;
}
