"""Schedules of the recorder's threads by seed (sched/main.c), and the model of its rings (model/ring.c)."""
import subprocess

from harness import BIN, Case


class Run(Case):
    """A program that says itself what fails, on lines that begin with `seed` or `found`."""

    def run(self, tmp):
        del tmp
        done = subprocess.run([BIN + "/" + self.args[0], *self.args[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        lines = done.stdout.splitlines()
        print("\n".join("     " + line for line in lines), flush=True)
        return ["ended with %d" % done.returncode] if done.returncode else []


def cases(seed, count):
    first = seed * 1000003 % (1 << 40)
    return [Run("schedules, few", ["schedules", "-n", "1000"], quick=True),
            Run("schedules of several processes, few", ["schedules", "-m", "-n", "100"], quick=True),
            Run("two exits, each with a signal anywhere", ["schedules", "-x", "exit:exit"], quick=True),
            Run("a call beside a failed exec", ["schedules", "-x", "call:exec"], quick=True),
            Run("a call beside a failed exec that loses its turn", ["schedules", "-x", "call:slow-exec"], quick=True),
            Run("two actions, each order, with a signal anywhere", ["schedules", "-x", ":"]),
            Run("the rings in every order of memory", ["ring"]),
            Run("schedules", ["schedules", "-n", str(count), "-s", str(first)]),
            Run("schedules of several processes", ["schedules", "-m", "-n", str(count // 10), "-s", str(first)])]
