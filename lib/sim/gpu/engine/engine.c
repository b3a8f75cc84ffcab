/*
 * Operations and the engines that run them. An operation is a node of a graph: it is ready when all
 * its dependencies are done, then waits in its engine's queue, first in first out except for
 * streams of higher priority. An engine has one thread per slot, which does the work, then sleeps
 * until the operation's time is over. Times are a schedule: an operation starts when it is ready
 * and its engine is free, regardless of when the thread woke up, so late wake-ups do not add up. In
 * virtual time only host functions have such threads (virtual.c).
 */
#include "sim/gpu/engine/engine.h"
#include "sim/gpu/tools.h"

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

uint64_t sim_op_start(uint64_t t)
{
	uint64_t in_turn = sim_cfg.turn_ns ? t % sim_cfg.turn_ns : 0;

	return sim_cfg.turn_ns && in_turn < sim_cfg.taken_ns ? t + sim_cfg.taken_ns - in_turn : t;
}

static void *run_slot(void *arg);

bool sim_thread(void *(*run)(void *), void *arg)
{
	pthread_t t;
	pthread_attr_t attr;
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	bool ok = !pthread_create(&t, &attr, run, arg);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ok;
}

bool sim_engine_start(struct sim_device *dev, enum sim_engine_id id)
{
	if (id == SIM_ENG_NONE)
		return true;
	if (id == SIM_ENG_VALUE)
		return sim_values_start();
	if (sim_cfg.virtual_time && id != SIM_ENG_HOST)
		return true;
	struct sim_engine *e = &dev->eng[id];
	while (e->nthreads < e->nslots && sim_thread(run_slot, e))
		e->nthreads++;
	return e->nthreads > 0;
}

struct sim_slot *sim_engine_slot(struct sim_engine *e)
{
	struct sim_slot *best = NULL;
	for (int i = 0; i < e->nslots; i++)
		if (!e->slot[i].busy && (!best || e->slot[i].free < best->free))
			best = &e->slot[i];
	return best;
}

struct sim_op *sim_engine_pop(struct sim_engine *e)
{
	struct sim_op *op = e->head;
	e->head = op->qnext;
	if (!e->head)
		e->tail = NULL;
	return op;
}

static void enqueue(struct sim_op *op)
{
	struct sim_engine *e = &op->work.dev->eng[op->work.engine];
	if (!e->tail || e->tail->prio <= op->prio) {
		op->qnext = NULL;
		*(e->tail ? &e->tail->qnext : &e->head) = op;
		e->tail = op;
	} else {
		struct sim_op **at = &e->head;
		while ((*at)->prio <= op->prio)
			at = &(*at)->qnext;
		op->qnext = *at;
		*at = op;
	}
	if (!sim_cfg.virtual_time || op->work.engine == SIM_ENG_HOST) {
		if (sim_cfg.virtual_time)
			sim_virtual_changed(1);
		pthread_cond_signal(&e->wake);
	} else {
		sim_virtual_dispatch(e);
	}
}

/* Starts a ready operation. Returns true if it is over at once. */
static bool begin(struct sim_op *op)
{
	switch (op->work.engine) {
	case SIM_ENG_NONE:
		break;
	case SIM_ENG_VALUE:
		if (!sim_values_try(&op->work.values)) {
			sim_values_wait(op);
			return false;
		}
		break;
	default:
		enqueue(op);
		return false;
	}
	op->start = op->end = op->ready;
	return true;
}

static void memory_effect(const struct sim_work *w)
{
	if (w->kind == SIM_K_FREE && !sim_reserve_is((void *)(uintptr_t)w->free))
		sim_mem_release((void *)(uintptr_t)w->free, false);
}

/* Completes operations without an engine immediately. Iterative, as chains of events can be
 * long. */
static void count(uint64_t *sum, uint64_t n)
{
	__atomic_fetch_add(sum, n, __ATOMIC_RELAXED);
}

/* Updates the device's counters for the management library. */
static void account(const struct sim_op *op)
{
	const struct sim_work *w = &op->work;
	uint64_t ns = op->end - op->start;
	if (!w->dev)
		return;
	if (w->kind == SIM_K_KERNEL)
		count(&w->dev->kernel_ns, ns);
	if (w->kind != SIM_K_COPY)
		return;
	count(&w->dev->copy_ns, ns);
	if (w->copy.dir == SIM_H2D)
		count(&w->dev->received, sim_copy_bytes(&w->copy));
	if (w->copy.dir == SIM_D2H)
		count(&w->dev->sent, sim_copy_bytes(&w->copy));
}

void sim_op_complete(struct sim_op *op)
{
	struct sim_op *todo = op;
	op->qnext = NULL;
	while (todo) {
		struct sim_op *o = todo;
		todo = o->qnext;
		memory_effect(&o->work);
		account(o);
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
			if (--s->ndeps || !begin(s))
				continue;
			s->qnext = todo;
			todo = s;
		}
		o->nsucc = 0;
		sim_op_unref(o);
	}
	if (sim_cfg.virtual_time)
		sim_virtual_changed(0);
}

void sim_op_commit(struct sim_op *op)
{
	sim_op_ref(op); /* the engine's */
	if (sim_tools_on)
		sim_tools_issue(op);
	if (!--op->ndeps && begin(op))
		sim_op_complete(op);
}

static void wait_real(struct sim_op *op)
{
	for (;;) {
		uint32_t v = OP_PENDING;
		if (!__atomic_compare_exchange_n(&op->done, &v, OP_AWAITED, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE) &&
		    v == OP_DONE)
			break;
		futex_wait(&op->done, OP_AWAITED);
	}
}

void sim_op_wait(struct sim_op *op)
{
	if (!op)
		return;
	if (!sim_cfg.virtual_time)
		wait_real(op);
	pthread_mutex_lock(&sim_mu);
	if (sim_cfg.virtual_time)
		sim_virtual_wait(op);
	sim_op_unref(op);
	pthread_mutex_unlock(&sim_mu);
}

void sim_wait_room(struct sim_stream *s)
{
	while (s->pending >= (unsigned)sim_cfg.queue_depth) {
		if (sim_cfg.virtual_time) {
			sim_virtual_turn();
			continue;
		}
		room_waiters++;
		pthread_cond_wait(&room, &sim_mu);
		room_waiters--;
	}
}

static void hang(void)
{
	for (;;)
		pause();
}

/* Performs op, which began at op->start, and returns when it is over. Without sim_mu. */
static void run_real(struct sim_op *op)
{
	struct sim_meeting *meeting = sim_meeting_join(op);
	uint64_t ns = sim_work_ns(&op->work), began = sim_now();
	sim_perform(&op->work);
	uint64_t now = sim_now();
	if (ns == SIM_NEVER)
		hang();
	if (op->work.kind == SIM_K_HOST && op->start < began)
		op->start = began;
	op->end = op->start + (now - began > ns ? now - began : ns);
	while (meeting && !sim_meeting_over(meeting, &op->end))
		sim_meeting_sleep(meeting);
	if (op->end > now)
		sim_sleep_until(op->end);
}

/* Only host functions have a thread in virtual time; they take none of it. */
static void run_virtual(struct sim_op *op)
{
	sim_perform(&op->work);
	op->end = op->start;
}

static void *run_slot(void *arg)
{
	struct sim_engine *e = arg;
	prctl(PR_SET_TIMERSLACK, 1000UL);
	prctl(PR_SET_NAME, "simgpu");
	pthread_mutex_lock(&sim_mu);
	for (;;) {
		if (!e->head) {
			pthread_cond_wait(&e->wake, &sim_mu);
			continue;
		}
		struct sim_op *op = sim_engine_pop(e);
		struct sim_slot *slot = sim_engine_slot(e);
		slot->busy = true;
		op->start = sim_op_start(op->ready > slot->free ? op->ready : slot->free);
		pthread_mutex_unlock(&sim_mu);
		if (sim_cfg.virtual_time)
			run_virtual(op);
		else
			run_real(op);
		pthread_mutex_lock(&sim_mu);
		slot->free = op->end;
		slot->busy = false;
		sim_op_complete(op);
		if (sim_cfg.virtual_time)
			sim_virtual_changed(-1);
	}
	return NULL;
}

void sim_engine_init(void)
{
	for (int d = 0; d < SIM_MAX_DEVICES; d++) {
		for (int i = 0; i < SIM_NENGINES; i++) {
			struct sim_engine *e = &sim_dev[d].eng[i];
			pthread_cond_init(&e->wake, NULL);
			e->nslots = i == SIM_ENG_COMPUTE ? sim_cfg.concurrent_kernels : 1;
		}
	}
}
