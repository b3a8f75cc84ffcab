/* Truth log: JSON lines of every call and every operation of the device; format in
 * lib/sim/README.md. */
#include "sim/gpu/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 20, LINE = 1024, FLUSH_MS = 100 };

bool sim_truth_on;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static char *buffer;
static size_t fill;
static int fd = -1;

static void flush_locked(void)
{
	for (size_t done = 0; done < fill;) {
		ssize_t n = write(fd, buffer + done, fill - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	fill = 0;
}

static void put(const char *line, int n)
{
	pthread_mutex_lock(&mu);
	if (fill + LINE > BUFFER)
		flush_locked();
	memcpy(buffer + fill, line, (size_t)n);
	fill += (size_t)n;
	pthread_mutex_unlock(&mu);
}

static void *flusher(void *unused)
{
	(void)unused;
	for (;;) {
		usleep(FLUSH_MS * 1000);
		pthread_mutex_lock(&mu);
		flush_locked();
		pthread_mutex_unlock(&mu);
	}
	return NULL;
}

/* "%p" in the path becomes the process id. */
static void expand(char *out, size_t n, const char *path)
{
	const char *at = strstr(path, "%p");
	if (at)
		snprintf(out, n, "%.*s%d%s", (int)(at - path), path, (int)getpid(), at + 2);
	else
		snprintf(out, n, "%s", path);
}

void sim_truth_open(void)
{
	char path[4096];
	if (!sim_cfg.truth)
		return;
	expand(path, sizeof(path), sim_cfg.truth);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0) {
		snprintf(sim_cfg.error, sizeof(sim_cfg.error), "%.180s: %s (setting truth)", path,
			 strerror(errno));
		return;
	}
	buffer = malloc(BUFFER);
	sim_truth_on = true;
	char line[LINE];
	put(line,
	    snprintf(line, sizeof(line),
		     "{\"ev\":\"open\",\"version\":1,\"pid\":%d,\"t\":%llu,\"time\":\"%s\"}\n",
		     (int)getpid(), (unsigned long long)sim_now(),
		     sim_cfg.virtual_time ? "virtual" : "real"));
	pthread_t t;
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	if (!pthread_create(&t, NULL, flusher, NULL))
		pthread_detach(t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void sim_truth_close(void)
{
	if (!sim_truth_on)
		return;
	pthread_mutex_lock(&mu);
	flush_locked();
	pthread_mutex_unlock(&mu);
}

static int text(char *at, size_t room, const char *key, const char *v)
{
	if (room < 8)
		return 0;
	int n = snprintf(at, room, ",\"%s\":\"", key);
	for (; *v && (size_t)n + 4 < room && n < 400; v++) {
		if (*v == '"' || *v == '\\')
			at[n++] = '\\';
		at[n++] = (unsigned char)*v < ' ' ? ' ' : *v;
	}
	at[n++] = '"';
	return n;
}

#define ADD(...) (n += snprintf(line + n, sizeof(line) - (size_t)n, __VA_ARGS__))
#define TEXT(key, v) (n += text(line + n, sizeof(line) - (size_t)n, key, v))

void sim_truth_call(const struct sim_call *c, uint64_t t1, CUresult r)
{
	char line[LINE];
	int n = 0;
	ADD("{\"ev\":\"call\",\"n\":%llu,\"fn\":\"%s\",\"tid\":%ld,\"t0\":%llu,\"t1\":%llu,\"rc\":%"
	    "d",
	    (unsigned long long)c->no, c->name, sim_tid(), (unsigned long long)c->t0,
	    (unsigned long long)t1, (int)r);
	if (c->dir || c->bytes)
		ADD(",\"bytes\":%llu", (unsigned long long)c->bytes);
	if (c->dir)
		ADD(",\"dir\":\"%s\"", c->dir);
	if (c->host)
		ADD(",\"host\":\"%s\"", c->host);
	if (c->stream)
		ADD(",\"stream\":%llu", (unsigned long long)c->stream);
	if (c->kernel)
		TEXT("kernel", c->kernel);
	if (c->captured)
		ADD(",\"captured\":true");
	ADD("}\n");
	put(line, n);
}

void sim_truth_op(const struct sim_op *op)
{
	static const char *const kinds[] = {
		[SIM_K_KERNEL] = "kernel", [SIM_K_COPY] = "copy",   [SIM_K_MEMSET] = "memset",
		[SIM_K_HOST] = "host",	   [SIM_K_VALUE] = "value",
	};
	static const char *const dirs[] = {"H2D", "D2H", "D2D", "P2P", "H2H"};
	const struct sim_work *w = &op->work;
	char line[LINE];
	int n = 0;
	if (!kinds[w->kind])
		return;
	ADD("{\"ev\":\"op\",\"kind\":\"%s\",\"n\":%llu,\"dev\":%d,\"stream\":%llu,\"start\":%llu,"
	    "\"end\":%llu",
	    kinds[w->kind], (unsigned long long)op->call, w->dev ? w->dev->index : 0,
	    (unsigned long long)op->stream_id, (unsigned long long)op->start,
	    (unsigned long long)op->end);
	if (w->kind == SIM_K_COPY)
		ADD(",\"bytes\":%zu,\"dir\":\"%s\",\"pageable\":%s", sim_copy_bytes(&w->copy),
		    dirs[w->copy.dir], w->copy.pageable ? "true" : "false");
	if (op->graph)
		ADD(",\"graph\":%u,\"node\":%llu", op->graph, (unsigned long long)op->node);
	if (w->kind == SIM_K_MEMSET)
		ADD(",\"bytes\":%zu", w->set.width * w->set.height * w->set.elem);
	if (w->kind == SIM_K_KERNEL) {
		TEXT("name", w->launch.func->name);
		ADD(",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]", w->launch.grid[0],
		    w->launch.grid[1], w->launch.grid[2], w->launch.block[0], w->launch.block[1],
		    w->launch.block[2]);
	}
	ADD("}\n");
	put(line, n);
}

void sim_truth_note(const char *fmt, ...)
{
	char message[400], line[LINE];
	int n = 0;
	if (!sim_truth_on)
		return;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	ADD("{\"ev\":\"note\",\"t\":%llu", (unsigned long long)sim_now());
	TEXT("text", message);
	ADD("}\n");
	put(line, n);
}
