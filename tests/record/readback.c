/*
 * Reads everything that synth recorded into a directory and compares it with the shared page of
 * counts:
 *
 *	readback [-k] PAGE DIR
 *
 * Left-over journals of DIR are salvaged first, as `tfhook repair` does.
 * Every published record must be there exactly once with its words intact, in order per thread, and
 * the losses written must equal those counted. -k: the process was killed, so one call per thread
 * may be between publication and count. Prints one line of totals; exit 1 on any difference.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/fn.h"
#include "format/journal_view.h"
#include "format/tft_read.h"
#include "format/tft_write.h"

struct count {
	uint64_t published, dropped, trying;
	uint64_t pad[5];
};

struct seen {
	uint64_t *bits; /* by sequence number */
	uint64_t cap, n, twice, damaged;
};

static struct seen *seen;
static unsigned threads;
static uint64_t lost, own, broken;
static bool killed;

static void mark(uint64_t id, uint64_t i)
{
	struct seen *s = &seen[id];

	if (i / 64 >= s->cap) {
		uint64_t cap = i / 64 * 2 + 1024;

		s->bits = realloc(s->bits, cap * 8);
		if (!s->bits)
			exit(2);
		memset(s->bits + s->cap, 0, (cap - s->cap) * 8);
		s->cap = cap;
	}
	if (s->bits[i / 64] >> (i % 64) & 1)
		s->twice++;
	s->bits[i / 64] |= 1ull << (i % 64);
	s->n++;
}

static void record(const struct tfh_rec *r)
{
	if (r->kind != TFT_CALL || r->fn != TFH_FN_cuLaunchKernel) {
		own++;
		return;
	}
	if (r->w[0] >= threads || r->w[2] != r->w[1] * 0x9e3779b97f4a7c15ull + r->w[0] ||
	    r->t_end < r->t_begin)
		broken++;
	else
		mark(r->w[0], r->w[1]);
}

static void losses(struct tft_reader *r, uint32_t i, struct tfh_err *err)
{
	const void *data;
	size_t len;
	struct tft_loss l;

	if (tft_chunk_payload(r, i, &data, &len, err)) {
		broken++;
		return;
	}
	for (size_t at = 0; at + sizeof(l) <= len; at += sizeof(l)) {
		memcpy(&l, (const char *)data + at, sizeof(l));
		lost += l.count;
		if (getenv("V"))
			printf("  loss thread %u cause %u count %llu\n", l.thread, l.cause,
			       (unsigned long long)l.count);
	}
}

static void read_file(const char *path)
{
	struct tft_reader *r;
	struct tft_events *ev;
	struct tfh_err err = {0};
	struct stat st;

	/* Killed between making the file and its first write. */
	if (killed && !stat(path, &st) && st.st_size == 0)
		return;
	if (tft_open(path, &r, &err)) {
		fprintf(stderr, "%s\n", err.text);
		broken++;
		return;
	}
	broken += tft_bad_chunks(r);
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		if (tft_chunk(r, i)->type == TFT_LOSS)
			losses(r, i, &err);
		if (tft_chunk(r, i)->type != TFT_EVNT)
			continue;
		if (tft_events_open(r, i, &ev, &err)) {
			fprintf(stderr, "%s\n", err.text);
			broken++;
			continue;
		}
		for (uint32_t run = 0; run < tft_run_count(ev); run++) {
			struct tft_cursor c;
			struct tfh_rec rec;

			tft_cursor_init(&c, ev, run);
			while (tft_next(&c, &rec))
				record(&rec);
		}
		tft_events_close(ev);
	}
	tft_close(r);
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end);
}

static void each_file(const char *dir, const char *end, void (*f)(const char *path))
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[8192];

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (ends_in(e->d_name, end))
			f(path);
	}
	if (d)
		closedir(d);
}

static void salvage(void *arg, const struct tft_found *found)
{
	struct tft_salvaged result;
	struct tfh_err err = {0};

	(void)arg;
	if (found->code) /* killed before its first record */
		return;
	if (tft_salvage_view(found->view, NULL, TFT_SALVAGE_UNLINK, &result, &err)) {
		fprintf(stderr, "%s\n", err.text);
		broken++;
		return;
	}
	broken += result.torn;
	printf("salvaged %llu known %llu open %u\n", (unsigned long long)result.records,
	       (unsigned long long)result.known, result.open);
}

/* Wherever the recorder put them: beside the output or in /dev/shm. */
static void salvage_all(const char *dir)
{
	char real[PATH_MAX];

	if (realpath(dir, real))
		tft_journals_of(real, salvage, NULL);
}

int main(int argc, char **argv)
{
	killed = argc > 1 && !strcmp(argv[1], "-k");
	struct count *c;
	struct stat st;
	uint64_t published = 0, dropped = 0, got = 0, missing = 0, twice = 0, extra = 0, trying = 0;
	int fd;

	argv += killed;
	argc -= killed;
	if (argc < 3)
		return 2;
	fd = open(argv[1], O_RDONLY);
	if (killed && (fd < 0 ? errno == ENOENT : !fstat(fd, &st) && !st.st_size)) {
		printf("read 0 lost 0: killed before its first record\n");
		return 0;
	}
	if (fd < 0 || fstat(fd, &st))
		return 2;
	threads = (unsigned)((size_t)st.st_size / sizeof(*c));
	c = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	seen = calloc(threads, sizeof(*seen));
	if (c == MAP_FAILED || !seen)
		return 2;
	salvage_all(argv[2]);
	each_file(argv[2], ".tft", read_file);
	for (unsigned i = 0; i < threads; i++) {
		published += c[i].published;
		dropped += c[i].dropped;
		trying += c[i].trying;
		got += seen[i].n;
		twice += seen[i].twice;
		if (seen[i].n < c[i].published)
			missing += c[i].published - seen[i].n;
		else
			extra += seen[i].n - c[i].published;
	}
	for (unsigned i = 0; missing && i < threads; i++) {
		uint64_t first = UINT64_MAX, last = 0, n = 0;

		for (uint64_t e = 0; e < c[i].trying; e++)
			if (e / 64 >= seen[i].cap || !(seen[i].bits[e / 64] >> (e % 64) & 1)) {
				first = first == UINT64_MAX ? e : first;
				last = e;
				n++;
			}
		printf("thread %u: %llu not there, between %llu and %llu of %llu\n", i,
		       (unsigned long long)n, (unsigned long long)first, (unsigned long long)last,
		       (unsigned long long)c[i].trying);
	}
	printf("threads %u published %llu read %llu missing %llu twice %llu extra %llu broken %llu "
	       "dropped %llu lost %llu other records %llu\n",
	       threads, (unsigned long long)published, (unsigned long long)got,
	       (unsigned long long)missing, (unsigned long long)twice, (unsigned long long)extra,
	       (unsigned long long)broken, (unsigned long long)dropped, (unsigned long long)lost,
	       (unsigned long long)own);
	if (missing || twice || broken || (!killed && extra))
		return 1;
	/* Killed: between a publication or loss and its count lies at most one call per thread. */
	if (killed ? extra > threads || lost + got > trying || lost + got + threads < trying
		   : lost != dropped)
		return 1;
	return 0;
}
