/*
 * Finds the real functions behind the wrappers.
 *
 * Python opens TensorFlow with RTLD_LOCAL, so dlsym(RTLD_NEXT) does not find it: every loaded
 * object is tried in the loader's order. dl_iterate_phdr only collects the names, because its
 * callback runs under a lock that dlopen takes in the other order.
 */
#include "hook/tf/tf.h"

#include "base/refused.h"
#include "hook/driver/driver.h"
#include "record/process/steady.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* A training job has some 300 objects loaded, with 40 to 130 bytes of path each. */
#define NAME_BYTES (256 * 1024)

struct resolved_names {
	size_t used;
	char text[NAME_BYTES]; /* paths, NUL-terminated */
};

static int collect(struct dl_phdr_info *info, size_t size, void *data)
{
	struct resolved_names *names = data;
	size_t length = info->dlpi_name ? strlen(info->dlpi_name) : 0;

	(void)size;
	if (length && names->used + length + 1 <= sizeof(names->text)) {
		memcpy(names->text + names->used, info->dlpi_name, length + 1);
		names->used += length + 1;
	}
	return 0;
}

/* TensorFlow's own objects are tried first: a lookup in each of the others costs some microseconds.
 */
static void *search(const struct resolved_names *names, bool tensorflow, const char *symbol,
		    const void *self)
{
	for (size_t at = 0; at < names->used; at += strlen(names->text + at) + 1) {
		const char *path = names->text + at;
		const char *slash = strrchr(path, '/');

		if ((strstr(slash ? slash : path, "tensorflow") != NULL) != tensorflow)
			continue;
		void *handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
		if (!handle)
			continue;
		void *found = dlsym(handle, symbol);
		if (found && found != self)
			return found; /* the open handle keeps it loaded */
		dlclose(handle);
	}
	return NULL;
}

/* The list is too large for a worker thread's stack. Each thread allocates its own: threads that
 * share one would wait for each other, and for the loader. */
static void *search_all(const char *symbol, const void *self)
{
	struct resolved_names *names = mmap(NULL, sizeof(*names), PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *found;

	if (names == MAP_FAILED)
		return NULL;
	tfh_each_object(collect, names);
	found = search(names, true, symbol, self);
	if (!found)
		found = search(names, false, symbol, self);
	munmap(names, sizeof(*names));
	return found;
}

void *tfh_tf_lookup(const char *symbol, const void *self)
{
	int saved_errno = errno;
	struct tfh_steady steady;

	/* Cancellation or a longjmp in the middle would leave the loader's lock held. */
	tfh_steady_begin(&steady);
	void *found = dlsym(RTLD_NEXT, symbol);
	if (!found || found == self)
		found = search_all(symbol, self);
	dlerror(); /* the job must not see this failure */
	tfh_steady_end(&steady);
	errno = saved_errno;
	return found;
}

static const char *symbol_of(unsigned row)
{
	static const char *const symbols[TFH_ROW_COUNT] = {
#define TF_FN(id, text, family, args, props, symbol, stack) [TFH_ROW_##id] = symbol,
#include "base/tf_api.def"
#undef TF_FN
	};
	static const char *const watched[] = {
#define TF_FN(...)
#define TF_WATCH(symbol) symbol,
#include "base/tf_api.def"
#undef TF_FN
	};
	return row < TFH_TF_HOOKS ? symbols[row] : watched[row - TFH_TF_HOOKS];
}

void *tfh_tf_real[TFH_TF_HOOKS + 1];

void *tfh_tf_resolve(unsigned row, const void *own)
{
	void *real = __atomic_load_n(&tfh_tf_real[row], __ATOMIC_ACQUIRE);

	if (!real) {
		real = tfh_tf_lookup(symbol_of(row), own);
		__atomic_store_n(&tfh_tf_real[row], real, __ATOMIC_RELEASE);
	}
	return real;
}

size_t tfh_tf_peek(const void *address, void *out, size_t size)
{
	int saved_errno = errno;
	struct iovec local = {out, size};
	struct iovec remote = {(void *)address, size};
	ssize_t n = tfh_copy_memory(getpid(), &local, 1, &remote, 1);

	if (n < 0 && errno != EFAULT) { /* forbidden in some sandboxes */
		int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

		n = fd < 0 ? -1 : pread(fd, out, size, (off_t)(uintptr_t)address);
		if (fd >= 0)
			close(fd);
	}
	errno = saved_errno;
	return n < 0 ? 0 : (size_t)n;
}
