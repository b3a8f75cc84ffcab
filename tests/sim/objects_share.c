/*
 * Memory, physical memory, pools and events cross from one process to another, by handles of
 * bytes and by file descriptors: what one writes the other reads, and an event of one holds up a
 * stream of the other. Nothing is left when both are gone. Run without arguments.
 */
#include "objects_test.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long long handle;
typedef struct {
	char bytes[64];
} blob;
struct prop {
	int type;
	unsigned handles;
	struct location location;
	void *win32;
	unsigned char flags[8];
};
struct access {
	struct location location;
	unsigned flags;
};
struct pool_props {
	int type;
	unsigned handles;
	struct location location;
	void *security;
	size_t max;
	char rest[56];
};

enum { N = 3 << 20, SPIN_MS = 200 };
static int channel;

static void send_fd(int fd)
{
	char byte = 'f', control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec io = {&byte, 1};
	struct msghdr m = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	CHECK(sendmsg(channel, &m, 0) == 1);
}

static int receive_fd(void)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec io = {&byte, 1};
	struct msghdr m = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	int fd = -1;
	if (recvmsg(channel, &m, 0) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static void say(const void *p, size_t n)
{
	CHECK(write(channel, p, n) == (ssize_t)n);
}

static void hear(void *p, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t k = read(channel, (char *)p + got, n - got);
		if (k <= 0) {
			fprintf(stderr, "the other process is gone\n");
			_exit(1);
		}
		got += (size_t)k;
	}
}

static void meet(void)
{
	char c = 'm';
	say(&c, 1);
	hear(&c, 1);
}

static void put(CUdeviceptr d, unsigned seed)
{
	char h[4096];
	fill_bytes(h, sizeof(h), seed);
	IS(0, cuMemcpyHtoD_v2, (CUdeviceptr, void *, size_t), d + N - sizeof(h), h, sizeof(h));
	IS(0, cuCtxSynchronize, (void), ); /* small pageable copies return before their end */
}

static bool holds(CUdeviceptr d, unsigned seed)
{
	char h[4096], back[4096];
	fill_bytes(h, sizeof(h), seed);
	IS(0, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), back, d + N - sizeof(h), sizeof(h));
	return !memcmp(h, back, sizeof(h));
}

static CUdeviceptr map(handle m)
{
	CUdeviceptr va = 0;
	struct access rw = {{1, 0}, 3};
	IS(0, cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, handle), &va,
	   4 << 20, 0, 0, 0);
	IS(0, cuMemMap, (CUdeviceptr, size_t, size_t, handle, handle), va, 4 << 20, 0, m, 0);
	IS(0, cuMemSetAccess, (CUdeviceptr, size_t, const void *, size_t), va, 4 << 20, &rw, 1);
	IS(0, cuMemRelease, (handle), m);
	return va;
}

static void exporter(void)
{
	blob b, event;
	handle m = 0;
	int fd = -1;
	CUdeviceptr d = device_memory(N), va, from_pool = 0;
	CUevent e = NULL;
	CUstream s = new_stream(1);
	put(d, 1);
	IS(INVALID, cuIpcGetMemHandle, (blob *, CUdeviceptr), NULL, d);
	IS(INVALID, cuIpcGetMemHandle, (blob *, CUdeviceptr), &b, 4096);
	IS(0, cuIpcGetMemHandle, (blob *, CUdeviceptr), &b, d);
	CHECK(holds(d, 1)); /* in its new place */
	IS(201, cuIpcOpenMemHandle_v2, (CUdeviceptr *, blob, unsigned), &va, b, 1);
	say(&b, sizeof(b));
	meet(); /* the other has read and written */
	CHECK(holds(d, 2));
	IS(0, cuMemFree_v2, (CUdeviceptr), d);
	/* physical memory */
	struct prop prop = {.type = 1, .handles = 1, .location = {1, 0}};
	IS(0, cuMemCreate, (handle *, size_t, const void *, handle), &m, 4 << 20, &prop, 0);
	IS(0, cuMemExportToShareableHandle, (void *, handle, int, handle), &fd, m, 1, 0);
	va = map(m);
	put(va, 3);
	send_fd(fd);
	close(fd);
	meet();
	CHECK(holds(va, 4));
	/* a pool */
	struct pool_props props = {.type = 1, .handles = 1, .location = {1, 0}};
	CUmemoryPool pool = NULL;
	IS(0, cuMemPoolCreate, (CUmemoryPool *, void *), &pool, &props);
	IS(0, cuMemPoolExportToShareableHandle, (void *, CUmemoryPool, int, handle), &fd, pool, 1,
	   0);
	IS(0, cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream), &from_pool,
	   N, pool, s);
	IS(0, cuStreamSynchronize, (CUstream), s);
	put(from_pool, 5);
	IS(0, cuMemPoolExportPointer, (blob *, CUdeviceptr), &b, from_pool);
	send_fd(fd);
	say(&b, sizeof(b));
	meet();
	CHECK(holds(from_pool, 6));
	/* an event: the kernel before it holds up the other process */
	IS(INVALID, cuEventCreate, (CUevent *, unsigned), &e, 4);
	IS(0, cuEventCreate, (CUevent *, unsigned), &e, 4 | 2);
	IS(0, cuIpcGetEventHandle, (blob *, CUevent), &event, e);
	IS(400, cuIpcGetEventHandle, (blob *, CUevent), &event, new_event());
	spin(s, 1); /* load the module first */
	IS(0, cuStreamSynchronize, (CUstream), s);
	spin(s, SPIN_MS);
	IS(0, cuEventRecord, (CUevent, CUstream), e, s);
	say(&event, sizeof(event));
	meet();
	IS(0, cuEventQuery, (CUevent), e);
	IS(0, cuEventDestroy_v2, (CUevent), e);
}

static void importer(void)
{
	blob b, event;
	CUdeviceptr d = 0, again = 0, from_pool = 0;
	handle m = 0;
	hear(&b, sizeof(b));
	IS(INVALID, cuIpcOpenMemHandle_v2, (CUdeviceptr *, blob, unsigned), &d, b, 0);
	IS(0, cuIpcOpenMemHandle_v2, (CUdeviceptr *, blob, unsigned), &d, b, 1);
	IS(0, cuIpcOpenMemHandle_v2, (CUdeviceptr *, blob, unsigned), &again, b, 1);
	CHECK(d && d == again && holds(d, 1));
	put(d, 2);
	IS(INVALID, cuMemFree_v2, (CUdeviceptr), d);
	IS(0, cuIpcCloseMemHandle, (CUdeviceptr), d);
	CHECK(holds(d, 2));
	IS(0, cuIpcCloseMemHandle, (CUdeviceptr), d);
	IS(INVALID, cuIpcCloseMemHandle, (CUdeviceptr), d);
	meet();
	int fd = receive_fd();
	blob nonsense = {"nothing"};
	IS(400, cuIpcOpenMemHandle_v2, (CUdeviceptr *, blob, unsigned), &d, nonsense, 1);
	IS(205, cuIpcOpenMemHandle_v2, (CUdeviceptr *, blob, unsigned), &d, b, 1); /* freed */
	IS(0, cuMemImportFromShareableHandle, (handle *, void *, int), &m, (void *)(intptr_t)fd, 1);
	IS(INVALID, cuMemImportFromShareableHandle, (handle *, void *, int), &m, NULL, 1);
	/* the same as external memory; the driver keeps the descriptor */
	struct {
		int type;
		union {
			int fd;
			void *win32[2];
		} h;
		unsigned long long size;
		unsigned flags, reserved[16];
	} desc = {.type = 1, .h.fd = fd, .size = 4 << 20};
	struct {
		unsigned long long offset, size;
		unsigned flags, reserved[16];
	} part = {.offset = 0, .size = 4 << 20};
	void *external = NULL;
	IS(0, cuImportExternalMemory, (void **, void *), &external, &desc);
	IS(0, cuExternalMemoryGetMappedBuffer, (CUdeviceptr *, void *, void *), &d, external,
	   &part);
	CHECK(holds(d, 3));
	CUdeviceptr va = map(m);
	CHECK(holds(va, 3));
	put(d, 4);
	CHECK(holds(va, 4));
	IS(0, cuDestroyExternalMemory, (void *), external);
	IS(0, cuMemFree_v2, (CUdeviceptr), d);
	meet();
	fd = receive_fd();
	hear(&b, sizeof(b));
	CUmemoryPool pool = NULL;
	IS(0, cuMemPoolImportFromShareableHandle, (CUmemoryPool *, void *, int, handle), &pool,
	   (void *)(intptr_t)fd, 1, 0);
	IS(0, cuMemPoolImportPointer, (CUdeviceptr *, CUmemoryPool, blob *), &from_pool, pool, &b);
	CHECK(holds(from_pool, 5));
	put(from_pool, 6);
	CUstream s = new_stream(1);
	IS(0, cuMemFreeAsync, (CUdeviceptr, CUstream), from_pool, s);
	IS(INVALID, cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream), &d,
	   64, pool, s);
	meet();
	hear(&event, sizeof(event));
	CUevent e = NULL;
	IS(0, cuIpcOpenEventHandle, (CUevent *, blob), &e, event);
	IS(600, cuEventQuery, (CUevent), e);
	IS(0, cuStreamWaitEvent, (CUstream, CUevent, unsigned), s, e, 0);
	IS(600, cuStreamQuery, (CUstream), s);
	IS(0, cuStreamSynchronize, (CUstream), s);
	IS(0, cuEventQuery, (CUevent), e);
	IS(0, cuEventSynchronize, (CUevent), e);
	IS(0, cuEventDestroy_v2, (CUevent), e);
	meet();
}

int main(void)
{
	int ends[2], status = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 1;
	pid_t child = fork();
	channel = ends[child == 0];
	close(ends[child != 0]);
	open_context();
	if (!child) {
		importer();
		return failures != 0;
	}
	exporter();
	close(channel);
	waitpid(child, &status, 0);
	return failures != 0 || status != 0;
}
