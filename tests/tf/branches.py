#!/usr/bin/env python3
"""Inputs of zip() and concatenate() that have stages of the same names are stages of their own, each with its calls and the line that
made it; those of an interleave's elements are one.

timeout: 180
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tfrun import Outcome, PYTHON, check, need_tensorflow  # noqa: E402

JOB = r"""
import tensorflow as tf
numbers = tf.data.Dataset.range(400)
def busy(x, times):
    for _ in range(times):
        x = tf.linalg.matvec(tf.ones([60, 60], tf.float32), tf.fill([60], tf.cast(x, tf.float32)))[0] / 60.0
    return x
left = numbers.map(lambda x: busy(x, 1))
right = numbers.map(lambda x: busy(x, 20))
joined = numbers.map(lambda x: busy(x, 2)).take(40).concatenate(numbers.map(lambda x: busy(x, 3)).take(40))
spread = numbers.take(4).interleave(lambda x: tf.data.Dataset.range(20).map(lambda y: busy(y, 1)), cycle_length=4)
for data in (tf.data.Dataset.zip((left, right)).batch(8), joined.batch(8), spread.batch(8)):
    print(float(sum(tf.reduce_sum(tf.nest.flatten(b)[0]) for b in data)))
"""

need_tensorflow()
run = Outcome([PYTHON, "-c", JOB])
check(run.status == 0, run.err)
names = {}
for (_, kind, _), text in run.names.items():
    path = text.split("#")[0]
    if kind == 4:
        names[path] = names.get(path, 0) + 1
maps = sorted(path for path in names if path.rsplit("::", 1)[-1].startswith(("Map", "ParallelMap")))
for last in ("Zip[0]", "Zip[1]", "Concatenate[0]", "Concatenate[1]"):
    check(sum(last + "::" in path for path in maps) == 1, "%s in %s" % (last, maps))
check(sum("Interleave" in path for path in maps) == 1, "interleave: %s" % maps)
