/* `tfhook env`: the variables for launchers that `tfhook run` cannot stand before. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "cli/cli.h"
#include "cli/run.h"

/* In single quotes, for a shell to read back. */
static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	}
	putchar('\'');
}

static void print_settings(void)
{
	int width = 0;

	puts("\n# Settings [default]:");
	for (int i = 0; i < TFH_OPT_COUNT; i++)
		if ((int)strlen(tfh_option_specs[i].name) > width)
			width = (int)strlen(tfh_option_specs[i].name);
	for (int i = 0; i < TFH_OPT_COUNT; i++) {
		const struct tfh_option_spec *s = &tfh_option_specs[i];
		bool shown = *s->fallback && strcmp(s->fallback, "-1"); /* -1: not known */

		printf("#   %-*s  %s%s%s%s\n", width, s->name, s->help, shown ? " [" : "",
		       shown ? s->fallback : "", shown ? "]" : "");
	}
}

static void print_export(const char *name, const char *ours)
{
	char *value = tfh_preload_value(ours, getenv(name));

	printf("export %s=", name);
	print_quoted(value ? value : ours);
	free(value);
	putchar('\n');
}

int tfh_cmd_env(const struct tfh_line *args)
{
	const char *format = tfh_line_get(args, "format");
	struct tfh_library library;
	struct tfh_err err;

	if (tfh_library_find(&library, false, &err) ||
	    (tfh_line_get(args, "audit") && tfh_library_add_audit(&library, false, &err))) {
		tfh_say("%s", err.text);
		return TFH_EXIT_GATE;
	}
	const char *audit = *library.audit ? library.audit : NULL;
	if (strpbrk(library.path, " :")) {
		tfh_say("the recorder's path has a blank or colon, which LD_PRELOAD cannot "
			"express: %s; copy it to "
			"another place (`tfhook run` makes a link by itself)",
			library.path);
		return TFH_EXIT_GATE;
	}
	if (format && !strcmp(format, "docker")) {
		printf("--env LD_PRELOAD=%s --env NVTX_INJECTION64_PATH=%s --volume %s:%s:ro",
		       library.path, library.path, library.path, library.path);
		if (audit)
			printf(" --env LD_AUDIT=%s --volume %s:%s:ro", audit, audit, audit);
		putchar('\n');
		return TFH_EXIT_OK;
	}
	if (format && !strcmp(format, "slurm")) {
		printf("--export=ALL,LD_PRELOAD=%s", library.path);
		if (!getenv("NVTX_INJECTION64_PATH"))
			printf(",NVTX_INJECTION64_PATH=%s", library.path);
		if (audit)
			printf(",LD_AUDIT=%s", audit);
		putchar('\n');
		return TFH_EXIT_OK;
	}
	print_export("LD_PRELOAD", library.path);
	if (!getenv("NVTX_INJECTION64_PATH"))
		print_export("NVTX_INJECTION64_PATH", library.path);
	if (audit)
		print_export("LD_AUDIT", audit);
	print_settings();
	tfh_check_variables();
	return TFH_EXIT_OK;
}
