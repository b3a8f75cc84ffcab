#!/usr/bin/env python3
"""What must hold: the variables that the report recommends against page faults end them, for blocks of every size in the main thread
and for those below 32 MB in other threads (whose arenas glibc builds of pieces of 64 MB); nothing has more of them than without.
"""
import os
import re
import subprocess

SRC, TMP = os.environ["TFH_SRC"], os.environ["TFH_TMP"]
# Three blocks of that many megabytes live at once, 20 times, as results of ops do. Faults after the first 5 times count.
JOB = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
static long faults(void)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return r.ru_minflt;
}
static void *work(void *arg)
{
	size_t size = (size_t)atoi(arg) << 20;
	long before = 0;
	for (int i = 0; i < 20; i++) {
		void *block[3];
		before = i == 5 ? faults() : before;
		for (int k = 0; k < 3; k++)
			memset(block[k] = malloc(size), i, size);
		for (int k = 0; k < 3; k++)
			free(block[k]);
	}
	printf("%ld\n", faults() - before);
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	if (argc > 2)
		return pthread_create(&thread, NULL, work, argv[1]) || pthread_join(thread, NULL);
	return work(argv[1]) != NULL;
}
"""


def advised():
    with open(os.path.join(SRC, "lib", "report", "words", "remarks.c")) as f:
        return dict(re.findall(r"(MALLOC_\w+_)=(\d+)", f.read()))


def faults(program, args, env):
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD"))}
    return int(subprocess.run([program] + args, env=dict(plain, **env), capture_output=True, text=True, check=True).stdout)


def main():
    program, env = os.path.join(TMP, "job"), advised()
    assert env, "the report recommends nothing"
    with open(program + ".c", "w") as f:
        f.write(JOB)
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-fno-builtin", "-pthread", "-o", program, program + ".c"], check=True)
    for args in (["1"], ["16"], ["48"], ["1", "thread"], ["16", "thread"], ["48", "thread"]):
        most = 1 if args == ["48", "thread"] else 0.1
        before, after = faults(program, args, {}), faults(program, args, env)
        print("blocks of MB: %s: %d faults, %d as advised" % (", ".join(args), before, after))
        assert after <= most * before + 1000, "the advice does not help"


main()
