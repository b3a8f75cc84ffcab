/* The records among these that segments of the same process already have. */
#include "format/salvage.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/reader.h"

/* Notes the record numbers in a chunk that the journal also holds. An unreadable chunk does not
 * count. */
static int know_chunk(struct tft_salvage *s, struct tft_reader *r, uint32_t chunk)
{
	const struct tft_run *runs;
	const void *data;
	size_t len;
	uint32_t n, met = 0;

	if (tft_chunk_runs(r, chunk, &runs, &n, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		met += (uint32_t)tft_pieces_overlap(&s->held, runs[i].thread, runs[i].first,
						    runs[i].count);
	if (!met || tft_chunk_raw(r, chunk, true, &data, &len, NULL) < 0)
		return 0;
	/* the run table has its own memory */
	for (uint32_t i = 0; i < n; i++) {
		struct tft_piece p = {runs[i].first, runs[i].thread, runs[i].tid, runs[i].count,
				      NULL};
		if (tft_pieces_add(&s->known, p) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Whether two heads belong to the same process. The file's name alone is not enough: a process of a
 * restarted container may have the host name and pid of a dead predecessor. */
static bool same_process(const struct tft_head *a, const struct tft_head *b)
{
	return a->pid == b->pid && a->journal_start == b->journal_start &&
	       a->start_ticks == b->start_ticks && a->start_realtime_ns == b->start_realtime_ns &&
	       !strcmp(a->boot_id, b->boot_id);
}

static int know_segment(struct tft_salvage *s, const char *path, uint32_t number)
{
	struct tft_reader *r;
	int code = 0;

	/* an unreadable segment adds nothing */
	if (tft_open(path, &r, NULL) < 0)
		return 0;
	if (!same_process(tft_head(r), &s->head)) {
		tft_close(r);
		return 0;
	}
	for (uint32_t i = 0; i < tft_chunk_count(r) && code == 0; i++) {
		uint32_t type = tft_chunk(r, i)->type;
		const void *data;
		size_t len;
		if (type == TFT_EVNT || type == TFT_DGST)
			code = know_chunk(s, r, i);
		else if (type == TFT_LOSS &&
			 tft_loss_mark(number, tft_chunk(r, i)->offset) > s->last_loss)
			s->last_loss = tft_loss_mark(number, tft_chunk(r, i)->offset);
		else if (type == TFT_NOTE && tft_chunk_payload(r, i, &data, &len, NULL) == 0 &&
			 len >= strlen(TFT_NOTE_SALVAGED) &&
			 memcmp(data, TFT_NOTE_SALVAGED, strlen(TFT_NOTE_SALVAGED)) == 0)
			s->done_before = true;
	}
	tft_close(r);
	return code;
}

int tft_salvage_know(struct tft_salvage *s, const char *dir)
{
	size_t prefix = strlen(s->prefix);
	DIR *d = opendir(dir);
	struct dirent *e;
	int code = 0;

	if (!d)
		return 0;
	while (code == 0 && (e = readdir(d))) {
		char path[8192], *end;
		if (strncmp(e->d_name, s->prefix, prefix) != 0 || e->d_name[prefix] != '.')
			continue;
		unsigned long number = strtoul(e->d_name + prefix + 1, &end, 10);
		if (strcmp(end, ".tft") != 0 || number >= UINT32_MAX)
			continue;
		if (number >= s->next_segment)
			s->next_segment = (uint32_t)number + 1;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		code = know_segment(s, path, (uint32_t)number);
	}
	closedir(d);
	return code;
}
