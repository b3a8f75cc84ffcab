/* Help and completion scripts, both generated from the table of commands. */
#include <string.h>

#include "base/nearest.h"
#include "base/print.h"
#include "cli/cli.h"
#include "tfhook/version.h"

/* Prints paragraphs; in a line "name   text", the text has a hanging indent. */
static void details(FILE *out, const char *text)
{
	char line[1024];

	while (*text) {
		size_t len = strcspn(text, "\n"), indent = 0;
		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		const char *gap = strstr(line, "  ");
		if (gap)
			indent = (size_t)(gap - line) + strspn(gap, " ");
		tfh_print_wrapped(out, 0, indent, line);
		text += len + (text[len] == '\n');
	}
}

void tfh_help_all(FILE *out, const struct tfh_command *const *all)
{
	tfh_put("tfhook: where does each training step's time go, what holds the job back,\n"
		"and what would fixing it gain?\n\n"
		"usage: tfhook COMMAND [FLAGS] ...\n\n"
		"  tfhook run python3 train.py     record a job; ends with a verdict\n"
		"  tfhook report                   the verdict of the newest recording here, one "
		"screen\n\n",
		out);
	for (const struct tfh_command *const *c = all; *c; c++) {
		tfh_print(out, "  %-12s ", (*c)->name);
		tfh_print_wrapped(out, 15, 15, (*c)->summary);
	}
	tfh_put("\n`tfhook help COMMAND` describes one of them.\n", out);
}

void tfh_help_command(FILE *out, const struct tfh_command *command)
{
	tfh_print(out, "usage: tfhook %s%s%s%s\n\n%s\n", command->name,
		  command->flags[0].name ? " [FLAGS]" : "", *command->operand_text ? " " : "",
		  command->operand_text, command->summary);
	if (command->flags[0].name)
		tfh_put("\n", out);
	for (size_t i = 0; i < TFH_MAX_FLAGS && command->flags[i].name; i++) {
		const struct tfh_flag *flag = &command->flags[i];
		char form[64], letter[8] = "    ";
		if (flag->letter)
			snprintf(letter, sizeof(letter), "-%c, ", flag->letter);
		snprintf(form, sizeof(form), "%s--%s%s%s", letter, flag->name, flag->arg ? " " : "",
			 flag->arg ? flag->arg : "");
		tfh_print(out, strlen(form) > 20 ? "  %s\n%23s" : "  %-20s ", form, "");
		tfh_print_wrapped(out, 23, 23, flag->help);
		if (flag->choices) {
			char choices[256];
			snprintf(choices, sizeof(choices), "%s: %s", flag->arg, flag->choices);
			tfh_print(out, "%23s", "");
			tfh_print_wrapped(out, 23, 23, choices);
		}
	}
	if (*command->details)
		tfh_put("\n", out);
	details(out, command->details);
}

/* The words that a command takes; `help` takes commands. */
static void operand_words(FILE *out, const struct tfh_command *command,
			  const struct tfh_command *const *all)
{
	if (*command->words) {
		tfh_print(out, "%s", command->words);
		return;
	}
	for (const struct tfh_command *const *c = all; *c; c++)
		tfh_print(out, "%s%s", c == all ? "" : " ", (*c)->name);
}

static void bash_completions(FILE *out, const struct tfh_command *const *all)
{
	tfh_put("_tfhook() {\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words= i\n"
		"\tCOMPREPLY=()\n"
		"\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\twords='",
		out);
	for (const struct tfh_command *const *c = all; *c; c++)
		tfh_print(out, "%s%s", c == all ? "" : " ", (*c)->name);
	tfh_put("'\n\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase "
		"$command in\n",
		out);
	for (const struct tfh_command *const *c = all; *c; c++) {
		tfh_print(out, "\t%s) words='", (*c)->name);
		for (size_t i = 0; i < TFH_MAX_FLAGS && (*c)->flags[i].name; i++)
			tfh_print(out, "%s--%s", i ? " " : "", (*c)->flags[i].name);
		tfh_put("'", out);
		if ((*c)->operands == TFH_OPERANDS_COMMAND)
			tfh_put("\n\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
				"\t\t\tcase ${COMP_WORDS[i]} in -o) i=$((i + 1)) ;; -*) ;; *)\n"
				"\t\t\t\tif declare -F _command_offset >/dev/null; then "
				"_command_offset \"$i\"; fi\n"
				"\t\t\t\treturn ;; esac\n\t\tdone\n"
				"\t\t[[ $cur == -* ]] || { COMPREPLY=($(compgen -c -- \"$cur\")); "
				"return; }",
				out);
		if ((*c)->operands == TFH_OPERANDS_WORDS) {
			tfh_put("\n\t\t[[ $cur == -* ]] || words='", out);
			operand_words(out, *c, all);
			tfh_put("'", out);
		}
		tfh_put(" ;;\n", out);
	}
	tfh_put("\tesac\n"
		"\tif [[ $cur == -* ]] || [[ $words && $words != -* ]]; then\n"
		"\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
		"\telse\n"
		"\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
		"\tfi\n"
		"}\n"
		"complete -o filenames -F _tfhook tfhook\n",
		out);
}

/* Single-quoted for both zsh and fish; brackets and colons are special to _arguments. */
static void quoted(FILE *out, const char *text, const char *escaped)
{
	for (; *text; text++) {
		if (*text == '\'')
			tfh_put("'\\''", out);
		else
			tfh_print(out, strchr(escaped, *text) ? "\\%c" : "%c", *text);
	}
}

static void zsh_flags(FILE *out, const struct tfh_command *command)
{
	for (size_t i = 0; i < TFH_MAX_FLAGS && command->flags[i].name; i++) {
		const struct tfh_flag *flag = &command->flags[i];
		tfh_print(out, "\t\t\t'--%s%s[", flag->name, flag->arg ? "=" : "");
		quoted(out, flag->help, "[]:");
		tfh_put("]", out);
		if (flag->choices)
			tfh_print(out, ":%s:(%s)", flag->arg, flag->choices);
		else if (flag->arg)
			tfh_print(out, ":%s:_files", flag->arg);
		tfh_put("' \\\n", out);
	}
}

static void zsh_completions(FILE *out, const struct tfh_command *const *all)
{
	tfh_put("#compdef tfhook\n_tfhook() {\n\tlocal -a known\n\tknown=(\n", out);
	for (const struct tfh_command *const *c = all; *c; c++) {
		tfh_print(out, "\t\t'%s:", (*c)->name);
		quoted(out, (*c)->summary, ":");
		tfh_put("'\n", out);
	}
	tfh_put("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command "
		"known\n\t\treturn\n\tfi\n"
		"\tlocal command=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $command in\n",
		out);
	for (const struct tfh_command *const *c = all; *c; c++) {
		tfh_print(out, "\t%s)\n\t\t_arguments \\\n", (*c)->name);
		zsh_flags(out, *c);
		if ((*c)->operands == TFH_OPERANDS_COMMAND)
			tfh_put("\t\t\t'(-)1:command: _command_names -e' '*::arguments: _normal' "
				";;\n",
				out);
		else if ((*c)->operands == TFH_OPERANDS_TRACES)
			tfh_put("\t\t\t'*:trace:_files' ;;\n", out);
		else if ((*c)->operands == TFH_OPERANDS_WORDS) {
			tfh_print(out, "\t\t\t'1:%s:(", (*c)->name);
			operand_words(out, *c, all);
			tfh_put(")' ;;\n", out);
		} else
			tfh_put("\t\t\t&& return ;;\n", out);
	}
	tfh_put("\tesac\n}\n_tfhook \"$@\"\n", out);
}

static void fish_completions(FILE *out, const struct tfh_command *const *all)
{
	for (const struct tfh_command *const *c = all; *c; c++) {
		tfh_print(out, "complete -c tfhook -n __fish_use_subcommand -f -a %s -d '",
			  (*c)->name);
		quoted(out, (*c)->summary, "");
		tfh_put("'\n", out);
		for (size_t i = 0; i < TFH_MAX_FLAGS && (*c)->flags[i].name; i++) {
			const struct tfh_flag *flag = &(*c)->flags[i];
			tfh_print(out,
				  "complete -c tfhook -n '__fish_seen_subcommand_from %s' -l %s",
				  (*c)->name, flag->name);
			if (flag->letter)
				tfh_print(out, " -s %c", flag->letter);
			if (flag->choices)
				tfh_print(out, " -x -a '%s'", flag->choices);
			else if (flag->arg)
				tfh_put(" -r", out);
			tfh_put(" -d '", out);
			quoted(out, flag->help, "");
			tfh_put("'\n", out);
		}
		if ((*c)->operands == TFH_OPERANDS_WORDS) {
			tfh_print(out,
				  "complete -c tfhook -n '__fish_seen_subcommand_from %s' -f -a '",
				  (*c)->name);
			operand_words(out, *c, all);
			tfh_put("'\n", out);
		}
		if ((*c)->operands == TFH_OPERANDS_COMMAND)
			tfh_print(out,
				  "complete -c tfhook -n '__fish_seen_subcommand_from %s' -x -a "
				  "'(__fish_complete_subcommand --fcs-skip=2)'\n",
				  (*c)->name);
	}
}

static const struct {
	const char *shell;
	void (*write)(FILE *out, const struct tfh_command *const *all);
} shells[] = {{"bash", bash_completions}, {"zsh", zsh_completions}, {"fish", fish_completions}};

static int cmd_completions(const struct tfh_command_line *args)
{
	if (args->operands != 1) {
		tfh_say("completions: name a shell: bash, zsh or fish");
		return TFH_EXIT_USAGE;
	}
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (!strcmp(shells[i].shell, args->operand[0])) {
			shells[i].write(stdout, args->all);
			return TFH_EXIT_OK;
		}
	tfh_say("completions: no '%s', only bash, zsh and fish", args->operand[0]);
	return TFH_EXIT_USAGE;
}

const struct tfh_command tfh_cmd_completions = {
	.name = "completions",
	.operand_text = "bash|zsh|fish",
	.summary = "print the completion script of a shell",
	.details = "",
	.operands = TFH_OPERANDS_WORDS,
	.words = "bash zsh fish",
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_completions,
	.flags = {{.name = NULL}},
};

static int unknown_command(const struct tfh_command *const *all, const char *word)
{
	const char *names[32];
	size_t n = 0;

	while (n < 32 && all[n]) {
		names[n] = all[n]->name;
		n++;
	}
	const char *near = tfh_nearest(word, names, n);
	if (near)
		tfh_say("unknown command '%s', did you mean '%s'?", word, near);
	else
		tfh_say("unknown command '%s'; `tfhook help` lists them. To trace a command: "
			"tfhook run %s",
			word, word);
	return TFH_EXIT_USAGE;
}

static int cmd_help(const struct tfh_command_line *args)
{
	/* `help` after an unknown word has no command line, and so no flags. */
	bool man = args->command && tfh_line_get(args, "man");

	if (!args->operands) {
		(man ? tfh_man_overview : tfh_help_all)(stdout, args->all);
		return TFH_EXIT_OK;
	}
	const struct tfh_command *command = tfh_command_find(args->all, args->operand[0]);
	if (!command)
		return unknown_command(args->all, args->operand[0]);
	(man ? tfh_man_command : tfh_help_command)(stdout, command);
	return TFH_EXIT_OK;
}

const struct tfh_command tfh_cmd_help = {
	.name = "help",
	.operand_text = "[COMMAND]",
	.summary = "print the list of commands, or a command's help",
	.details = "",
	.operands = TFH_OPERANDS_WORDS,
	.words = "",
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_help,
	.flags =
		{
			{.name = "man",
			 .help = "print the source of a command's manual page, or of tfhook(7)"},
		},
};

static int cmd_version(const struct tfh_command_line *args)
{
	(void)args;
	tfh_put("tfhook " TFHOOK_VERSION "\n", stdout);
	return TFH_EXIT_OK;
}

const struct tfh_command tfh_cmd_version = {
	.name = "version",
	.operand_text = "",
	.summary = "print tfhook's version",
	.details = "",
	.operands = TFH_OPERANDS_NONE,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_version,
	.flags = {{.name = NULL}},
};
