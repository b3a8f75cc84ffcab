/* The two memories of ring.c: loads, stores, and what a thread may see. Included once, behind the
 * list of PLACES. */
#ifndef TESTS_TORTURE_MODEL_MEMORY_H
#define TESTS_TORTURE_MODEL_MEMORY_H

#define MESSAGES 12
#define BUFFER 12

enum order { RELAXED, ORDERED }; /* release or acquire */

struct message {
	uint8_t value, view[PLACES]; /* what who acquires it sees */
};

struct thread {
	uint8_t pc, r[8];
	uint8_t view[PLACES];				/* views: oldest message that may be read */
	uint8_t n_buffer, place[BUFFER], value[BUFFER]; /* TSO */
};

struct state {
	struct thread t[THREADS];
	struct message m[PLACES][MESSAGES];
	uint8_t n[PLACES];
	uint16_t published, file; /* sets of records */
};

static bool tso;

static uint32_t choices(const struct state *s, int t, int place)
{
	return tso ? 1 : (uint32_t)(s->n[place] - s->t[t].view[place]);
}

static uint8_t latest(const struct state *s, int place)
{
	return s->m[place][s->n[place] - 1].value;
}

static void join(uint8_t *view, const uint8_t *other)
{
	for (int i = 0; i < PLACES; i++)
		if (other[i] > view[i])
			view[i] = other[i];
}

static uint8_t load(struct state *s, int t, int place, enum order order, uint32_t choice)
{
	struct thread *me = &s->t[t];
	uint32_t i = tso ? (uint32_t)s->n[place] - 1 : me->view[place] + choice;

	for (int k = me->n_buffer - 1; tso && k >= 0; k--)
		if (me->place[k] == place)
			return me->value[k];
	me->view[place] = (uint8_t)i;
	if (!tso && order == ORDERED)
		join(me->view, s->m[place][i].view);
	return s->m[place][i].value;
}

static void append(struct state *s, int place, uint8_t value, const uint8_t *view)
{
	if (tso || !view) {
		s->m[place][0].value = value;
		return;
	}
	if (s->n[place] == MESSAGES) {
		fprintf(stderr, "the model is too small\n");
		exit(2);
	}
	struct message *m = &s->m[place][s->n[place]++];

	m->value = value;
	memcpy(m->view, view, PLACES);
}

static void drain_one(struct state *s, int t)
{
	struct thread *me = &s->t[t];

	append(s, me->place[0], me->value[0], NULL);
	me->n_buffer--;
	memmove(me->place, me->place + 1, BUFFER - 1);
	memmove(me->value, me->value + 1, BUFFER - 1);
	me->place[me->n_buffer] = me->value[me->n_buffer] = 0;
}

static void store(struct state *s, int t, int place, uint8_t value, enum order order)
{
	struct thread *me = &s->t[t];
	uint8_t view[PLACES] = {0};

	if (tso) {
		if (me->n_buffer == BUFFER) /* a processor waits, too */
			drain_one(s, t);
		me->place[me->n_buffer] = (uint8_t)place;
		me->value[me->n_buffer++] = value;
		return;
	}
	me->view[place] = s->n[place];
	view[place] = s->n[place];
	append(s, place, value, order == ORDERED ? me->view : view);
}

#endif
