"""Ends at random moments: jobs killed from outside, whatever they do, and not one published record lost."""
import os
import random
import re
import subprocess
import time

from harness import Bench, Case


class Killed(Case):
    """The job, killed `times` times by SIGKILL at a moment of up to `longest` seconds after its start."""

    def __init__(self, name, args, times, longest, seed, quick=False):
        super().__init__(name, args, "killed", quick=quick)
        self.times, self.longest, self.random = times, longest, random.Random("%s %d" % (name, seed))

    def run(self, tmp):
        bench, wrong = Bench(self, tmp), []
        for i in range(self.times):
            after = self.random.uniform(0, self.longest)
            bench.go(True, kill_after=after)
            found, until = bench.compare_truth(), time.monotonic() + 10
            # Who reads of a process in /proc holds its memory, and so its journal's lock, for longer than it lives; on a crowded
            # machine it takes its time to die, too.
            while found and time.monotonic() < until:
                time.sleep(1)
                found = bench.compare_truth()
            wrong += ["kill %d, after %.4f s: %s" % (i + 1, after, w) for w in found]
            if len(wrong) > 8:
                break
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
    return [Killed("kills of a start, few", ["threads", "flood", "100000000", "4"], 10, 0.05, seed, quick=True),
            Killed("kills of a start", ["threads", "flood", "100000000", "4"], 200, 0.05, seed),
            Killed("kills of a flood", ["threads", "flood", "100000000", "8"], 200, 0.4, seed),
            Killed("kills of short threads", ["threads", "short", "100000000"], 200, 0.3, seed),
            Killed("kills of a storm of forks", ["forks", "storm", "1000000"], 200, 0.3, seed),
            Killed("kills of flushes", ["threads", "flush", "1000000"], 200, 0.3, seed),
            Paced("kills of numbered records", ["8", "100000000", "500", "700"])]
