/*
 * The ring's protocol, checked in every order that a memory allows.
 *
 * Bounds: two job threads with RECORDS1 and RECORDS2 records, the flusher, and a reader of the
 * living journal's staging area; two rings of SLOTS records (the first thread grows from the one
 * into the other, which the flusher meets first, and the second thread takes the place that the
 * first one left), staging of STAGED records, two rounds of the flusher at an end. A record has two
 * words. Memories: x86's (TSO: a store buffer for each thread) and release/acquire with views
 * (weaker than Arm's, but that no load sees a store that comes later: Kang et al., 2017, without
 * promises).
 *
 * What must hold at every moment, as the process may be killed at any: each published record is in
 * a ring, in staging or in the file, whole (salvage.c reads them in this order); the flusher and the
 * reader meet no record that is not whole; and after a regular end all are in the file. Modelled are
 *
 *	publish		record.h tfh_fill, tfh_publish	record's words, then head (release)
 *	room		self.c tfh_reserve_slow			tail (acquire)
 *	growth, end	self.c ring_adopt, tfh_ring_retire	state (release)
 *	drain		drain.c drain_ring, staging.c		state, head (acquire); copy, batch's count (release), tail (release)
 *			tfh_stage_ring
 *	order		drain.c expected_of, tfh_drain		the older ring of a thread first; another round if that was not so
 *	free, reuse	drain.c maybe_free, journal.c		state, then use (release); use (acquire)
 *			slot_reuse
 *	write		seal.c write_staged			file, then epoch, then count (release)
 *	reader		salvage.c hold_staging			count (acquire), records
 *
 * Then each mutation of the protocol must be found. What no model here shows is a load that is done
 * after a later store (Arm may); "tail before the copy" stands for what a relaxed store of tail
 * would allow then. Exit status 1 if not.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS1 3
#define RECORDS2 1
#define GROWS_AT 2 /* the first thread's ring grows before this record */
#define SLOTS 2
#define STAGED 2

enum { P1, P2, FLUSHER, READER, THREADS };
enum { RING_FREE, ACTIVE, RETIRED };
enum { HEAD, TAIL, STATE, OWNER, WORDS, RING = WORDS + 2 * SLOTS };
enum { USE = 2 * RING, COUNT, EPOCH, ENDING, STAGING, PLACES = STAGING + STAGED };

#include "mutations.h"
#include "memory.h"
#include "seen.h"

static int mutation;
static uint64_t states;
static const char *wrong;

static enum order unless(int which)
{
	return mutation == which ? RELAXED : ORDERED;
}

/* job threads: r0 next number, r1 ring, r2 tail as last seen, r3 records of this thread */

static uint8_t id_of(int t, int number)
{
	return (uint8_t)(1 + (t == P1 ? 0 : RECORDS1) + number);
}

enum {
	TAKE,
	CLEAR_HEAD,
	CLEAR_TAIL,
	OWN,
	ACTIVATE,
	RETIRE_OLD,
	NEXT,
	ROOM,
	WORD1,
	WORD2,
	PUBLISH,
	LATE_WORD,
	RETIRE,
	JOIN,
	DONE
};

/* After the store of head: from here on a kill must not lose it. */
static void published(struct state *s, int t)
{
	struct thread *me = &s->t[t];

	s->published |= (uint16_t)(1u << id_of(t, me->r[0]));
	me->r[0]++;
	me->pc = NEXT;
}

static void job_new_ring(struct state *s, int t)
{
	struct thread *me = &s->t[t];
	int ring = me->r[1] * RING;

	switch (me->pc) {
	case CLEAR_HEAD:
		store(s, t, ring + HEAD, me->r[0], RELAXED);
		break;
	case CLEAR_TAIL:
		store(s, t, ring + TAIL, me->r[0], RELAXED);
		me->r[2] = me->r[0];
		break;
	case OWN:
		store(s, t, ring + OWNER, (uint8_t)t, RELAXED);
		break;
	case ACTIVATE:
		store(s, t, ring + STATE, ACTIVE, unless(RETIRE_RELAXED));
		me->pc = t == P1 && me->r[0] ? RETIRE_OLD : NEXT;
		return;
	case RETIRE_OLD:
		store(s, t, RING + STATE, RETIRED, unless(RETIRE_RELAXED));
		break;
	}
	me->pc++;
}

static uint32_t job_step(struct state *s, int t, uint32_t choice)
{
	struct thread *me = &s->t[t];
	int ring = me->r[1] * RING, words = ring + WORDS + 2 * (me->r[0] % SLOTS);
	uint32_t n = 1;

	switch (me->pc) {
	case TAKE: /* a place that was left; the flusher's release comes with it. Or there is no
		      time for a second thread */
		n = choices(s, t, USE);
		if (choice == n)
			me->pc = JOIN;
		else if (load(s, t, USE, ORDERED, choice))
			me->pc = CLEAR_HEAD;
		return n + 1;
	case NEXT:
		if (t == P1 && me->r[0] == GROWS_AT && me->r[1] == 1) {
			me->r[1] = 0;
			me->pc = CLEAR_HEAD;
		} else if (me->r[0] == me->r[3]) {
			me->pc = RETIRE;
		} else {
			me->pc = me->r[0] - me->r[2] < SLOTS ? WORD1 : ROOM;
		}
		return n;
	case ROOM: /* waits here, where the recorder counts a loss */
		n = choices(s, t, ring + TAIL);
		me->r[2] = load(s, t, ring + TAIL, ORDERED, choice);
		me->pc = NEXT;
		return n;
	case WORD1:
		store(s, t, words, id_of(t, me->r[0]), RELAXED);
		me->pc = mutation == HEAD_BEFORE_RECORD ? PUBLISH : WORD2;
		return n;
	case WORD2:
		store(s, t, words + 1, id_of(t, me->r[0]), RELAXED);
		me->pc = PUBLISH;
		return n;
	case PUBLISH:
		store(s, t, ring + HEAD, (uint8_t)(me->r[0] + 1), unless(PUBLISH_RELAXED));
		if (mutation == HEAD_BEFORE_RECORD) {
			me->pc = LATE_WORD;
			s->published |= (uint16_t)(1u << id_of(t, me->r[0]));
		} else {
			published(s, t);
		}
		return n;
	case LATE_WORD:
		store(s, t, words + 1, id_of(t, me->r[0]), RELAXED);
		published(s, t);
		return n;
	case RETIRE:
		store(s, t, ring + STATE, RETIRED, unless(RETIRE_RELAXED));
		me->pc = t == P2 ? JOIN : DONE;
		return n;
	case JOIN: /* the last one asks for the end, once the other one is gone */
		if (s->t[P1].pc == DONE && !s->t[P1].n_buffer) {
			join(me->view, s->t[P1].view);
			store(s, t, ENDING, 1, ORDERED);
			me->pc = DONE;
		}
		return n;
	}
	job_new_ring(s, t);
	return n;
}

/* ---- the flusher: r0 ring, r1 head seen, r2 tail, r3 staged, r4 first word, r5 flags, r6 and r7
 * expected by thread ---- */

enum {
	LOOK,
	SEE_STATE,
	SEE_HEAD,
	SEE_TAIL,
	SEE_OWNER,
	COPY1,
	COPY2,
	STAGE,
	GROW,
	GIVE,
	FREE1,
	FREE2,
	FREE3,
	FREE4,
	WRITE,
	NEW_EPOCH,
	CLEAR,
	RING_DONE,
	END
};
enum { IS_LAST = 1, PASSED_OVER = 2, IS_SECOND = 4, RESUME = 8, IS_RETIRED = 16, OF_P2 = 32 };

static void round_done(struct thread *me)
{
	bool again = me->r[5] & PASSED_OVER && !(me->r[5] & IS_SECOND) && mutation != ONE_ROUND;

	if (!(me->r[5] & IS_LAST)) {
		me->pc = LOOK;
	} else if (again) {
		me->r[5] = IS_LAST | IS_SECOND;
		me->r[0] = 0;
		me->pc = SEE_STATE;
	} else {
		me->pc = WRITE; /* what is staged; then the end */
		me->r[5] &= (uint8_t)~RESUME;
	}
}

static void see(struct state *s, uint32_t choice)
{
	struct thread *me = &s->t[FLUSHER];
	int ring = me->r[0] * RING;
	uint8_t value;

	switch (me->pc) {
	case SEE_STATE:
		value = load(s, FLUSHER, ring + STATE, unless(RETIRE_RELAXED), choice);
		me->pc = value == RING_FREE ? RING_DONE : SEE_HEAD;
		return;
	case SEE_HEAD:
		me->r[1] = load(s, FLUSHER, ring + HEAD, unless(HEAD_RELAXED), choice);
		break;
	case SEE_TAIL:
		me->r[2] = load(s, FLUSHER, ring + TAIL, RELAXED, choice);
		break;
	case SEE_OWNER:
		value = load(s, FLUSHER, ring + OWNER, RELAXED, choice);
		me->r[5] = (uint8_t)(value == P2 ? me->r[5] | OF_P2 : me->r[5] & ~OF_P2);
		if (me->r[1] == me->r[2]) {
			me->pc = FREE1;
			return;
		}
		if (me->r[2] != me->r[6 + value] && mutation != ANY_ORDER) {
			me->r[5] |= PASSED_OVER;
			me->pc = RING_DONE;
			return;
		}
		break;
	}
	me->pc++;
}

static void stage(struct state *s, uint32_t choice)
{
	struct thread *me = &s->t[FLUSHER];
	int ring = me->r[0] * RING, words = ring + WORDS + 2 * (me->r[2] % SLOTS);
	int t = me->r[5] & OF_P2 ? P2 : P1;
	uint8_t id = id_of(t, me->r[2]);

	switch (me->pc) {
	case COPY1:
		if (mutation == TAIL_BEFORE_COPY)
			store(s, FLUSHER, ring + TAIL, (uint8_t)(me->r[2] + 1), ORDERED);
		me->r[4] = load(s, FLUSHER, words, RELAXED, choice);
		break;
	case COPY2:
		if (load(s, FLUSHER, words + 1, RELAXED, choice) != id || me->r[4] != id)
			wrong = "the flusher met a record that is not whole";
		if (me->r[6 + t] != me->r[2])
			wrong = "a thread's records are not in order";
		break;
	case STAGE:
		store(s, FLUSHER, STAGING + me->r[3], id, RELAXED);
		if (mutation == COUNT_AFTER_TAIL)
			store(s, FLUSHER, ring + TAIL, (uint8_t)(me->r[2] + 1), ORDERED);
		break;
	case GROW:
		store(s, FLUSHER, COUNT, ++me->r[3], unless(COUNT_RELAXED));
		break;
	case GIVE:
		me->r[6 + t] = ++me->r[2];
		if (mutation != TAIL_BEFORE_COPY && mutation != COUNT_AFTER_TAIL)
			store(s, FLUSHER, ring + TAIL, me->r[2], ORDERED);
		me->r[5] |= RESUME;
		me->pc = me->r[3] == STAGED ? WRITE : me->r[1] != me->r[2] ? COPY1 : FREE1;
		return;
	}
	me->pc++;
}

static void give_back(struct state *s, uint32_t choice)
{
	struct thread *me = &s->t[FLUSHER];
	int ring = me->r[0] * RING;

	switch (me->pc) {
	case FREE1:
		if (load(s, FLUSHER, ring + STATE, unless(RETIRE_RELAXED), choice) != RETIRED) {
			me->pc = RING_DONE;
			return;
		}
		break;
	case FREE2:
		if (load(s, FLUSHER, ring + HEAD, unless(HEAD_RELAXED), choice) != me->r[2] &&
		    mutation != FREE_BEFORE_EMPTY) {
			me->pc = RING_DONE;
			return;
		}
		break;
	case FREE3:
		store(s, FLUSHER, ring + STATE, RING_FREE, ORDERED);
		break;
	case FREE4: /* the first thread's small ring serves the second thread */
		if (me->r[0] == 1)
			store(s, FLUSHER, USE, 1, ORDERED);
		me->pc = RING_DONE;
		return;
	}
	me->pc++;
}

static void written(struct state *s)
{
	for (int i = 0; i < s->t[FLUSHER].r[3]; i++)
		s->file |= (uint16_t)(1u << load(s, FLUSHER, STAGING + i, RELAXED,
						 choices(s, FLUSHER, STAGING + i) - 1));
}

static void write_out(struct state *s)
{
	struct thread *me = &s->t[FLUSHER];

	switch (me->pc) {
	case WRITE: /* write(2): for all at once */
		if (mutation != CLEAR_BEFORE_WRITE)
			written(s);
		break;
	case NEW_EPOCH:
		store(s, FLUSHER, EPOCH, 1, ORDERED); /* only that it is stored between the two */
		break;
	case CLEAR:
		store(s, FLUSHER, COUNT, 0, ORDERED);
		if (mutation == CLEAR_BEFORE_WRITE) {
			me->pc = END + 1; /* the write comes a moment later */
			return;
		}
		me->r[3] = 0;
		me->pc = !(me->r[5] & RESUME) ? END : me->r[1] != me->r[2] ? COPY1 : FREE1;
		return;
	case END + 1:
		written(s);
		me->r[3] = 0;
		me->pc = !(me->r[5] & RESUME) ? END : me->r[1] != me->r[2] ? COPY1 : FREE1;
		return;
	}
	me->pc++;
}

/* The place that the next step loads from; -1: it does not. */
static int loads_from(const struct thread *me)
{
	int ring = me->r[0] * RING, words = ring + WORDS + 2 * (me->r[2] % SLOTS);

	switch (me->pc) {
	case LOOK:
		return ENDING;
	case SEE_STATE:
	case FREE1:
		return ring + STATE;
	case SEE_HEAD:
	case FREE2:
		return ring + HEAD;
	case SEE_TAIL:
		return ring + TAIL;
	case SEE_OWNER:
		return ring + OWNER;
	case COPY1:
		return words;
	case COPY2:
		return words + 1;
	}
	return -1;
}

static uint32_t flusher_step(struct state *s, uint32_t choice)
{
	struct thread *me = &s->t[FLUSHER];
	int from = loads_from(me);
	uint32_t n = from < 0 ? 1 : choices(s, FLUSHER, from);

	if (me->pc == LOOK) {
		me->r[5] = load(s, FLUSHER, ENDING, ORDERED, choice) ? IS_LAST : 0;
		me->r[0] = 0;
		me->pc = SEE_STATE;
	} else if (me->pc <= SEE_OWNER) {
		see(s, choice);
	} else if (me->pc <= GIVE) {
		stage(s, choice);
	} else if (me->pc <= FREE4) {
		give_back(s, choice);
	} else if (me->pc == RING_DONE) {
		if (++me->r[0] == 2)
			round_done(me);
		else
			me->pc = SEE_STATE;
	} else {
		write_out(s);
	}
	return n;
}

/* ---- the reader: r0 count, r1 next ---- */

static uint32_t reader_step(struct state *s, uint32_t choice)
{
	struct thread *me = &s->t[READER];
	int from = me->pc == 0 ? COUNT : STAGING + me->r[1];
	uint32_t n = choices(s, READER, from);
	uint8_t value = load(s, READER, from, me->pc == 0 ? ORDERED : RELAXED, choice);

	if (me->pc == 0) {
		me->r[0] = value;
		me->pc = value ? 1 : 2;
		return n;
	}
	if (!value)
		wrong = "the reader took a record that is not whole";
	if (++me->r[1] == me->r[0])
		me->pc = 2;
	return n;
}

/* ---- what must hold ---- */

static uint16_t held_by_ring(const struct state *s, int ring)
{
	uint8_t head = latest(s, ring + HEAD), tail = latest(s, ring + TAIL);
	int t = latest(s, ring + OWNER);
	uint16_t held = 0;

	for (int n = tail; n < head && head - tail <= SLOTS; n++) {
		int words = ring + WORDS + 2 * (n % SLOTS);

		if (latest(s, words) == id_of(t, n) && latest(s, words + 1) == id_of(t, n))
			held |= (uint16_t)(1u << id_of(t, n));
	}
	return held;
}

/* Killed now: what was stored lies in memory, in the order of each thread. */
static void check_kill(struct state s)
{
	uint16_t held = s.file;

	for (int t = 0; t < THREADS; t++)
		while (s.t[t].n_buffer)
			drain_one(&s, t);
	held |= held_by_ring(&s, 0) | held_by_ring(&s, RING);
	for (int i = 0; i < latest(&s, COUNT); i++)
		held |= (uint16_t)(1u << latest(&s, STAGING + i));
	if (s.published & ~held)
		wrong = "killed now, a published record is nowhere";
	if (s.t[FLUSHER].pc == END && s.published & ~s.file)
		wrong = "a published record is not in the file at a regular end";
}

/* ---- all orders ---- */

static bool is_done(const struct state *s, int t)
{
	static const uint8_t last[THREADS] = {DONE, DONE, END, 2};

	return s->t[t].pc == last[t];
}

static uint32_t step(struct state *s, int t, uint32_t choice)
{
	return t == FLUSHER  ? flusher_step(s, choice)
	       : t == READER ? reader_step(s, choice)
			     : job_step(s, t, choice);
}

static void explore(const struct state *s)
{
	if (!is_new(hash_of(s)))
		return;
	states++;
	check_kill(*s);
	for (int t = 0; t < THREADS && !wrong; t++) {
		if (s->t[t].n_buffer) {
			struct state next = *s;

			drain_one(&next, t);
			explore(&next);
		}
		for (uint32_t c = 0, n = 1; c < n && !is_done(s, t) && !wrong; c++) {
			struct state next = *s;

			n = step(&next, t, c);
			if (!wrong)
				explore(&next);
		}
	}
}

static void *check_all(void *arg)
{
	static struct state first;

	(void)arg;
	memset(&first, 0, sizeof(first));
	memset(first.n, 1, sizeof(first.n));
	first.t[P1].pc = OWN;
	first.t[P1].r[1] = first.t[P2].r[1] = 1;
	first.t[P1].r[3] = RECORDS1;
	first.t[P2].r[3] = RECORDS2;
	free(seen);
	seen = NULL;
	seen_size = seen_used = states = 0;
	wrong = NULL;
	explore(&first);
	return NULL;
}

/* A path is as deep as it has steps, and each holds a state. */
static void run(bool with_tso, int with_mutation)
{
	pthread_attr_t attr;
	pthread_t thread;

	tso = with_tso;
	mutation = with_mutation;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 2ul << 30);
	if (pthread_create(&thread, &attr, check_all, NULL))
		exit(2);
	pthread_join(thread, NULL);
}

int main(void)
{
	int bad = 0;

	for (int i = 1; i >= 0; i--) {
		run(i, NONE);
		printf("%s: %llu states, %s\n", i ? "TSO" : "release/acquire",
		       (unsigned long long)states, wrong ? wrong : "all sound");
		fflush(stdout);
		bad += wrong != NULL;
	}
	for (int m = NONE + 1; m < MUTATIONS; m++) {
		const char *where = "TSO";

		/* An order of memory is missed only where the processor has it not. */
		run(m > RETIRE_RELAXED, m);
		where = tso ? where : "release/acquire";
		if (!wrong && tso) {
			where = "release/acquire";
			run(false, m);
		}
		printf("%s: %s%s%s\n", names[m], wrong ? wrong : "NOT FOUND", wrong ? ", " : "",
		       wrong ? where : "");
		fflush(stdout);
		bad += wrong == NULL;
	}
	return bad ? 1 : 0;
}
