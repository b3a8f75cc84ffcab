/* Device ops of a run, in order of their start. */
#include <errno.h>
#include <stdlib.h>

#include "model/internal.h"

struct tfh_ops {
	const struct tfh_run *run;
	uint32_t process;
	uint64_t next; /* of a run that was built in memory */
};

void tfh_run_gpu(struct tfh_run *run, uint32_t process, struct tfh_gpu_info *out)
{
	if (run->built)
		tfh_built_gpu(run, process, out);
	else
		*out = (struct tfh_gpu_info){.why = ""};
}

int tfh_ops_open(struct tfh_run *run, uint32_t process, struct tfh_ops **out, struct tfh_err *err)
{
	struct tfh_ops *o = calloc(1, sizeof(*o));

	*out = o;
	if (!o)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	o->run = run;
	o->process = process;
	return 0;
}

bool tfh_ops_next(struct tfh_ops *o, struct tfh_op *op)
{
	const struct tfh_op *at = o->run->built ? tfh_built_op(o->run, o->process, o->next) : NULL;

	if (!at)
		return false;
	o->next++;
	*op = *at;
	return true;
}

int tfh_ops_error(const struct tfh_ops *o, struct tfh_err *err)
{
	(void)o;
	(void)err;
	return 0;
}

void tfh_ops_close(struct tfh_ops *o)
{
	free(o);
}
