/* Parses command lines by the subcommand's table of flags. No abbreviations: new flags would break
 * scripts that use them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"

static int unknown_flag(const struct tfh_command *command, const char *flag, size_t len)
{
	const char *names[TFH_MAX_FLAGS];
	char word[64];
	size_t n = 0;

	for (; n < TFH_MAX_FLAGS && command->flags[n].name; n++)
		names[n] = command->flags[n].name;
	snprintf(word, sizeof(word), "%.*s", (int)len, flag);
	const char *near = tfh_nearest(word, names, n);
	if (near)
		tfh_say("%s: unknown flag '--%s', did you mean '--%s'?", command->name, word, near);
	else
		tfh_say("%s: unknown flag '--%s'; `tfhook help %s` lists them", command->name, word,
			command->name);
	return -EINVAL;
}

static int set_flag(struct tfh_command_line *args, size_t i, const char *value)
{
	const struct tfh_flag *flag = &args->command->flags[i];

	if (flag->choices) {
		size_t len = strlen(value);
		const char *p = flag->choices;
		while (p && !(strncmp(p, value, len) == 0 && (p[len] == ' ' || p[len] == '\0'))) {
			p = strchr(p, ' ');
			p = p ? p + 1 : NULL;
		}
		if (!p || !len) {
			tfh_say("%s: --%s is one of: %s (not '%s')", args->command->name,
				flag->name, flag->choices, value);
			return -EINVAL;
		}
	}
	if (flag->twice && args->value[i])
		args->again = value;
	else
		args->value[i] = value;
	return 0;
}

/* --name, --name=value, --name value. Advances *argv past a separate value. */
static int long_flag(struct tfh_command_line *args, char ***argv)
{
	const struct tfh_command *command = args->command;
	const char *word = **argv + 2;
	size_t len = strcspn(word, "=");

	for (size_t i = 0; i < TFH_MAX_FLAGS && command->flags[i].name; i++) {
		const struct tfh_flag *flag = &command->flags[i];
		if (strncmp(flag->name, word, len) || flag->name[len])
			continue;
		if (!flag->arg) {
			if (word[len]) {
				tfh_say("%s: --%s takes no value", command->name, flag->name);
				return -EINVAL;
			}
			return set_flag(args, i, "");
		}
		if (word[len])
			return set_flag(args, i, word + len + 1);
		if (!(*argv)[1]) {
			tfh_say("%s: --%s needs a value: --%s %s", command->name, flag->name,
				flag->name, flag->arg);
			return -EINVAL;
		}
		return set_flag(args, i, *++*argv);
	}
	return unknown_flag(command, word, len);
}

/* -q, -o value, -ovalue, -qo value. */
static int short_flags(struct tfh_command_line *args, char ***argv)
{
	const struct tfh_command *command = args->command;

	for (const char *p = **argv + 1; *p; p++) {
		size_t i = 0;
		while (i < TFH_MAX_FLAGS && command->flags[i].name &&
		       command->flags[i].letter != *p)
			i++;
		if (i == TFH_MAX_FLAGS || !command->flags[i].name) {
			tfh_say("%s: unknown flag '-%c'; `tfhook help %s` lists them",
				command->name, *p, command->name);
			return -EINVAL;
		}
		if (!command->flags[i].arg) {
			args->value[i] = "";
			continue;
		}
		if (p[1])
			return set_flag(args, i, p + 1);
		if (!(*argv)[1]) {
			tfh_say("%s: -%c needs a value: -%c %s", command->name, *p, *p,
				command->flags[i].arg);
			return -EINVAL;
		}
		return set_flag(args, i, *++*argv);
	}
	return 0;
}

int tfh_line_parse(const struct tfh_command *command, char **argv, struct tfh_command_line *args)
{
	char **in = argv, **out = argv;
	int err;

	memset(args, 0, sizeof(*args));
	args->command = command;
	args->operand = argv;
	for (; *in; in++) {
		if (!strcmp(*in, "--")) {
			args->before = (int)(out - argv);
			in++;
			break;
		}
		if ((*in)[0] != '-' || !(*in)[1]) {
			if (command->operands == TFH_OPERANDS_COMMAND)
				break;
			*out++ = *in;
			continue;
		}
		err = (*in)[1] == '-' ? long_flag(args, &in) : short_flags(args, &in);
		if (err)
			return err;
	}
	while (*in)
		*out++ = *in++;
	*out = NULL;
	args->operands = (int)(out - argv);
	if (command->operands == TFH_OPERANDS_NONE && args->operands) {
		tfh_say("%s: takes no '%s'; `tfhook help %s` says what it takes", command->name,
			args->operand[0], command->name);
		return -EINVAL;
	}
	for (int i = 0; command->operands != TFH_OPERANDS_COMMAND && i < args->operands; i++)
		if (!*args->operand[i]) {
			tfh_say("%s: an empty name (a variable that is not set?)", command->name);
			return -EINVAL;
		}
	return 0;
}

const char *tfh_line_get(const struct tfh_command_line *args, const char *name)
{
	for (size_t i = 0; i < TFH_MAX_FLAGS && args->command->flags[i].name; i++)
		if (!strcmp(args->command->flags[i].name, name))
			return args->value[i];
	return NULL;
}

const struct tfh_command *tfh_command_find(const struct tfh_command *const *all, const char *name)
{
	for (const struct tfh_command *const *c = all; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}

int tfh_line_seconds(const struct tfh_command_line *args, const char *flag, double least,
		     double most, double *out)
{
	const char *text = tfh_line_get(args, flag);
	char *end;

	if (!text)
		return 0;
	*out = strtod(text, &end);
	if (*text && !*end && *out >= least && *out <= most)
		return 0;
	tfh_say("%s: --%s needs seconds from %g to %g, not '%s'", args->command->name, flag, least,
		most, text);
	return -EINVAL;
}
