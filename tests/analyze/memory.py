#!/usr/bin/env python3
"""The memory of a report does not grow with the number of steps, whatever tells them, nor with that of long calls, and
what it says of many steps is what it says of few. Where files may not grow, it stays in memory and says the same."""
import json
import os
import resource
import subprocess
import sys

TOOL = os.path.join(os.environ["TFH_BUILD"], "bin", "tfhook")
MAKE = os.path.join(os.environ["TFH_BUILD"], "tests", "analyze", "long_run")
TMP = os.environ["TFH_TMP"]
os.environ["TMPDIR"] = TMP
# What is counted otherwise is not ours.
SANITIZER = os.environ.get("TFH_SAN")


def report(where, *more):
    child = subprocess.Popen([TOOL, "report", "--json", *more, where], stdout=subprocess.PIPE)
    out = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, f"report of {where} ended with {status}"
    return out, used.ru_maxrss / 1024


def run(name, steps, launches, clock):
    where = os.path.join(TMP, name)
    subprocess.run([MAKE, where, str(steps), str(launches), clock], check=True)
    out, memory = report(where)
    result = json.loads(out)
    print(f"{clock}: {steps} steps, {result['quality']['events']} events, {memory:.0f} MiB")
    return result, memory


def check(clock, launches, few, many):
    small, least = run(f"{clock}-few", few, launches, clock)
    large, most = run(f"{clock}-many", many, launches, clock)
    for r, n in (small, few), (large, many):
        assert r["steps"]["clock"] == {"long": "iterator"}.get(clock, clock), r["steps"]["clock"]
        assert r["quality"]["clock"] == "clock_gettime", r["quality"]["clock"]  # as the file says
        assert n - 3 <= r["steps"]["total"] <= n, (r["steps"]["total"], n)
    for key in "median_s", "p95_s":
        a, b = small["steps"][key], large["steps"][key]
        assert abs(a - b) < 0.02 * a, (clock, key, a, b)
    assert small["verdict"]["class"] == large["verdict"]["class"]
    assert not [f for f in os.listdir(TMP) if f.startswith("tfhook-")], "temporary files were left"
    if not SANITIZER:
        assert most < 256 and most < least + 40, f"{clock}: {least:.0f} MiB grew to {most:.0f}"


def main():
    check("iterator", 1, 350000, 800000)
    check("period", 1, 350000, 800000)
    check("long", 1, 60000, 200000)
    out, memory = report(os.path.join(TMP, "long-few"), "--steps")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    free, _ = report(os.path.join(TMP, "period-many"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    bound, _ = report(os.path.join(TMP, "period-many"))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert free == bound, "a report without temporary files says something else"
    lines = out.splitlines()
    assert 59990 < len(lines) <= 60000, len(lines)
    last = json.loads(lines[-1])
    assert last["index"] == len(lines) - 1
    assert SANITIZER or memory < 256, memory
    return 0


if __name__ == "__main__":
    sys.exit(main())
