/*
 * Finds libcupti: the one that the job has loaded, else the one that belongs to its CUDA runtime,
 * wherever pip, conda, a toolkit or the system installed it. It is opened with RTLD_LOCAL, never
 * while tfhook is being loaded, and not on a thread of the job if another thread can do it
 * (load.c).
 */
#include "hook/cupti/cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environ.h"
#include "base/options.h"
#include "base/packages.h"
#include "base/text.h"
#include "hook/driver/driver.h"
#include "record/gpu/gpu.h"
#include "record/process/settings.h"
#include "record/process/steady.h"

void *tfh_cupti_real[TFH_CUPTI_FNS];

static void *handle;
static uint32_t version;
static char library[PATH_MAX];

uint32_t tfh_cupti_version(void)
{
	return version;
}

/* 18 is 11.8, 19 is 12.0, 28 is 12.9; from 13.0 on major * 10000 + ... */
static uint32_t major_of(uint32_t v)
{
	return v >= 100000 ? v / 10000 : v >= 19 ? 12 : 11;
}

/* ---- what the process has loaded ---- */

struct loaded {
	char cupti[PATH_MAX];
	char cuda_dir[PATH_MAX]; /* of libcuda.so */
	uint32_t runtime;	 /* major release of the first libcudart; 0: none is loaded */
	bool stub;
};

static void directory_of(char *out, size_t size, const char *path)
{
	snprintf(out, size, "%.*s", (int)(tfh_file_of(path) - path), path);
}

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	struct loaded *l = data;
	const char *file = tfh_file_of(info->dlpi_name);

	(void)size;
	if (!strncmp(file, "libcupti.so", 11) && !l->cupti[0]) {
		snprintf(l->cupti, sizeof(l->cupti), "%s", info->dlpi_name);
	} else if (!strncmp(file, "libcuda.so", 10)) {
		directory_of(l->cuda_dir, sizeof(l->cuda_dir), info->dlpi_name);
		l->stub = strstr(info->dlpi_name, "/stubs/") != NULL;
	} else if (!strncmp(file, "libcudart.so.", 13) && !l->runtime) {
		l->runtime = (uint32_t)strtoul(file + 13, NULL, 10);
	}
	return 0;
}

bool tfh_in_cupti(const void *address)
{
	char file[64];

	tfh_file_holding(address, file, sizeof(file));
	return !strncmp(file, "libcupti.so", 11);
}

/* ---- trying one ---- */

static uint32_t driver_major(void)
{
	CUresult (*ask)(int *) = (CUresult(*)(int *))tfh_driver_symbol("cuDriverGetVersion");
	int v = 0;

	return ask && !ask(&v) ? (uint32_t)v / 1000 : 0;
}

static bool take_functions(void *from)
{
	static const struct {
		const char *name;
		bool needed;
	} list[] = {
#define X(id, needed, name, parameters) {#name, needed},
		TFH_CUPTI_LIST(X)
#undef X
	};
	void *found[TFH_CUPTI_FNS];

	tfh_lookup_init();
	for (unsigned i = 0; i < TFH_CUPTI_FNS; i++) {
		found[i] = tfh_next_dlsym(from, list[i].name);
		if (!found[i])
			dlerror();
		if (!found[i] && list[i].needed)
			return false;
	}
	for (unsigned i = 0; i < TFH_CUPTI_FNS; i++)
		__atomic_store_n(&tfh_cupti_real[i], found[i], __ATOMIC_RELEASE);
	return true;
}

/* The loader blocks on a FIFO, and gets SIGBUS from a library truncated by a full disk or an
 * interrupted installation. A name without a slash is left to the loader's search. */
static bool whole(const char *path)
{
	int fd = strchr(path, '/') ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	ElfW(Ehdr) head;
	ElfW(Phdr) part;
	struct stat st;
	bool fine;

	if (fd < 0)
		return !strchr(path, '/');
	fine = !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
	       !memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_phentsize == sizeof(part);
	for (unsigned i = 0; fine && i < head.e_phnum; i++)
		fine = pread(fd, &part, sizeof(part), (off_t)(head.e_phoff + i * sizeof(part))) ==
			       sizeof(part) &&
		       (part.p_type != PT_LOAD ||
			(part.p_filesz <= (uint64_t)st.st_size &&
			 part.p_offset <= (uint64_t)st.st_size - part.p_filesz));
	close(fd);
	return fine;
}

/* Collapses double slashes, which come from search paths that end with a slash. */
static void copy_path(char *out, size_t size, const char *path)
{
	size_t n = 0;

	for (; *path && n + 1 < size; path++)
		if (*path != '/' || path[1] != '/')
			out[n++] = *path;
	out[n] = '\0';
}

/* Uses a library if the driver supports its release. */
static bool try(const char *path, int flags)
{
	void *opened = flags & RTLD_NOLOAD || whole(path)
			       ? dlopen(path, flags | RTLD_NOW | RTLD_LOCAL)
			       : NULL;
	uint32_t (*ask)(uint32_t *), v = 0, driver = driver_major();
	struct link_map *map;

	if (!opened) {
		dlerror();
		return false;
	}
	ask = (uint32_t(*)(uint32_t *))tfh_next_dlsym(opened, "cuptiGetVersion");
	if (!ask || ask(&v) || (driver && major_of(v) > driver) || !take_functions(opened)) {
		if (v && driver && major_of(v) > driver)
			tfh_gpu_why("%s is for CUDA %u, but the driver supports CUDA %u at most",
				    path, major_of(v), driver);
		dlclose(opened);
		return false;
	}
	version = v;
	path = dlinfo(opened, RTLD_DI_LINKMAP, &map) ? path : map->l_name;
	/* Keeps the library loaded even after a surplus dlclose by the job. */
	dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
	copy_path(library, sizeof(library), path);
	handle = opened;
	return true;
}

bool tfh_cupti_known(void)
{
	struct loaded l = {0};
	struct tfh_steady steady;
	bool known;

	if (__atomic_load_n(&tfh_cupti_real[0], __ATOMIC_ACQUIRE))
		return true;
	/* Cancellation or a longjmp in the middle would leave the loader's lock held. */
	tfh_steady_begin(&steady);
	tfh_each_object(look, &l);
	tfh_lookup_init();
	known = l.cupti[0] && try(l.cupti, RTLD_NOLOAD);
	tfh_steady_end(&steady);
	return known;
}

/* ---- places ---- */

struct cupti_search {
	uint32_t major[3]; /* in order of preference; 0 ends the list */
	bool found;
};

static void try_in(struct cupti_search *s, const char *dir, const char *below)
{
	for (int i = 0; i < 3 && s->major[i] && !s->found; i++) {
		char path[PATH_MAX + 128];
		snprintf(path, sizeof(path), "%s%s/libcupti.so.%u", dir, below, s->major[i]);
		glob_t g;
		/* Release 11 has only names such as libcupti.so.11.8. */
		if (s->major[i] == 11 && strlen(path) + 4 < sizeof(path))
			strcat(path, ".*");
		if (glob(path, 0, NULL, &g))
			continue;
		for (size_t k = 0; k < g.gl_pathc && !s->found; k++)
			s->found = try(g.gl_pathv[k], 0);
		globfree(&g);
	}
}

/* Directories of the libraries that come with CUDA, or of a Python installation. */
struct paths {
	char dir[16][PATH_MAX];
	unsigned n;
};

static void keep(struct paths *p, const char *path, size_t len)
{
	if (p->n == 16 || len >= PATH_MAX)
		return;
	for (unsigned i = 0; i < p->n; i++)
		if (strlen(p->dir[i]) == len && !memcmp(p->dir[i], path, len))
			return;
	memcpy(p->dir[p->n], path, len);
	p->dir[p->n++][len] = '\0';
}

static int look_for_sites(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *path = info->dlpi_name, *below = path ? tfh_in_packages(path) : NULL;

	(void)size;
	if (below)
		keep(data, path, (size_t)(below - path));
	return 0;
}

static int look_for_runtime(struct dl_phdr_info *info, size_t size, void *data)
{
	static const char *const names[] = {"libcudart.so", "libcublas.so", "libcublasLt.so",
					    "libnvrtc.so"};
	const char *path = info->dlpi_name, *file = tfh_file_of(path);

	(void)size;
	for (unsigned i = 0; i < 4; i++)
		if (!strncmp(file, names[i], strlen(names[i])) && file > path)
			keep(data, path, (size_t)(file - path));
	return 0;
}

static void try_python(struct cupti_search *s)
{
	struct paths p = {.n = 0};

	tfh_each_object(look_for_sites, &p);
	for (unsigned i = 0; i < p.n && !s->found; i++) {
		try_in(s, p.dir[i], "nvidia/cuda_cupti/lib");
		try_in(s, p.dir[i], "nvidia/cu13/lib");
	}
}

static void try_runtime(struct cupti_search *s)
{
	static const char *const below[] = {"", "../../cuda_cupti/lib", "../../cu13/lib",
					    "../extras/CUPTI/lib64", "../../../extras/CUPTI/lib64"};
	struct paths p = {.n = 0};

	tfh_each_object(look_for_runtime, &p);
	for (unsigned i = 0; i < p.n && !s->found; i++)
		for (unsigned k = 0; k < sizeof(below) / sizeof(*below) && !s->found; k++)
			try_in(s, p.dir[i], below[k]);
}

static void try_toolkit(struct cupti_search *s, const char *root)
{
	if (!root || !*root || s->found)
		return;
	try_in(s, root, "/extras/CUPTI/lib64");
	try_in(s, root, "/lib64");
}

static void try_system(struct cupti_search *s)
{
	glob_t g;

	try_toolkit(s, tfh_env("CUDA_HOME"));
	try_toolkit(s, tfh_env("CUDA_PATH"));
	if (!s->found && !glob("/usr/local/cuda*", 0, NULL, &g)) {
		for (size_t i = 0; i < g.gl_pathc; i++)
			try_toolkit(s, g.gl_pathv[i]);
		globfree(&g);
	}
	for (int i = 0; i < 3 && s->major[i] && !s->found; i++) {
		char name[32];
		if (s->major[i] != 11) {
			snprintf(name, sizeof(name), "libcupti.so.%u", s->major[i]);
			s->found = try(name, 0);
		}
		for (int minor = 8; s->major[i] == 11 && minor >= 0 && !s->found; minor--) {
			snprintf(name, sizeof(name), "libcupti.so.11.%d", minor);
			s->found = try(name, 0);
		}
	}
}

static void prefer(struct cupti_search *s, uint32_t runtime, uint32_t driver)
{
	unsigned n = 0;

	if (runtime >= 11 && runtime <= driver)
		s->major[n++] = runtime;
	for (uint32_t m = driver < 13 ? driver : 13; m >= 11 && n < 3; m--)
		if (m != runtime)
			s->major[n++] = m;
}

/* Loads the library that the job uses or names, else the best of the places where one may be.
 * Returns whether there is one, and reports why not. */
static bool search(const struct loaded *l)
{
	const char *given = tfh_setting_text(TFH_OPT_CUPTI_LIB);
	struct cupti_search s = {.found = false};
	uint32_t driver = driver_major();

	if (l->cupti[0])
		s.found = try(l->cupti, RTLD_NOLOAD);
	if (!s.found && *given) {
		s.found = try(given, 0);
		if (!s.found)
			tfh_gpu_why("TFHOOK_CUPTI_LIB=%s is not a CUPTI library that this driver "
				    "supports",
				    given);
		return s.found;
	}
	prefer(&s, l->runtime, driver);
	if (!s.found && l->cuda_dir[0])
		try_in(&s, l->cuda_dir, "");
	if (!s.found)
		try_runtime(&s);
	if (!s.found)
		try_python(&s);
	if (!s.found)
		try_system(&s);
	if (!s.found)
		tfh_gpu_why("no libcupti was found: install the package nvidia-cuda-cupti-cu%u, or "
			    "name the library in TFHOOK_CUPTI_LIB",
			    driver > 12 ? 13 : 12);
	return s.found;
}

int tfh_cupti_load(void)
{
	struct loaded l = {0};

	if (handle) {
		tfh_gpu_fact("gpu.library=%s", library);
		return 0;
	}
	tfh_each_object(look, &l);
	if (l.stub) {
		tfh_gpu_why("the driver library is a stub for linking (%slibcuda.so): take its "
			    "directory "
			    "out of LD_LIBRARY_PATH",
			    l.cuda_dir);
		return -ENOEXEC;
	}
	tfh_lookup_init();
	if (!search(&l))
		return -ENOENT;
	tfh_gpu_fact("gpu.library=%s", library);
	return 0;
}
