/* tfh_tf_returning (tf.h). Where C++ puts a returned object depends on the processor's calling
 * convention. */
#include "hook/entries.h"

	.text
	.hidden	tfh_tf_returning
	RETURNING tfh_tf_returning

	.section .note.GNU-stack, "", %progbits
