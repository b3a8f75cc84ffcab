/* Like a wheel that defines functions of the driver and of NCCL itself; these leave by a jump when
 * they are told to, and count the calls that return. */
#include <setjmp.h>
#include <stddef.h>

extern jmp_buf *jump_out; /* where to; NULL: return */
jmp_buf *jump_out;
int jumps_returned;

int cuInit(unsigned flags)
{
	if (jump_out)
		longjmp(*jump_out, 1);
	jumps_returned++;
	return flags ? 1 : 0;
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
		  void *stream);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
		  void *stream)
{
	if (jump_out)
		longjmp(*jump_out, 1);
	jumps_returned++;
	return from || to || !count || type || op || comm || stream;
}

int user_init(unsigned flags)
{
	return cuInit(flags);
}

int user_reduce(size_t count)
{
	return ncclAllReduce(NULL, NULL, count, 0, 0, NULL, NULL);
}
