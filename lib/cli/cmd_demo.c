/*
 * `tfhook demo`: traces and judges real training jobs on the simulated GPU, and compares each
 * verdict with the defect built into the job. Exit code 1 if one is wrong.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "judge/judge.h"
#include "base/print.h"
#include "cli/capture.h"
#include "cli/cli.h"
#include "report/report.h"

struct scene {
	const char *demo;   /* the demo it belongs to */
	const char *name;   /* of its recording */
	const char *script; /* below demo/ */
	const char *story;
	const char *variables[4]; /* NAME=VALUE for the job */
	enum tfh_class cls;
	enum tfh_cause cause; /* TFH_CAUSE_NONE: any of the class */
};

static const struct scene scenes[] = {
	{"main",
	 "images",
	 "train_images.py",
	 "tinygrad trains a small network on the simulated GPU. Its batches come from\n"
	 "TensorFlow's tf.data: JPEG photos, decoded in a map that does one photo at a\n"
	 "time. That map is too slow for the GPU. The job knows nothing of tfhook; let us\n"
	 "see whether tfhook finds the map.",
	 {"SIM_INTERP=1"},
	 TFH_CLASS_INPUT_BOUND,
	 TFH_CAUSE_INPUT_MAP},
	{"quick",
	 "padded",
	 "train_padded.py",
	 "tinygrad trains a small network on the simulated GPU. Every record is padded to\n"
	 "ten times its length, and the padding is copied to the GPU with each batch (over\n"
	 "a simulated link of 0.05 GB/s, since the bytes are really moved). tfhook should\n"
	 "blame the copies.",
	 {"SIM_INTERP=1", "SIM_H2D_GBPS=0.05"},
	 TFH_CLASS_TRANSFER_BOUND,
	 TFH_CAUSE_NONE},
	{"quick",
	 "csv",
	 "train_csv.py",
	 "The same kind of job, fed by a loader in plain Python that reads its CSV file\n"
	 "again from the start for every batch. That is no input pipeline that tfhook\n"
	 "knows: it should say that the program's own code holds the GPU back.",
	 {"SIM_INTERP=1"},
	 TFH_CLASS_HOST_BOUND,
	 TFH_CAUSE_NONE},
};
#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

struct demo {
	char self[4096]; /* the command */
	char python[4096];
	char driver_dir[4096];
	char out[3072];
	bool color;
};

/* ---- requirements ---- */

static bool has_packages(char *python, bool tensorflow)
{
	char out[4096];
	char *argv[] = {
		python, "-c",
		tensorflow ? "import importlib.util as u, sys\n"
			     "sys.exit(any(not u.find_spec(m) for m in ('tinygrad', 'numpy', "
			     "'tensorflow')))"
			   : "import importlib.util as u, sys\n"
			     "sys.exit(any(not u.find_spec(m) for m in ('tinygrad', 'numpy')))",
		NULL};

	return !tfh_capture(argv, NULL, 60, out, sizeof(out));
}

/* The interpreter named by TFH_PY; else python3; else the one `make demo` prepared, if this command
 * was built in the source tree. */
static int find_python(struct demo *d, bool tensorflow)
{
	static const char *const prepared[] = {"quick", "main"};
	const char *given = getenv("TFH_PY");
	char scripts[4096];

	snprintf(d->python, sizeof(d->python), "%s", given && *given ? given : "python3");
	if (has_packages(d->python, tensorflow))
		return 0;
	bool built = !(given && *given) && !tfh_install_find("demo", scripts);
	for (size_t i = tensorflow; built && i < sizeof(prepared) / sizeof(prepared[0]); i++) {
		snprintf(d->python, sizeof(d->python), "%.3072s/../../build/venv/%s/bin/python",
			 scripts, prepared[i]);
		if (!access(d->python, X_OK) && has_packages(d->python, tensorflow))
			return 0;
	}
	tfh_say("the demo needs a python3 with %s; `make demo%s` in tfhook's source tree prepares "
		"one, or: python3 -m venv demo-env && demo-env/bin/pip install %s && "
		"PATH=demo-env/bin:$PATH tfhook demo%s",
		tensorflow ? "tinygrad, numpy and tensorflow" : "tinygrad and numpy",
		tensorflow ? "" : " DEMO=quick",
		tensorflow ? "tinygrad==0.14.0 numpy tensorflow-cpu" : "tinygrad==0.14.0 numpy",
		tensorflow ? "" : " quick");
	return -ENOENT;
}

/* Done before the first job runs, which takes a while. */
static int find_scripts(const char *name)
{
	char part[64], script[4096];

	for (size_t i = 0; i < SCENES; i++) {
		if (strcmp(scenes[i].demo, name))
			continue;
		snprintf(part, sizeof(part), "demo/%s", scenes[i].script);
		if (tfh_install_find(part, script)) {
			tfh_say("%s does not exist; build it (make) or install tfhook again (make "
				"install)",
				script);
			return -ENOENT;
		}
	}
	return 0;
}

static int prepare(struct demo *d, const struct tfh_command_line *args, const char *name)
{
	const char *out = tfh_line_get(args, "output"), *tmp = getenv("TMPDIR");
	ssize_t n = readlink("/proc/self/exe", d->self, sizeof(d->self) - 1);

	d->self[n > 0 ? n : 0] = '\0';
	if (tfh_install_find("sim/libcuda.so.1", d->driver_dir)) {
		tfh_say("the simulated GPU %s does not exist; build it (make) or install tfhook "
			"again (make install)",
			d->driver_dir);
		return -ENOENT;
	}
	*strrchr(d->driver_dir, '/') = '\0';
	if (find_scripts(name) || find_python(d, !strcmp(name, "main")))
		return -ENOENT;
	if (out) {
		snprintf(d->out, sizeof(d->out), "%s", out);
		if (mkdir(d->out, 0777) && errno != EEXIST) {
			tfh_say("cannot make %s: %s", d->out, strerror(errno));
			return -errno;
		}
		return 0;
	}
	snprintf(d->out, sizeof(d->out), "%.2048s/tfhook-demo-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(d->out)) {
		tfh_say("cannot make a directory in %s: %s", tmp && *tmp ? tmp : "/tmp",
			strerror(errno));
		return -errno;
	}
	return 0;
}

/* ---- one scene ---- */

static void set_variables(const struct demo *d, const struct scene *s)
{
	const char *path = getenv("LD_LIBRARY_PATH");
	char libraries[16384];

	snprintf(libraries, sizeof(libraries), "%s%s%s", d->driver_dir, path && *path ? ":" : "",
		 path ? path : "");
	setenv("LD_LIBRARY_PATH", libraries, 1);
	setenv("DEV", "CUDA:PTX", 1);
	setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
	setenv("TF_ENABLE_ONEDNN_OPTS", "0", 0);
	/* tinygrad caches compiled kernels below the home directory; the demo must not leave
	 * anything there. */
	setenv("CACHELEVEL", "0", 0);
	for (size_t i = 0; i < sizeof(s->variables) / sizeof(s->variables[0]) && s->variables[i];
	     i++)
		putenv((char *)s->variables[i]);
}

/* Runs `tfhook run` in a process of its own, as a user would. Returns its exit code. */
static int run_job(const struct demo *d, const struct scene *s, const char *dir, const char *script)
{
	int status;

	tfh_print(stdout, "$ tfhook run -o %s -- python3 %s\n", dir, s->script);
	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		set_variables(d, s);
		execl(d->self, "tfhook", "run", "-q", "-o", dir, "--", d->python, "-u", script,
		      (char *)NULL);
		_exit(TFH_EXIT_TOOL);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool is_right(const struct scene *s, const struct tfh_verdict *v)
{
	return v->cls == s->cls && (s->cause == TFH_CAUSE_NONE || v->cause == s->cause);
}

enum outcome { RIGHT, WRONG, WRONG_CROWDED, NO_VERDICT };

static enum outcome judge(const struct demo *d, const struct scene *s, const char *dir)
{
	struct tfh_style style = {.color = d->color, .utf8 = tfh_use_utf8()};
	struct tfh_wording words;
	struct tfh_result *result = NULL;
	struct tfh_run *run = NULL;
	struct tfh_err err = {0};
	const char *paths[] = {dir};

	tfh_print(stdout, "\n$ tfhook report %s\n", dir);
	int code = tfh_run_open(paths, 1, &run, &err);
	if (!code)
		code = tfh_analyze(run, &result, &err);
	if (code) {
		tfh_say_why(&err, code);
		tfh_run_close(run);
		return NO_VERDICT;
	}
	tfh_wording_make(&words, result);
	tfh_report_screen(stdout, &words, &style);
	tfh_wording_free(&words);
	bool right = is_right(s, &result->verdict);
	const char *cause = tfh_cause_name(result->verdict.cause);
	tfh_print(stdout, "\n%s: expected %s%s%s, found %s%s%s\n", right ? "RIGHT" : "WRONG",
		  tfh_class_name(s->cls), s->cause == TFH_CAUSE_NONE ? "" : " ",
		  s->cause == TFH_CAUSE_NONE ? "" : tfh_cause_name(s->cause),
		  tfh_class_name(result->verdict.cls), cause ? " " : "", cause ? cause : "");
	enum outcome outcome = right ? RIGHT : result->quality.crowded ? WRONG_CROWDED : WRONG;
	tfh_result_free(result);
	tfh_run_close(run);
	return outcome;
}

static enum outcome play_once(const struct demo *d, const struct scene *s, const char *again)
{
	char part[64], script[4096], dir[4096];

	snprintf(part, sizeof(part), "demo/%s", s->script);
	if (tfh_install_find(part, script))
		return NO_VERDICT;
	snprintf(dir, sizeof(dir), "%s/%s%s", d->out, s->name, again);
	int code = run_job(d, s, dir, script);
	if (code) {
		tfh_say("the job failed with exit code %d", code);
		return NO_VERDICT;
	}
	return judge(d, s, dir);
}

/* Other load can really slow the job down, so a wrong verdict gets a second try. */
static enum outcome play(const struct demo *d, const struct scene *s)
{
	tfh_put(s->story, stdout);
	tfh_put("\n\n", stdout);
	enum outcome outcome = play_once(d, s, "");
	if (outcome != WRONG_CROWDED)
		return outcome;
	tfh_put("Other work used the CPUs meanwhile (see the note above). Trying once more:\n\n",
		stdout);
	return play_once(d, s, "-again");
}

static int cmd_demo(const struct tfh_command_line *args)
{
	const char *name = args->operands ? args->operand[0] : "main";
	struct demo d = {.color = tfh_use_color(tfh_line_get(args, "color"), stdout)};
	unsigned played = 0, wrong = 0, failed = 0;
	bool known = false;

	for (size_t i = 0; i < SCENES; i++)
		known |= !strcmp(scenes[i].demo, name);
	if (!known || args->operands > 1) {
		tfh_say("demo: there are: %s", args->command->words);
		return TFH_EXIT_USAGE;
	}
	if (prepare(&d, args, name))
		return TFH_EXIT_TOOL;
	for (size_t i = 0; i < SCENES; i++) {
		if (strcmp(scenes[i].demo, name))
			continue;
		if (played++)
			tfh_put("\n----------------------------------------------------------------"
				"---"
				"-------------\n\n",
				stdout);
		enum outcome outcome = play(&d, &scenes[i]);
		wrong += outcome == WRONG || outcome == WRONG_CROWDED;
		failed += outcome == NO_VERDICT;
	}
	tfh_print(stdout,
		  "\nThe recordings stay in %s: try `tfhook report --steps` or `tfhook info` on "
		  "them.\n",
		  d.out);
	fflush(stdout);
	if (wrong)
		tfh_say("%u of %u verdicts do not name the fault that was built in. This happens "
			"on a machine that is busy with other work (the reports then have a note)",
			wrong, played);
	if (failed)
		return TFH_EXIT_TOOL;
	return wrong ? TFH_EXIT_GATE : TFH_EXIT_OK;
}

const struct tfh_command tfh_cmd_demo = {
	.name = "demo",
	.operand_text = "[main|quick]",
	.summary = "record a real training job on the simulated GPU and report on it",
	.details = "main    tinygrad trains on the simulated GPU, fed by a tf.data pipeline with a "
		   "slow map\n"
		   "quick   the same without TensorFlow: copies ten times too large, then a slow "
		   "loader\n\n"
		   "Needs a python3 with tinygrad and numpy (main: tensorflow, too); `make demo` "
		   "prepares one.",
	.operands = TFH_OPERANDS_WORDS,
	.words = "main quick",
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_demo,
	.flags =
		{
			{.name = "output",
			 .letter = 'o',
			 .arg = "DIR",
			 .help = "keep the recordings below DIR"},
			TFH_FLAG_COLOR,
		},
};
