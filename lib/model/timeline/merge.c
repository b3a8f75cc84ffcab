/* Returns events in order, as the analysis reads them, and applies NAME records where they occur
 * among them. */
#include <errno.h>
#include <stdlib.h>

#include "model/timeline/interleave.h"

struct tfh_merge {
	struct tfh_run *run;
	struct tfh_interleave *interleave;
	struct tfh_name_part **part; /* incomplete names by process and thread */
	struct tfh_err err;
	struct tfh_block *block;
	const struct tfh_entry *entry, *end; /* in the block: the next entry */
	uint32_t at_note, at_row;	     /* at_row: the next one of the block */
	struct tfh_launch_row row;
	bool last; /* this is the last block */
	void (*tap)(void *arg, const struct tfh_block *b);
	void *tap_arg;
	/* for a run that was built in memory: the next event of each process */
	uint32_t process;
	uint64_t *next;
};

int tfh_merge_open(struct tfh_run *run, uint32_t process, struct tfh_merge **out,
		   struct tfh_err *err)
{
	struct tfh_merge *m = calloc(1, sizeof(*m));
	int rc;

	*out = NULL;
	if (!m)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	m->run = run;
	m->process = process;
	if (run->built) {
		m->next = calloc(run->n_proc + 1, sizeof(*m->next));
		if (m->next) {
			*out = m;
			return 0;
		}
		tfh_merge_close(m);
		return tfh_err_set(err, -ENOMEM, "out of memory");
	}
	m->part = calloc(run->n_proc + 1, sizeof(*m->part));
	m->block = malloc(sizeof(*m->block));
	if (m->block)
		m->block->n_rows = 0;
	rc = m->part && m->block ? tfh_interleave_open(run, process, true, &m->interleave)
				 : -ENOMEM;
	for (uint32_t i = 0; i < run->n_proc && !rc; i++) {
		if (process != UINT32_MAX && process != i)
			continue;
		m->part[i] = calloc(run->proc[i].n_thread + 1, sizeof(**m->part));
		rc = m->part[i] ? 0 : -ENOMEM;
	}
	if (rc) {
		tfh_merge_close(m);
		return tfh_err_set(err, -ENOMEM, "out of memory");
	}
	*out = m;
	return 0;
}

void tfh_merge_close(struct tfh_merge *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; m->part && i < m->run->n_proc; i++)
		free(m->part[i]);
	free(m->part);
	free(m->next);
	free(m->block);
	tfh_interleave_close(m->interleave);
	free(m);
}

int tfh_merge_error(const struct tfh_merge *m, struct tfh_err *err)
{
	if (m->err.code && err)
		*err = m->err;
	return m->err.code;
}

/* Moves to the next block, which may have rows; false if there is none. */
static bool next_block(struct tfh_merge *m, bool rows)
{
	if (m->last && m->tap && !m->err.code)
		m->tap(m->tap_arg, NULL);
	if (m->last || m->err.code) {
		m->tap = NULL;
		return false;
	}
	m->last = !tfh_interleave_fill(m->interleave, m->block, rows && !m->tap);
	if (m->last)
		m->err = *tfh_interleave_error(m->interleave);
	m->entry = m->block->entry;
	m->end = m->entry + m->block->n;
	m->at_note = m->at_row = 0;
	if (m->tap && !m->err.code)
		m->tap(m->tap_arg, m->block);
	return !m->err.code;
}

void tfh_merge_tap(struct tfh_merge *m, void (*fn)(void *arg, const struct tfh_block *b), void *arg)
{
	m->tap = fn;
	m->tap_arg = arg;
}

static void enter_name(struct tfh_merge *m, uint32_t thread)
{
	uint32_t process = m->block->note_process[m->at_note];
	const struct tfh_rec *rec = &m->block->note[m->at_note++];
	struct tfh_name_part *part = &m->part[process][thread];

	if (rec->kind == TFT_EXT)
		tfh_names_part(part, rec);
	else if (tfh_names_add(&m->run->arena, &m->run->proc[process].names, rec, part))
		tfh_err_set(&m->err, -ENOMEM, "out of memory");
}

/* The event with the earliest end among the selected processes. */
static const struct tfh_event *next_built(struct tfh_merge *m)
{
	const struct tfh_event *best = NULL, *e;

	if (m->process < m->run->n_proc)
		best = tfh_built_event(m->run, m->process, m->next[m->process]);
	for (uint32_t i = 0; m->process == UINT32_MAX && i < m->run->n_proc; i++) {
		e = tfh_built_event(m->run, i, m->next[i]);
		if (e && (!best || e->t1 < best->t1))
			best = e;
	}
	if (best)
		m->next[best->process]++;
	return best;
}

static __attribute__((noinline)) const struct tfh_event *look_on(struct tfh_merge *m);

const struct tfh_event *tfh_merge_borrow(struct tfh_merge *m)
{
	const struct tfh_entry *e = m->entry;

	if (__builtin_expect(e == m->end || !e->ev, 0))
		return look_on(m);
	m->entry = e + 1;
	e->ev->t0 = e->t0;
	e->ev->t1 = e->t1;
	e->ev->number = e->number;
	e->ev->thread = e->thread;
	return e->ev;
}

/* Splits the next row into its launches. */
static void split_row(struct tfh_merge *m)
{
	tfh_interleave_split(m->block, m->at_row++);
	m->entry = m->block->entry;
	m->end = m->entry + m->block->n;
}

static bool at_row(const struct tfh_merge *m)
{
	return !m->next && m->entry == m->end && m->at_row < m->block->n_rows;
}

const struct tfh_launch_row *tfh_merge_row(struct tfh_merge *m)
{
	if (m->next || m->entry != m->end)
		return NULL;
	if (!at_row(m) && (m->err.code || !next_block(m, true) || !at_row(m)))
		return NULL;
	tfh_interleave_row(m->block, m->at_row, &m->row);
	return &m->row;
}

void tfh_merge_take_row(struct tfh_merge *m)
{
	m->at_row++;
}

void tfh_merge_row_times(const struct tfh_merge *m, int64_t t0[TFH_LAUNCH_ROW],
			 int64_t t1[TFH_LAUNCH_ROW])
{
	uint16_t shape[TFH_LAUNCH_ROW];

	tfh_interleave_times(m->block, m->at_row, t0, t1, shape);
}

/* Applies names and completes the next event. */
static const struct tfh_event *look_on(struct tfh_merge *m)
{
	if (m->next)
		return next_built(m);
	while (!m->err.code) {
		if (at_row(m))
			split_row(m);
		if (m->entry == m->end && !next_block(m, false))
			return NULL;
		if (m->entry == m->end)
			continue;
		if (m->entry->ev)
			return tfh_merge_borrow(m);
		enter_name(m, (m->entry++)->thread);
	}
	m->entry = m->end;
	return NULL;
}

const struct tfh_entry *tfh_merge_peek(const struct tfh_merge *m, uint32_t *n)
{
	*n = (uint32_t)(m->end - m->entry);
	return m->entry;
}

void tfh_merge_advance(struct tfh_merge *m, uint32_t n)
{
	m->entry += n;
}

bool tfh_merge_next(struct tfh_merge *m, struct tfh_event *ev)
{
	const struct tfh_event *next = tfh_merge_borrow(m);

	if (next)
		*ev = *next;
	return next != NULL;
}
