#include "cli/start_loops.h"

#define OF_SAMPLE 8u

struct tfh_sample_loops tfh_start_loops_take(struct tfh_start_loops *l, const struct tfh_py *py,
					     struct tfh_py_types *types,
					     struct tfh_py_copies *copies,
					     const struct tfh_py_frame *frame, uint32_t n)
{
	struct tfh_py_loop loop[OF_SAMPLE];
	struct tfh_sample_loops of = {l->n, 0};

	if (l->n + OF_SAMPLE > TFH_START_LOOPS)
		return of;
	of.n = tfh_py_loops(py, types, copies, frame, n, loop, OF_SAMPLE);
	for (uint32_t i = 0; i < of.n; i++) {
		l->loop[l->n].done = loop[i].done;
		l->loop[l->n].left = loop[i].left;
		l->loop[l->n].count = (uint8_t)loop[i].count;
		l->loop[l->n++].depth = n - loop[i].frame;
	}
	return of;
}

void tfh_start_loops_write(const struct tfh_start_loops *l, struct tfh_sample_loops of,
			   uint32_t sample, struct tfh_json *j)
{
	for (uint32_t i = of.first; i < of.first + of.n; i++) {
		/* 0: not known */
		uint64_t left = l->loop[i].left == TFH_PY_LEFT_UNKNOWN ? 0 : l->loop[i].left + 1;

		tfh_json_u64s(j, (uint64_t[]){sample, l->loop[i].depth, l->loop[i].done, left}, 4);
	}
}

uint32_t tfh_start_loops_counts(const struct tfh_start_loops *l, struct tfh_sample_loops of,
				char *text)
{
	for (uint32_t i = 0; i < of.n; i++)
		text[i] = (char)('0' + l->loop[of.first + i].count);
	return of.n;
}
