/*
 * What the parts of a salvage share: the contents of a journal, the part of them that segments have
 * already, and the segment with the difference. Internal to salvage*.c.
 */
#ifndef TFH_FORMAT_SALVAGE_H
#define TFH_FORMAT_SALVAGE_H

#include "format/head.h"
#include "format/journal_copy.h"
#include "format/journal_view.h"
#include "format/pieces.h"

#define TFT_NOTE_SALVAGED "salvaged.journal="

struct tft_salvage {
	struct tft_view *view;
	struct tft_journal_copy copy;
	const char *out_dir, *run_dir, *prefix; /* NUL-terminated copies of the journal's texts */
	unsigned flags;
	bool done_before;   /* an earlier salvage wrote open calls and losses */
	uint64_t last_loss; /* mark of the newest LOSS chunk in any segment */
	uint32_t next_segment;
	uint64_t end_ticks; /* when the process was last known to be alive */
	struct tft_pieces held, known, missing;
	struct tfh_rec **copies; /* copies of records, to which the pieces point */
	uint32_t n_copies, copies_cap;
	struct tfh_arena arena;
	struct tft_head head;
	struct tft_salvaged *result;
};

/* Fills `held` with the records of the copied journal, and with records made from the sums of short
 * calls and, for a dead process, from its open calls. Returns 0 or -ENOMEM. */
int tft_salvage_hold(struct tft_salvage *s);

/* Adds to `known` the records of `held` that segments of this process in `dir` have; sets
 * done_before, last_loss and next_segment. Unreadable segments add nothing. Returns 0 or
 * -ENOMEM. */
int tft_salvage_know(struct tft_salvage *s, const char *dir);

/* Whether the journal counts losses that no segment reports. */
bool tft_salvage_any_losses(const struct tft_salvage *s);

/* Writes `missing` and the losses as a new segment in out_dir. Returns 0, or -errno with `err` and
 * without a segment. `journal`: its path, for the note in the segment. */
int tft_salvage_write(struct tft_salvage *s, const char *journal, struct tfh_err *err);

#endif
