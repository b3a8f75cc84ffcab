/* The HEAD payload: tagged values (FORMAT.md, section 2.4). */
#ifndef TFH_FORMAT_HEAD_H
#define TFH_FORMAT_HEAD_H

#include <stddef.h>

#include "base/arena.h"
#include "format/tft_read.h"

/* Values are on disk: only append. */
enum tft_tag {
	TFT_TAG_PID = 1,
	TFT_TAG_PPID = 2,
	TFT_TAG_RANK = 3,
	TFT_TAG_WORLD = 4,
	TFT_TAG_LOCAL_RANK = 5,
	TFT_TAG_SEGMENT = 6,
	TFT_TAG_HOST = 7,
	TFT_TAG_EXE = 8,
	TFT_TAG_COMMAND = 9,
	TFT_TAG_BOOT_ID = 10,
	TFT_TAG_TFHOOK_VERSION = 11,
	TFT_TAG_JOB = 12,
	TFT_TAG_START_REALTIME = 13,
	TFT_TAG_START_TICKS = 14,
	TFT_TAG_TICK_HZ = 15,
	TFT_TAG_TICKS_ARE_NS = 16,
	TFT_TAG_FUNCTIONS = 17,
	TFT_TAG_JOURNAL_PATH = 18,
	TFT_TAG_PROCESS_START = 19,
};

/* Sets every field to "unknown". */
void tft_head_clear(struct tft_head *head);

/* Parses a payload; strings and the function table are copied into `arena`. Returns 0, -EBADMSG or
 * -ENOMEM (at the arena's limit). */
int tft_head_unpack(struct tft_head *head, struct tfh_arena *arena, const void *data, size_t len);

#endif
