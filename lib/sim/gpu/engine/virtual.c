/*
 * Virtual time: a discrete-event simulation. An operation's end is known at its start. When the
 * clock advances, operations end in the order of their ends, each at its own time, and their
 * dependents begin. An operation's bytes are moved at its end. The thread that waits, or whose call
 * has a cost, does this, one thread at a time.
 */
#include "sim/gpu/engine/engine.h"

#include <errno.h>

/* Never 0, which would mean "not logged". */
static uint64_t clock_ns = 1000000000u;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool busy;      /* a thread performs an operation */
static unsigned hosts; /* host functions that are queued or run */

enum {
	PATIENCE_MS = 50, /* how long a host function may hold the clock */
	POLL_US = 100	  /* while waiting for something outside the simulation */
};

uint64_t sim_virtual_now(void)
{
	return __atomic_load_n(&clock_ns, __ATOMIC_RELAXED);
}

static void go_on_to(uint64_t t)
{
	if (t > clock_ns)
		__atomic_store_n(&clock_ns, t, __ATOMIC_RELAXED);
}

void sim_virtual_dispatch(struct sim_engine *e)
{
	struct sim_slot *s;
	while (e->head && (s = sim_engine_slot(e))) {
		struct sim_op *op = sim_engine_pop(e);
		s->busy = true;
		s->op = op;
		op->start = sim_op_start(op->ready > s->free ? op->ready : s->free);
		s->meeting = sim_meeting_join(op);
		uint64_t ns = sim_work_ns(&op->work);
		op->end = s->meeting || ns == SIM_NEVER ? SIM_NEVER : op->start + ns;
		sim_virtual_changed(0);
	}
}

/* The running operation that ends first. *outside: set if an operation waits for something outside
 * the simulation. */
static struct sim_slot *next_end(struct sim_engine **engine, bool *outside)
{
	struct sim_slot *first = NULL;
	for (int d = 0; d < sim_cfg.devices; d++) {
		for (int i = 0; i < SIM_NENGINES; i++) {
			struct sim_engine *e = &sim_dev[d].eng[i];
			for (int k = 0; k < e->nslots; k++) {
				struct sim_slot *s = &e->slot[k];
				if (!s->op)
					continue;
				if (s->meeting) {
					if (sim_meeting_over(s->meeting, &s->op->end))
						s->meeting = NULL;
					else
						*outside = true;
				}
				if (s->op->end != SIM_NEVER &&
				    (!first || s->op->end < first->op->end)) {
					first = s;
					*engine = e;
				}
			}
		}
	}
	return first;
}

/* Ends the first operation that is over by `until`. */
static bool step(uint64_t until, bool *outside)
{
	struct sim_engine *e = NULL;
	*outside = sim_values_poll();
	struct sim_slot *s = next_end(&e, outside);
	if (!s || s->op->end > until)
		return false;
	struct sim_op *op = s->op;
	go_on_to(op->end);
	busy = true;
	pthread_mutex_unlock(&sim_mu);
	sim_perform(&op->work);
	pthread_mutex_lock(&sim_mu);
	busy = false;
	s->op = NULL;
	s->busy = false;
	s->free = op->end;
	sim_op_complete(op);
	sim_virtual_dispatch(e);
	pthread_cond_broadcast(&changed);
	return true;
}

static bool pause_until_change(uint64_t us)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	uint64_t ns = (uint64_t)t.tv_nsec + us * 1000;
	t.tv_sec += (time_t)(ns / 1000000000u);
	t.tv_nsec = (long)(ns % 1000000000u);
	return pthread_cond_timedwait(&changed, &sim_mu, &t) != ETIMEDOUT;
}

/* Waits for host functions, which take no virtual time; not forever, since one may itself wait for
 * the thread that waits here. */
static void let_hosts_end(void)
{
	while (hosts && pause_until_change(PATIENCE_MS * 1000))
		;
}

void sim_virtual_turn(void)
{
	bool outside = false;
	if (busy) {
		pthread_cond_wait(&changed, &sim_mu);
		return;
	}
	let_hosts_end();
	if (busy)
		return;
	if (!step(SIM_NEVER - 1, &outside))
		pause_until_change(outside ? POLL_US : PATIENCE_MS * 1000);
}

void sim_virtual_wait(const struct sim_op *op)
{
	while (!sim_op_done(op))
		sim_virtual_turn();
}

void sim_virtual_until(uint64_t ns)
{
	bool outside;
	pthread_mutex_lock(&sim_mu);
	do {
		while (busy)
			pthread_cond_wait(&changed, &sim_mu);
	} while (!hosts && step(ns, &outside));
	go_on_to(ns);
	pthread_mutex_unlock(&sim_mu);
}

void sim_virtual_cost(uint64_t ns)
{
	sim_virtual_until(sim_virtual_now() + ns);
}

void sim_virtual_changed(int host_functions)
{
	hosts += (unsigned)host_functions;
	pthread_cond_broadcast(&changed);
}
