#!/usr/bin/env python3
"""An eager loop and next(iterator) in a tf.function: one get-next record per step, inside the step's own times. The stages
of the pipeline have the lines that make them.

timeout: 180
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tfrun import NAME_OP, check, check_job, check_made, job  # noqa: E402

run = job("eager", "--defect", "slow_map", "--ms", "2", TFHOOK_STACKS="slow")
told = check_job(run, "Map")
check(len(run.by_iterator()) == 1, "iterators: %s" % run.by_iterator())
for r, begin, end in zip(run.batches(), told["begin"], told["end"]):
    check(begin <= r["begin"] / 1e9 and r["end"] / 1e9 <= end, "get-next outside its step: %s %s %s" % (r, begin, end))
ops = {run.name(r, NAME_OP, r["w"][0]) for r in run.calls("TFE_Execute")}
check({"MatMul", "IteratorGetNext", "AssignSubVariableOp"} <= ops, "ops: %s" % ops)
check_made(run, "Map", ".map(slow_identity")
check_made(run, "BatchV2", ".batch(A.batch")

run = job("func_next", "--defect", "slow_map", "--ms", "2", "--prefetch", "explicit", "--parallel", "2", "--marks",
          TFHOOK_STACKS="slow")
told = check_job(run, "ParallelMapV2")
check_made(run, "ParallelMapV2", ".map(slow_identity")
check("Prefetch" in run.stages(), "stages: %s" % run.stages())
steps = [r for r in run.calls("TFE_Execute") if "step" in run.name(r, NAME_OP, r["w"][0])]
check(len(steps) == told["steps"], "%d function calls" % len(steps))
marks = [r for r in run.records if r["kind"] == 5]
check(len(marks) == told["steps"], "%d marks" % len(marks))
for mark, begin, end in zip(marks, told["begin"], told["end"]):
    check(abs(mark["begin"] / 1e9 - begin) < 0.01 and abs(mark["end"] / 1e9 - end) < 0.01,
          "a mark far from its step: %s %s %s" % (mark, begin, end))
