/* The list of subcommands, in the order of the help. Each file cmd_*.c defines one, with its
 * flags. */
#include "cli/cli.h"

const struct tfh_command *const tfh_commands[] = {
	&tfh_cmd_run,
	&tfh_cmd_report,
	&tfh_cmd_why,
	&tfh_cmd_top,
	&tfh_cmd_diff,
	&tfh_cmd_ctl,
	&tfh_cmd_info,
	&tfh_cmd_import,
	&tfh_cmd_export,
	&tfh_cmd_digest,
	&tfh_cmd_collect,
	&tfh_cmd_fleet,
	&tfh_cmd_prune,
	&tfh_cmd_verify,
	&tfh_cmd_repair,
	&tfh_cmd_doctor,
	&tfh_cmd_demo,
	&tfh_cmd_env,
	&tfh_cmd_mcp,
	&tfh_cmd_completions,
	&tfh_cmd_help,
	&tfh_cmd_version,
	NULL,
};
