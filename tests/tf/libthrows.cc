/* A loader's get-next: one call within it is left by longjmp, and then it throws. */
#include <csetjmp>
#include <dlfcn.h>
#include <stdexcept>

extern "C" int tf_data_iterator_get_next(void *iterator, void *n, void *out);

static jmp_buf out_of_it;

__attribute__((noinline)) static void fill_the_stack()
{
	volatile char room[8192];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0x5a;
}

/* A compiler calls the function itself directly. */
static auto whoever_is_in_front()
{
	return (decltype(&tf_data_iterator_get_next))dlsym(RTLD_DEFAULT,
							   "tf_data_iterator_get_next");
}

int tf_data_iterator_get_next(void *iterator, void *n, void *out)
{
	if (out)
		longjmp(out_of_it, 1);
	if (!setjmp(out_of_it))
		whoever_is_in_front()(iterator, n, &out_of_it);
	fill_the_stack();
	if ((size_t)n % 3 == 0)
		throw std::runtime_error("no more");
	return 1;
}
