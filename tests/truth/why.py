#!/usr/bin/env python3
"""`tfhook why`: the links of a step are as long together as the step, with and without device times; what was planted is the
largest and carries its cause and call; a step's number, the median step, topics and other words are distinguished."""
import os
import re
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TOOL, TRAIN, SIM = BUILD + "/bin/tfhook", BUILD + "/tests/truth/train", BUILD + "/sim"
if os.environ.get("TFH_SAN") or not os.path.exists(SIM + "/libcuda.so.1"):
    sys.exit(77)
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


def tool(*arguments, code=0, **env):
    done = subprocess.run([TOOL, *arguments], env=dict(os.environ, LD_LIBRARY_PATH=SIM, **env), cwd=TMP, capture_output=True, text=True,
                          timeout=120)
    check(done.returncode == code, arguments, "ends with", done.returncode, done.stderr)
    return done.stdout if code == 0 else done.stderr


def chain(name, text):
    """The step's time, and (begin, length, words) of each row."""
    step = re.match(r"step (\d+) of [\d,]+   ([\d.]+) (\w+) \(median", text)
    check(step, name, "has no title:", text)
    rows = [(float(a) * UNITS[b], float(c) * UNITS[d], words) for a, b, c, d, words in
            re.findall(r"^ +([\d.]+) (ns|us|ms|s) +([\d.]+) (ns|us|ms|s) +\d+ %  (.*)$", text, re.M)]
    left = sum(float(a) * UNITS[b] for a, b in re.findall(r"^ {11,}([\d.]+) (ns|us|ms|s) +\d+ %  unattributed", text, re.M))
    return float(step[2]) * UNITS[step[3]], rows, left


def judged(name, plan, cause, call, steps="40", **env):
    tool("run", "-q", "-o", name, "--", TRAIN, steps, plan, **env)
    for flags in ((), ("--all",)):
        took, rows, left = chain(name, tool("why", *flags, name))
        total = sum(r[1] for r in rows) + left
        check(abs(total / took - 1) < 0.03, name, flags, "links add up to", total, "of", took)
        ends = [a + b for a, b, _ in rows]
        check(all(abs(e - b) < 0.02 * took + 1e-6 for e, (b, _, _) in zip(ends, rows[1:])), name, "links do not follow each other:", rows)
        for_it = [r for r in rows if r[2].startswith(cause)]
        check(for_it and max(for_it, key=lambda r: r[1])[1] > 0.3 * took and re.search(call, max(for_it, key=lambda r: r[1])[2]),
              name, flags, "has no", cause, rows)
    median = tool("why", name)
    check(len(median.splitlines()) <= 24, name, "is longer than a screen")
    check(tool("why", re.match(r"step (\d+)", median)[1], name) == median, name, "prints something else for the same step by its number")


judged("input", "get:12:0 h2d:1e5:pinned k:5 sync", "input.unknown", "get_next")
judged("copies", "h2d:30e6:pageable k:3 sync", "transfer.h2d-pageable", "cuMemcpyHtoD")
judged("computing", "get:0.2:4 h2d:1e4:pinned k:9:1:spin_conv sync", "compute", "spin_conv")
judged("untimed", "get:12:0 h2d:1e5:pinned k:5 sync", "input.unknown", "get_next", TFHOOK_CUPTI="off")

one = tool("why", "20", "input")
check(one.startswith("step 20 of 40 "), one)
check("no step 4711; the steps are 0 to 39" in tool("why", "4711", "input", code=2), "a step that there is not")
gain = tool("why", "gain", "input")
check("WITHOUT input wait" in gain and "replayed" in gain and "at best" in gain and all(len(line) <= 80 for line in gain.splitlines()), gain)
check("device times" in tool("why", "tier", "input") and "blocks 5 %" in tool("why", "verdict", "input"), "topics")
check("do " in tool("why", "transfer.d2h", "input"), "a cause")
check("nosuchplace" in tool("why", "nosuchplace", code=3), "neither step, topic nor recording")
tool("run", "-q", "-o", "one", "--", TRAIN, "1", "k:1 sync")
check("no step was found" in tool("why", "one", code=5), "no steps")

sys.exit(failed())
