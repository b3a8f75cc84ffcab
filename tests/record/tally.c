/* Counts what trace files hold: tally DIR prints one line of name=count pairs per file, sorted by
 * name; memory=1: the journal was in plain memory, salvaged=1: the file was made of one. Left-over
 * journals are salvaged first with -s. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fn.h"
#include "format/journal_view.h"
#include "format/tft_read.h"
#include "format/tft_write.h"
#include "format/waits.h"

static const char *const kinds[] = {"",	     "call",	"agg",	"ext",	 "open",  "mark",
				    "range", "cputime", "name", "alloc", "graph", "state"};

static int filter_trace(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 4 && !strcmp(e->d_name + n - 4, ".tft");
}

/* Of a chunk whose records were deleted with their segment. */
static uint64_t calls_of(struct tft_reader *r, uint32_t chunk)
{
	const struct tft_sketch *s;
	struct tfh_err err = {0};
	uint64_t n = 0;

	if (tft_chunk_sketch(r, chunk, &s, &err))
		return 0;
	for (uint32_t i = 0; i < s->n_fn && i < TFT_SKETCH_FNS; i++)
		n += s->fn[i].count;
	return n;
}

static void tally(const char *path, const char *name)
{
	uint64_t count[12] = {0}, sample[TFT_STATE_COUNT] = {0}, wait[4] = {0}, repeat = 0,
		 lost = 0, notes = 0, samples = 0, digests = 0, clocks = 0, unnamed = 0,
		 given_up = 0, dropped = 0;
	bool memory = false, salvaged = false;
	struct tfh_err err = {0};
	struct tft_reader *r;

	if (tft_open(path, &r, &err)) {
		printf("%s unreadable %s\n", name, err.text);
		return;
	}
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		uint32_t type = tft_chunk(r, i)->type;
		struct tft_events *ev;
		const void *data;
		size_t len;

		notes += type == TFT_NOTE;
		if (type == TFT_NOTE && !tft_chunk_payload(r, i, &data, &len, &err)) {
			const char *at = memmem(data, len, "unnamed=", 8);

			unnamed = at ? strtoull(at + 8, NULL, 10) : unnamed;
			memory |= memmem(data, len, "journal=memory", 14) != NULL;
			salvaged |= memmem(data, len, "salvaged.journal=", 17) != NULL;
		}
		samples += type == TFT_SAMP;
		digests += type == TFT_DGST;
		clocks += type == TFT_CLKS;
		if (type == TFT_DGST)
			given_up += calls_of(r, i);
		if (tft_chunk(r, i)->dropped > dropped)
			dropped = tft_chunk(r, i)->dropped;
		if (type == TFT_LOSS && !tft_chunk_payload(r, i, &data, &len, &err))
			for (size_t at = 0; at + sizeof(struct tft_loss) <= len;
			     at += sizeof(struct tft_loss))
				lost += ((const struct tft_loss *)((const char *)data + at))->count;
		if (type != TFT_EVNT || tft_events_open(r, i, &ev, &err))
			continue;
		for (uint32_t run = 0; run < tft_run_count(ev); run++) {
			struct tft_cursor c;
			struct tfh_rec rec;

			tft_cursor_init(&c, ev, run);
			while (tft_next(&c, &rec)) {
				if (rec.flags & TFT_F_REPEAT)
					repeat++;
				else
					count[rec.kind < 12 ? rec.kind : 0]++;
				if (rec.kind == TFT_STATE && rec.result < TFT_STATE_COUNT)
					sample[rec.result] += rec.w[2];
				if (rec.kind == TFT_STATE && rec.result == TFT_STATE_LOCK &&
				    tft_wait_of(rec.w[1]) > 0)
					wait[tft_wait_of(rec.w[1])] += rec.w[2];
			}
		}
		tft_events_close(ev);
	}
	printf("%s", name);
	for (int k = 1; k < 12; k++)
		if (count[k])
			printf(" %s=%llu", kinds[k], (unsigned long long)count[k]);
	for (int k = 1; k < TFT_STATE_COUNT; k++)
		if (sample[k]) /* ns that a state was seen to take */
			printf(" state.%d=%llu", k, (unsigned long long)sample[k]);
	for (int k = 1; k < 4; k++)
		if (wait[k])
			printf(" wait.%d=%llu", k, (unsigned long long)wait[k]);
	printf(" repeat=%llu lost=%llu notes=%llu samples=%llu digests=%llu clocks=%llu clean=%d "
	       "pid=%u rank=%d unnamed=%llu given_up=%llu dropped=%llu memory=%d salvaged=%d\n",
	       (unsigned long long)repeat, (unsigned long long)lost, (unsigned long long)notes,
	       (unsigned long long)samples, (unsigned long long)digests, (unsigned long long)clocks,
	       tft_clean_end(r), tft_head(r)->pid, tft_head(r)->rank, (unsigned long long)unnamed,
	       (unsigned long long)given_up, (unsigned long long)dropped, memory, salvaged);
	tft_close(r);
}

static void salvage(void *arg, const struct tft_found *found)
{
	struct tft_salvaged result;
	struct tfh_err err = {0};

	(void)arg;
	if (!found->code && tft_salvage_view(found->view, NULL, TFT_SALVAGE_UNLINK, &result, &err))
		printf("journal %s\n", err.text);
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
	const char *dir = argv[argc - 1];
	struct dirent **list;
	int n;

	if (argc < 2)
		return 2;
	if (argc > 2 && !strcmp(argv[1], "-s"))
		salvage_all(dir);
	n = scandir(dir, &list, filter_trace, alphasort);
	for (int i = 0; i < n; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		tally(path, list[i]->d_name);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return 0;
}
