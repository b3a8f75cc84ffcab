/* Events between processes (ipc_event.c); e->ipc is not NULL for such an event. */
#ifndef TFH_SIM_GPU_STREAM_IPC_EVENT_H
#define TFH_SIM_GPU_STREAM_IPC_EVENT_H

#include "sim/gpu/objects.h"

enum { SIM_EVENT_INTERPROCESS = 4 };

CUresult sim_ipc_event_new(struct sim_event *e);
void sim_ipc_event_free(struct sim_event *e);
/* After the record in this process: notifies the others when it completes. */
CUresult sim_ipc_event_record(struct sim_call *c, struct sim_stream *s, struct sim_event *e);
/* Makes stream s wait for the last record of any process. */
CUresult sim_ipc_event_wait(struct sim_call *c, struct sim_stream *s, struct sim_event *e);
bool sim_ipc_event_done(const struct sim_event *e);
void sim_ipc_event_synchronize(const struct sim_event *e);

#endif
