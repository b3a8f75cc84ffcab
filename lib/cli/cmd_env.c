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
	puts("\n# Settings (default):");
	for (int i = 0; i < TFH_OPT_COUNT; i++) {
		const struct tfh_option_spec *s = &tfh_option_specs[i];
		if (s->later)
			continue;
		printf("#   %-18s %s%s%s%s\n", s->name, s->help, *s->fallback ? " (" : "",
		       s->fallback, *s->fallback ? ")" : "");
	}
}

int tfh_cmd_env(const struct tfh_line *args)
{
	const char *format = tfh_line_get(args, "format");
	struct tfh_library library;
	struct tfh_err err;

	if (tfh_library_find(&library, false, &err)) {
		tfh_say("%s", err.text);
		return TFH_EXIT_GATE;
	}
	if (strpbrk(library.path, " :")) {
		tfh_say("the recorder's path has a blank or colon, which LD_PRELOAD cannot "
			"express: %s; copy it to "
			"another place (`tfhook run` makes a link by itself)",
			library.path);
		return TFH_EXIT_GATE;
	}
	if (format && !strcmp(format, "docker")) {
		printf("--env LD_PRELOAD=%s --volume %s:%s:ro\n", library.path, library.path,
		       library.path);
		return TFH_EXIT_OK;
	}
	if (format && !strcmp(format, "slurm")) {
		printf("--export=ALL,LD_PRELOAD=%s\n", library.path);
		return TFH_EXIT_OK;
	}
	char *preload = tfh_preload_value(library.path, getenv("LD_PRELOAD"));
	printf("export LD_PRELOAD=");
	print_quoted(preload ? preload : library.path);
	free(preload);
	putchar('\n');
	print_settings();
	tfh_unknown_variables();
	return TFH_EXIT_OK;
}
