#include "model/known.h"

#include <string.h>

static uint32_t lines(const struct tfh_model_line *from, uint32_t n, struct tfh_model_line *frame,
		      uint32_t most)
{
	n = n < most ? n : most;
	if (n)
		memcpy(frame, from, n * sizeof(*frame));
	return n;
}

uint32_t tfh_known_place(const struct tfh_known *k, uint32_t process, uint32_t place,
			 struct tfh_model_line *frame, uint32_t most)
{
	for (uint32_t i = 0; place && i < k->n_place; i++)
		if (k->place[i].process == process && k->place[i].place == place)
			return lines(k->place[i].frame, k->place[i].n_frame, frame, most);
	return 0;
}

static const struct tfh_known_stack *stack_of(const struct tfh_known *k, uint32_t process,
					      uint32_t stack)
{
	for (uint32_t i = 0; stack && i < k->n_stack; i++)
		if (k->stack[i].process == process && k->stack[i].stack == stack)
			return &k->stack[i];
	return NULL;
}

uint32_t tfh_known_python(const struct tfh_known *k, uint32_t process, uint32_t stack,
			  struct tfh_model_line *frame, uint32_t most)
{
	const struct tfh_known_stack *s = stack_of(k, process, stack);

	return s ? lines(s->python, s->n_python, frame, most) : 0;
}

uint32_t tfh_known_frames(const struct tfh_known *k, uint32_t process, uint32_t stack,
			  struct tfh_model_frame *frame, uint32_t most)
{
	const struct tfh_known_stack *s = stack_of(k, process, stack);
	uint32_t n = s && s->n_native < most ? s->n_native : s ? most : 0;

	if (n)
		memcpy(frame, s->native, n * sizeof(*frame));
	return n;
}
