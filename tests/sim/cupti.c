/*
 * Uses the simulated CUPTI as a profiler does and prints every record, buffer and result as a line
 * of JSON, read with the structures of CUPTI's own headers; cupti.py compares them with the truth
 * log.
 */
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *driver, *cupti;
static pthread_mutex_t out = PTHREAD_MUTEX_INITIALIZER;
static size_t buffer_size = 1 << 20;
static int null_every, requests;
static const char *mode = "work";

static void *symbol(void *lib, const char *name)
{
	void *f = dlsym(lib, name);
	if (!f) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return f;
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* A function of the driver or of CUPTI, by the name and type that the headers give it. */
#define CU(name) ((__typeof__(name) *)symbol(driver, TEXT(name)))
#define CUPTI(name) ((__typeof__(name) *)symbol(cupti, #name))
#define OK(call)                                                                                   \
	do {                                                                                       \
		int r_ = (int)(call);                                                              \
		if (r_) {                                                                          \
			fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, r_);   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static uint64_t mono(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A clock of the client: 1000 s ahead and 1 % fast. */
static uint64_t client_clock(void)
{
	return 1000000000000u + mono() / 100 * 101;
}

static void result(const char *name, int r)
{
	pthread_mutex_lock(&out);
	printf("{\"result\":\"%s\",\"code\":%d}\n", name, r);
	pthread_mutex_unlock(&out);
}

#define ULL(x) ((unsigned long long)(x))

static void print_op(const char *what, unsigned kind, uint64_t start, uint64_t end,
		     uint32_t correlation, uint32_t device, uint32_t context, uint32_t stream)
{
	printf("{\"record\":\"%s\",\"kind\":%u,\"start\":%llu,\"end\":%llu,\"n\":%u,\"dev\":%u,"
	       "\"context\":%u,\"stream\":%u",
	       what, kind, ULL(start), ULL(end), correlation, device, context, stream);
}

static void print_host(const char *what, uint64_t start, uint64_t end, uint32_t correlation)
{
	printf("{\"record\":\"%s\",\"start\":%llu,\"end\":%llu,\"n\":%u", what, ULL(start),
	       ULL(end), correlation);
}

static void print_record(const CUpti_Activity *r)
{
	switch (r->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
		const CUpti_ActivityKernel5 *k = (const void *)r;
		print_op("kernel", r->kind, k->start, k->end, k->correlationId, k->deviceId,
			 k->contextId, k->streamId);
		printf(",\"name\":\"%s\",\"grid\":[%d,%d,%d],\"block\":[%d,%d,%d],\"node\":%llu,"
		       "\"graph\":%u}\n",
		       k->name, k->gridX, k->gridY, k->gridZ, k->blockX, k->blockY, k->blockZ,
		       ULL(k->graphNodeId), k->graphId);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMCPY: {
		const CUpti_ActivityMemcpy5 *c = (const void *)r;
		print_op("copy", r->kind, c->start, c->end, c->correlationId, c->deviceId,
			 c->contextId, c->streamId);
		printf(",\"bytes\":%llu,\"copy\":%d,\"src\":%d,\"dst\":%d,\"async\":%d,\"node\":%"
		       "llu,\"graph\":%u}\n",
		       ULL(c->bytes), c->copyKind, c->srcKind, c->dstKind, c->flags,
		       ULL(c->graphNodeId), c->graphId);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMCPY2: {
		const CUpti_ActivityMemcpyPtoP4 *c = (const void *)r;
		print_op("peer", r->kind, c->start, c->end, c->correlationId, c->deviceId,
			 c->contextId, c->streamId);
		printf(",\"bytes\":%llu,\"copy\":%d,\"from\":%u,\"to\":%u,\"node\":%llu,\"graph\":%"
		       "u}\n",
		       ULL(c->bytes), c->copyKind, c->srcDeviceId, c->dstDeviceId,
		       ULL(c->graphNodeId), c->graphId);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMSET: {
		const CUpti_ActivityMemset4 *m = (const void *)r;
		print_op("memset", r->kind, m->start, m->end, m->correlationId, m->deviceId,
			 m->contextId, m->streamId);
		printf(",\"bytes\":%llu,\"value\":%u,\"memory\":%u,\"node\":%llu,\"graph\":%u}\n",
		       ULL(m->bytes), m->value, m->memoryKind, ULL(m->graphNodeId), m->graphId);
		break;
	}
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: {
		const CUpti_ActivityGraphTrace *g = (const void *)r;
		print_op("graph", r->kind, g->start, g->end, g->correlationId, g->deviceId,
			 g->contextId, g->streamId);
		printf(",\"graph\":%u}\n", g->graphId);
		break;
	}
	case CUPTI_ACTIVITY_KIND_DRIVER: {
		const CUpti_ActivityAPI *a = (const void *)r;
		const char *name = "";
		CUPTI(cuptiGetCallbackName)(CUPTI_CB_DOMAIN_DRIVER_API, a->cbid, &name);
		print_host("call", a->start, a->end, a->correlationId);
		printf(",\"cbid\":%u,\"fn\":\"%s\",\"pid\":%u,\"tid\":%u,\"rc\":%u}\n", a->cbid,
		       name, a->processId, a->threadId, a->returnValue);
		break;
	}
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
		const CUpti_ActivitySynchronization *s = (const void *)r;
		print_host("sync", s->start, s->end, s->correlationId);
		printf(",\"type\":%d,\"context\":%u,\"stream\":%u}\n", s->type, s->contextId,
		       s->streamId);
		break;
	}
	case CUPTI_ACTIVITY_KIND_OVERHEAD: {
		const CUpti_ActivityOverhead *o = (const void *)r;
		print_host("overhead", o->start, o->end, 0);
		printf(",\"what\":%d,\"pid\":%u,\"tid\":%u}\n", o->overheadKind,
		       o->objectId.pt.processId, o->objectId.pt.threadId);
		break;
	}
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
		const CUpti_ActivityExternalCorrelation *e = (const void *)r;
		printf("{\"record\":\"external\",\"type\":%d,\"id\":%llu,\"n\":%u}\n",
		       e->externalKind, ULL(e->externalId), e->correlationId);
		break;
	}
	default:
		printf("{\"record\":\"unknown\",\"kind\":%d}\n", r->kind);
	}
}

static void on_request(uint8_t **buffer, size_t *size, size_t *max)
{
	bool none =
		null_every && __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED) % null_every == 0;
	*size = buffer_size;
	*max = 0;
	*buffer = none ? NULL : aligned_alloc(8, (buffer_size + 7) & ~(size_t)7);
	if (*buffer)
		memset(*buffer, 0xee, buffer_size);
}

static void print_buffer(const char *who, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *r = NULL, *last = NULL;
	int n = 0;
	pthread_mutex_lock(&out);
	while (CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &r) == CUPTI_SUCCESS) {
		if (last)
			printf("{\"bytes_of\":%d,\"size\":%td}\n", last->kind,
			       (char *)r - (char *)last);
		last = r;
		print_record(r);
		n++;
	}
	printf("{\"buffer\":\"%s\",\"size\":%zu,\"valid\":%zu,\"records\":%d,\"tid\":%d}\n", who,
	       size, valid, n, (int)gettid());
	if (last)
		printf("{\"bytes_of\":%d,\"size\":%td}\n", last->kind,
		       (char *)buffer + valid - (char *)last);
	pthread_mutex_unlock(&out);
	free(buffer);
}

static void on_complete(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	(void)ctx;
	(void)stream;
	print_buffer("mine", buffer, size, valid);
}

static void on_complete_other(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
			      size_t valid)
{
	(void)ctx;
	(void)stream;
	print_buffer("other", buffer, size, valid);
}

static void on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	const CUpti_CallbackData *d = data;
	if (d->callbackSite == CUPTI_API_ENTER)
		*d->correlationData = d->correlationId + 7;
	pthread_mutex_lock(&out);
	printf("{\"callback\":\"%s\",\"user\":\"%s\",\"domain\":%d,\"cbid\":%u,\"site\":%d,\"n\":%"
	       "u,\"data\":%llu,\"rc\":%d,\"context\":%u}\n",
	       d->functionName, (const char *)user, domain, id, d->callbackSite, d->correlationId,
	       ULL(*d->correlationData),
	       d->callbackSite == CUPTI_API_EXIT ? *(int *)d->functionReturnValue : 0,
	       d->contextUid);
	pthread_mutex_unlock(&out);
}

static const char *const ptx = ".version 7.0\n.target sm_50\n.address_size 64\n"
			       ".visible .entry spin(.param .u64 ns)\n{\n\tret;\n}\n";
static CUfunction function;
static CUcontext context;

static void spin(CUstream s, uint64_t ns, unsigned grid)
{
	void *params[] = {&ns};
	OK(CU(cuLaunchKernel)(function, grid, 1, 1, 32, 2, 1, 0, s, params, NULL));
}

static void *launcher(void *arg)
{
	CUstream s;
	uint64_t last = 0;
	OK(CU(cuCtxSetCurrent)(context));
	OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 50; i++) {
		OK(CUPTI(cuptiActivityPushExternalCorrelationId)(
			CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1000 + (uint64_t)i));
		spin(s, 20000, *(unsigned *)arg);
		OK(CUPTI(cuptiActivityPopExternalCorrelationId)(
			CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last));
		if (last != 1000 + (uint64_t)i)
			exit(1);
	}
	OK(CU(cuStreamSynchronize)(s));
	return NULL;
}

static void graphs(CUstream s, CUdeviceptr d, void *host, size_t n)
{
	CUgraph g;
	CUgraphExec e;
	uint32_t id = 0;
	OK(CU(cuStreamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(CU(cuMemcpyHtoDAsync)(d, host, n, s));
	spin(s, 100000, 3);
	spin(s, 50000, 4);
	OK(CU(cuMemsetD8Async)(d, 9, n / 2, s));
	OK(CU(cuMemcpyDtoHAsync)(host, d, n, s));
	OK(CU(cuStreamEndCapture)(s, &g));
	OK(CU(cuGraphInstantiateWithFlags)(&e, g, 0));
	OK(CUPTI(cuptiGetGraphExecId)(e, &id));
	pthread_mutex_lock(&out);
	printf("{\"exec\":%u}\n", id);
	pthread_mutex_unlock(&out);
	for (int i = 0; i < 3; i++)
		OK(CU(cuGraphLaunch)(e, s));
	OK(CU(cuStreamSynchronize)(s));
}

static void work(void)
{
	enum { N = 1 << 20 };
	unsigned grids[] = {11, 12};
	CUstream a, b;
	CUevent event;
	CUdeviceptr d, other = 0;
	CUcontext second;
	void *pinned, *pageable = malloc(N);
	pthread_t t[2];
	int devices = 0;
	OK(CU(cuStreamCreate)(&a, 0));
	OK(CU(cuStreamCreate)(&b, CU_STREAM_NON_BLOCKING));
	OK(CU(cuEventCreate)(&event, 0));
	OK(CU(cuMemAlloc)(&d, N));
	OK(CU(cuMemHostAlloc)(&pinned, N, 0));
	memset(pageable, 1, N);
	for (int i = 0; i < 2; i++)
		OK(pthread_create(&t[i], NULL, launcher, &grids[i]));
	for (int i = 0; i < 10; i++) {
		OK(CU(cuMemcpyHtoDAsync)(d, pinned, N / 4 + (size_t)i, a));
		spin(a, 300000, 1 + (unsigned)i);
		OK(CU(cuEventRecord)(event, a));
		OK(CU(cuStreamWaitEvent)(b, event, 0));
		spin(b, 100000, 2);
		OK(CU(cuMemcpyDtoHAsync)(pinned, d, N / 8, b));
	}
	OK(CU(cuMemcpyHtoD)(d, pageable, N));
	OK(CU(cuMemcpyHtoD)(d, pageable, 100)); /* staged */
	OK(CU(cuMemcpyDtoD)(d, d + N / 2, N / 2));
	OK(CU(cuMemsetD32Async)(d, 0x12345678, N / 8, a));
	OK(CU(cuEventSynchronize)(event));
	graphs(b, d, pinned, N);
	OK(CU(cuDeviceGetCount)(&devices));
	if (devices > 1) {
		OK(CU(cuDevicePrimaryCtxRetain)(&second, 1));
		OK(CU(cuCtxSetCurrent)(second));
		OK(CU(cuMemAlloc)(&other, N));
		OK(CU(cuCtxSetCurrent)(context));
		OK(CU(cuMemcpyPeerAsync)(other, second, d, context, N, a));
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	OK(CU(cuCtxSynchronize)());
	free(pageable);
}

/* A kernel that is still running when the records are fetched by force. */
static void forced(void)
{
	CUstream s;
	OK(CU(cuStreamCreate)(&s, 0));
	spin(s, 1000, 1);
	OK(CU(cuStreamSynchronize)(s));
	spin(s, 1000000000, 2);
	spin(s, 1000, 3);
	OK(CUPTI(cuptiActivityFlushAll)(0));
	result("forced", 0);
	OK(CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
	OK(CU(cuStreamSynchronize)(s));
}

/* Waits so many times 50 ms for the child. */
static void forked(int rounds)
{
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (!child)
		_exit(CUPTI(cuptiActivityFlushAll)(0) == CUPTI_SUCCESS);
	for (int i = 0; i < rounds; i++) {
		if (waitpid(child, &status, WNOHANG) == child) {
			result("fork", WEXITSTATUS(status));
			return;
		}
		usleep(50000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	result("fork", -1);
}

static void subscribe(void)
{
	CUpti_SubscriberHandle first, second;
	int r = CUPTI(cuptiSubscribe)(&first, on_call, "first");
	result("first", r);
	r = CUPTI(cuptiSubscribe)(&second, on_call, "second");
	result("second", r);
	OK(CUPTI(cuptiEnableCallback)(1, first, CUPTI_CB_DOMAIN_DRIVER_API,
				      CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
	if (!r)
		OK(CUPTI(cuptiEnableDomain)(1, second, CUPTI_CB_DOMAIN_DRIVER_API));
	work();
	OK(CUPTI(cuptiUnsubscribe)(first));
	spin(NULL, 1000, 77);
}

/* "10,1,2" */
static void enable(const char *kinds)
{
	char *copy = strdup(kinds), *save = NULL;
	for (char *k = strtok_r(copy, ",", &save); k; k = strtok_r(NULL, ",", &save))
		result(k, CUPTI(cuptiActivityEnable)((CUpti_ActivityKind)atoi(k)));
	free(copy);
}

static void print_clock(void)
{
	uint64_t t = 0, before = mono();
	OK(CUPTI(cuptiGetTimestamp)(&t));
	pthread_mutex_lock(&out);
	printf("{\"clock\":%llu,\"before\":%llu,\"after\":%llu}\n", ULL(t), ULL(before),
	       ULL(mono()));
	pthread_mutex_unlock(&out);
}

static void setup(int argc, char **argv)
{
	const char *library = "libcupti.so.13", *kinds = "10,1,2";
	bool clocked = false;
	int other = 0, c;
	uint32_t version = 0, period = 0;
	size_t size = sizeof(size), value = 0;
	while ((c = getopt(argc, argv, "l:k:m:b:n:cop:")) != -1) {
		switch (c) {
		case 'l':
			library = optarg;
			break;
		case 'k':
			kinds = optarg;
			break;
		case 'm':
			mode = optarg;
			break;
		case 'b':
			buffer_size = strtoul(optarg, NULL, 10);
			break;
		case 'n':
			null_every = atoi(optarg);
			break;
		case 'c':
			clocked = true;
			break;
		case 'o':
			other = 1;
			break;
		case 'p':
			period = (uint32_t)atoi(optarg);
			break;
		default:
			exit(2);
		}
	}
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	cupti = dlopen(library, RTLD_NOW);
	if (!driver || !cupti) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	OK(CUPTI(cuptiGetVersion)(&version));
	result("version", (int)version);
	OK(CUPTI(cuptiActivityGetAttribute)(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &size,
					    &value));
	result("pool", (int)value);
	OK(CUPTI(cuptiSetThreadIdType)(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
	OK(CU(cuInit)(0));
	OK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
	OK(CU(cuCtxSetCurrent)(context));
	CUmodule module;
	OK(CU(cuModuleLoadData)(&module, ptx));
	OK(CU(cuModuleGetFunction)(&function, module, "spin"));
	OK(CUPTI(cuptiActivityRegisterCallbacks)(on_request, on_complete));
	if (other)
		result("register",
		       CUPTI(cuptiActivityRegisterCallbacks)(on_request, on_complete_other));
	if (clocked)
		OK(CUPTI(cuptiActivityRegisterTimestampCallback)(client_clock));
	enable(kinds);
	if (period)
		OK(CUPTI(cuptiActivityFlushPeriod)(period));
}

int main(int argc, char **argv)
{
	size_t dropped = 0;
	setup(argc, argv);
	print_clock();
	if (!strcmp(mode, "forced"))
		forced();
	else if (!strcmp(mode, "fork"))
		forked(200);
	else if (!strcmp(mode, "hang"))
		forked(10);
	else if (!strcmp(mode, "subscribe"))
		subscribe();
	else if (!strcmp(mode, "some")) {
		OK(CUPTI(cuptiActivityEnableDriverApi)(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1));
		OK(CUPTI(cuptiActivityEnableDriverApi)(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, 1));
		work();
	} else if (!strcmp(mode, "finalize")) {
		work();
		OK(CUPTI(cuptiFinalize)());
		spin(NULL, 1000, 77);
		OK(CU(cuCtxSynchronize)());
		enable("10");
		spin(NULL, 1000, 78);
		OK(CU(cuCtxSynchronize)());
	} else
		work();
	print_clock();
	result("flush", CUPTI(cuptiActivityFlushAll)(0));
	result("dropped count", CUPTI(cuptiActivityGetNumDroppedRecords)(NULL, 0, &dropped));
	result("dropped", (int)dropped);
	return 0;
}
