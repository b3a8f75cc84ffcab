/* Shared by the parts of the time engine. All functions need sim_mu unless noted. */
#ifndef TFH_SIM_GPU_ENGINE_ENGINE_H
#define TFH_SIM_GPU_ENGINE_ENGINE_H

#include "sim/gpu/sim.h"

/* ---- engine.c ---- */
/* Starts a detached thread with signals blocked; false on failure. */
bool sim_thread(void *(*run)(void *), void *arg);
/* The free slot that has been free longest; NULL if all are busy. */
struct sim_slot *sim_engine_slot(struct sim_engine *e);
struct sim_op *sim_engine_pop(struct sim_engine *e);
/* When an op that could start at t does: other processes may have the device then. */
uint64_t sim_op_start(uint64_t t);
/* Marks op done at op->end and releases its dependents. */
void sim_op_complete(struct sim_op *op);

/* ---- virtual time (virtual.c) ---- */
/* Without sim_mu: the clock. */
uint64_t sim_virtual_now(void);
/* Charges the cost of a call; waits until a time. Without sim_mu. */
void sim_virtual_cost(uint64_t ns);
void sim_virtual_until(uint64_t ns);
/* Starts operations while the engine has free slots. */
void sim_virtual_dispatch(struct sim_engine *e);
/* Advances the clock until op is done (may release sim_mu meanwhile). */
void sim_virtual_wait(const struct sim_op *op);
/* Ends one operation, or waits for a change if none can end. */
void sim_virtual_turn(void);
/* Wakes threads that wait for a change; a host function was queued (1) or has ended (-1). */
void sim_virtual_changed(int host_functions);

/* ---- stream memory operations (memop.c) ---- */
/* Performs what can be done now; true when all is done. */
bool sim_values_try(struct sim_values *v);
/* Keeps op until its value appears. */
void sim_values_wait(struct sim_op *op);
/* Completes operations whose value has appeared; false if none waits. */
bool sim_values_poll(void);
/* Starts the polling thread; false on failure. */
bool sim_values_start(void);

/* ---- kernels that wait for one another (rendezvous.c); without sim_mu ---- */
/* Announces that op has started; NULL if it is not a rendezvous kernel. */
struct sim_meeting *sim_meeting_join(const struct sim_op *op);
/* True when all have started, with the kernel's end; frees m. */
bool sim_meeting_over(struct sim_meeting *m, uint64_t *end);
/* Sleeps until another one starts, at most some milliseconds. */
void sim_meeting_sleep(const struct sim_meeting *m);

#endif
