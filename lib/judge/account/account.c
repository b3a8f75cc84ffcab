/* The third phase from its first pass to constant accounts. */
#include <stdlib.h>

#include "judge/account/device.h"

/* What only all steps together tell. */
static void complete(struct tfh_accounts *accounts)
{
	TFH_EACH (i, accounts->loops->window.n)
		if (accounts->use[i].segment == TFH_SEGMENT_TRAIN)
			accounts->train_steps += accounts->loops->window.v[i].steps;
	tfh_input_judge(accounts);
	tfh_idle_compute(accounts);
	tfh_smooth_classes(accounts);
	TFH_EACH (i, accounts->step.n) {
		struct tfh_step *s = &accounts->step.v[i];
		if (s->cause == TFH_CAUSE_INPUT_UNKNOWN)
			s->cause = (int8_t)accounts->input_cause;
		if (s->cls == TFH_CLASS_COMPUTE_BOUND && s->tier != 'C')
			s->cause = (int8_t)tfh_compute_cause(accounts->device);
	}
}

int tfh_find_accounts(struct tfh_accounts *accounts, tfh_sample_fn sample, void *arg,
		      struct tfh_err *err)
{
	const struct tfh_loops *loops = accounts->loops;
	int rc;

	accounts->guilty = -1;
	accounts->input_cause = TFH_CAUSE_INPUT_UNKNOWN;
	accounts->use = tfh_big_array(loops->window.n + 1, sizeof(*accounts->use));
	accounts->stage = calloc(accounts->facts->stage.n + 1, sizeof(*accounts->stage));
	accounts->pauses = tfh_pauses_new(accounts->cover);
	if (!accounts->use || !accounts->stage || (accounts->cover && !accounts->pauses))
		return tfh_err_set(err, -ENOMEM, "out of memory");
	TFH_EACH (i, loops->window.n)
		accounts->use[i].segment = loops->window.v[i].segment;
	tfh_find_special(accounts);
	tfh_find_stalls(accounts, false);
	rc = tfh_attribute(accounts, err);
	if (!rc)
		rc = tfh_device_judge(accounts, sample, arg, err);
	if (!rc)
		complete(accounts);
	return rc;
}

void tfh_accounts_free(struct tfh_accounts *accounts)
{
	tfh_big_free(accounts->use);
	free(accounts->stage);
	tfh_big_free(accounts->step.v);
	free(accounts->copy.v);
	free(accounts->kernel.v);
	tfh_pauses_free(accounts->pauses);
	tfh_device_free(accounts->device);
}
