/* `tfhook doctor`: can this machine, and a given command, be traced? Each check prints its result
 * and the remedy. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/print.h"
#include "base/python.h"
#include "base/text.h"
#include "cli/capture.h"
#include "cli/cli.h"
#include "cli/doctor.h"

static void check_recorder(struct tfh_doctor *d)
{
	struct tfh_err err;
	char out[8192];

	if (tfh_library_find(&d->library, true, &err)) {
		tfh_finding(d, TFH_BAD, "%s", err.text);
		return;
	}
	char *argv[] = {"cat", "/proc/self/maps", NULL};
	int code = tfh_capture(argv, d->library.preload, 10, out, sizeof(out));
	const char *error = strstr(out, "ERROR: ld.so");
	if (error)
		tfh_finding(d, TFH_BAD, "the loader refuses the recorder: %.*s",
			    (int)strcspn(error, "\n"), error);
	else if (code || !strstr(out, "libtfhook"))
		tfh_finding(d, TFH_BAD,
			    "the recorder %s is not loaded into processes (is LD_PRELOAD ignored "
			    "here?)",
			    d->library.path);
	else
		tfh_finding(d, TFH_GOOD, "the recorder is loaded into processes: %s",
			    d->library.path);
}

static void check_places(struct tfh_doctor *d)
{
	const char *dir = getenv("TFHOOK_DIR");
	struct statvfs st;
	uint64_t least;

	if (!dir || !*dir)
		dir = ".";
	int64_t room = tfh_place_room(dir, &least);
	if (access(dir, W_OK | X_OK))
		tfh_finding(d, TFH_BAD,
			    "recordings cannot be written to %s: %s; use -o DIR or TFHOOK_DIR", dir,
			    strerror(errno));
	else if (room < 0)
		tfh_finding(
			d, TFH_BAD,
			"%s has %.1f GiB free; recording pauses below %.1f GiB: free some space, "
			"or use -o DIR",
			dir, (double)((int64_t)least + room) / (1 << 30),
			(double)least / (1 << 30));
	else
		tfh_finding(d, TFH_GOOD, "recordings go to %s: %.1f GiB may be written there", dir,
			    (double)room / (1 << 30));
	if (statvfs("/dev/shm", &st))
		tfh_finding(d, TFH_NOTE, "no /dev/shm: journals go beside the recordings");
	else if ((uint64_t)st.f_bavail * st.f_frsize / 32 < 16u << 20)
		tfh_finding(
			d, TFH_NOTE,
			"/dev/shm has little space (%.0f MiB): journals go beside the recordings",
			(double)st.f_bavail * (double)st.f_frsize / (1 << 20));
	else
		tfh_finding(d, TFH_GOOD, "/dev/shm: %.1f GiB free",
			    (double)st.f_bavail * (double)st.f_frsize / (1 << 30));
}

static void check_clock(struct tfh_doctor *d)
{
	char name[64] = "";
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");

	if (f && fgets(name, sizeof(name), f))
		name[strcspn(name, "\n")] = '\0';
	if (f)
		fclose(f);
	if (!strcmp(name, "tsc"))
		tfh_finding(d, TFH_GOOD,
			    "clock: the kernel trusts the CPU's time stamp counter (%s)", name);
	else
		tfh_finding(d, TFH_NOTE,
			    "clock: the kernel uses %s; recording a call may cost a little more",
			    *name ? name : "an unknown source");
}

/* ---- TensorFlow ---- */

static const struct {
	const char *text, *symbol;
} tf_symbols[] = {
#define TF_FN(id, text, family, args, props, symbol, stack) {text, symbol},
#define TORCH_FN(...)
#include "base/tf_api.def"
#undef TF_FN
};
#define TF_SYMBOLS (sizeof(tf_symbols) / sizeof(tf_symbols[0]))

/* Marks the symbols whose names occur in the file's string table. */
static void search_file(const char *path, bool *found)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	void *map = fstat(fd, &st) || !st.st_size
			    ? MAP_FAILED
			    : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return;
	for (size_t i = 0; i < TF_SYMBOLS; i++)
		if (!found[i] && *tf_symbols[i].symbol)
			found[i] = memmem(map, (size_t)st.st_size, tf_symbols[i].symbol,
					  strlen(tf_symbols[i].symbol) + 1) != NULL;
	munmap(map, (size_t)st.st_size);
}

static void report_symbols(struct tfh_doctor *d, const char *dir, const bool *found)
{
	char missing[512] = "";
	unsigned n = 0, have = 0;

	for (size_t i = 0; i < TF_SYMBOLS; i++) {
		/* The symbol for custom loaders is not part of TensorFlow. */
		if (!*tf_symbols[i].symbol ||
		    !strcmp(tf_symbols[i].symbol, "tf_data_iterator_get_next"))
			continue;
		n++;
		have += found[i];
		if (!found[i]) {
			size_t used = strlen(missing);
			snprintf(missing + used, sizeof(missing) - used, "%s%s", used ? ", " : "",
				 tf_symbols[i].text);
		}
	}
	if (have == n)
		tfh_finding(d, TFH_GOOD, "TensorFlow in %s: all %u functions to hook are present",
			    dir, n);
	else
		tfh_finding(d, have ? TFH_NOTE : TFH_BAD,
			    "TensorFlow in %s: %u of %u functions to hook are present; missing: %s",
			    dir, have, n, missing);
}

/* Checks the libraries whose input pipelines are recorded. */
static void check_frameworks(struct tfh_doctor *d, const char *python)
{
	static const char *const libraries[] = {
		"libtensorflow_framework.so.2", "libtensorflow_cc.so.2",
		"python/_pywrap_tensorflow_common.so", "python/_pywrap_tensorflow_internal.so",
		"libtensorflow.so.2"};
	char out[PATH_MAX * 2];
	bool found[TF_SYMBOLS] = {false};
	char *argv[] = {(char *)python, "-c",
			"import importlib.util as u, os; s = u.find_spec('tensorflow'); "
			"print(os.path.dirname(s.origin) if s else '')\n"
			"print('torch' if u.find_spec('torch') else '')",
			NULL};

	if (tfh_capture(argv, NULL, 20, out, sizeof(out))) {
		tfh_finding(d, TFH_NOTE, "%s cannot be checked for TensorFlow and PyTorch", python);
		return;
	}
	bool torch = strstr(out, "\ntorch\n");
	out[strcspn(out, "\n")] = '\0';
	if (torch)
		tfh_finding(d, TFH_GOOD, "PyTorch: batches of its DataLoader are recorded");
	if (!*out && torch)
		return;
	if (!*out) {
		tfh_finding(d, TFH_NOTE,
			    "%s has neither TensorFlow nor PyTorch: no input pipeline will be seen",
			    python);
		return;
	}
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		char path[PATH_MAX * 3];
		snprintf(path, sizeof(path), "%s/%s", out, libraries[i]);
		search_file(path, found);
	}
	report_symbols(d, out, found);
}

/* Checks whether this interpreter's stacks can be read. */
static void check_lines(struct tfh_doctor *d, const char *python)
{
	char out[256] = "", make[32] = "";
	char *argv[] = {(char *)python, "-c",
			"import sys, sysconfig as s; print(sys.implementation.name, '%d %d %d' % "
			"sys.version_info[:3], int(bool(s.get_config_var('Py_GIL_DISABLED'))))",
			NULL};
	unsigned major, minor, micro, free_threaded;

	if (tfh_capture(argv, NULL, 20, out, sizeof(out)) ||
	    sscanf(out, "%31s %u %u %u %u", make, &major, &minor, &micro, &free_threaded) != 5)
		tfh_finding(
			d, TFH_NOTE,
			"%s does not print its version: whether lines of Python will be seen is "
			"unknown",
			python);
	else if (strcmp(make, "cpython") || major != 3 || minor < TFH_PY_FIRST ||
		 minor > TFH_PY_LAST)
		tfh_finding(d, TFH_NOTE,
			    "lines of Python will not be seen: %s is %s %u.%u, and CPython 3.%d to "
			    "3.%d can be read",
			    python, make, major, minor, TFH_PY_FIRST, TFH_PY_LAST);
	else if (free_threaded)
		tfh_finding(d, TFH_NOTE,
			    "lines of Python will not be seen: %s is a build without the GIL "
			    "(free-threaded); use the ordinary build of %u.%u",
			    python, major, minor);
	else
		tfh_finding(d, TFH_GOOD, "lines of Python %u.%u.%u will be seen", major, minor,
			    micro);
}

/* Checks for Python packages that need more than the preload. */
static void check_packages(struct tfh_doctor *d, const char *python)
{
	static const struct {
		const char *name, *remedy;
	} special[] = {
		{"taichi", "opens its GPU library with RTLD_DEEPBIND: record it with `tfhook run "
			   "--audit`"},
		{"slangpy", "defines driver names as data: record it with TFHOOK_EXPORTS=0"},
	};
	char out[256];
	char *argv[] = {(char *)python, "-c",
			"import importlib.util as u; "
			"print(*[n for n in ('taichi', 'slangpy') if u.find_spec(n)])",
			NULL};

	if (tfh_capture(argv, NULL, 20, out, sizeof(out)))
		return;
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (strstr(out, special[i].name))
			tfh_finding(d, TFH_NOTE, "%s in %s %s", special[i].name, python,
				    special[i].remedy);
}

static void check_audit(struct tfh_doctor *d)
{
	struct tfh_library library = {0};
	struct tfh_err err;

	if (tfh_library_add_audit(&library, false, &err))
		tfh_finding(d, TFH_NOTE, "%s", err.text);
	else
		tfh_finding(d, TFH_GOOD,
			    "libraries opened with RTLD_DEEPBIND are recorded with `tfhook run "
			    "--audit`, those opened with dlmopen never");
}

/* ---- the command ---- */

static bool is_python(const char *path)
{
	return tfh_starts_with(tfh_file_of(path), "python");
}

static void check_command(struct tfh_doctor *d, const char *command)
{
	struct tfh_program program;

	tfh_program_check(command, &program);
	if (program.state == TFH_PROGRAM_OK)
		tfh_finding(d, TFH_GOOD, "%s can be recorded", program.path);
	else
		tfh_finding(d, TFH_BAD, "%s", program.why);
}

static int cmd_doctor(const struct tfh_command_line *args)
{
	struct tfh_doctor d = {.color = tfh_use_color(tfh_line_get(args, "color"), stdout)};
	const char *command = args->operands ? args->operand[0] : NULL;

	check_recorder(&d);
	check_places(&d);
	check_clock(&d);
	const char *python = command && is_python(command) ? command : "python3";
	tfh_doctor_gpu(&d, python);
	check_frameworks(&d, python);
	check_lines(&d, python);
	check_packages(&d, python);
	check_audit(&d);
	if (command)
		check_command(&d, command);
	tfh_library_release(&d.library);
	fflush(stdout);
	if (tfh_check_variables())
		d.bad++;
	tfh_print(stdout, "%s\n",
		  d.bad ? "a job cannot be recorded here: see BAD and the messages above"
			: "a job can be recorded here");
	return d.bad ? TFH_EXIT_GATE : TFH_EXIT_OK;
}

const struct tfh_command tfh_cmd_doctor = {
	.name = "doctor",
	.operand_text = "[CMD]",
	.summary = "check whether jobs here (or CMD) can be recorded, and what to do if not",
	.details = "Exit code: 0 if a job can be recorded here, 1 if not.",
	.operands = TFH_OPERANDS_COMMAND,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_doctor,
	.flags = {TFH_FLAG_COLOR},
};
