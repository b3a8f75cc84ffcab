#include "base/environ.h"
#include "base/runjson.h"

#include <limits.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/proc.h"
#include "base/redact.h"
#include "tfhook/version.h"

void tfh_utc_text(char out[32], int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(out, 24, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, 32 - n, ".%03dZ", (int)(ns / 1000000 % 1000));
}

void tfh_launch_id(char *text, size_t size)
{
	char boot[48];
	pid_t leader = getpgrp();
	uint64_t start = tfh_process_start(leader);

	if (!start) { /* it ended, or belongs to another pid namespace */
		leader = getpid();
		start = tfh_process_start(leader);
	}
	tfh_read_small("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	boot[strcspn(boot, "\n")] = '\0';
	snprintf(text, size, "%d-%llu@%s", (int)leader, (unsigned long long)start, boot);
}

static void write_command(struct tfh_json *j, char *const *argv)
{
	tfh_json_key(j, "command");
	tfh_json_array(j);
	for (size_t i = 0; argv[i]; i++)
		tfh_json_str(j, tfh_redact_arg(argv, i));
	tfh_json_end(j);
}

static void write_environment(struct tfh_json *j)
{
	const char *entry;

	tfh_json_key(j, "env");
	tfh_json_object(j);
	for (size_t at = 0; (entry = tfh_env_next(&at));) {
		size_t len = strcspn(entry, "=");
		char name[256];

		if (!len || !entry[len] || len >= sizeof(name) || !tfh_env_recorded(entry, len))
			continue;
		memcpy(name, entry, len);
		name[len] = '\0';
		tfh_json_kstr(j, name, tfh_redact_entry(entry) + len + 1);
	}
	tfh_json_end(j);
}

int tfh_runjson_print(FILE *out, const struct tfh_run_facts *facts)
{
	static char cwd[PATH_MAX];
	struct timespec now;
	struct tfh_json j;
	struct utsname u;
	char when[32];

	clock_gettime(CLOCK_REALTIME, &now);
	tfh_utc_text(when, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	uname(&u);
	tfh_json_init(&j, out, 2);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "schema", "tfhook.run/1");
	tfh_json_kstr(&j, "launch", facts->launch);
	if (facts->exe)
		tfh_json_kstr(&j, "exe", facts->exe);
	tfh_json_kstr(&j, "cwd", getcwd(cwd, sizeof(cwd)));
	tfh_json_kstr(&j, "host", u.nodename);
	tfh_json_kstr(&j, "kernel", u.release);
	tfh_json_ki64(&j, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	tfh_json_kstr(&j, "start_utc", when);
	if (facts->world >= 0)
		tfh_json_ki64(&j, "world", facts->world);
	tfh_json_kstr(&j, "tfhook", TFHOOK_VERSION);
	write_environment(&j);
	write_command(&j, facts->argv); /* last: readers stop at 1 MiB */
	tfh_json_end(&j);
	return tfh_json_finish(&j);
}
