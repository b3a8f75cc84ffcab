"""Runs scenarios and tells what is true of them: from the log of the simulated driver, the job's own clock and the measured
twin; and what tfhook said."""
import glob
import json
import math
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

import first_screen
import rivals

SRC = os.environ.get("TFH_SRC") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TFH_BUILD") or os.path.join(SRC, "build")
TMP = os.environ.get("TFH_TMP") or tempfile.mkdtemp(prefix="tfh-truth-")
PYTHON = os.environ.get("TFH_PY") or ""
TOOL = os.path.join(BUILD, "bin", "tfhook")
HERE, JOBS = os.path.join(SRC, "tests", "truth", "jobs"), os.path.join(SRC, "tests", "jobs")
TRAIN = os.path.join(BUILD, "tests", "truth", "train")
SLOWREAD = os.path.join(BUILD, "tests", "jobs", "libslowread.so")

PROGRAMS = {
    "train": [TRAIN],
    "ranks": [PYTHON or "python3", HERE + "/ranks.py", TRAIN],
    "feed": [PYTHON, HERE + "/feed.py", "--library", os.path.join(BUILD, "tests", "truth", "libtrain.so"), "--slowread", SLOWREAD],
    "tiny": [PYTHON, HERE + "/tiny.py"],
    "client": [PYTHON, JOBS + "/client_cb.py"],
    "tf": [PYTHON, JOBS + "/tf_jobs.py", "--times", "--slowread", SLOWREAD],
}
GATED = {"feed", "tf", "tiny"}  # they wait at a gate once they are loaded
TF_ENV = dict(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")
NEEDS = {"feed": "tensorflow", "tf": "tensorflow", "tiny": "tinygrad", "client": "cuda.bindings"}
# In which part of the breakdown the defect is, by what the twin lacks.
PART = {"input": "input", "transfer": "transfer", "launch": "launch", "host": "host", "sync": "sync", "communication": "communication",
        "everything-but-compute": "compute"}
# Two-sided 95 % of Student's distribution, by degrees of freedom.
STUDENT = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201}

CLOCKS = time.time() - time.monotonic()


class Wrong(Exception):
    pass


def unfit(line):
    """Whether a line of a report is wider than 80 columns or holds a number that is none, or a negative one (+-11 % is none)."""
    return len(line) > 80 or re.search(r"\b(nan|inf|null)\b|(?<!\+)-\d+(\.\d+)? (ms|us|s|%)|None", line)


def available(scenario):
    """Whether the program of a scenario can run here."""
    module = NEEDS.get(scenario.program)
    return not module or PYTHON and not subprocess.run(
        [PYTHON, "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec(%r))" % module]).returncode


def product_ms():
    """Milliseconds that a matrix product of tf_jobs.py takes here, so that a step computes equally long on every machine."""
    done = subprocess.run(PROGRAMS["tf"] + shlex.split("--shape func_next --threads 1 --base-ms 100 --steps 3"), text=True,
                          env=dict(os.environ, **TF_ENV), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return 100 / json.loads(done.stdout.splitlines()[-1])["iters"]


class Run:
    """One run of a job, begun at once; with the tool also its report, steps and the driver's log. Programs that take seconds to
    load wait for go() before their first step, so that a job and its twin load side by side and run one after the other."""

    def __init__(self, scenario, arguments, tool, real=False, timeout=180):
        self.scenario, self.dir, self.tool, self.timeout = scenario, tempfile.mkdtemp(dir=TMP), tool, timeout
        self.out_dir, self.gate = os.path.join(self.dir, "run"), os.path.join(self.dir, "gate")
        env = dict(os.environ, **TF_ENV, DEV="CUDA:PTX", CACHELEVEL="0",
                   PYTHONWARNINGS="ignore", TFHOOK_CUPTI="on", **scenario.env)
        if not real:
            env["LD_LIBRARY_PATH"] = os.path.join(BUILD, "sim")
            if tool:
                env["SIM_TRUTH"] = os.path.join(self.dir, "truth.%p")
        if scenario.tier == "C":
            env["TFHOOK_CUPTI"] = "off"
        if scenario.program in GATED:
            os.mkfifo(self.gate)
            env["TRUTH_GATE"] = self.gate
        command = PROGRAMS[scenario.program] + shlex.split(arguments)
        if tool:
            command = [TOOL, "run", "-o", self.out_dir, "--"] + command
        with open(self.file("stdout"), "w") as out, open(self.file("stderr"), "w") as err:
            self.process = subprocess.Popen(command, env=env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            start_new_session=True)

    def file(self, name):
        return os.path.join(self.dir, name)

    def loaded(self):
        """Waits until the job is loaded, or has ended."""
        end = time.monotonic() + self.timeout
        while self.scenario.program in GATED and not os.path.exists(self.gate + ".ready"):
            if self.process.poll() is not None or time.monotonic() > end:
                return
            time.sleep(0.02)

    def go(self):
        self.loaded()
        while self.scenario.program in GATED and self.process.poll() is None:
            try:
                os.close(os.open(self.gate, os.O_WRONLY | os.O_NONBLOCK))
                return
            except OSError:  # it has not opened its end yet
                time.sleep(0.001)

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def end(self):
        """Lets the job run, and reads what came of it."""
        self.go()
        try:
            self.process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Wrong("no end after %d s" % self.timeout)
        self.told = self.result()
        if self.tool:
            self.report = json.loads(self.ask("report", "--json"))
            self.steps = [json.loads(line) for line in self.ask("report", "--steps", "--json").splitlines()]
        return self

    def result(self):
        with open(self.file("stdout")) as f:
            out = f.read()
        last = (out.splitlines() or [""])[-1]
        if self.process.returncode:
            with open(self.file("stderr")) as f:
                raise Wrong("exit status %d: %s" % (self.process.returncode, f.read()[-600:]))
        if last.startswith("steps "):  # client_cb.py
            words = last.split()
            return {"steps": int(words[1]), "mean": float(words[3])}
        try:
            return json.loads(last)
        except ValueError:
            raise Wrong("no result: " + out[-300:])

    def ask(self, *arguments):
        done = subprocess.run([TOOL, *arguments, self.out_dir], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 5):
            raise Wrong("tfhook %s: exit status %d: %s" % (" ".join(arguments), done.returncode, done.stderr[-500:]))
        return done.stdout

    def steady(self):
        """Index of the first step that counts: not those with which a job begins."""
        return max(5, self.told["steps"] // 10)

    def step_s(self):
        """What a step takes by the job's own clock, in the long run."""
        if "mean" in self.told:
            return self.told["mean"]
        begin, end, w = self.told["begin"], self.told["end"], self.steady()
        if self.scenario.segments and self.scenario.tier == "C":  # something else goes on between
            return statistics.mean(e - b for b, e in list(zip(begin, end))[w:])
        return (end[-1] - end[w - 1]) / (len(end) - w)

    def ops(self):
        """(start, end, kind, name or direction, device) in seconds of what the device did, by the driver's log; of several
        ranks the last one's, whose result we have."""
        logs = glob.glob(os.path.join(self.dir, "truth.*"))
        ranks = sorted(os.path.basename(f) for f in glob.glob(os.path.join(self.out_dir, "r*.tft")))
        if ranks:
            logs = [os.path.join(self.dir, "truth." + ranks[-1].split(".")[-3])]
        ops = []
        for path in logs:
            with open(path) as f:
                found = [json.loads(line) for line in f if '"op"' in line]
            ops += [(o["start"] / 1e9, o["end"] / 1e9, o["kind"], o.get("name") or o.get("dir") or "", o.get("dev", 0))
                    for o in found if o["ev"] == "op"]
        return ops

    def dump(self):
        """Events and device ops as the analysis read them."""
        out = subprocess.run([os.path.join(BUILD, "tests", "import", "dump"), self.out_dir], stdout=subprocess.PIPE, check=True)
        return json.loads(out.stdout)


# ---- what is true ----------------------------------------------------------------------------------------------------

def union(intervals):
    out = []
    for a, b in sorted(intervals):
        if out and a <= out[-1][1]:
            out[-1][1] = max(out[-1][1], b)
        elif b > a:
            out.append([a, b])
    return out


def length(intervals, t0, t1):
    return sum(max(0, min(b, t1) - max(a, t0)) for a, b in intervals)


def without(intervals, other):
    """The parts of some intervals that are in none of the other; both are unions."""
    out, j = [], 0
    for a, b in intervals:
        while j and other[j - 1][1] > a:
            j -= 1
        while j < len(other) and other[j][0] < b:
            if other[j][0] > a:
                out.append([a, other[j][0]])
            a = max(a, other[j][1])
            j += 1
        if a < b:
            out.append([a, b])
    return out


def blocking_s(run, twin=None):
    """Seconds of a step that the defect holds the device back, by the driver's log and the job's clock; of jobs that have
    none, what computing takes. None: not known. A twin that tells of its own, of batches that lie ready, says what asking
    for one takes by itself, in Python and TensorFlow: that is no part of the defect."""
    s, told, ops = run.scenario, run.told, run.ops()
    if s.tier == "C" or s.remove is None or not ops or not told.get("begin"):
        return None
    t0, t1 = told["end"][run.steady() - 1], told["end"][-1]
    n = len(told["end"]) - run.steady()
    computing = union((a, b) for a, b, kind, name, dev in ops
                      if kind == "kernel" and not name.startswith("rendezvous") and dev == 0)
    if s.remove == "everything-but-compute":
        return length(computing, t0, t1) / n
    defect = [list(p) for p in zip(told["defect"][::2], told["defect"][1::2])]
    ready = twin.told["defect"] if twin else []
    if ready:
        usual = statistics.median(b - a for a, b in zip(ready[::2], ready[1::2]))
        defect = [[a + usual, b] for a, b in defect if b > a + usual]
    wanted = s.blocking.split()
    defect += [[a, b] for a, b, kind, name, dev in ops
               if wanted and (kind == "copy" and name in wanted or "rendezvous" in wanted and name.startswith("rendezvous"))]
    return length(without(union(defect), computing), t0, t1) / n if defect else None


def special_steps(run):
    """Which of the training steps hold what only every n-th step has: by their length, as only that makes one so long."""
    train = [s for s in run.steps if s["segment"] in ("train", "warmup")]
    usual = statistics.median(s["dur_s"] for s in train)
    defect = run.told["defect"]
    size = statistics.median(b - a for a, b in zip(defect[::2], defect[1::2]))
    return {s["index"] for s in train if s["dur_s"] > usual + size / 2}


# ---- one scenario ----------------------------------------------------------------------------------------------------

def check(run):
    """What is wrong with the verdict on one run, and (true, judged) class of its steady steps."""
    s, report, wrong = run.scenario, run.report, []
    verdict, steps = report["verdict"], []
    classes = [s.cls] + (list(s.also) if s.also else [])
    if s.besides and verdict["cause"] == s.besides:  # on a slow disk it takes longer than all steps
        verdict = dict(verdict, **report["steady"])
    if verdict["class"] not in classes:
        wrong.append("verdict %s %s" % (verdict["class"], verdict["cause"]))
    elif s.causes and verdict["class"] == s.cls and verdict["cause"] not in s.causes:
        wrong.append("cause %s" % verdict["cause"])
    if s.also and set([verdict["class"]] + verdict["also"]) != set(classes):
        wrong.append("also %s" % verdict["also"])
    if s.tier == "A" and verdict["tier"] != "A":
        wrong.append("tier %s" % verdict["tier"])
    if s.stage and not {g["name"] for g in report["input"]["stages"] if g["guilty"]} & set(s.stage):
        wrong.append("guilty stage %s" % [g["name"] for g in report["input"]["stages"] if g["guilty"]])
    if s.kernel and (not report["kernels"] or report["kernels"][0]["name"] != s.kernel):
        wrong.append("first kernel %s" % [k["name"] for k in report["kernels"][:1]])
    if s.advice and not any(re.search(s.advice, " ".join(map(str, a.values()))) for a in report["advice"]):
        wrong.append("no advice names " + s.advice)
    screen = first_screen.Screen(run.ask("report"))
    if screen.cls != report["verdict"]["class"] or screen.unanswered():
        wrong.append("the first screen says %s and leaves open %s" % (screen.cls, screen.unanswered()))
    text = run.ask("report", "--all") if s.remark else ""
    if s.remark and not re.search(s.remark, " ".join(text.split())):
        wrong.append("no remark like '%s'" % s.remark)
    for kind, count in s.segments.items():
        found = sum(g["count"] for g in report["segments"] if g["kind"] == kind)
        if not found or count is not None and abs(found - int(count)) > 1:
            wrong.append("%d segments %s, not %s" % (found, kind, count))
    for path, value in s.told.items():
        found = report
        for key in path.split("."):
            found = found.get(key) if found else None
        if found != value:
            wrong.append("%s is %s" % (path, found))
    for r, cls in s.others.items():
        got = [o["class"] for o in report["ranks"] if str(o["rank"]) == r]
        if got != [cls]:
            wrong.append("rank %s is %s" % (r, got))
    top = [r["rank"] for r in report.get("ranks", []) if r["critical"]] or [run.steps[0]["rank"]]
    mine = [t for t in run.steps if t["rank"] == top[0]]
    found = sum(t["segment"] in ("train", "warmup", "checkpoint", "compile") for t in mine)
    if found != run.told["steps"]:
        wrong.append("%d steps found, %d done" % (found, run.told["steps"]))
    special = special_steps(run) if s.special else set()
    if s.special and abs(len(special) - run.told["steps"] // s.every) > 1:
        wrong.append("%d special steps found, %d done" % (len(special), run.told["steps"] // s.every))
    for t in mine:
        if t["segment"] == "train":
            true = s.special if t["index"] in special else t["class"] if t["class"] in classes else s.cls
            steps.append((true, t["class"]))
    return wrong, steps


def whatif(report, remove):
    """The entry of what is removed. None is printed where less than 1 % of a step is to be gained: the step stays."""
    step = sum(b["s_per_step"] for b in report["breakdown"])
    nothing = {"step_s": step, "low_s": 0.99 * step, "high_s": step, "ceiling_speedup": 1.01}
    return next((w for w in report["whatif"] if w["remove"] == remove), nothing)


def judge_as_rivals(run):
    """The rivals get the steps by the job's own clock, as if it had been annotated."""
    dump, w = run.dump(), run.steady()
    if "begin" in run.told:
        offset = CLOCKS - dump["start"] / 1e9
        begins, end = [b + offset for b in run.told["begin"][w:]], run.told["end"][-1] + offset
    else:
        train = [s for s in run.steps if s["segment"] == "train"]
        begins, end = [s["start_s"] for s in train], train[-1]["start_s"] + train[-1]["dur_s"] if train else 0
    return rivals.judge(dump, [int(b * 1e9) for b in begins], int(end * 1e9))


def run_pair(scenario, real):
    """The job, and its twin if it has one."""
    hooked = Run(scenario, scenario.job, True, real)
    twin = Run(scenario, scenario.twin, False, real) if scenario.remove and scenario.program in GATED else None
    try:
        if twin:
            twin.loaded()
        hooked.end()
        if scenario.remove:
            twin = (twin or Run(scenario, scenario.twin, False, real)).end()
        return hooked, twin
    finally:
        hooked.kill()
        if twin:
            twin.kill()


def off_by(values):
    """Mean, and half of its 95 % interval; nan for a single one."""
    half = STUDENT[min(len(values) - 1, 11)] * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.mean(values), half


class Result:
    """All runs of one scenario."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.wrong, self.steps, self.failed, self.crashed = [], [], 0, 0
        self.verdicts, self.predicted, self.bounds, self.measured, self.plain, self.blocking = [], [], [], [], [], []
        self.ceiling = []
        self.rivals = {}

    def add(self, hooked, twin):
        wrong, steps = check(hooked)
        self.failed += bool(wrong)
        self.wrong += [w for w in wrong if w not in self.wrong]
        self.steps += steps
        self.verdicts.append((hooked.report["verdict"]["class"], hooked.report["verdict"]["cause"]))
        self.tier = hooked.report["verdict"]["tier"]
        self.plain.append(hooked.step_s())
        if not self.rivals:
            self.rivals = judge_as_rivals(hooked)
        if twin:
            self.compare(hooked, twin)
        for run in (hooked, twin):
            if run and not wrong:
                shutil.rmtree(run.dir, ignore_errors=True)

    def compare(self, hooked, twin):
        self.measured.append(twin.step_s())
        w = whatif(hooked.report, self.scenario.remove)
        if w["step_s"] is not None:
            self.predicted.append((w["step_s"], self.measured[-1]))
            self.bounds.append((w["low_s"], w["high_s"]))
        if w["ceiling_speedup"] is not None:
            self.ceiling.append((w["ceiling_speedup"], self.plain[-1] / self.measured[-1]))
        truth = blocking_s(hooked, twin)
        part = PART.get(self.scenario.remove)
        if truth:
            got = next(b["s_per_step"] for b in hooked.report["breakdown"] if b["name"] == part)
            self.blocking.append((got - truth) / truth)

    def runs(self):
        return len(self.verdicts)

    def got(self):
        return max(set(self.verdicts), key=self.verdicts.count) if self.verdicts else ("-", None)

    def class_right(self):
        s = self.scenario
        return self.runs() > 0 and not self.crashed and all(v[0] in (s.cls, *s.also) for v in self.verdicts)

    def steps_right(self):
        return sum(a == b for a, b in self.steps) / len(self.steps) if self.steps else 0

    def blocking_error(self):
        return statistics.median(map(abs, self.blocking)) if self.blocking else None

    def foretold(self):
        """Whether there is something to compare: a step, or the ceiling of a gain."""
        if self.scenario.tier == "C":
            return bool(self.ceiling)
        return bool(self.predicted) and 2 * len(self.predicted) >= len(self.measured)

    def off(self):
        """How far what was foretold is off, as part of what was measured, and half of its 95 % interval over the pairs: of
        the predicted step, in tier C of the ceiling."""
        values = self.ceiling if self.scenario.tier == "C" else self.predicted
        return off_by([(p - m) / m for p, m in values])

    def error(self):
        """How far the prediction is off, beyond the pair's own interval; None: no prediction."""
        if not self.foretold():
            return None
        off, half = self.off()
        return max(0, abs(off) - (0 if half != half else half))

    def ceiling_error(self):
        """How far the ceiling is outside of what it may be, the measured gain to 15 % above, beyond the pair's interval;
        negative: below."""
        off, half = self.off()
        half = 0 if half != half else half
        return min(0, off + half) + max(0, off - half - 0.15)

    def printed(self):
        """Half of the interval that the report prints, as part of its point."""
        return statistics.median((h - l) / 2 / p for (l, h), (p, _) in zip(self.bounds, self.predicted))

    def judged(self):
        """Whether the verdict was right in every run."""
        return self.runs() > 0 and not self.failed and not self.crashed
