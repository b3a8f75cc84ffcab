/* Copies what is intact in a damaged trace file. */
#include "format/journal_view.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/reader.h"
#include "format/writer.h"

static int copy_chunks(struct tft_reader *r, struct tft_writer *w, const char *path_out,
		       struct tft_repaired *result, struct tfh_err *err)
{
	const void *data;
	size_t len;

	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		if (tft_chunk(r, i)->type == TFT_INDX)
			continue;
		int code = tft_chunk_raw(r, i, true, &data, &len, err);
		if (code == -EBADMSG)
			continue;
		if (code < 0)
			return code;
		code = tft_write_raw(w, data, len);
		if (code < 0)
			return tfh_err_set(err, code, "%s: writing failed: %s", path_out,
					   strerror(-code));
		result->chunks++;
	}
	return 0;
}

int tft_repair(const char *path_in, const char *path_out, struct tft_repaired *result,
	       struct tfh_err *err)
{
	struct tfh_access access = {0};
	struct tft_reader *r;
	struct tft_writer *w;
	struct stat st;

	memset(result, 0, sizeof(*result));
	int code = tft_open(path_in, &r, err);
	if (code < 0)
		return code;
	if (!stat(path_in, &st))
		access = tfh_access_like(&st);
	code = tft_writer_create_bare(path_out, &access, &w);
	if (code < 0) {
		tft_close(r);
		return tfh_err_set(err, code, "%s: cannot be created: %s", path_out,
				   strerror(-code));
	}
	code = copy_chunks(r, w, path_out, result, err);
	result->bad = tft_bad_chunks(r);
	result->tail = tft_tail_bytes(r);
	/* A truncated or damaged file has no clean end, even if its footer says so. */
	int end = tft_writer_finish(w, tft_clean_end(r) && result->bad == 0);
	if (code == 0 && end < 0)
		code = tfh_err_set(err, end, "%s: writing failed: %s", path_out, strerror(-end));
	if (code < 0)
		unlink(path_out);
	else
		tfh_err_clear(err);
	tft_close(r);
	return code;
}
