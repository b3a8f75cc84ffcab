/* The checks of `tfhook doctor` for the GPU driver and device times. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/capture.h"
#include "cli/doctor.h"

/* A child's findings. */
struct library_look {
	int there;
	int version;	 /* as the library counts: 13010 is 13.1; 0 = unknown */
	char path[4096]; /* of the library */
};

/* Driver libraries start threads and open devices, so they are loaded only in a child. False if it
 * crashed. */
static bool in_child(void (*look)(struct library_look *), struct library_look *out)
{
	struct library_look *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = -1;

	memset(out, 0, sizeof(*out));
	if (shared == MAP_FAILED)
		return false;
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		look(shared);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*out = *shared;
	munmap(shared, sizeof(*shared));
	return pid > 0 && WIFEXITED(status);
}

static void where(struct library_look *l, void *symbol)
{
	Dl_info info;

	if (symbol && dladdr(symbol, &info) && info.dli_fname)
		snprintf(l->path, sizeof(l->path), "%s", info.dli_fname);
}

static void look_at_driver(struct library_look *l)
{
	const char *given = getenv("TFHOOK_CUDA_LIB");
	void *lib = dlopen(given && *given ? given : "libcuda.so.1", RTLD_NOW);

	if (!lib)
		return;
	l->there = 1;
	int (*get)(int *) = (int (*)(int *))dlsym(lib, "cuDriverGetVersion");
	where(l, (void *)get);
	if (get && (get(&l->version) || l->version < 0 || l->version > 250000))
		l->version = 0;
}

static const char *one_cupti; /* the only library to check, or NULL: the loader's choice */

static void look_at_cupti(struct library_look *l)
{
	static const char *const names[] = {"libcupti.so", "libcupti.so.13", "libcupti.so.12"};
	void *lib = one_cupti ? dlopen(one_cupti, RTLD_NOW) : NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !one_cupti && !lib; i++)
		lib = dlopen(names[i], RTLD_NOW);
	if (!lib)
		return;
	l->there = 1;
	int (*get)(uint32_t *) = (int (*)(uint32_t *))dlsym(lib, "cuptiGetVersion");
	uint32_t version = 0;
	where(l, (void *)get);
	if (get && !get(&version))
		l->version = (int)version;
}

/* pip's copy: the first of the package directories that has one. */
static bool cupti_of(const char *python, char *out, size_t size)
{
	char *argv[] = {(char *)python, "-c",
			"import glob, os, sys\n"
			"print(*[f for p in sys.path for d in ('cuda_cupti', 'cu13') "
			"for f in glob.glob(os.path.join(p, 'nvidia', d, 'lib', "
			"'libcupti.so.*'))][:1])",
			NULL};

	if (tfh_capture(argv, NULL, 20, out, size))
		return false;
	out[strcspn(out, "\n")] = '\0';
	return *out != '\0';
}

/* NVIDIA's kernel module reserves profiling for administrators by default. */
static void check_permission(struct tfh_doctor *d)
{
	FILE *f = fopen("/proc/driver/nvidia/params", "re");
	char line[256];
	int admin = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "RmProfilingAdminOnly: %d", &admin);
	if (f)
		fclose(f);
	if (admin == 1 && geteuid())
		tfh_finding(
			d, TFH_NOTE,
			"device times: the kernel module restricts them to administrators; an "
			"administrator can set NVreg_RestrictProfilingToAdminUsers=0 and reload it "
			"(otherwise: verdicts from host calls, tier C)");
	else if (admin >= 0)
		tfh_finding(d, TFH_GOOD, "device times: allowed by the kernel module");
}

static void check_cupti(struct tfh_doctor *d, const struct library_look *driver, const char *python)
{
	const char *given = getenv("TFHOOK_CUPTI_LIB");
	char path[8192];
	struct library_look cupti;
	bool fine;

	one_cupti = given && *given ? given : NULL;
	fine = in_child(look_at_cupti, &cupti);
	if (!one_cupti && !cupti.there && fine && cupti_of(python, path, sizeof(path))) {
		one_cupti = path;
		fine = in_child(look_at_cupti, &cupti);
	}
	if (!fine)
		tfh_finding(d, TFH_NOTE, "CUPTI: crashed when asked for its version");
	else if (!cupti.there)
		tfh_finding(d, TFH_NOTE,
			    "CUPTI: none found, so no device times (tier C): install the package "
			    "nvidia-cuda-cupti-cu%d, or name the library in TFHOOK_CUPTI_LIB%s",
			    driver->version / 1000 > 12 ? 13 : 12,
			    given && *given ? " (the one named cannot be loaded)" : "");
	else
		tfh_finding(d, TFH_GOOD, "CUPTI: %s; device times of kernels and copies",
			    *cupti.path ? cupti.path : "found");
	if (cupti.there)
		check_permission(d);
}

static void check_driver(struct tfh_doctor *d, const char *python)
{
	struct library_look driver;

	if (!in_child(look_at_driver, &driver))
		tfh_finding(d, TFH_NOTE,
			    "the GPU driver library (libcuda.so.1) crashed when asked for its "
			    "version");
	else if (!driver.there)
		tfh_finding(
			d, TFH_NOTE,
			"no GPU driver (libcuda.so.1): only jobs of TensorFlow and PyTorch on the "
			"CPU can be recorded here; `tfhook demo` has a simulated driver. A job "
			"that looks for a driver among its own symbols needs TFHOOK_EXPORTS=0");
	else if (!driver.version)
		tfh_finding(d, TFH_GOOD, "GPU driver: %s, which reports no version", driver.path);
	else
		tfh_finding(d, TFH_GOOD, "GPU driver: %s, for CUDA %d.%d", driver.path,
			    driver.version / 1000, driver.version % 1000 / 10);
	if (driver.there)
		check_cupti(d, &driver, python);
}

/* Call sites need an unwinder; ranges need NVTX's single injection slot. */
static void check_extras(struct tfh_doctor *d)
{
	const char *nvtx = getenv("NVTX_INJECTION64_PATH");

#ifdef TFH_LIBUNWIND
	tfh_finding(d, TFH_GOOD,
		    "call sites of slow calls: unwound by the recorder's own libunwind");
#else
	tfh_finding(
		d, TFH_NOTE,
		"call sites of slow calls: this build has no libunwind, so libgcc_s.so.1 unwinds, "
		"which is slower");
#endif
	if (nvtx && *nvtx && !strstr(nvtx, "libtfhook"))
		tfh_finding(d, TFH_NOTE,
			    "NVTX ranges go to %s (NVTX_INJECTION64_PATH), so tfhook does not see "
			    "them",
			    nvtx);
	else
		tfh_finding(d, TFH_GOOD,
			    "NVTX ranges of a job are recorded (NVTX_INJECTION64_PATH is free)");
}

void tfh_doctor_gpu(struct tfh_doctor *d, const char *python)
{
	check_driver(d, python);
	check_extras(d);
}
