/* The third phase: one pass over the host's calls, and over device ops if there are any, fills all
 * accounts. Later phases do not change them. */
#include <stdlib.h>

#include "judge/account/device.h"

/* Fills in what needs the accounts of all steps. */
static int complete(struct tfh_accounts *accounts)
{
	int rc;

	TFH_EACH (i, accounts->loops->window.n)
		if (accounts->use[i].segment == TFH_SEGMENT_TRAIN)
			accounts->train_steps += accounts->loops->window.v[i].steps;
	tfh_input_judge(accounts);
	if (TFH_DETECT_IDLE_COMPUTE)
		tfh_idle_compute(accounts);
	rc = TFH_DETECT_CONTENTION ? tfh_find_contention(accounts) : 0;
	if (rc)
		return rc;
	if (TFH_DETECT_NEIGHBOURS)
		tfh_smooth_classes(accounts);
	TFH_EACH (i, accounts->step.n) {
		struct tfh_step *s = &accounts->step.v[i];
		if (s->cause == TFH_CAUSE_INPUT_UNKNOWN)
			s->cause = (int8_t)accounts->input_cause;
		if (accounts->step_cause) {
			float *cause = accounts->step_cause[i],
			      waited = cause[TFH_CAUSE_INPUT_UNKNOWN];
			cause[TFH_CAUSE_INPUT_UNKNOWN] = 0;
			cause[accounts->input_cause] += waited;
		}
		if (s->cls == TFH_CLASS_COMPUTE_BOUND && s->tier != 'C')
			s->cause = (int8_t)tfh_compute_cause(accounts->device);
	}
	return 0;
}

/* Charges all windows in one pass over the calls: those with device times by the device line, the
 * others by the host line. */
static int judge_all(struct tfh_accounts *accounts, const struct tfh_sampler *sampler,
		     struct tfh_err *err)
{
	const struct tfh_feed *f = accounts->facts->feed;
	struct tfh_call_feed c = {.accounts = accounts, .line = tfh_host_line_new(accounts)};
	int rc = c.line ? f->rewind(f->arg, accounts->facts->process, err)
			: tfh_err_set(err, -ENOMEM, "out of memory");

	if (!rc && accounts->timed)
		rc = tfh_device_judge(accounts->device, &c, sampler, err);
	if (!rc) {
		c.rc = tfh_host_line_read(c.line);
		rc = tfh_call_feed_error(&c, err);
	}
	if (!rc && (rc = tfh_host_line_end(c.line)))
		tfh_err_set(err, rc, "out of memory");
	tfh_host_line_free(c.line);
	return rc;
}

/* Collects what is needed before the first account is opened. */
static int prepare(struct tfh_accounts *accounts)
{
	const struct tfh_loops *loops = accounts->loops;
	int rc = 0;

	accounts->guilty = -1;
	accounts->input_cause = TFH_CAUSE_INPUT_UNKNOWN;
	accounts->use = tfh_big_array(loops->window.n + 1, sizeof(*accounts->use));
	accounts->stage = calloc(accounts->facts->stage.n + 1, sizeof(*accounts->stage));
	accounts->ran_ns = calloc(accounts->facts->tag.n + 1, sizeof(*accounts->ran_ns));
	accounts->pauses = tfh_pauses_new(accounts->cover);
	if (accounts->facts->feed->each)
		accounts->step_cause =
			tfh_big_array(loops->window.n + 1, sizeof(*accounts->step_cause));
	if (accounts->facts->crowded)
		accounts->contention =
			tfh_big_array(loops->window.n + 1, sizeof(*accounts->contention));
	if (!accounts->use || !accounts->stage || !accounts->ran_ns ||
	    (accounts->facts->crowded && !accounts->contention) ||
	    (accounts->cover && !accounts->pauses) ||
	    (accounts->facts->feed->each && !accounts->step_cause))
		return -ENOMEM;
	for (size_t i = 0; i < loops->window.n && !rc; tfh_big_pass(++i)) {
		accounts->use[i].segment = loops->window.v[i].segment;
		accounts->use[i].tier = 'C';
		rc = TFH_PUSH_BIG(accounts->step, ((struct tfh_step){.index = i}));
	}
	return rc;
}

int tfh_find_accounts(struct tfh_accounts *accounts, const struct tfh_sampler *sampler,
		      struct tfh_err *err)
{
	int rc = prepare(accounts);

	if (rc)
		return tfh_err_set(err, rc, "out of memory");
	tfh_find_compiling_steps(accounts);
	if ((rc = tfh_brief_find(accounts)))
		return tfh_err_set(err, rc, "out of memory");
	if (TFH_DETECT_SPECIAL)
		tfh_find_special(accounts);
	rc = tfh_device_find(accounts, err);
	if (TFH_DETECT_STALLS)
		tfh_find_stalls(accounts);
	if (!rc && accounts->facts->feed->likely && (rc = tfh_find_likely(accounts)))
		tfh_err_set(err, rc, "out of memory");
	tfh_place_chains(accounts);
	if (!rc)
		rc = judge_all(accounts, sampler, err);
	if (!rc && (rc = complete(accounts)))
		tfh_err_set(err, rc, "out of memory");
	return rc;
}

void tfh_accounts_free(struct tfh_accounts *accounts)
{
	tfh_big_free(accounts->use);
	free(accounts->stage);
	free(accounts->brief);
	tfh_big_free(accounts->step.v);
	tfh_big_free(accounts->step_cause);
	tfh_big_free(accounts->contention);
	free(accounts->copy.v);
	free(accounts->kernel.v);
	free(accounts->ran_ns);
	tfh_pauses_free(accounts->pauses);
	tfh_device_free(accounts->device);
}
