#include "hook/python/handled.h"

#include "hook/python/version.h"
#include "record/process/recorder.h"

static uint64_t word(uint64_t at)
{
	return at ? *(const uint64_t *)(uintptr_t)at : 0;
}

/* The main thread's state lives until the thread itself ends the interpreter, and nobody else
 * changes what it handles. */
uint64_t tfh_py_stop_iteration(const struct tfh_self *self)
{
	const struct tfh_py *py = tfh_py();
	uint64_t state, record, exception;

	if (!py || !py->stop_iteration || self->ring->tid != (uint32_t)tfh_recorder.pid)
		return 0;
	state = (uint64_t)(uintptr_t)py->state_of_thread();
	record = state ? word(state + py->at.state_handled) : 0;
	exception = record ? word(record + py->at.handled_value) : 0;
	return exception && word(exception + TFH_PY_OBJECT_TYPE) == *py->stop_iteration ? exception
											: 0;
}
