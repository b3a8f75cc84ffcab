/* The cause of a copy's time, and the copies that belong to a cause: one table for both. */
#include "judge/copy_causes.h"

static const struct copy_row {
	enum tfh_cause cause;
	enum tfh_dir dir;
	int pageable; /* -1: either */
} rows[] = {
	{TFH_CAUSE_TRANSFER_H2D_PAGEABLE, TFH_DIR_H2D, 1},
	{TFH_CAUSE_TRANSFER_H2D_PINNED, TFH_DIR_H2D, 0},
	{TFH_CAUSE_TRANSFER_D2H, TFH_DIR_D2H, -1},
	{TFH_CAUSE_TRANSFER_D2D, TFH_DIR_D2D, -1},
	{TFH_CAUSE_TRANSFER_P2P, TFH_DIR_P2P, -1},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool is_of(const struct copy_row *row, unsigned dir, int pageable)
{
	return (unsigned)row->dir == dir &&
	       (row->pageable < 0 || pageable < 0 || row->pageable == pageable);
}

enum tfh_cause tfh_copy_cause(unsigned dir, bool pageable)
{
	for (size_t i = 0; i < ROWS; i++)
		if (is_of(&rows[i], dir, pageable))
			return rows[i].cause;
	return TFH_CAUSE_TRANSFER_D2D;
}

/* Whether a transfer cause covers such copies: those of its direction and memory, or all if it
 * names none. `pageable`: 1, 0, -1 unknown. */
static bool names_copy(enum tfh_cause cause, unsigned dir, int pageable)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].cause == cause)
			return is_of(&rows[i], dir, pageable);
	return tfh_cause_part(cause) == TFH_PART_TRANSFER;
}

const struct tfh_transfer *tfh_copies_of(const struct tfh_result *r, enum tfh_cause cause)
{
	const struct tfh_transfer *best = NULL;

	for (uint32_t i = 0; i < r->n_transfers; i++) {
		const struct tfh_transfer *t = &r->transfers[i];
		if (cause == TFH_CAUSE_TRANSFER_SMALL_COPIES) {
			best = !best || t->calls_per_step > best->calls_per_step ? t : best;
			continue;
		}
		if (names_copy(cause, t->dir, t->pageable))
			return t;
		if (cause == TFH_CAUSE_TRANSFER_H2D_PAGEABLE && t->dir == TFH_DIR_H2D && !best)
			best = t; /* all are from pinned memory: a library stages them */
	}
	return best;
}
