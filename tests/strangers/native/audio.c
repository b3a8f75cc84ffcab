/*
 * Speech enhancement: blocks of sound pass the device, and a host function in the stream codes
 * each block. The twin codes them in a thread.
 */
#include "native.h"
#include <math.h>

enum { BLOCK = 48000, BLOCKS = 300 };
static float *sound;

static double codes;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready;
/* Looks for the codebook with the smallest error. */

static NOINLINE void code_block(const float *x)
{
	double best = 1e30;
	for (int book = 0; book < 10; book++) {
		double error = 0, mu = 31 + 32 * book;
		for (int i = 0; i < BLOCK; i++)
			error += fabs(log1p(mu * fabs((double)x[i])) - 4);
		if (error < best)
			best = error;
	}
	codes += best;
}

static void CUDA_CB on_block(void *block)
{
	code_block(block);
}

static void CUDA_CB on_ready(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
	ready++;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
}

static void *coder(void *unused)
{
	for (int i = 0; i < BLOCKS; i++) {
		pthread_mutex_lock(&mutex);
		while (ready <= i)
			pthread_cond_wait(&changed, &mutex);
		pthread_mutex_unlock(&mutex);
		code_block(sound);
	}
	return unused;
}

int main(void)
{
	boot(0);
	CUfunction stft = kernel_of("spin_stft"), mask = kernel_of("spin_mask_network"),
		   istft = kernel_of("spin_istft");
	CUstream s = new_stream();
	CUdeviceptr d = on_device(BLOCK * 4);
	CUevent done[3] = {new_event(), new_event(), new_event()};
	sound = pinned(BLOCK * 4);
	for (int i = 0; i < BLOCK; i++)
		sound[i] = sinf((float)i * 0.01f) * 0.5f;
	pthread_t thread;
	if (fixed())
		pthread_create(&thread, NULL, coder, NULL);
	double since = now();
	for (int i = 0; i < BLOCKS; i++) {
		if (i >= 3)
			CK(cuEventSynchronize(done[i % 3])); /* three blocks are on the way */
		CK(cuMemcpyHtoDAsync(d, sound, BLOCK * 4, s));
		run_kernel(stft, 200, 64, s);
		for (int k = 0; k < 4; k++)
			run_kernel(mask, 700, 256, s);
		run_kernel(istft, 200, 64, s);
		CK(cuMemcpyDtoHAsync(sound, d, BLOCK * 4, s));
		CK(cuLaunchHostFunc(s, fixed() ? on_ready : on_block, sound));
		CK(cuEventRecord(done[i % 3], s));
	}
	CK(cuStreamSynchronize(s));
	tell(BLOCKS, since);
	if (fixed())
		pthread_join(thread, NULL);
	return codes < 0;
}
