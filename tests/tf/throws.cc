/* Calls a loader's get-next 300 times, through whoever is in front, and counts exceptions. */
#include <cstdio>
#include <dlfcn.h>
#include <exception>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : nullptr;
	auto next =
		(int (*)(void *, void *, void *))dlsym(RTLD_DEFAULT, "tf_data_iterator_get_next");
	int caught = 0, returned = 0;

	if (!library || !next)
		return 2;
	for (size_t i = 0; i < 300; i++) {
		try {
			returned += next((void *)1, (void *)i, nullptr);
		} catch (const std::exception &) {
			caught++;
		}
	}
	printf("%d returned, %d caught\n", returned, caught);
	return 0;
}
