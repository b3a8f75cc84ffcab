/*
 * An inference server: a batch of requests comes by a socket, and every 4 ms it looks whether the
 * batch is done. The twin waits for the event.
 */
#include "native.h"
#include <sys/socket.h>

enum { ITEM = 3 * 64 * 64, MAX = 32, BATCHES = 750, REQUESTS = BATCHES * MAX };
static int fds[2];

static void *clients(void *unused)
{
	static char item[ITEM];
	char answer[64 * MAX];
	long sent = 0, got = 0, part = 0;
	while (got < REQUESTS) {
		for (; sent < REQUESTS && sent - got < 2 * MAX; sent++) {
			memset(item, (int)sent, 64);
			if (write(fds[1], item, ITEM) != ITEM)
				exit(3);
		}
		long n = read(fds[1], answer, sizeof(answer));
		if (n <= 0)
			exit(4);
		part += n;
		got += part / 64;
		part %= 64;
	}
	return unused;
}

static void read_batch(char *batch)
{
	for (long have = 0, r; have < (long)MAX * ITEM; have += r)
		if ((r = recv(fds[0], batch + have, (size_t)((long)MAX * ITEM - have), 0)) <= 0)
			exit(5);
}

static NOINLINE void wait_done(CUevent done)
{
	if (fixed())
		CK(cuEventSynchronize(done));
	else
		while (cuEventQuery(done) == CUDA_ERROR_NOT_READY)
			usleep(4000);
}

int main(void)
{
	boot(0);
	CUfunction conv = kernel_of("spin_conv"), head = kernel_of("spin_head");
	CUstream s = new_stream();
	CUevent done;
	CUdeviceptr d = on_device((size_t)MAX * ITEM);
	char *batch = pinned((size_t)MAX * ITEM);
	int room = 1 << 20;
	pthread_t thread;
	CK(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return 2;
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	setsockopt(fds[0], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	pthread_create(&thread, NULL, clients, NULL);
	double since = now();
	for (int i = 0; i < BATCHES; i++) {
		read_batch(batch);
		CK(cuMemcpyHtoDAsync(d, batch, (size_t)MAX * ITEM, s));
		for (int k = 0; k < 8; k++)
			run_kernel(conv, 60 + 8 * MAX, 256, s);
		run_kernel(head, 60, 32, s);
		CK(cuMemcpyDtoHAsync(batch, d, MAX * 64, s));
		CK(cuEventRecord(done, s));
		wait_done(done);
		if (write(fds[0], batch, MAX * 64) != MAX * 64)
			return 6;
	}
	tell(BATCHES, since);
	pthread_join(thread, NULL);
	return 0;
}
