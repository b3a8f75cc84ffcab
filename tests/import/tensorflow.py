#!/usr/bin/env python3
"""A trace that TensorFlow's own profiler writes now, of a job with a slow map in its input pipeline: the steps that the program
marked, the class, and the guilty stage."""
import json
import os
import subprocess
import sys

BUILD, TMP, PY = (os.environ.get(k, "") for k in ("TFH_BUILD", "TFH_TMP", "TFH_PY"))
JOB = """
import os, sys, time
import tensorflow as tf

def slow(x):
    time.sleep(0.004)
    return x

data = tf.data.Dataset.range(1000).map(lambda x: tf.py_function(slow, [x], tf.int64)).batch(4).prefetch(2)
w = tf.Variable(tf.random.normal([200, 200]))

@tf.function
def train_step(x):
    w.assign(tf.tanh(tf.matmul(w, w) * 0.01))
    return tf.reduce_sum(w)

it = iter(data)
for _ in range(3):
    train_step(next(it))
tf.profiler.experimental.start(sys.argv[1])
for i in range(30):
    with tf.profiler.experimental.Trace("train", step_num=i, _r=1):
        train_step(next(it))
tf.profiler.experimental.stop()
os._exit(0)  # the end of an interpreter whose functions prefetch() still calls can wait for ever
"""
run = PY and subprocess.run([PY, "-c", JOB, TMP + "/log"], capture_output=True, text=True)
if not run or "No module named 'tensorflow'" in run.stderr:
    print("SKIP: needs a Python with TensorFlow")
    sys.exit(77)
assert run.returncode == 0, run.stderr[-2000:]
r = json.loads(subprocess.check_output([BUILD + "/bin/tfhook", "report", "--json", TMP + "/log"]))
print(json.dumps(r["verdict"], indent=1), r["steps"]["count"], r["input"]["stages"])
assert r["run"]["source"] == "xplane" and r["steps"]["clock"] == "mark"
assert r["steps"]["count"] + r["steps"]["warmup"] == 30, r["steps"]
assert (r["verdict"]["class"], r["verdict"]["cause"]) == ("input-bound", "input.map"), r["verdict"]
