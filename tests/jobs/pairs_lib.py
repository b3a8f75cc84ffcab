"""Runs jobs with and without the tool and tells what the verdict must be; shared by the tests of this folder.

The truth of a scenario is measured, not written down: the job's own clock says how long a step takes with the factor and
in its twin without it. What removing a factor gains is 1 - twin / job. Where no factor gains 5 %, a second twin with next
to no compute says how much of a step compute can be.
"""
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import threading

SRC = os.environ.get("TFH_SRC") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TFH_BUILD") or os.path.join(SRC, "build")
TMP = os.environ.get("TFH_TMP") or tempfile.mkdtemp(prefix="tfh-jobs-")
PYTHON = os.environ.get("TFH_PY")
TOOL = os.path.join(BUILD, "bin", "tfhook")
JOBS = os.path.join(SRC, "tests", "jobs")
SIM = os.path.join(BUILD, "sim")

SKIP = 77
GAIN = 0.05
RIGHT = 0.95
COMPUTE = 0.90
# The tool costs about a hundredth (bench/profiler_cost.py), so a recorded run that is slower than this against the plain one was
# disturbed. So few pairs may stay without an answer, lest a slow tool pass for a busy machine.
DISTURBED = 1.4
UNDECIDED = 0.25
TRIES = 3


def need(*modules):
    """Leaves the test as skipped unless the modules can be imported."""
    if os.environ.get("TFH_SAN") or not PYTHON:
        print("needs a python with " + ", ".join(modules) + ", without sanitizers")
        sys.exit(SKIP)
    if subprocess.run([PYTHON, "-c", "import importlib.util as u, sys; sys.exit(not all(u.find_spec(m) for m in %r))"
                       % (modules,)]).returncode:
        print("this python lacks one of " + ", ".join(modules))
        sys.exit(SKIP)


class Job:
    """What came of one run of a command; with the tool also its report."""

    def __init__(self, command, tool, environment=None, timeout=150, kill=None):
        self.dir = os.path.join(tempfile.mkdtemp(dir=TMP), "run")
        env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", **(environment or {}))
        command = ([TOOL, "run", "-o", self.dir, "--"] if tool else []) + command
        child = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 universal_newlines=True)
        timer = threading.Timer(timeout, child.kill)
        timer.start()
        try:
            if kill:
                kill(child)
            self.out, self.err = child.communicate()
        finally:
            timer.cancel()
        self.status = child.returncode
        self.report = self.steps = None
        if tool:
            self.judge()

    def result(self):
        """The JSON object that the job prints last."""
        try:
            return json.loads(self.out.splitlines()[-1])
        except (ValueError, IndexError):
            raise Wrong("exit status %d, no result: %s %s" % (self.status, self.out[-500:], self.err[-1500:]))

    def ask(self, *arguments):
        done = subprocess.run([TOOL, *arguments, self.dir], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)
        if done.returncode not in (0, 5):
            raise Wrong("tfhook %s: exit status %d: %s" % (" ".join(arguments), done.returncode, done.stderr[-500:]))
        return done.stdout

    def judge(self):
        if os.path.isdir(self.dir):
            self.report = json.loads(self.ask("report", "--json"))
            self.steps = [json.loads(line) for line in self.ask("report", "--steps", "--json").splitlines()]

    def segment(self, *kinds):
        return [s for s in self.steps if s["segment"] in kinds]

    def verdict(self):
        return self.report["verdict"]

    def guilty(self):
        return [s["name"] for s in self.report["input"]["stages"] if s["guilty"]]

    def right(self, cls, exempt=0):
        """Share of the steady steps that have this class, but for some that need not."""
        steady = self.segment("train")
        others = sum(s["class"] != cls for s in steady)
        return 1 - max(0, others - exempt) / max(1, len(steady) - exempt) if steady else 0

    def segments(self, kind):
        return sum(s["count"] for s in self.report["segments"] if s["kind"] == kind)

    def classes(self):
        return collections.Counter(s["class"] for s in self.segment("train"))


class Wrong(Exception):
    pass


class Disturbed(Exception):
    """The machine had so much else to do during one of the runs that the pair says nothing about the job."""


# ---- the TensorFlow job: scenarios and twins -----------------------------------------------------------------------

# What a defect must be called: class, causes, and names of the stage that may be the guilty one.
EXPECTED = {
    "slow_map": ("input-bound", ["input.map"], ["Map", "ParallelMap", "ParallelMapV2"]),
    "slow_generator": ("input-bound", ["input.generator"], ["Generator", "FlatMap"]),
    "slow_read": ("input-bound", ["input.read"], ["TFRecord", "TFRecordV2"]),
    "callback": ("host-bound", ["host.callback", "host.python", "host.unknown", "host.code", "host.sleep"], None),
}
CLASS_OF = {name: name + "-bound" for name in ("input", "transfer", "compute", "host", "communication")}
EPOCHS = 2  # of train_val
BASE_ITERS = 3
HEAVY_ITERS = 100


class Scenario(collections.namedtuple("Scenario", "shape defect prefetch")):
    """One way to write the job and one thing that is slow in it."""

    def iters(self):
        return HEAVY_ITERS if self.defect in ("compute", "none") else BASE_ITERS

    def steps(self):
        if self.iters() == HEAVY_ITERS:
            return 30
        # Inside a graph only the processor time tells a callback from compute, and that is read once a second.
        return 300 if (self.shape, self.defect) == ("func_loop", "callback") else 60

    def arguments(self):
        return ("--shape", self.shape, "--defect", "none" if self.defect == "compute" else self.defect,
                "--prefetch", self.prefetch, "--iters", str(self.iters()), "--steps",
                str(self.steps()))

    def twin(self):
        """The same without the factor; for a job without one, the same with next to no compute."""
        return ("--shape", self.shape, "--defect", "none", "--prefetch", self.prefetch,
                "--iters", "1" if self.iters() == HEAVY_ITERS else str(self.iters()), "--steps", "30")


def command(arguments):
    return [PYTHON, os.path.join(JOBS, "tf_jobs.py"), "--slowread",
            os.path.join(BUILD, "tests", "jobs", "libslowread.so")] + list(arguments)


def expect(scenario, job_s, twin_s):
    """Class, causes and stages that the measured pair asks for, and what removing the factor gains."""
    gain = 1 - twin_s / job_s
    if scenario.defect in EXPECTED and gain >= GAIN:
        return EXPECTED[scenario.defect] + (gain,)
    if scenario.defect in EXPECTED:
        return None, [], None, gain
    # Here the twin is what is left without compute: the most that removing anything else could gain.
    return "compute-bound" if 1 - gain <= 1 - COMPUTE else None, ["compute.cpu"], None, 1 - gain


def took(told):
    """What each step after the first took by the job's own clock, seconds."""
    return [e - b for b, e in list(zip(told["begin"], told["end"]))[1:]]


def step_s(told, quantile):
    durations = sorted(took(told))
    return durations[int(len(durations) * quantile)]


def pair_s(job, twin):
    """Seconds a step of the job takes, and of its twin: its median, as after a disturbance a full buffer makes steps quick,
    and the twin's tenth percentile, as what else the machine does only adds to steps that wait for nothing."""
    return step_s(job, 0.5), step_s(twin, 0.1)


def other_steps(told, job_s, twin_s):
    """How many steps were not like the others by the job's clock: as fast as the twin's (while the first step is compiled, a
    pipeline fills its buffer, and the steps that live on it have nothing to gain), or disturbed by something else."""
    return sum(d < twin_s + (job_s - twin_s) / 3 or d > 1.4 * job_s for d in took(told))


def check(scenario, hooked, plain, twin):
    """A row of the table, and what is wrong."""
    told, alone, other = hooked.result(), plain.result(), twin.result()
    job_s, twin_s = pair_s(alone, other)
    cls, causes, stages, gain = expect(scenario, job_s, twin_s)
    if step_s(told, 0.5) > DISTURBED * job_s:
        raise Disturbed("%.1f ms a step while recorded, %.1f ms in the run before" % (1e3 * step_s(told, 0.5), 1e3 * job_s))
    verdict, wrong = hooked.verdict(), []
    train = len(hooked.segment("warmup", "train"))
    exempt = other_steps(told, step_s(told, 0.5), twin_s) if scenario.defect in EXPECTED else 0
    right = hooked.right(cls, exempt)
    if hooked.status != plain.status or hooked.status:
        wrong.append("exit status %d, without the tool %d" % (hooked.status, plain.status))
    if told["loss"] != alone["loss"]:
        wrong.append("loss %s, without the tool %s" % (told["loss"], alone["loss"]))
    mixed = [s["index"] for s in hooked.steps if s["cause"] and s["class"] != CLASS_OF[s["cause"].split(".")[0]]]
    if mixed:
        wrong.append("class and cause do not fit in steps %s" % mixed)
    if train != told["steps"]:
        wrong.append("%d steps found, %d done" % (train, told["steps"]))
    if scenario.shape == "train_val" and hooked.segments("eval") != EPOCHS:
        wrong.append("%d evaluations found, %d done" % (hooked.segments("eval"), EPOCHS))
    if exempt * 3 > train:
        wrong.append("%d of the steps were too quick or too slow to have just the defect" % exempt)
    if cls is None:
        wrong.append("the pair is not sharp enough for a truth: %.1f ms against %.1f ms a step"
                     % (1e3 * job_s, 1e3 * twin_s))
    else:
        if verdict["class"] != cls or verdict["cause"] not in causes:
            wrong.append("verdict %s %s" % (verdict["class"], verdict["cause"]))
        if right < RIGHT:
            wrong.append("%s on %.0f %% of the steps: %s" % (cls, 100 * right, dict(hooked.classes())))
        if stages and not set(hooked.guilty()) & set(stages):
            wrong.append("guilty stage %s" % hooked.guilty())
    row = "%-19s %-14s %-8s %7.1f %7.1f %5.0f%%  %-13s %-13s %-15s %3.0f%%  %d/%d" % (
        scenario + (1e3 * job_s, 1e3 * twin_s, 100 * gain, cls, verdict["class"], verdict["cause"],
                    100 * right, train, told["steps"]))
    return row, wrong


HEADER = "%-19s %-14s %-8s %7s %7s %6s  %-13s %-13s %-15s %4s  %s" % (
    "shape", "defect", "prefetch", "job ms", "twin ms", "gain", "expected", "got", "cause", "right", "steps")


def judge_pair(scenario, jobs):
    """Prints the row of a pair and what is wrong with it. True: nothing, None: disturbed."""
    try:
        row, wrong = check(scenario, *jobs)
    except Wrong as e:
        row, wrong = "%-19s %-14s %-8s" % scenario, [str(e)]
    except Disturbed as e:
        print("%-19s %-14s %-8s disturbed: %s" % (scenario + (e,)), flush=True)
        return None
    print("\n    ".join([row] + wrong), flush=True)
    return not wrong


def run_again(scenario):
    """One run after the other, until one says something."""
    said = None
    for _ in range(TRIES):
        print("once more:", flush=True)
        said = judge_pair(scenario, [Job(command(a + ("--times",)), tool) for a, tool in
                                     ((scenario.arguments(), True), (scenario.arguments(), False), (scenario.twin(), False))])
        if said is not None:
            break
    return said


def run_pairs(scenarios):
    """Runs every scenario, with and without the tool, and every twin once, two at a time; what is wrong then, again and
    alone: on a busy machine a job's steps are not what they should be. Exits with what came of it."""
    need("tensorflow")
    print(HEADER, flush=True)
    again = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        alone, pairs = {}, []

        def once(arguments):
            if arguments not in alone:
                alone[arguments] = pool.submit(Job, command(arguments + ("--times",)), False)
            return alone[arguments]

        for s in scenarios:
            pairs.append((s, pool.submit(Job, command(s.arguments() + ("--times",)), True), once(s.arguments()),
                          once(s.twin())))
        for scenario, *jobs in pairs:
            if not judge_pair(scenario, [j.result() for j in jobs]):
                again.append(scenario)
    said = [(s, run_again(s)) for s in again]
    failed = [s for s, right in said if right is False]
    undecided = [s for s, right in said if right is None]
    print("%d of %d pairs right, %d of them in a second run; %d undecided on this machine"
          % (len(pairs) - len(failed) - len(undecided), len(pairs), len(again) - len(failed) - len(undecided), len(undecided)))
    for s in failed:
        print("FAILED: %s %s %s" % s)
    sys.exit(1 if failed or len(undecided) > UNDECIDED * len(pairs) else 0)
