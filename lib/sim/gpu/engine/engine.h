/* What the parts of the time engine know of one another. All need sim_mu unless said otherwise. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "sim/gpu/sim.h"

/* ---- engine.c ---- */
/* A detached thread that gets no signals; false when there can be none. */
bool sim_thread(void *(*run)(void *), void *arg);
/* The free slot that was free first; NULL when all are busy. */
struct sim_slot *sim_engine_slot(struct sim_engine *e);
struct sim_op *sim_engine_pop(struct sim_engine *e);
/* Marks op done at op->end and lets go what waited for it. */
void sim_op_complete(struct sim_op *op);

/* ---- virtual time (virtual.c) ---- */
/* Without sim_mu: the clock. */
uint64_t sim_virtual_now(void);
/* Without sim_mu: what a call costs; waits until a moment. */
void sim_virtual_cost(uint64_t ns);
void sim_virtual_until(uint64_t ns);
/* Starts what the engine has room for. */
void sim_virtual_dispatch(struct sim_engine *e);
/* Lets the clock run until op is done (may release sim_mu meanwhile). */
void sim_virtual_wait(const struct sim_op *op);
/* Lets one operation end, or waits for a change when none can. */
void sim_virtual_turn(void);
/* Wakes those that wait for a change; host functions were queued (1) or are over (-1). */
void sim_virtual_changed(int host_functions);

/* ---- stream memory operations (memop.c) ---- */
/* Does what can be done now; true when all is done. */
bool sim_values_try(struct sim_values *v);
/* Keeps op until its value is there. */
void sim_values_wait(struct sim_op *op);
/* Completes those whose value is there; false when none waits. */
bool sim_values_poll(void);
/* Starts the thread that polls; false when there can be none. */
bool sim_values_start(void);

/* ---- kernels that wait for one another (rendezvous.c); without sim_mu ---- */
/* Tells the others that op has started; NULL when it is no rendezvous kernel. */
struct sim_meeting *sim_meeting_join(const struct sim_op *op);
/* True when all have started, with the end of the kernel; frees m. */
bool sim_meeting_over(struct sim_meeting *m, uint64_t *end);
/* Sleeps until another one starts, some milliseconds at most. */
void sim_meeting_sleep(const struct sim_meeting *m);

#endif
