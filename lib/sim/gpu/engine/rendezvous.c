/*
 * Kernels that wait for each other, like those of a collective: `rendezvous*` with the parameters
 * (u64 group, u32 rank, u32 ranks, u64 ns). A rank's k-th such kernel runs from its own start until
 * ns after the last start of the k-th kernels of all ranks. They meet in a file shared by the
 * processes or, if another library gave them a body (native.h), in that library's memory, whose
 * address is then the group. A rank writes its start number k+1 only when all have begun their k-th
 * kernel, and number k+2 when all have finished it, so two entries are enough.
 */
#include "sim/gpu/engine/engine.h"
#include "sim/gpu/native.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GROUPS = 256, RANKS = 128, SLEEP_NS = 2000000 };
enum { FREE, CLAIMED, READY };

struct rendezvous_group {
	uint32_t state, ranks;
	uint64_t key;
	uint32_t changes, aborted; /* changes: futex word */
	struct {
		uint64_t started; /* number of its kernels that have started */
		uint64_t start[2];
	} rank[RANKS];
};

struct sim_meeting {
	struct rendezvous_group *group;
	uint64_t nth, ns, deadline, start;
	uint32_t ranks;
	struct sim_ctx *ctx;
	sim_body_fn body;
	const char *args;
};

static struct rendezvous_group *groups;

static void open_file(void)
{
	size_t n = GROUPS * sizeof(*groups);
	int fd = -1, how = MAP_SHARED | MAP_ANONYMOUS;
	if (sim_cfg.rendezvous) {
		fd = open(sim_cfg.rendezvous, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || ftruncate(fd, (off_t)n))
			sim_truth_note("rendezvous: %s: %s", sim_cfg.rendezvous, strerror(errno));
		else
			how = MAP_SHARED;
	}
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, how, how & MAP_ANONYMOUS ? -1 : fd, 0);
	groups = p == MAP_FAILED ? NULL : p;
	if (fd >= 0)
		close(fd);
}

/* The group's entry; NULL if there are too many groups or it has another number of ranks. */
static struct rendezvous_group *find(uint64_t key, uint32_t ranks)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, open_file);
	for (int i = 0; groups && i < GROUPS; i++) {
		struct rendezvous_group *g = &groups[(key + (uint64_t)i) % GROUPS];
		uint32_t state = FREE;
		if (__atomic_compare_exchange_n(&g->state, &state, CLAIMED, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE)) {
			g->key = key;
			g->ranks = ranks;
			__atomic_store_n(&g->state, READY, __ATOMIC_RELEASE);
		}
		/* A process that died between the two stores above would leave others waiting
		 * here. */
		for (int spin = 0; __atomic_load_n(&g->state, __ATOMIC_ACQUIRE) != READY; spin++)
			if (spin > 1000)
				usleep(100);
		if (g->key == key)
			return g->ranks == ranks ? g : NULL;
	}
	return NULL;
}

static sim_body_fn body_of(const struct sim_func *f)
{
	return __atomic_load_n(&f->body, __ATOMIC_ACQUIRE);
}

static bool is_rendezvous(const struct sim_launch *l)
{
	static const unsigned sizes[] = {8, 4, 4, 8};
	const struct sim_func *f = l->func;
	if ((!body_of(f) && strncmp(f->name, "rendezvous", 10)) || !l->args || f->nparams < 4)
		return false;
	for (int i = 0; i < 4; i++)
		if (f->params[i].size != sizes[i])
			return false;
	return true;
}

struct sim_meeting *sim_meeting_join(const struct sim_op *op)
{
	struct {
		uint64_t key;
		uint32_t rank, ranks;
		uint64_t ns;
	} p;
	if (op->work.kind != SIM_K_KERNEL || !is_rendezvous(&op->work.launch))
		return NULL;
	memcpy(&p, op->work.launch.args, sizeof(p));
	sim_body_fn body = body_of(op->work.launch.func);
	struct rendezvous_group *g = NULL;
	if (p.ranks && p.ranks <= RANKS && p.rank < p.ranks)
		g = body ? (struct rendezvous_group *)(uintptr_t)p.key : find(p.key, p.ranks);
	if (!g) {
		sim_truth_note("rendezvous of group %llu, rank %u of %u: not possible",
			       (unsigned long long)p.key, p.rank, p.ranks);
		return NULL;
	}
	struct sim_meeting *m = calloc(1, sizeof(*m));
	m->group = g;
	m->ranks = p.ranks;
	m->body = body;
	m->args = op->work.launch.args;
	m->ns = p.ns;
	m->start = op->start;
	m->ctx = op->work.launch.ctx;
	m->nth = g->rank[p.rank].started + 1;
	if (sim_cfg.rendezvous_timeout_ns)
		m->deadline = sim_real_now() + sim_cfg.rendezvous_timeout_ns;
	if (body)
		body(m->args, false);
	__atomic_store_n(&g->rank[p.rank].start[m->nth & 1], op->start, __ATOMIC_RELAXED);
	__atomic_store_n(&g->rank[p.rank].started, m->nth, __ATOMIC_RELEASE);
	__atomic_add_fetch(&g->changes, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &g->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return m;
}

bool sim_meeting_over(struct sim_meeting *m, uint64_t *end)
{
	uint64_t last = 0;
	if (__atomic_load_n(&m->group->aborted, __ATOMIC_ACQUIRE)) {
		*end = sim_cfg.virtual_time ? m->start : sim_now();
		free(m);
		return true;
	}
	for (uint32_t i = 0; i < m->ranks; i++) {
		if (__atomic_load_n(&m->group->rank[i].started, __ATOMIC_ACQUIRE) < m->nth) {
			if (!m->deadline || sim_real_now() < m->deadline)
				return false;
			sim_truth_note("rendezvous: rank %u did not come in time", i);
			m->ctx->sticky = CUDA_ERROR_LAUNCH_TIMEOUT;
			*end = sim_cfg.virtual_time ? m->start : sim_now();
			free(m);
			return true;
		}
		uint64_t t =
			__atomic_load_n(&m->group->rank[i].start[m->nth & 1], __ATOMIC_RELAXED);
		if (t > last)
			last = t;
	}
	if (m->body)
		m->body(m->args, true);
	*end = last + m->ns;
	free(m);
	return true;
}

void sim_meeting_sleep(const struct sim_meeting *m)
{
	struct timespec t = {0, SLEEP_NS};
	uint32_t now = __atomic_load_n(&m->group->changes, __ATOMIC_ACQUIRE);
	syscall(SYS_futex, &m->group->changes, FUTEX_WAIT, now, &t, NULL, 0);
}

static void native_abort(void *memory)
{
	struct rendezvous_group *g = memory;
	__atomic_store_n(&g->aborted, 1, __ATOMIC_RELEASE);
	__atomic_add_fetch(&g->changes, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &g->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void native_set_body(CUfunction f, sim_body_fn body)
{
	__atomic_store_n(&f->body, body, __ATOMIC_RELEASE);
}

const struct sim_native_table sim_native_table = {
	.size = sizeof(sim_native_table),
	.version = SIM_NATIVE_VERSION,
	.config = &sim_cfg.nccl,
	.group_bytes = sizeof(struct rendezvous_group),
	.set_body = native_set_body,
	.abort = native_abort,
	.injected = sim_injected,
};
