#!/usr/bin/env python3
"""The job's results, output and exit status are the same with and without the preload, however it ends.

timeout: 180
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tfrun import Outcome, PYTHON, check, job, need_tensorflow  # noqa: E402

def loss(run):
    told = json.loads(run.out.splitlines()[-1])
    return told["loss"], told["steps"]


need_tensorflow()
plain = job("func_next", preload=False)
check(plain.status == 0, "the job fails by itself: " + plain.err)
for end, status in (("_exit", 3), ("raise", 1)):
    run = job("func_next", "--end", end)
    check(run.status == status, "%s: exit status %s" % (end, run.status))
    check(loss(plain) == loss(run), "%s: loss %s %s" % (end, loss(plain), loss(run)))
    check(len(plain.out.splitlines()) == len(run.out.splitlines()), "%s: output %s" % (end, run.out))
    check(len(run.batches()) == 16, "%s: %d batches" % (end, len(run.batches())))

quiet = Outcome([PYTHON, "-c", "import tensorflow"])
check(quiet.status == 0 and not quiet.files, "a trace of an import: %s" % quiet.files)

# All that TensorFlow says, warnings about missing GPUs included, is the same but for times, addresses and process ids.
SAYS = "import tensorflow as tf\nprint(tf.config.list_physical_devices())\nprint(tf.reduce_sum(tf.ones((3, 3))).numpy())"


def words(text):
    return [" ".join(re.sub(r"0x[0-9a-f]+|\d+", "#", line).split()) for line in text.splitlines()]  # ids are padded


pair = [Outcome([PYTHON, "-c", SAYS], preload=preload, TF_CPP_MIN_LOG_LEVEL="0") for preload in (False, True)]
check(pair[0].out == pair[1].out and pair[0].status == pair[1].status == 0, "output: %s" % [p.out for p in pair])
check(words(pair[0].err) == words(pair[1].err), "messages: %s" % [p.err for p in pair])
