"""Runs a program with libtfhook.so preloaded and reads its trace; shared by the tests of this folder."""
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile

SRC = os.environ.get("TFH_SRC") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TFH_BUILD") or os.path.join(SRC, "build")
TMP = os.environ.get("TFH_TMP") or tempfile.mkdtemp(prefix="tfhook-test-")
PYTHON = os.environ.get("TFH_PY")
LIBRARY = os.path.join(BUILD, "lib", "libtfhook.so")
TFHOOK = os.path.join(BUILD, "bin", "tfhook")
HERE = os.path.join(BUILD, "tests", "tf")
SKIP = 77

CALL, AGG, MARK, RANGE, NAME = 1, 2, 5, 6, 8
NAME_STAGE, NAME_ITERATOR, NAME_OP, NAME_STRING = 4, 5, 6, 7
F_END, F_FAILED = 16, 32
STAGE = "DatasetBaseIterator::GetNext"


def need_tensorflow():
    if not PYTHON:
        print("no python with TensorFlow")
        sys.exit(SKIP)


class Outcome:
    """Exit status, output and trace of one run."""

    def __init__(self, command, preload=True, **environment):
        self.dir = tempfile.mkdtemp(dir=TMP)
        env = dict(os.environ, TFHOOK_DIR=self.dir, TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")
        env.update(environment)
        env.pop("TFHOOK_RUN", None)
        if preload:
            env["LD_PRELOAD"] = LIBRARY
        done = subprocess.run(command, env=env, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.files = sorted(glob.glob(os.path.join(self.dir, "**", "*.tft"), recursive=True))
        self.records, self.names = [], {}
        if self.files:
            self.read()

    def read(self):
        text = subprocess.run([os.path.join(HERE, "trace")] + self.files, check=True, stdout=subprocess.PIPE,
                              universal_newlines=True).stdout
        for line in text.splitlines():
            record = json.loads(line)
            if record["kind"] == NAME:
                self.names[record["pid"], record["name"], record["id"]] = record["text"]
            else:
                self.records.append(record)

    def name(self, record, kind, number):
        return self.names.get((record["pid"], kind, number), "")

    def calls(self, *functions):
        return [r for r in self.records if r["kind"] == CALL and r["fn"] in functions]

    def batches(self):
        """Get-next records of the training loop that delivered a batch: one per step."""
        consumers = self.calls("IteratorGetNextOp::DoCompute", "IteratorGetNextAsOptionalOp::DoCompute",
                               "IteratorResource::GetNext", "tf_data_iterator_get_next")
        loop = [r for r in self.calls(STAGE) if r["w"][0]]
        return [r for r in consumers + loop if not r["flags"] & F_END]

    def by_iterator(self):
        return collections.Counter(r["w"][0] for r in self.batches())

    def stages(self):
        """Last component of the names of all stages that were met."""
        return {text.split("#")[0].split("::")[-1] for (_, kind, _), text in self.names.items() if kind == NAME_STAGE}

    def result(self):
        """The JSON object that tf_jobs.py prints last."""
        check(self.status == 0, "exit status %d\n%s\n%s" % (self.status, self.out[-2000:], self.err[-2000:]))
        return json.loads(self.out.splitlines()[-1])


def job(shape, *arguments, **keywords):
    need_tensorflow()
    return Outcome([PYTHON, os.path.join(SRC, "tests", "jobs", "tf_jobs.py"), "--shape", shape, "--steps", "16",
                    "--iters", "2", "--times"] + list(arguments), **keywords)


def check(true, text):
    if not true:
        print("FAILED:", text)
        sys.exit(1)


def check_made(run, stage, text):
    """The report gives the line of the program that made the stage; the line contains `text`."""
    report = json.loads(subprocess.run([TFHOOK, "report", "--json"] + run.files, check=True, stdout=subprocess.PIPE).stdout)
    made = {s["name"]: s["made_at"] for s in report["input"]["stages"]}
    check(made.get(stage), "%s is made nowhere: %s" % (stage, made))
    with open(made[stage]["file"]) as f:
        line = f.read().splitlines()[made[stage]["line"] - 1]
    check(text in line, "%s is made by %r" % (stage, line))


def check_job(run, stage, batches=None):
    """Every step of the job has one get-next record, in its time; the pipeline's stages have their names."""
    told = run.result()
    got = run.batches()
    want = told["steps"] + told["eval_steps"] if batches is None else batches
    check(len(run.files) == 1, "files: %s" % run.files)
    check(len(got) == want, "%d get-next records, %d batches" % (len(got), want))
    check(stage in run.stages(), "no stage %s in %s" % (stage, run.stages()))
    unnamed = [text for text in run.names.values() if "unnamed" in text]
    check(not unnamed, "stages without a name")
    return told
