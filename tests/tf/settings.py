#!/usr/bin/env python3
"""What must hold: a recording tells how real TensorFlow was set by calls (TF32, deterministic ops), as it was last, with what each
costs; a job that sets nothing has the defaults and no such cost. The job prints the same with and without.

timeout: 300
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tfrun import PYTHON, TMP, check, need_tensorflow  # noqa: E402

TOOL = os.path.join(os.environ["TFH_BUILD"], "bin", "tfhook")
TF32, SAME = "tf.config.experimental.enable_tensor_float_32_execution", "tf.config.experimental.enable_op_determinism"
JOB = """import time, tensorflow as tf
from tensorflow.python.framework import config
tf.random.set_seed(1)
def train(seconds):
    until = time.time() + seconds
    while time.time() < until:
        tf.matmul(tf.ones((8, 8)), tf.ones((8, 8))); time.sleep(0.01)
%s
print(config.tensor_float_32_execution_enabled(), config.is_op_determinism_enabled())
"""
SET = "tf.config.experimental.enable_tensor_float_32_execution(False); tf.config.experimental.enable_op_determinism(); train(2.5)"
UNDONE = "; tf.config.experimental.enable_tensor_float_32_execution(True); train(1.5)"

need_tensorflow()
for name, calls, expected in (("defaults", "train(1)", {TF32: "True"}), ("set", SET, {TF32: "False", SAME: "True"}),
                              ("undone", SET + UNDONE, {TF32: "True", SAME: "True"})):
    out, job = os.path.join(TMP, name), [PYTHON, "-c", JOB % calls]
    plain = subprocess.run(job, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    done = subprocess.run([TOOL, "run", "-q", "-o", out, "--", *job], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    check(done.stdout == plain, "%s: %s without, %s with" % (name, plain, done.stdout))
    report = json.loads(subprocess.run([TOOL, "report", "--json", out], stdout=subprocess.PIPE, text=True).stdout)
    told = {s["name"]: s["value"] for s in report["program_settings"]}
    priced = {s["variable"]: s["value"] for s in report["settings"] if s["variable"].startswith("tf.")}
    print(name, told, sorted(priced))
    # Deterministic ops are off or, once TensorFlow has asked the environment, known to be off.
    check({k: v for k, v in told.items() if (k, v) != (SAME, "False")} == expected, "%s: %s" % (name, told))
    check(priced == {k: v for k, v in expected.items() if (k, v) in ((TF32, "False"), (SAME, "True"))}, "%s: %s" % (name, priced))
