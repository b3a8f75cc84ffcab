/*
 * Size and speed of the event codec on a synthetic stream shaped after a TensorFlow training step:
 *a compute thread with a fixed sequence of launches, event records, waits and copies per step, a
 *transfer thread, an event-query poller, and input threads with get-next calls. Gaps and durations
 *are log-normal at 2.6 GHz ticks.
 *
 *	codec [EVENTS] [DIRECTORY] [PASSES] [CHUNK]
 *
 * Prints bytes per event, the order-0 entropy of the stored columns beside it, and rates (median of
 *the passes). One core; encode = staging area to file (page cache), decode = file to records.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fn.h"
#include "format/tft_read.h"
#include "format/tft_write.h"

#define THREADS 4
#define STEP_CALLS 640
#define KERNELS 180

static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static double uniform(void)
{
	return ((double)(rnd() >> 11) + 0.5) / 9007199254740992.0;
}

static uint64_t lognormal(double median_ns, double sigma)
{
	double n = sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());

	return (uint64_t)(median_ns * 2.6 * exp(sigma * n));
}

struct stream {
	struct tfh_rec *rec;
	uint32_t n, cap;
	uint64_t t;
};

static struct tfh_rec *push(struct stream *s, double gap_ns, double gap_sigma, double dur_ns,
			    double dur_sigma)
{
	struct tfh_rec *r = &s->rec[s->n];

	memset(r, 0, sizeof(*r));
	r->t_begin = s->t + lognormal(gap_ns, gap_sigma);
	r->t_end = r->t_begin + lognormal(dur_ns, dur_sigma) * (rnd() % 100 ? 1 : 10);
	r->kind = TFT_CALL;
	r->seq = s->n++;
	r->ctx = 1;
	s->t = r->t_end;
	return r;
}

struct call {
	uint16_t fn;
	uint32_t stream;
	uint64_t w[3];
};

static void make_step(struct call *step)
{
	for (int i = 0; i < STEP_CALLS; i++) {
		uint64_t k = rnd() % KERNELS;
		struct call *c = &step[i];
		c->stream = 1;
		switch (rnd() % 100) {
		case 0 ... 87:
			c->fn = TFH_FN_cuLaunchKernel;
			c->w[0] = tft_launch_w0((uint32_t)k + 1, 1, 1, 1, 0);
			c->w[1] = tft_launch_w1((uint32_t)(k * 7 % 61 + 1) * 8, 1, 1);
			c->w[2] = tft_launch_w2(256, 1, 1, (uint32_t)(k % 4) * 4096);
			break;
		case 88 ... 91:
			c->fn = TFH_FN_cuMemsetD8Async;
			c->w[0] = 4096 * (k + 1);
			c->w[1] = 0x7f0000000000 + k * 65536;
			break;
		case 92 ... 94:
			c->fn = TFH_FN_cuEventRecord;
			c->w[0] = 0x5555000 + (k % 64) * 256;
			break;
		case 95 ... 97:
			c->fn = TFH_FN_cuStreamWaitEvent;
			c->w[0] = 0x5555000 + (k % 64) * 256;
			break;
		default:
			c->fn = TFH_FN_cuMemcpyDtoDAsync_v2;
			c->w[0] = 4096 * (k + 1);
			c->w[1] = 0x7f0000000000 + k * 65536;
			c->w[2] = 0x7f1000000000 + k * 65536;
			break;
		}
	}
}

static void apply(struct tfh_rec *r, const struct call *c)
{
	r->fn = c->fn;
	r->stream = c->stream;
	memcpy(r->w, c->w, sizeof(r->w));
	/* an allocator gives every eighth buffer a new place */
	if (c->fn != TFH_FN_cuLaunchKernel && c->w[1] && rnd() % 8 == 0)
		r->w[1] = 0x7f0000000000 + (rnd() % (1u << 20)) * 256;
}

static void compute(struct stream *s, const struct call *step)
{
	while (s->n + STEP_CALLS + 1 < s->cap) {
		for (int i = 0; i < STEP_CALLS; i++)
			if (rnd() % 4000)
				apply(push(s, 3200, 0.5, 2600, 0.35), &step[i]);
		push(s, 3200, 0.5, 3e6, 0.1)->fn = TFH_FN_cuStreamSynchronize;
	}
}

static void transfers(struct stream *s)
{
	while (s->n < s->cap) {
		struct tfh_rec *r = push(s, 200000, 0.8, 9000, 0.5);
		uint64_t buffer = rnd() % 512;
		r->fn = rnd() % 4 ? TFH_FN_cuMemcpyHtoDAsync_v2 : TFH_FN_cuMemcpyDtoHAsync_v2;
		r->stream = 2;
		r->w[0] = 1u << (12 + buffer % 10);
		r->w[1] = 0x7f2000000000 + (buffer << 20);
		r->w[2] = 0x7f3000000000 + (rnd() % 512 << 20);
	}
}

static void poller(struct stream *s)
{
	while (s->n < s->cap) {
		struct tfh_rec *r = push(s, 22000, 0.4, 400, 0.3);
		r->fn = TFH_FN_cuEventQuery;
		r->w[0] = 0x5555000 + (rnd() % 64) * 256;
		r->result = rnd() % 3 ? 0 : 600;
	}
}

static void input(struct stream *s)
{
	while (s->n < s->cap) {
		struct tfh_rec *r = push(s, 10000, 0.7, 70000, 0.6);
		r->fn = TFH_FN_tf_stage_getnext;
		r->w[0] = 3;
		r->w[1] = 10 + rnd() % 6;
		r->w[2] = rnd() % 2 ? r->t_end - r->t_begin
				    : (r->t_end - r->t_begin) / (2 + rnd() % 5);
	}
}

/* Cuts the four streams into chunks by time, as the flusher would find them. */
static uint32_t next_batches(const struct stream *s, uint32_t *at, uint32_t limit,
			     struct tft_batch *b)
{
	uint32_t n = 0, taken[THREADS] = {0};

	for (uint32_t k = 0; k < limit; k++) {
		int best = -1;
		for (int t = 0; t < THREADS; t++) {
			if (at[t] + taken[t] == s[t].n)
				continue;
			if (best < 0 || s[t].rec[at[t] + taken[t]].t_end <
						s[best].rec[at[best] + taken[best]].t_end)
				best = t;
		}
		if (best < 0)
			break;
		taken[best]++;
	}
	for (uint32_t t = 0; t < THREADS; t++) {
		if (!taken[t])
			continue;
		b[n++] = (struct tft_batch){s[t].rec + at[t], taken[t], t, 1000 + t, at[t]};
		at[t] += taken[t];
	}
	return n;
}

/* The flusher encodes from its staging area, where it has just put the records. */
static void stage(struct tft_batch *b, uint32_t n)
{
	static struct tfh_rec staging[TFT_MAX_EVENTS];
	uint32_t used = 0;

	for (uint32_t i = 0; i < n; i++) {
		memcpy(staging + used, b[i].records, b[i].count * sizeof(*staging));
		b[i].records = staging + used;
		used += b[i].count;
	}
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "codec: %s failed\n", what);
	exit(1);
}

static double encode(const char *path, const struct stream *s, uint32_t chunk, uint64_t *bytes)
{
	struct tft_head head = {
		.rank = -1, .tick_hz = 2600000000, .fn = tfh_fn_table, .fn_count = TFH_FN_COUNT};
	uint32_t at[THREADS] = {0}, n;
	struct tft_batch b[THREADS];
	struct tft_writer *w;
	double spent = 0;

	unlink(path);
	if (tft_writer_create(path, NULL, &head, &w) < 0)
		die("create");
	while ((n = next_batches(s, at, chunk, b))) {
		stage(b, n);
		double start = now();
		if (tft_write_events(w, b, n, 0) < 0)
			die("write");
		spent += now() - start;
	}
	*bytes = tft_writer_bytes(w);
	if (tft_writer_finish(w, true) < 0)
		die("finish");
	return spent;
}

static double decode(const char *path, const struct stream *s, bool compare, double *entropy)
{
	struct tft_reader *r;
	struct tft_events *ev;
	struct tfh_rec rec;
	struct tft_cursor c;
	uint64_t sum = 0;
	double start;

	if (tft_open(path, &r, NULL) < 0)
		die("open");
	*entropy = 0;
	start = now();
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		if (tft_chunk(r, i)->type != TFT_EVNT)
			continue;
		if (tft_events_open(r, i, &ev, NULL) < 0)
			die("events");
		for (uint32_t k = 0; k < tft_run_count(ev); k++) {
			const struct tft_run *run = tft_run(ev, k);
			uint64_t number = run->first;
			tft_cursor_init(&c, ev, k);
			while (tft_next(&c, &rec)) {
				sum += rec.t_end ^ rec.w[0];
				if (compare &&
				    memcmp(&rec, &s[run->thread].rec[number++], sizeof(rec)) != 0)
					die("comparison");
			}
		}
		if (compare)
			*entropy += tft_entropy_bytes(ev);
		tft_events_close(ev);
	}
	double spent = now() - start;
	tft_close(r);
	return sum == 42 ? 0 : spent;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return v[n / 2];
}

int main(int argc, char **argv)
{
	uint32_t events = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 3000000;
	const char *dir = argc > 2 ? argv[2] : "/tmp";
	int passes = argc > 3 ? atoi(argv[3]) : 7;
	uint32_t only = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;
	static const uint32_t chunk_sizes[] = {65536, 16384, 4096, 1024};
	/* shares: compute 74 %, poller 19 %, transfers 2 %, input 5 % */
	struct stream s[THREADS] = {{.cap = events / 100 * 74},
				    {.cap = events / 100 * 19},
				    {.cap = events / 100 * 2},
				    {.cap = events / 100 * 5}};
	struct call step[STEP_CALLS];
	double enc[64], dec[64], entropy, unused;
	char path[4096];
	uint64_t bytes = 0, total = 0;

	memset(step, 0, sizeof(step));
	if (passes > 64)
		passes = 64;
	for (int t = 0; t < THREADS; t++) {
		s[t].rec = calloc(s[t].cap + 1, sizeof(struct tfh_rec));
		if (!s[t].rec)
			die("memory");
		s[t].t = 1000000000000;
	}
	make_step(step);
	compute(&s[0], step);
	poller(&s[1]);
	transfers(&s[2]);
	input(&s[3]);
	for (int t = 0; t < THREADS; t++)
		total += s[t].n;
	snprintf(path, sizeof(path), "%s/tfhook-codec-%d.tft", dir, (int)getpid());

	printf("event codec, %llu synthetic events in %d threads, %d passes\n",
	       (unsigned long long)total, THREADS, passes);
	printf("%12s %10s %12s %8s %14s %14s\n", "chunk", "B/event", "entropy B", "ratio",
	       "encode M/s", "decode M/s");
	for (size_t i = 0; i < sizeof(chunk_sizes) / sizeof(*chunk_sizes); i++) {
		if (only && chunk_sizes[i] != only)
			continue;
		for (int p = 0; p < passes; p++) {
			enc[p] = (double)total / encode(path, s, chunk_sizes[i], &bytes) / 1e6;
			dec[p] = (double)total / decode(path, s, false, &unused) / 1e6;
		}
		decode(path, s, true, &entropy);
		unlink(path);
		printf("%12u %10.3f %12.3f %8.3f %14.1f %14.1f\n", chunk_sizes[i],
		       (double)bytes / (double)total, entropy / (double)total,
		       (double)bytes / entropy, median(enc, passes), median(dec, passes));
	}
	return 0;
}
