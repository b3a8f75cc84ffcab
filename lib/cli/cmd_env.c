/* `tfhook env`: prints the variables, for launchers that cannot be started through `tfhook run`. */
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/json.h"
#include "base/options.h"
#include "base/print.h"
#include "cli/cli.h"
#include "cli/run.h"

/* In single quotes, for a shell. */
static void print_quoted(const char *text)
{
	tfh_put("'", stdout);
	for (size_t len; *text; text += len + (text[len] == '\'')) {
		len = strcspn(text, "'");
		tfh_print(stdout, text[len] ? "%.*s'\\''" : "%.*s", (int)len, text);
	}
	tfh_put("'", stdout);
}

/* Text that cannot be printed unchanged would name another path when read back. */
static bool printable(const char *name, const char *value)
{
	for (uint32_t c; *value; value += tfh_utf8(value, strlen(value), NULL))
		if (!tfh_utf8(value, strlen(value), &c) || !tfh_shown(c)) {
			tfh_say("%s contains an unprintable character: rename that file or "
				"directory",
				name);
			return false;
		}
	return true;
}

static void print_settings(void)
{
	int width = 0;

	tfh_put("\n# Settings [default]:\n", stdout);
	for (int i = 0; i < TFH_OPT_COUNT; i++)
		if ((int)strlen(tfh_option_specs[i].name) > width)
			width = (int)strlen(tfh_option_specs[i].name);
	for (int i = 0; i < TFH_OPT_COUNT; i++) {
		const struct tfh_option_spec *s = &tfh_option_specs[i];
		bool shown = *s->fallback && strcmp(s->fallback, "-1"); /* -1: unknown */

		tfh_print(stdout, "#   %-*s  %s%s%s%s\n", width, s->name, s->help,
			  shown ? " [" : "", shown ? s->fallback : "", shown ? "]" : "");
	}
}

/* Prints "export NAME=value" with the variable's existing value; false if that cannot be printed.
 */
static bool print_export(const char *name, const char *ours)
{
	char *value = tfh_preload_value(ours, getenv(name));
	bool fine = printable(name, value ? value : ours);

	if (fine) {
		tfh_print(stdout, "export %s=", name);
		print_quoted(value ? value : ours);
		tfh_put("\n", stdout);
	}
	free(value);
	return fine;
}

struct variable {
	const char *name, *value;
};

/* The list ends at the first entry without a value. */
static void list_variables(const struct tfh_library *library, struct variable list[4])
{
	memset(list, 0, 4 * sizeof(*list));
	list[0] = (struct variable){"LD_PRELOAD", library->preload};
	list[1] = (struct variable){"NVTX_INJECTION64_PATH", library->path};
	list[2] = (struct variable){"LD_AUDIT", *library->audit ? library->audit : NULL};
}

/* Prints the `environment` of a training job. */
static int print_sagemaker(const struct tfh_library *library)
{
	struct variable list[4];
	struct tfh_json j;

	list_variables(library, list);
	tfh_json_init(&j, stdout, 2);
	tfh_json_object(&j);
	for (const struct variable *v = list; v->value; v++)
		tfh_json_kstr(&j, v->name, v->value);
	tfh_json_end(&j);
	return tfh_json_finish(&j) ? TFH_EXIT_GATE : TFH_EXIT_OK;
}

/* Prints a patch for a pod: it mounts the node's recorder folder at the same path in the
 * container. */
static int print_k8s(const struct tfh_library *library)
{
	struct variable list[4];
	struct tfh_json j;
	char dir[4096];

	memcpy(dir, library->path, sizeof(dir));
	*strrchr(dir, '/') = '\0';
	list_variables(library, list);
	tfh_json_init(&j, stdout, 2);
	tfh_json_object(&j);
	tfh_json_key(&j, "spec");
	tfh_json_object(&j);
	tfh_json_key(&j, "containers");
	tfh_json_array(&j);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "name", "training");
	tfh_json_key(&j, "env");
	tfh_json_array(&j);
	for (const struct variable *v = list; v->value; v++) {
		tfh_json_object(&j);
		tfh_json_kstr(&j, "name", v->name);
		tfh_json_kstr(&j, "value", v->value);
		tfh_json_end(&j);
	}
	tfh_json_end(&j);
	tfh_json_key(&j, "volumeMounts");
	tfh_json_array(&j);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "name", "tfhook");
	tfh_json_kstr(&j, "mountPath", dir);
	tfh_json_kbool(&j, "readOnly", true);
	for (int i = 0; i < 4; i++) /* mount, mounts, container, containers */
		tfh_json_end(&j);
	tfh_json_key(&j, "volumes");
	tfh_json_array(&j);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "name", "tfhook");
	tfh_json_key(&j, "hostPath");
	tfh_json_object(&j);
	tfh_json_kstr(&j, "path", dir);
	tfh_json_kstr(&j, "type", "Directory");
	for (int i = 0; i < 5; i++) /* path, volume, volumes, spec, patch */
		tfh_json_end(&j);
	return tfh_json_finish(&j) ? TFH_EXIT_GATE : TFH_EXIT_OK;
}

static int print_docker(const struct tfh_library *library)
{
	tfh_print(stdout, "--env LD_PRELOAD=%s --env NVTX_INJECTION64_PATH=%s --volume %s:%s:ro",
		  library->path, library->path, library->path, library->path);
	if (*library->audit)
		tfh_print(stdout, " --env LD_AUDIT=%s --volume %s:%s:ro", library->audit,
			  library->audit, library->audit);
	tfh_put("\n", stdout);
	return TFH_EXIT_OK;
}

static int print_slurm(const struct tfh_library *library)
{
	tfh_print(stdout, "--export=ALL,LD_PRELOAD=%s", library->preload);
	if (!getenv("NVTX_INJECTION64_PATH"))
		tfh_print(stdout, ",NVTX_INJECTION64_PATH=%s", library->path);
	if (*library->audit)
		tfh_print(stdout, ",LD_AUDIT=%s", library->audit);
	tfh_put("\n", stdout);
	return TFH_EXIT_OK;
}

static int print_shell(const struct tfh_library *library)
{
	if (!print_export("LD_PRELOAD", library->preload) ||
	    (!getenv("NVTX_INJECTION64_PATH") &&
	     !print_export("NVTX_INJECTION64_PATH", library->path)) ||
	    (*library->audit && !print_export("LD_AUDIT", library->audit)))
		return TFH_EXIT_GATE;
	print_settings();
	tfh_check_variables();
	return TFH_EXIT_OK;
}

static const struct {
	const char *format;
	int (*print)(const struct tfh_library *library);
} launchers[] = {
	{"docker", print_docker},
	{"slurm", print_slurm},
	{"k8s", print_k8s},
	{"sagemaker", print_sagemaker},
};

static int cmd_env(const struct tfh_command_line *args)
{
	const char *format = tfh_line_get(args, "format");
	struct tfh_library library;
	struct tfh_err err;

	if (tfh_library_find(&library, false, &err) ||
	    (tfh_line_get(args, "audit") && tfh_library_add_audit(&library, false, &err))) {
		tfh_say("%s", err.text);
		return TFH_EXIT_GATE;
	}
	if (strpbrk(library.path, " :")) {
		tfh_say("the recorder's path has a blank or colon, which LD_PRELOAD cannot "
			"express: %s; copy it to another directory (`tfhook run` makes a link by "
			"itself)",
			library.path);
		return TFH_EXIT_GATE;
	}
	if (!printable("the recorder's path", library.path))
		return TFH_EXIT_GATE;
	for (size_t i = 0; format && i < sizeof(launchers) / sizeof(*launchers); i++)
		if (!strcmp(format, launchers[i].format))
			return launchers[i].print(&library);
	return print_shell(&library);
}

const struct tfh_command tfh_cmd_env = {
	.name = "env",
	.operand_text = "",
	.summary = "print the variables for launchers that start the job themselves",
	.details =
		"eval \"$(tfhook env)\" sets them in this shell. All settings follow as comments.",
	.operands = TFH_OPERANDS_NONE,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_env,
	.flags =
		{
			{.name = "format",
			 .arg = "FORM",
			 .choices = "shell docker slurm k8s sagemaker",
			 .help = "shell: export lines; docker: flags; slurm: a list for sbatch "
				 "--export; k8s: a JSON patch for kubectl, of a pod whose "
				 "container is called training and whose node has tfhook; "
				 "sagemaker: the environment (JSON) of a job whose image has "
				 "tfhook"},
			TFH_FLAG_AUDIT,
		},
};
