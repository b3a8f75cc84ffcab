/*
 * Operations and the engines that run them. An operation is a node of a graph: it is ready when
 * all that it depends on is done, then waits in the first-in first-out queue of its engine. Each
 * engine is a thread that does the work, then sleeps until the operation's time is over. Times
 * are a schedule: an operation starts when it is ready and its engine free, whatever the moment
 * at which the thread woke up, so that late wake-ups do not add up.
 */
#include "simgpu/tools.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

pthread_mutex_t sim_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER;
static unsigned room_waiters;
static struct sim_op *idle; /* free list */

static void futex_wait(uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
}

/* States of sim_op.done. */
enum { OP_PENDING, OP_AWAITED, OP_DONE };

struct sim_op *sim_op_new(const struct sim_work *w, uint64_t call, uint64_t stream_id)
{
	struct sim_op *op = idle;
	struct sim_op **succ = NULL;
	unsigned csucc = 0;
	if (op) {
		idle = op->qnext;
		succ = op->succ;
		csucc = op->csucc;
	} else {
		op = malloc(sizeof(*op));
	}
	memset(op, 0, sizeof(*op));
	op->succ = succ;
	op->csucc = csucc;
	op->refs = 1;
	op->ndeps = 1;
	op->ready = sim_now();
	op->call = call;
	op->stream_id = stream_id;
	op->work = *w;
	return op;
}

void sim_op_ref(struct sim_op *op)
{
	op->refs++;
}

void sim_op_unref(struct sim_op *op)
{
	if (!op || --op->refs)
		return;
	op->qnext = idle;
	idle = op;
}

bool sim_op_done(const struct sim_op *op)
{
	return !op || __atomic_load_n(&op->done, __ATOMIC_ACQUIRE) == OP_DONE;
}

void sim_op_depend(struct sim_op *op, struct sim_op *on)
{
	if (!on || on == op)
		return;
	if (sim_op_done(on)) {
		if (on->end > op->ready)
			op->ready = on->end;
		return;
	}
	if (on->nsucc == on->csucc) {
		on->csucc = on->csucc ? on->csucc * 2 : 4;
		on->succ = realloc(on->succ, on->csucc * sizeof(*on->succ));
	}
	on->succ[on->nsucc++] = op;
	op->ndeps++;
}

static void *run_engine(void *arg);

bool sim_engine_start(struct sim_device *dev, enum sim_engine_id id)
{
	if (id == SIM_ENG_NONE || dev->eng[id].started)
		return true;
	struct sim_engine *e = &dev->eng[id];
	pthread_t t;
	pthread_attr_t attr;
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	e->started = !pthread_create(&t, &attr, run_engine, e);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return e->started;
}

static void enqueue(struct sim_op *op)
{
	struct sim_engine *e = &op->work.dev->eng[op->work.engine];
	op->qnext = NULL;
	if (e->tail)
		e->tail->qnext = op;
	else
		e->head = op;
	e->tail = op;
	pthread_cond_signal(&e->wake);
}

/* Marks op done at op->end and lets go what waited for it; operations without an engine finish in
 * the same breath. Iterative: chains of events can be long. */
static void complete(struct sim_op *op)
{
	struct sim_op *todo = op;
	op->qnext = NULL;
	while (todo) {
		struct sim_op *o = todo;
		todo = o->qnext;
		if (o->work.kind == SIM_K_FREE)
			sim_mem_release((void *)(uintptr_t)o->work.free, false);
		if (sim_truth_on)
			sim_truth_op(o);
		if (o->tool)
			sim_tools_done(o);
		if (o->stream) {
			sim_stream_leave(o->stream);
			if (room_waiters)
				pthread_cond_broadcast(&room);
		}
		sim_work_release(&o->work);
		if (__atomic_exchange_n(&o->done, OP_DONE, __ATOMIC_ACQ_REL) == OP_AWAITED)
			futex_wake(&o->done);
		for (unsigned i = 0; i < o->nsucc; i++) {
			struct sim_op *s = o->succ[i];
			if (o->end > s->ready)
				s->ready = o->end;
			if (--s->ndeps)
				continue;
			if (s->work.engine != SIM_ENG_NONE) {
				enqueue(s);
				continue;
			}
			s->start = s->end = s->ready;
			s->qnext = todo;
			todo = s;
		}
		o->nsucc = 0;
		sim_op_unref(o);
	}
}

void sim_op_commit(struct sim_op *op)
{
	sim_op_ref(op); /* the engine's */
	if (sim_tools_on)
		sim_tools_issue(op);
	if (--op->ndeps)
		return;
	if (op->work.engine != SIM_ENG_NONE) {
		enqueue(op);
		return;
	}
	op->start = op->end = op->ready;
	complete(op);
}

void sim_op_wait(struct sim_op *op)
{
	if (!op)
		return;
	for (;;) {
		uint32_t v = OP_PENDING;
		if (!__atomic_compare_exchange_n(&op->done, &v, OP_AWAITED, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE) &&
		    v == OP_DONE)
			break;
		futex_wait(&op->done, OP_AWAITED);
	}
	pthread_mutex_lock(&sim_mu);
	sim_op_unref(op);
	pthread_mutex_unlock(&sim_mu);
}

void sim_wait_room(struct sim_stream *s)
{
	while (s->pending >= (unsigned)sim_cfg.queue_depth) {
		room_waiters++;
		pthread_cond_wait(&room, &sim_mu);
		room_waiters--;
	}
}

static void *run_engine(void *arg)
{
	struct sim_engine *e = arg;
	prctl(PR_SET_TIMERSLACK, 1000UL);
	prctl(PR_SET_NAME, "simgpu");
	pthread_mutex_lock(&sim_mu);
	for (;;) {
		struct sim_op *op = e->head;
		if (!op) {
			pthread_cond_wait(&e->wake, &sim_mu);
			continue;
		}
		e->head = op->qnext;
		if (!e->head)
			e->tail = NULL;
		pthread_mutex_unlock(&sim_mu);

		op->start = op->ready > e->free ? op->ready : e->free;
		uint64_t ns = sim_work_ns(&op->work), began = sim_now();
		sim_perform(&op->work);
		uint64_t now = sim_now();
		if (ns == SIM_NEVER)
			for (;;)
				pause();
		if (op->work.kind == SIM_K_HOST && op->start < began)
			op->start = began;
		if (now - began > ns)
			ns = now - began;
		op->end = op->start + ns;
		if (op->end > now)
			sim_sleep_until(op->end);

		pthread_mutex_lock(&sim_mu);
		e->free = op->end;
		complete(op);
	}
	return NULL;
}

void sim_engine_init(void)
{
	for (int d = 0; d < SIM_MAX_DEVICES; d++)
		for (int e = 0; e < SIM_NENGINES; e++)
			pthread_cond_init(&sim_dev[d].eng[e].wake, NULL);
}
