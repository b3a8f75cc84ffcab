#include "digest/digest_tables.h"

#include "format/codec.h"

#define COLUMN(type, id, field, width, transform)                                                  \
	{                                                                                          \
		id, width, transform, sizeof(((struct type *)0)->field),                           \
			offsetof(struct type, field)                                               \
	}

static const struct tft_table_column key_columns[] = {
	COLUMN(tfh_digest_key, 1, name, 4, TFT_DELTA),
	COLUMN(tfh_digest_key, 2, value, 4, TFT_DELTA),
};
static const struct tft_table_column input_columns[] = {
	COLUMN(tfh_digest_input, 1, name, 4, TFT_DELTA),
	COLUMN(tfh_digest_input, 2, bytes, 8, TFT_RAW),
	COLUMN(tfh_digest_input, 3, check, 4, TFT_RAW),
};
static const struct tft_table_column rank_columns[] = {
	COLUMN(tfh_digest_rank, 1, number, 4, TFT_DELTA),
	COLUMN(tfh_digest_rank, 2, rank, 4, TFT_DELTA),
	COLUMN(tfh_digest_rank, 3, pid, 4, TFT_DELTA),
	COLUMN(tfh_digest_rank, 4, host, 4, TFT_RAW),
	COLUMN(tfh_digest_rank, 5, cls, 1, TFT_RAW),
	COLUMN(tfh_digest_rank, 6, cause, 1, TFT_RAW),
	COLUMN(tfh_digest_rank, 7, tier, 1, TFT_RAW),
	COLUMN(tfh_digest_rank, 8, confidence, 1, TFT_RAW),
	COLUMN(tfh_digest_rank, 9, share, 8, TFT_RAW),
	COLUMN(tfh_digest_rank, 10, unit, 8, TFT_RAW),
	COLUMN(tfh_digest_rank, 11, steps, 8, TFT_RAW),
	COLUMN(tfh_digest_rank, 12, late_s, 8, TFT_RAW),
	COLUMN(tfh_digest_rank, 13, held_s, 8, TFT_RAW),
	COLUMN(tfh_digest_rank, 14, local, 4, TFT_RAW),
	COLUMN(tfh_digest_rank, 15, end, 1, TFT_RAW),
	COLUMN(tfh_digest_rank, 16, code, 4, TFT_RAW),
	COLUMN(tfh_digest_rank, 17, state, 1, TFT_RAW),
	COLUMN(tfh_digest_rank, 18, heard_ns, 8, TFT_RAW),
	COLUMN(tfh_digest_rank, 19, exchanges, 8, TFT_RAW),
	COLUMN(tfh_digest_rank, 20, processes, 4, TFT_RAW),
	COLUMN(tfh_digest_rank, 21, bus, 4, TFT_RAW),
	COLUMN(tfh_digest_rank, 22, pcie, 4, TFT_RAW),
	COLUMN(tfh_digest_rank, 23, nic, 4, TFT_RAW),
	COLUMN(tfh_digest_rank, 24, fabric, 4, TFT_RAW),
	COLUMN(tfh_digest_rank, 25, links, 1, TFT_RAW),
	COLUMN(tfh_digest_rank, 26, begin_ns, 8, TFT_RAW),
	COLUMN(tfh_digest_rank, 27, world, 4, TFT_RAW),
	COLUMN(tfh_digest_rank, 28, generation, 4, TFT_RAW),
};
static const struct tft_table_column step_columns[] = {
	COLUMN(tfh_digest_step, 1, gap, 8, TFT_RAW),
	COLUMN(tfh_digest_step, 2, rest, 8, TFT_RAW),
	COLUMN(tfh_digest_step, 3, index, 8, TFT_DELTA),
	COLUMN(tfh_digest_step, 4, rank, 4, TFT_RAW),
	COLUMN(tfh_digest_step, 5, segment, 1, TFT_RAW),
	COLUMN(tfh_digest_step, 6, cls, 1, TFT_RAW),
	COLUMN(tfh_digest_step, 7, cause, 1, TFT_RAW),
	COLUMN(tfh_digest_step, 8, tier, 1, TFT_RAW),
	COLUMN(tfh_digest_step, 9, compute, 4, TFT_RAW),
/* Column 32 + the cause's number in the vocabulary. */
#define CAUSE(id, name, class, breakdown)                                                          \
	COLUMN(tfh_digest_step, 32 + TFH_CAUSE_##id, part[TFH_CAUSE_##id], 4, TFT_RAW),
#include "base/vocabulary.def"
#undef CAUSE
};
static const struct tft_table_column node_columns[] = {
	COLUMN(tfh_digest_node, 1, kind, 1, TFT_RAW),
	COLUMN(tfh_digest_node, 2, parent, 4, TFT_RAW),
	COLUMN(tfh_digest_node, 3, name, 4, TFT_RAW),
	COLUMN(tfh_digest_node, 4, count, 8, TFT_RAW),
	COLUMN(tfh_digest_node, 5, runs, 8, TFT_RAW),
	COLUMN(tfh_digest_node, 6, begin_ns, 8, TFT_RAW),
	COLUMN(tfh_digest_node, 7, wall_ns, 8, TFT_RAW),
	COLUMN(tfh_digest_node, 8, steps, 8, TFT_RAW),
	COLUMN(tfh_digest_node, 9, compute_s, 8, TFT_RAW),
	COLUMN(tfh_digest_node, 10, rest_s, 8, TFT_RAW),
#define CAUSE(id, name, class, breakdown)                                                          \
	COLUMN(tfh_digest_node, 32 + TFH_CAUSE_##id, part_s[TFH_CAUSE_##id], 8, TFT_RAW),
#include "base/vocabulary.def"
#undef CAUSE
};
static const struct tft_table_column place_columns[] = {
	COLUMN(tfh_digest_place, 1, where, 1, TFT_RAW),
	COLUMN(tfh_digest_place, 2, parent, 4, TFT_DELTA),
	COLUMN(tfh_digest_place, 3, file, 4, TFT_RAW),
	COLUMN(tfh_digest_place, 4, function, 4, TFT_RAW),
	COLUMN(tfh_digest_place, 5, line, 4, TFT_RAW),
	COLUMN(tfh_digest_place, 6, s, 8, TFT_RAW),
	COLUMN(tfh_digest_place, 7, own_s, 8, TFT_RAW),
	COLUMN(tfh_digest_place, 8, samples, 8, TFT_RAW),
};
static const struct tft_table_column kernel_columns[] = {
	COLUMN(tfh_digest_kernel, 1, name, 4, TFT_DELTA),
	COLUMN(tfh_digest_kernel, 2, calls, 8, TFT_RAW),
	COLUMN(tfh_digest_kernel, 3, s, 8, TFT_RAW),
	COLUMN(tfh_digest_kernel, 4, median_s, 8, TFT_RAW),
};
static const struct tft_table_column copy_columns[] = {
	COLUMN(tfh_digest_copy, 1, name, 4, TFT_RAW),
	COLUMN(tfh_digest_copy, 2, place, 4, TFT_RAW),
	COLUMN(tfh_digest_copy, 3, dir, 1, TFT_RAW),
	COLUMN(tfh_digest_copy, 4, pageable, 1, TFT_RAW),
	COLUMN(tfh_digest_copy, 5, calls, 8, TFT_RAW),
	COLUMN(tfh_digest_copy, 6, bytes, 8, TFT_RAW),
};
static const struct tft_table_column anchor_columns[] = {
	COLUMN(tfh_digest_anchor, 1, enter_ns, 8, TFT_DELTA),
	COLUMN(tfh_digest_anchor, 2, leave_ns, 8, TFT_FROM_START),
	COLUMN(tfh_digest_anchor, 3, key, 8, TFT_RAW),
	COLUMN(tfh_digest_anchor, 4, number, 4, TFT_DELTA),
	COLUMN(tfh_digest_anchor, 5, rank, 4, TFT_RAW),
	COLUMN(tfh_digest_anchor, 6, device, 1, TFT_RAW),
};
static const struct tft_table_column comm_columns[] = {
	COLUMN(tfh_digest_comm, 1, key, 8, TFT_RAW),
	COLUMN(tfh_digest_comm, 2, rank, 4, TFT_RAW),
	COLUMN(tfh_digest_comm, 3, ranks, 4, TFT_RAW),
	COLUMN(tfh_digest_comm, 4, own, 4, TFT_RAW),
	COLUMN(tfh_digest_comm, 5, collectives, 8, TFT_RAW),
	COLUMN(tfh_digest_comm, 6, messages, 8, TFT_RAW),
};
static const struct tft_table_column open_columns[] = {
	COLUMN(tfh_digest_open, 1, begin_ns, 8, TFT_RAW),
	COLUMN(tfh_digest_open, 2, open_ns, 8, TFT_RAW),
	COLUMN(tfh_digest_open, 3, look_ns, 8, TFT_RAW),
	COLUMN(tfh_digest_open, 4, rank, 4, TFT_RAW),
	COLUMN(tfh_digest_open, 5, name, 4, TFT_RAW),
	COLUMN(tfh_digest_open, 6, detail, 4, TFT_RAW),
	COLUMN(tfh_digest_open, 7, file, 4, TFT_RAW),
	COLUMN(tfh_digest_open, 8, function, 4, TFT_RAW),
	COLUMN(tfh_digest_open, 9, line, 4, TFT_RAW),
	COLUMN(tfh_digest_open, 10, state, 1, TFT_RAW),
};
static const struct tft_table_column gone_columns[] = {
	COLUMN(tfh_digest_gone, 1, rank, 4, TFT_RAW),
	COLUMN(tfh_digest_gone, 2, begin_ns, 8, TFT_DELTA),
	COLUMN(tfh_digest_gone, 3, end_ns, 8, TFT_RAW),
	COLUMN(tfh_digest_gone, 4, steps, 8, TFT_RAW),
	COLUMN(tfh_digest_gone, 5, counted, 1, TFT_RAW),
	COLUMN(tfh_digest_gone, 6, mean_s, 8, TFT_RAW),
	COLUMN(tfh_digest_gone, 7, median_s, 8, TFT_RAW),
	COLUMN(tfh_digest_gone, 8, records, 8, TFT_RAW),
	COLUMN(tfh_digest_gone, 9, launches, 8, TFT_RAW),
};
static const struct tft_table_column meter_columns[] = {
	COLUMN(tfh_digest_meter, 1, name, 4, TFT_RAW),
	COLUMN(tfh_digest_meter, 2, unit, 4, TFT_RAW),
	COLUMN(tfh_digest_meter, 3, device, 4, TFT_RAW),
	COLUMN(tfh_digest_meter, 4, begin_ns, 8, TFT_DELTA),
	COLUMN(tfh_digest_meter, 5, width_ns, 8, TFT_RAW),
	COLUMN(tfh_digest_meter, 6, mean, 8, TFT_RAW),
};

#define TABLE(name, columns, row)                                                                  \
	const struct tft_table name = {columns, sizeof(columns) / sizeof(*(columns)),              \
				       sizeof(struct row)}
TABLE(tfh_digest_keys, key_columns, tfh_digest_key);
TABLE(tfh_digest_inputs, input_columns, tfh_digest_input);
TABLE(tfh_digest_ranks, rank_columns, tfh_digest_rank);
TABLE(tfh_digest_steps, step_columns, tfh_digest_step);
TABLE(tfh_digest_nodes, node_columns, tfh_digest_node);
TABLE(tfh_digest_places, place_columns, tfh_digest_place);
TABLE(tfh_digest_kernels, kernel_columns, tfh_digest_kernel);
TABLE(tfh_digest_copies, copy_columns, tfh_digest_copy);
TABLE(tfh_digest_anchors, anchor_columns, tfh_digest_anchor);
TABLE(tfh_digest_meters, meter_columns, tfh_digest_meter);
TABLE(tfh_digest_gones, gone_columns, tfh_digest_gone);
TABLE(tfh_digest_comms, comm_columns, tfh_digest_comm);
TABLE(tfh_digest_opens, open_columns, tfh_digest_open);

static_assert(sizeof(step_columns) / sizeof(*step_columns) + 1 < TFT_TABLE_SECTIONS_MAX &&
		      sizeof(node_columns) / sizeof(*node_columns) + 1 < TFT_TABLE_SECTIONS_MAX,
	      "a table has no more sections");
