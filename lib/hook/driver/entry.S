/*
 * The exported entry of every row of base/cuda_api.def: a test and a jump, with registers and stack
 * as the caller left them. It jumps to the real function while nothing is recorded, to record_*()
 * while recording, to unusual_*() while that may have to begin or end, and to first_*() until the
 * real function is known (wrap.c). If written in C, the compiler would copy a launch's eleven
 * arguments on the way.
 */
/* wrap.c checks that these equal the values in C. */
#define TFH_FN_SYNC_COPY 1
#define TFH_FN_PTDS 2
#define TFH_FN_TRIGGER 4
#define TFH_FN_ALWAYS 8
#define MODE_ON 2
#define MODE_OFF 3
#define MODE_DEAD 4

#include "hook/entries.h"

	.set	fn, 0

	.macro	entry name, other
	.set	fn, fn + 1
	.if	properties & TFH_FN_ALWAYS
	.set	passes, MODE_DEAD
	.else
	.set	passes, MODE_OFF
	.endif
	DRIVER_ENTRY \name, \other
	.endm

	.text
#define CUDA_FN_BY_HAND(name, ...) .set fn, fn + 1
#define CUDA_FN(name, family, args, dir, props, ...) .set properties, props; entry name, unusual_##name
#define CUDA_FN_HOST(name, family, args, dir, props, ...) .set properties, props; entry name, record_##name
#include "base/cuda_api.def"

	.section .note.GNU-stack, "", %progbits
