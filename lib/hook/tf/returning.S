/* tfh_tf_returning (tf.h): where C++ puts a returned object, each processor's calling convention says. */
#include "hook/entries.h"

	.text
	.hidden	tfh_tf_returning
	RETURNING tfh_tf_returning

	.section .note.GNU-stack, "", %progbits
