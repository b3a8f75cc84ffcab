#!/usr/bin/env python3
"""Children by fork and spawn, a fork inside a get-next, a subprocess, and os._exit: the same output and exit status with
and without the preload; the processes that drew batches have traces, the others none.

timeout: 180
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tfrun import Outcome, PYTHON, TMP, check, need_tensorflow  # noqa: E402

PROCESSES = r"""
import multiprocessing, os, subprocess, sys
import tensorflow as tf

def work(n):
    return sum(float(x) for x in tf.data.Dataset.range(n).map(lambda x: tf.cast(x, tf.float32)).batch(4).unbatch())

def plain(n):
    return n * n

def through_fork(x):
    pid = os.fork()
    if not pid:
        os._exit(7)
    return x + os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

if __name__ == "__main__":
    print(work(20))
    for how, function in (("spawn", work), ("fork", plain)):
        pool = multiprocessing.get_context(how).Pool(1)
        print(pool.map(function, [10, 20]))
        pool.close()
        pool.join()
    # a child made inside a get-next, under all its wrappers
    print([int(x) for x in tf.data.Dataset.range(5).map(lambda x: tf.numpy_function(through_fork, [x], tf.int64))])
    print(subprocess.run([sys.executable, "-c", "print(1)"], stdout=subprocess.PIPE).stdout)
    sys.stdout.flush()
    os._exit(5)
"""


need_tensorflow()
script = os.path.join(TMP, "processes.py")
with open(script, "w") as f:
    f.write(PROCESSES)
plain, run = Outcome([PYTHON, script], preload=False), Outcome([PYTHON, script])
check(plain.status == 5, "fails by itself: " + plain.err)
check((plain.status, plain.out) == (run.status, run.out), "with the preload: %s\n%s\n%s" % (run.status, run.out, run.err))
check(len({r["pid"] for r in run.batches()}) == 2, "processes that recorded batches: %s" % run.files)
check(len(run.files) == 2, "files: %s" % run.files)
