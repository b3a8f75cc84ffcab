/*
 * Data-parallel training by hand: two devices, the gradients of four layers summed by NCCL after
 * the backward pass. The twin sums each layer's on a stream of its own meanwhile.
 */
#include "native.h"
typedef struct ncclComm *ncclComm_t;
int ncclCommInitAll(ncclComm_t *, int, const int *);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *, void *, size_t, int, int, ncclComm_t, CUstream);

enum { LAYERS = 4, PARAMETERS = 1 << 20, STEPS = 200, FLOAT = 7, SUM = 0 };

static struct device {
	CUcontext context;
	CUfunction forward, backward, adam;
	CUstream compute, exchange;
	CUdeviceptr gradients;
	CUevent ready[LAYERS], summed;
	ncclComm_t comm;
} devices[2];

static void set_up(struct device *d, int number)
{
	d->context = boot(number);
	d->forward = kernel_of("spin_forward_gemm");
	d->backward = kernel_of("spin_backward_gemm");
	d->adam = kernel_of("spin_adam");
	d->compute = new_stream();
	d->exchange = new_stream();
	d->gradients = on_device((size_t)LAYERS * PARAMETERS * 4);
	for (int layer = 0; layer < LAYERS; layer++)
		d->ready[layer] = new_event();
	d->summed = new_event();
}

static void sum_layer(int layer)
{
	ncclGroupStart();
	for (int i = 0; i < 2; i++) {
		void *part = (void *)(devices[i].gradients + (size_t)layer * PARAMETERS * 4);
		ncclAllReduce(part, part, PARAMETERS, FLOAT, SUM, devices[i].comm,
			      fixed() ? devices[i].exchange : devices[i].compute);
	}
	ncclGroupEnd();
}

static void backward(int layer)
{
	for (int i = 0; i < 2; i++) {
		struct device *d = &devices[i];
		CK(cuCtxSetCurrent(d->context));
		run_kernel(d->backward, 1900, 256, d->compute);
		if (fixed()) {
			CK(cuEventRecord(d->ready[layer], d->compute));
			CK(cuStreamWaitEvent(d->exchange, d->ready[layer], 0));
		}
	}
	if (fixed())
		sum_layer(layer);
}

static void update(struct device *d)
{
	CK(cuCtxSetCurrent(d->context));
	if (fixed()) {
		CK(cuEventRecord(d->summed, d->exchange));
		CK(cuStreamWaitEvent(d->compute, d->summed, 0));
	}
	run_kernel(d->adam, 200, 256, d->compute);
}

int main(void)
{
	ncclComm_t comm[2];
	for (int i = 0; i < 2; i++)
		set_up(&devices[i], i);
	if (ncclCommInitAll(comm, 2, (int[]){0, 1}))
		return 3;
	for (int i = 0; i < 2; i++)
		devices[i].comm = comm[i];
	double since = now();
	for (int step = 0; step < STEPS; step++) {
		for (int i = 0; i < 2; i++) {
			CK(cuCtxSetCurrent(devices[i].context));
			for (int layer = 0; layer < LAYERS; layer++)
				run_kernel(devices[i].forward, 500, 256, devices[i].compute);
		}
		for (int layer = 0; layer < LAYERS; layer++)
			backward(layer);
		for (int layer = 0; !fixed() && layer < LAYERS; layer++)
			sum_layer(layer);
		for (int i = 0; i < 2; i++)
			update(&devices[i]);
		for (int i = 0; i < 2 && step % 8 == 7; i++) {
			CK(cuCtxSetCurrent(devices[i].context));
			CK(cuStreamSynchronize(devices[i].compute));
		}
	}
	tell(STEPS, since);
	return 0;
}
