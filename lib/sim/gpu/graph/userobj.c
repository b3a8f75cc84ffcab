/* Client objects with a graph's lifetime: a reference count and a destructor. */
#include "sim/gpu/graph/graph.h"

#include <stdlib.h>

struct user_object {
	int magic;
	void *arg;
	CUhostFn destroy;
	unsigned refs;
};
struct sim_user {
	struct user_object *object;
	unsigned refs;
	struct sim_user *next;
};

static bool is_object(const struct user_object *o)
{
	return o && o->magic == SIM_MAGIC_USER;
}

static void give(struct user_object *o, unsigned n)
{
	__atomic_add_fetch(&o->refs, n, __ATOMIC_RELAXED);
}

static void take(struct user_object *o, unsigned n)
{
	if (__atomic_sub_fetch(&o->refs, n, __ATOMIC_ACQ_REL))
		return;
	o->magic = 0;
	o->destroy(o->arg);
	free(o);
}

static void hold(struct sim_graph *g, struct user_object *o, unsigned n)
{
	struct sim_user *u = malloc(sizeof(*u));
	*u = (struct sim_user){o, n, g->users};
	g->users = u;
}

void sim_graph_users_copy(struct sim_graph *to, const struct sim_graph *from)
{
	for (const struct sim_user *u = from->users; u; u = u->next) {
		give(u->object, 1);
		hold(to, u->object, 1);
	}
}

void sim_graph_users_free(struct sim_graph *g)
{
	for (struct sim_user *u = g->users, *next; u; u = next) {
		next = u->next;
		if (u->refs)
			take(u->object, u->refs);
		free(u);
	}
	g->users = NULL;
}

static CUresult create(struct sim_call *c, struct user_object **out, void *arg, CUhostFn destroy,
		       unsigned refs, unsigned flags)
{
	enum { NO_DESTRUCTOR_SYNC = 1 };
	(void)c;
	if (!out || !destroy || !refs || flags != NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	struct user_object *o = malloc(sizeof(*o));
	*o = (struct user_object){SIM_MAGIC_USER, arg, destroy, refs};
	*out = o;
	return CUDA_SUCCESS;
}

static CUresult retain(struct sim_call *c, struct user_object *o, unsigned n)
{
	(void)c;
	if (!is_object(o) || !n)
		return CUDA_ERROR_INVALID_VALUE;
	give(o, n);
	return CUDA_SUCCESS;
}

static CUresult release(struct sim_call *c, struct user_object *o, unsigned n)
{
	(void)c;
	if (!is_object(o) || !n || n > o->refs)
		return CUDA_ERROR_INVALID_VALUE;
	take(o, n);
	return CUDA_SUCCESS;
}

static CUresult graph_retain(struct sim_call *c, CUgraph g, struct user_object *o, unsigned n,
			     unsigned flags)
{
	enum { MOVE = 1 };
	(void)c;
	if (!sim_graph_is(g) || !is_object(o) || !n || flags > MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!flags)
		give(o, n);
	hold(g, o, n);
	return CUDA_SUCCESS;
}

static CUresult graph_release(struct sim_call *c, CUgraph g, struct user_object *o, unsigned n)
{
	(void)c;
	if (!sim_graph_is(g) || !is_object(o) || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (struct sim_user *u = g->users; u; u = u->next) {
		if (u->object != o || u->refs < n)
			continue;
		u->refs -= n;
		take(o, n);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuUserObjectCreate, SIM_NEED_INIT, create,
	(struct user_object * *out, void *arg, CUhostFn destroy, unsigned refs, unsigned flags),
	(out, arg, destroy, refs, flags))
SIM_API(cuUserObjectRetain, SIM_NEED_INIT, retain, (struct user_object * o, unsigned n), (o, n))
SIM_API(cuUserObjectRelease, SIM_NEED_INIT, release, (struct user_object * o, unsigned n), (o, n))
SIM_API(cuGraphRetainUserObject, SIM_NEED_INIT, graph_retain,
	(CUgraph g, struct user_object *o, unsigned n, unsigned flags), (g, o, n, flags))
SIM_API(cuGraphReleaseUserObject, SIM_NEED_INIT, graph_release,
	(CUgraph g, struct user_object *o, unsigned n), (g, o, n))
