#!/usr/bin/env python3
"""Jobs that combine real tf.data with a real client of the driver, on the simulated GPU: the class that the measured twin
asks for on at least 95 % of the steady steps, its cause, steps counted exactly, results unchanged; and jobs that are killed
in the middle, or hang, are judged as far as they came and say what was in flight."""
# serial
# timeout: 400
import os
import re
import signal
import sys
import time

import pairs_lib
from pairs_lib import GAIN, JOBS, RIGHT, SIM, Job, Wrong

PAGEABLE = ["--copy", "40e6", "--kernel", "1000"]
# name, arguments, those of the twin without the factor, class, cause, guilty stage
SCENARIOS = [
    ("pageable copies", PAGEABLE, ["--kernel", "1000"], "transfer-bound", "transfer.h2d-pageable", None),
    ("2,000 launches", ["--launches", "2000", "--kernel", "1", "--steps", "40"], ["--launches", "1", "--kernel", "2000"],
     "host-bound", "host.launch", None),
    ("slow map", ["--slow", "20"], [], "input-bound", "input.map", "Map"),
    ("slow Python loader", ["--input", "python", "--slow", "20"], ["--input", "python"], "host-bound", "host.sleep", None),
    # The twin is what is left without compute.
    ("long kernels", ["--kernel", "30000", "--steps", "40"], ["--kernel", "0"], "compute-bound", None, None),
]


def start(arguments, tool=False, settings=None, kill=None):
    return Job([pairs_lib.PYTHON, JOBS + "/gpu_loop.py"] + arguments, tool,
               dict({"LD_LIBRARY_PATH": SIM}, **(settings or {})), kill=kill)


def check(name, cls, cause, stage, hooked, plain, twin):
    told, alone, other = hooked.result(), plain.result(), twin.result()
    verdict, wrong = hooked.verdict(), []
    job_s, twin_s = pairs_lib.pair_s(alone, other)
    gain = 1 - twin_s / job_s
    steps = len(hooked.segment("warmup", "train"))
    exempt = pairs_lib.other_steps(told, pairs_lib.step_s(told, 0.5), twin_s) if cls != "compute-bound" else 0
    right = hooked.right(cls, exempt)
    if hooked.status or plain.status:
        wrong.append("exit status %d, without the tool %d" % (hooked.status, plain.status))
    if told["loss"] != alone["loss"]:
        wrong.append("results differ: %s, without the tool %s" % (told["loss"], alone["loss"]))
    if steps != told["steps"]:
        wrong.append("%d steps found, %d done" % (steps, told["steps"]))
    if (gain < 0.9 if cls == "compute-bound" else gain < GAIN):
        wrong.append("the pair is not sharp enough for a truth")
    if verdict["class"] != cls or cause and verdict["cause"] != cause:
        wrong.append("verdict %s %s" % (verdict["class"], verdict["cause"]))
    if right < RIGHT:
        wrong.append("%s on %.0f %% of the steps: %s" % (cls, 100 * right, dict(hooked.classes())))
    if stage and stage not in hooked.guilty():
        wrong.append("guilty stage %s" % hooked.guilty())
    print("%-20s %7.1f %7.1f %4.0f%%  %-14s %-14s %-22s %3.0f%% %d/%d" % (
        name, 1e3 * job_s, 1e3 * twin_s, 100 * gain, cls, verdict["class"], verdict["cause"], 100 * right,
        steps, told["steps"]), flush=True)
    return wrong


# ---- jobs that do not end by themselves ----------------------------------------------------------------------------

class Killer:
    """Kills the job, not the tool, so long after it printed that a step is done."""

    def __init__(self, step, seconds):
        self.line, self.seconds, self.done = "step %d\n" % step, seconds, 0

    def __call__(self, child):
        pid = None
        for line in child.stdout:
            if line.startswith("pid "):
                pid = int(line[4:])
            self.done += line.startswith("step ")
            if line == self.line:
                break
        time.sleep(self.seconds)
        os.kill(pid, signal.SIGKILL)


def killed():
    killer = Killer(40, 0)
    job = start(["--slow", "20", "--steps", "100000"], True, kill=killer)
    end, wrong = job.report["end"], []
    steps = len(job.segment("warmup", "train"))
    print("%-20s status %d  end %s signal %s  %s %s  %d steps" % ("killed", job.status, end["how"], end["signal"],
          job.verdict()["class"], job.verdict()["cause"], steps), flush=True)
    if job.status != -signal.SIGKILL:
        wrong.append("exit status %d of a job that was killed" % job.status)
    if end["how"] not in ("signal", "killed") or end["signal"] not in (signal.SIGKILL, None):
        wrong.append("end: %s" % end)
    if not killer.done - 1 <= steps <= killer.done + 5:
        wrong.append("%d steps found, %d were done when it was killed" % (steps, killer.done))
    if job.verdict()["cause"] != "input.map" or job.right("input-bound") < RIGHT:
        wrong.append("verdict %s, %s" % (job.verdict()["cause"], dict(job.classes())))
    return wrong


def hung():
    # Long kernels, so that a thread that is woken late on a busy machine does not make the step.
    job = start(["--kernel", "100000"], True, {"SIM_HANG_AFTER": "31"}, Killer(30, 3))
    calls = job.report["end"]["in_flight"]
    wrong = []
    print("%-20s status %d  in flight %s  %s" % ("hung in a sync", job.status,
          [(c["fn"], round(c["open_s"], 1)) for c in calls], job.verdict()["class"]), flush=True)
    if not any(c["fn"].startswith("cuStreamSynchronize") and c["open_s"] >= 2 for c in calls):
        wrong.append("in flight: %s" % calls)
    if job.verdict()["class"] != "compute-bound":
        wrong.append("verdict %s on the steps before" % job.verdict()["class"])
    if "cuStreamSynchronize" not in job.ask("report"):
        wrong.append("the report in words does not say what was in flight")
    return wrong


def rows():
    """Name of each check and what is wrong with it. One job at a time: the simulated engines need a processor, too."""
    alone = {}
    for name, arguments, twin, *expected in SCENARIOS:
        for other in (arguments, twin):
            if tuple(other) not in alone:
                alone[tuple(other)] = start(other + ["--times"])
        hooked = start(arguments + ["--times"], True)
        wrong = check(name, *expected, hooked, alone[tuple(arguments)], alone[tuple(twin)])
        # Without looks no line is known.
        if name == "slow Python loader" and not re.search(r"slowly, gpu_loop\.py:\d+: |input pipeline", hooked.ask("report")):
            wrong.append("no line of the loader, and no remark that no input pipeline was visible")
        yield name, wrong
    yield "killed", killed()
    yield "hung in a sync", hung()


def main():
    pairs_lib.need("tensorflow", "cuda.bindings")
    failed, n = 0, 0
    print("%-20s %7s %7s %5s  %-14s %-14s %-22s %4s %s" % (
        "job", "job ms", "twin ms", "gain", "expected", "got", "cause", "right", "steps"), flush=True)
    try:
        for name, wrong in rows():
            for text in wrong:
                print("    FAILED: %s: %s" % (name, text), flush=True)
            failed, n = failed + bool(wrong), n + 1
    except Wrong as e:
        failed += 1
        print("    FAILED: %s" % e)
    print("%d of %d right" % (n - failed, n))
    sys.exit(1 if failed else 0)


main()
