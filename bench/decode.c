/*
 * How long decoding alone takes, on one core: every record of every chunk of the files named, and every row of their tables
 * of device ops and driver calls. What a report of the same files is measured against (report_speed.py).
 *
 *	decode FILE...
 *
 * Prints events, rows, and seconds of processor time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "format/table.h"
#include "format/tft_read.h"

static uint64_t events, rows, sum;

static void die(const char *what, const struct tfh_err *err)
{
	fprintf(stderr, "decode: %s: %s\n", what, err->text);
	exit(1);
}

static void read_events(struct tft_reader *r, uint32_t chunk)
{
	struct tft_events *ev;
	struct tft_cursor c;
	struct tfh_rec rec;
	struct tfh_err err;

	if (tft_events_open(r, chunk, &ev, &err))
		die("events", &err);
	for (uint32_t i = 0; i < tft_run_count(ev); i++) {
		tft_cursor_init(&c, ev, i);
		for (; tft_next(&c, &rec); events++)
			sum += rec.t_end ^ rec.w[0];
	}
	tft_events_close(ev);
}

static void read_table(struct tft_reader *r, uint32_t chunk, const struct tft_table *t)
{
	static _Alignas(16) unsigned char room[TFT_TABLE_ROWS_MAX * sizeof(struct tft_gpu_row)];
	struct tft_table_view v;
	struct tfh_err err;
	const void *data;
	size_t len;

	if (tft_chunk_payload(r, chunk, &data, &len, &err))
		die("table", &err);
	if (tft_table_open(&v, data, len) || tft_table_rows(&v, t, room))
		exit(1);
	rows += v.rows;
	sum += room[0];
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	double start = now();

	for (int i = 1; i < argc; i++) {
		struct tft_reader *r;
		struct tfh_err err;
		if (tft_open(argv[i], &r, &err))
			die(argv[i], &err);
		for (uint32_t k = 0; k < tft_chunk_count(r); k++) {
			uint32_t type = tft_chunk(r, k)->type;
			if (type == TFT_EVNT)
				read_events(r, k);
			else if (type == TFT_GPUS || type == TFT_DRVR)
				read_table(r, k, type == TFT_GPUS ? &tft_gpus : &tft_drvr);
		}
		tft_close(r);
	}
	printf("%" PRIu64 " %" PRIu64 " %.6f\n", events, rows, now() - start);
	return sum == 42;
}
