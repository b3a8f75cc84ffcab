/*
 * Tools join the traces of several ranks into one file, one behind the other, and make the numbers
 * of their processes unique. Each is read as if it had a file of its own. PyTorch's profiler itself
 * writes host events of one process only.
 */
#include <errno.h>
#include <stdlib.h>

#include "import/kineto.h"
#include "model/vec.h"

struct rank {
	struct tfh_kineto *k;
	int64_t pid; /* -1 until known */
};

struct tfh_kineto_ranks {
	struct tfh_builder *b;
	TFH_VEC(struct rank) all;
	uint32_t now; /* the one whose host's events were read last */
};

static int begin_rank(struct tfh_kineto_ranks *r, int64_t pid)
{
	struct rank one = {.pid = pid};

	if (r->all.n >= TFH_IMPORT_PROCESSES)
		return -E2BIG;
	one.k = tfh_kineto_new(r->b);
	if (!one.k || TFH_PUSH(r->all, one)) {
		tfh_kineto_free(one.k);
		return -ENOMEM;
	}
	r->now = r->all.n - 1;
	return 0;
}

struct tfh_kineto_ranks *tfh_kineto_ranks_new(struct tfh_builder *b)
{
	struct tfh_kineto_ranks *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->b = b;
	if (begin_rank(r, -1)) {
		tfh_kineto_ranks_free(r);
		return NULL;
	}
	return r;
}

void tfh_kineto_ranks_free(struct tfh_kineto_ranks *r)
{
	for (uint32_t i = 0; r && i < r->all.n; i++)
		tfh_kineto_free(r->all.v[i].k);
	if (r)
		free(r->all.v);
	free(r);
}

static bool find_rank(struct tfh_kineto_ranks *r, int64_t pid)
{
	for (uint32_t i = 0; i < r->all.n; i++)
		if (r->all.v[i].pid == pid) {
			r->now = i;
			return true;
		}
	return false;
}

/* Only ops, annotations and functions begin a rank: a call's process is the kernel's number of it,
 * which differs in a container. Nor do functions of a thread that PyTorch's profiler does not know:
 * it has 0 for the numbers of both. */
static int choose_rank(struct tfh_kineto_ranks *r, const struct tfh_kineto_entry *e)
{
	bool host = e->category == TFH_KINETO_HOST || e->category == TFH_KINETO_OP ||
		    e->category == TFH_KINETO_PYTHON;

	if ((!host && e->category != TFH_KINETO_CALL) || e->named_pid || e->pid < 0 ||
	    (!e->pid && !e->tid) || r->all.v[r->now].pid == e->pid || find_rank(r, e->pid) || !host)
		return 0;
	if (r->all.v[0].pid >= 0)
		return begin_rank(r, e->pid);
	r->all.v[0].pid = e->pid;
	return 0;
}

int tfh_kineto_ranks_add(struct tfh_kineto_ranks *r, struct tfh_kineto_entry *e)
{
	int rc = choose_rank(r, e);

	return rc ? rc : tfh_kineto_add(r->all.v[r->now].k, e);
}

uint64_t tfh_kineto_ranks_count(const struct tfh_kineto_ranks *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->all.n; i++)
		n += tfh_kineto_count(r->all.v[i].k);
	return n;
}

const struct tfh_kineto *tfh_kineto_ranks_first(const struct tfh_kineto_ranks *r)
{
	return r->all.v[0].k;
}

int tfh_kineto_ranks_end(struct tfh_kineto_ranks *r, const struct tfh_kineto_facts *facts)
{
	struct tfh_kineto_facts of = *facts;
	int rc = 0;

	for (uint32_t i = 0; i < r->all.n && !rc; i++) {
		if (r->all.n > 1) {
			of.rank = i;
			of.world = r->all.n;
		}
		rc = tfh_kineto_end(r->all.v[i].k, &of);
	}
	return rc;
}
