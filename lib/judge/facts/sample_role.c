/* What a thread was doing in a sample: the role of the functions on its stack or, if none of them
 * shows it, of the pause between its calls. */
#include <string.h>

#include "judge/facts/event_loop.h"
#include "judge/facts/pause_role.h"
#include "judge/facts/sample_groups.h"
#include "judge/facts/served.h"

static enum tfh_role role_of(const struct tfh_model_line *frame, uint32_t n, enum tfh_order order)
{
	enum tfh_role role = tfh_place_role(frame, n, order);

	return tfh_in_server(frame, n) ? tfh_served_role(role, frame, n) : role;
}

/* The role of a place's functions, cached. */
static enum tfh_role role_at(struct tfh_stack_samples *l, uint32_t place, enum tfh_order order,
			     const struct tfh_model_line *frame, uint32_t n)
{
	size_t i = (size_t)place * TFH_ORDERS + order;

	while (l->role.n <= i)
		if (TFH_PUSH(l->role, UINT8_MAX))
			return role_of(frame, n, order);
	if (l->role.v[i] == UINT8_MAX)
		l->role.v[i] = (uint8_t)role_of(frame, n, order);
	return l->role.v[i];
}

static uint32_t frames_of(const struct tfh_stack_samples *l, const struct tfh_stack_sample *k,
			  struct tfh_model_line frame[TFH_VERDICT_FRAMES])
{
	const struct tfh_feed *f = l->feed;

	return f->place && k->place && k->place < TFH_FACTS_SAMPLE_PLACES
		       ? f->place(f->arg, l->process, k->place, frame, TFH_VERDICT_FRAMES)
		       : 0;
}

/* Whether a thread in such a state can have the role; `soon`: the pause was short, too short to
 * copy much data. Computing uses the processor, or waits for the library's other threads or a
 * page. */
static bool can_be(enum tfh_role role, const struct tfh_stack_samples *l,
		   const struct tfh_stack_sample *k, const struct tfh_model_line *frame, bool soon)
{
	if (role == TFH_ROLE_STAGE || role == TFH_ROLE_FETCH)
		return l->driver && !soon;
	if (role == TFH_ROLE_COMPUTE || role == TFH_ROLE_UPDATE)
		return !l->device && (!tfh_is_asleep(k->state) || tfh_awaits_thread(k->state) ||
				      k->state == TFT_STATE_PAGE);
	/* What a thread waits for in an exchange is known from the ranks' exchanges. */
	if (role == TFH_ROLE_EXCHANGE)
		return TFH_DETECT_EXCHANGES && !l->device && k->state == TFT_STATE_RUNNING;
	if (role == TFH_ROLE_REMOTE)
		return TFH_DETECT_CLIENTS;
	/* Of a thread that waits, the state says what it writes to. */
	if (role == TFH_ROLE_WRITE)
		return k->state == TFT_STATE_RUNNING;
	return role != TFH_ROLE_NONE && (!tfh_role_waits(role) || tfh_is_asleep(k->state) ||
					 (TFH_DETECT_WOKEN && tfh_place_waits(frame)));
}

/* Whether the program's innermost function in a sample is also on the stack of the next call. */
static bool goes_on(const struct tfh_model_line *frame, uint32_t n, const struct tfh_pause_end *to)
{
	const struct tfh_model_line *lead = n ? &frame[tfh_place_lead(frame, n)] : NULL;

	for (uint32_t i = 0; lead && i < to->n; i++)
		if (tfh_same_function(lead, &to->frame[i]))
			return true;
	return false;
}

/* Whether a function of the program that a library called makes another pass over data: it calls
 * predict() or evaluate() of a library. What these trace anew for each pass belongs to it. */
static bool evaluates(const struct tfh_model_line *frame, uint32_t n)
{
	enum { OUTSIDE, PROGRAM, LIBRARY, CALLED } in = OUTSIDE;

	for (uint32_t i = n; i-- > 0;) {
		if (in == CALLED && frame[i].library && tfh_makes_pass(frame[i].function))
			return true;
		in += in != CALLED && frame[i].library == (in == PROGRAM);
	}
	return false;
}

/* Whether a thread that runs in a function of the program that a library called does so outside
 * the step, which is a function of TensorFlow's that the library executes: in a callback. */
static bool is_outside_step(const struct tfh_stack_samples *l, const struct tfh_stack_sample *k,
			    enum tfh_role role, const struct tfh_model_line *frame, uint32_t n)
{
	const struct tfh_model_line *called;
	bool open = role == TFH_ROLE_NONE || role == TFH_ROLE_FIRST || role == TFH_ROLE_LATER ||
		    role == TFH_ROLE_LAUNCH;

	if (!TFH_DETECT_CALLED_BACK || !l->graphs || !open || k->state != TFT_STATE_RUNNING ||
	    !(called = tfh_place_called(frame, n)))
		return false;
	for (uint32_t i = 0; i < l->n_stepper; i++)
		if (tfh_same_function(called, &l->stepper[i]))
			return false;
	return true;
}

/* Whether a function of the program that a library calls uses the model outside the step of
 * PyTorch's: between the backward pass and the request for the next batch, so no backward pass
 * follows. The program's own loop, which may be called by a library, too, makes that request
 * itself. */
static bool evaluates_outside(const struct tfh_stack_samples *l, const struct tfh_stack_sample *k,
			      const struct tfh_model_line *frame, uint32_t n,
			      const struct tfh_pause_end *to)
{
	const struct tfh_model_line *called;

	if (!TFH_DETECT_CALLED_BACK || !l->torch || l->device || !to->n ||
	    k->state != TFT_STATE_RUNNING || to->before != TFH_FAM_EXECUTE << 3 ||
	    to->after >> 3 != TFH_FAM_CONSUMER || !(called = tfh_place_evaluates(frame, n)))
		return false;
	for (uint32_t i = 0; i < to->n; i++)
		if (tfh_same_function(called, &to->frame[i]))
			return false;
	return true;
}

/* Whether a thread that waits for another one waits for JAX: a jitted function only queues its
 * work, and the program waits where it reads a result. That is a function in C, called by the
 * program itself, by NumPy or by a library on JAX. Waiting for the program's own threads is mostly
 * a function of the standard library. */
static bool awaits_jax(const struct tfh_stack_samples *l, const struct tfh_stack_sample *k,
		       const struct tfh_model_line *frame, uint32_t n)
{
	static const char *const packages[] = {"jax", "jaxlib", "numpy", "flax", "optax", "keras"};
	char package[TFH_FACTS_PACKAGE];

	if (!TFH_DETECT_JAX_WAIT || !l->jax || l->driver || !n || !tfh_awaits_thread(k->state))
		return false;
	if (!frame[0].library)
		return true;
	tfh_package_of(&frame[0], package);
	for (size_t i = 0; i < sizeof(packages) / sizeof(*packages); i++)
		if (!strcmp(package, packages[i]))
			return true;
	return false;
}

/* Sets what the thread was doing. Waiting for the GIL always counts as such. */
static void place_sample(struct tfh_stack_samples *l, struct tfh_stack_sample *k,
			 const struct tfh_pause_end *to)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES] = {0};
	uint32_t n = frames_of(l, k, frame);

	tfh_place_in_loop(k, frame, n, to);
	enum tfh_order order = tfh_order_of(frame, n, to->frame, to->n);
	enum tfh_role role = n ? role_at(l, k->place, order, frame, n) : TFH_ROLE_NONE;

	if (!can_be(role, l, k, frame, to->soon))
		role = tfh_role_between(k->state, order,
					to->soon || tfh_stack_samples_lead_to(frame, n, to),
					tfh_stack_samples_copy(frame, n, to), to);
	if (role == TFH_ROLE_FIRST && tfh_stack_samples_within(frame, n, to))
		role = TFH_ROLE_NONE;
	if (role == TFH_ROLE_FIRST || role == TFH_ROLE_LATER || role == TFH_ROLE_NONE)
		if (k->state == TFT_STATE_RUNNING &&
		    tfh_stack_samples_issue(frame, n, to, l->launcher))
			role = TFH_ROLE_LAUNCH;
	if (is_outside_step(l, k, role, frame, n) || evaluates_outside(l, k, frame, n, to))
		role = TFH_ROLE_CALLED;
	if (TFH_DETECT_CALLED_BACK && role == TFH_ROLE_COMPILE && evaluates(frame, n))
		role = TFH_ROLE_EVALUATE;
	if (TFH_DETECT_HAND_FED && role == TFH_ROLE_NONE && !l->driver)
		role = tfh_role_above(k->state, frame, n, to);
	if ((role == TFH_ROLE_NONE || role == TFH_ROLE_LOCK || role == TFH_ROLE_MADE ||
	     role == TFH_ROLE_GIVEN) &&
	    awaits_jax(l, k, frame, n))
		role = TFH_ROLE_AWAIT;
	k->at = role == TFH_ROLE_NONE || k->state == TFT_STATE_GIL
			? k->state
			: (uint8_t)TFH_AT(role, tfh_is_asleep(k->state));
	k->loops = !to->inside && goes_on(frame, n, to);
	k->line = !to->inside && tfh_stack_samples_on_line(frame, n, to);
	k->copy = to->after >> 3 == TFH_FAM_COPY;
}

void tfh_place_samples(struct tfh_stack_samples *l, uint32_t thread, int64_t t0, int64_t t1,
		       const struct tfh_pause_end *to, double seen[TFH_AT_COUNT])
{
	for (size_t i = l->sample.n; i-- > 0 && l->sample.v[i].t >= t0;) {
		struct tfh_stack_sample *k = &l->sample.v[i];
		if (k->thread != thread || k->t >= t1)
			continue;
		place_sample(l, k, to);
		seen[k->at] += (double)k->ns;
	}
}

uint32_t tfh_place_samples_inside(struct tfh_stack_samples *l, const struct tfh_event *ev)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t inside = 0;

	for (size_t i = l->sample.n; i-- > 0 && l->sample.v[i].t >= ev->t0;) {
		struct tfh_stack_sample *k = &l->sample.v[i];
		if (k->thread != ev->thread)
			continue;
		enum tfh_role role = tfh_loader_role(frame, frames_of(l, k, frame), k->state);
		k->at = k->state == TFT_STATE_GIL ? k->state
						  : (uint8_t)TFH_AT(role, tfh_is_asleep(k->state));
		k->group = TFH_IN_CALL;
		inside++;
	}
	return inside;
}
