/*
 * The wrappers of base/tf_api.def: exported under the real functions' names. While recording is off
 * they test a flag and jump, with the stack as the caller left it. While it is on, they save all
 * argument registers around tfh_tf_enter and the result registers around tfh_tf_leave. None of the
 * functions takes or returns floating point. An exception that passes through meets
 * tfh_tf_personality, which closes the frame.
 */
#include "hook/tf/tf.h"
#include "hook/entries.h"

	.hidden	tfh_mode, tfh_tf_enter, tfh_tf_leave, tfh_tf_destroyed, tfh_tf_personality
	.hidden	tfh_tf_real, tfh_tf_wrapper

	.section .text
	.set	row, 0

/* The highest enum tfh_mode in which a function's family still needs tfh_tf_enter: the recorder
 * counts get-next calls while it is off, so that a window of steps can begin. */
	.set	last_mode_STAGE, 2
	.set	last_mode_REDUCE, 2
	.set	last_mode_EXECUTE, 2
	.set	last_mode_SESSION, 2
	.set	last_mode_CONSUMER, 3

.macro WRAP_ROW symbol, family, stack
	.ifnc	"\symbol", ""
	WRAP	"\symbol", last_mode_\family, \stack
	.set	row, row+1
	.endif
.endm

.macro ADDRESS_ROW symbol
	.ifnc	"\symbol", ""
	.quad	"\symbol"
	.endif
.endm

#define TF_FN(id, text, family, args, props, symbol, stack) WRAP_ROW symbol, family, stack;
#define TF_WATCH(symbol) WATCH symbol;
#include "base/tf_api.def"
#undef TF_FN

	.section .data.rel.ro, "aw"
	.p2align 3
	.globl	tfh_tf_wrapper
	.type	tfh_tf_wrapper, @object
tfh_tf_wrapper:
#define TF_FN(id, text, family, args, props, symbol, stack) ADDRESS_ROW symbol;
#define TF_WATCH(symbol) ADDRESS_ROW symbol;
#include "base/tf_api.def"
#undef TF_FN
	.size	tfh_tf_wrapper, .-tfh_tf_wrapper

	.section .note.GNU-stack, "", %progbits
