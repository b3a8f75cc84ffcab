"""Ends at random moments: jobs killed from outside, whatever they do, and not one published record lost."""
import glob
import os
import random
import re
import subprocess
import time

from harness import Bench, Case


LOG = {"TFHOOK_LOG": "{tmp}/log.%p"}  # says where the journal lies


def settled(bench, end):
    """What is wrong of a killed job's recording, when it is also ten seconds later. Who reads of a process in /proc holds its memory,
    and so its journal's lock, for longer than it lives; on a crowded machine it takes its time to die, too."""
    found, until = bench.compare_truth(), time.monotonic() + 10
    while found and time.monotonic() < until:
        time.sleep(1)
        found = bench.compare_truth()
    if not found:
        return []
    logs = [line.strip() for path in glob.glob(bench.tmp + "/log.*") for line in open(path, errors="replace")]
    return found + ["stderr: %r" % end.err[-300:]] + logs[:6]


class Killed(Case):
    """The job, killed `times` times by SIGKILL at a moment of up to `longest` seconds after its start."""

    def __init__(self, name, args, times, longest, seed, quick=False, least=0, faults=None):
        how = dict(env=dict(LOG, FAULTS=faults, FAULTS_UNDER="{run}"), preload="{hook}:{bin}/libfaults.so") if faults else dict(env=LOG)
        super().__init__(name, args, "killed", quick=quick, **how)
        self.times, self.shortest, self.longest, self.random = times, least, longest, random.Random("%s %d" % (name, seed))

    def run(self, tmp):
        bench, wrong = Bench(self, tmp), []
        for i in range(self.times):
            after = self.random.uniform(self.shortest, self.longest)
            found = settled(bench, bench.go(True, kill_after=after))
            wrong += ["kill %d, after %.4f s: %s" % (i + 1, after, w) for w in found]
            if len(wrong) > 8:
                break
        return wrong


class EachCall(Case):
    """The job, killed before each call by which the recorder changes a file, from the first to the last that there is, and a moment
    after it: between them lie all steps of beginning, chunk, change of segment, and end."""

    def __init__(self, name, args, env, after_us, seed):
        super().__init__(name, args, "killed", rc=7, preload="{hook}:{bin}/libfaults.so", env=dict(LOG, **env))
        self.after_us, self.random = after_us, random.Random("%s %d" % (name, seed))

    def run(self, tmp):
        wrong, kills = [], 0
        for most in self.after_us:
            for n in range(1, 10000):
                self.env = dict(self.env, FAULTS_UNDER="{run}", FAULTS_KILL="%d:%d" % (n, self.random.randrange(most + 1)))
                bench = Bench(self, tmp)
                end = bench.go(True)
                wrong += ["kill at %s: %s" % (self.env["FAULTS_KILL"], w) for w in settled(bench, end)]
                if len(wrong) > 8:
                    return wrong
                if end.rc == self.rc:
                    break
                if end.rc != -9:
                    return wrong + ["kill at %s: ended with %s" % (self.env["FAULTS_KILL"], end.rc)]
                kills += 1
        print("     %d kills" % kills, flush=True)
        return wrong


class Paced(Case):
    """tests/record/kill.sh: records with numbers and checks, so that each one is known by itself."""

    def __init__(self, name, args, quick=False):
        super().__init__(name, args, quick=quick)

    def run(self, tmp):
        subprocess.run(["rm", "-rf", tmp])
        os.makedirs(tmp)
        done = subprocess.run([os.environ["TFH_SRC"] + "/tests/record/kill.sh", *self.args], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=dict(os.environ, TFH_TMP=tmp))
        print("\n".join("     " + line for line in done.stdout.splitlines()), flush=True)
        lost = [l for l in done.stdout.splitlines() if re.search(r"killed after|missing [1-9]", l)]
        return lost or (["kill.sh ended with %d" % done.returncode] if done.returncode else [])


def cases(seed):
    flood = ["threads", "flood", "200000", "3"]
    return [Killed("kills of a start, few", ["threads", "flood", "100000000", "4"], 10, 0.05, seed, quick=True),
            # A thread that has no processor while it makes what all need must not let the calls of the others pass by.
            Killed("kills while the first call is held up", ["threads", "flood", "100000000", "4"], 5, 0.45, seed, quick=True, least=0.1,
                   faults="wipe:-500:1:1"),
            Killed("kills of a start", ["threads", "flood", "100000000", "4"], 200, 0.05, seed),
            Killed("kills of a flood", ["threads", "flood", "100000000", "8"], 200, 0.4, seed),
            Killed("kills of short threads", ["threads", "short", "100000000"], 200, 0.3, seed),
            Killed("kills of a storm of forks", ["forks", "storm", "1000000"], 200, 0.3, seed),
            Killed("kills of flushes", ["threads", "flush", "1000000"], 200, 0.3, seed),
            EachCall("kills at each change of a file", flood, {"TFHOOK_MAX_SIZE": "1M"}, (0, 200, 2000), seed),
            EachCall("kills at each change, all beside the output", flood, {"TFHOOK_MAX_SIZE": "1M", "container": "yes"}, (0, 200, 2000),
                     seed),
            Paced("kills of numbered records", ["8", "100000000", "500", "700"])]
