#!/usr/bin/env python3
"""A dataset loop inside a tf.function and a session of TensorFlow 1: one get-next record per step.

In the loop it is the stage below Scan, on a thread of its own, and the whole loop is one ReduceDatasetOp.

timeout: 180
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tfrun import NAME_OP, NAME_STAGE, STAGE, check, check_job, job  # noqa: E402

run = job("func_loop", "--defect", "slow_map", "--ms", "2")
told = check_job(run, "Map")
check(len(run.calls("ReduceDatasetOp::DoCompute")) == 1, "loops")
scans = [r for r in run.calls(STAGE) if run.name(r, NAME_STAGE, r["w"][1]).split("#")[0].endswith("::Scan")]
check(len(scans) in (told["steps"], told["steps"] + 1), "%d calls of Scan" % len(scans))
check(all(run.name(r, NAME_STAGE, r["w"][1]).split("#")[0].endswith("::Scan::Map") for r in run.batches()),
      "get-next is not the child of Scan")

run = job("tf1", "--defect", "slow_generator", "--ms", "2")
told = check_job(run, "Generator")
sessions = [r for r in run.calls("TF_SessionRun") if "GradientDescent" in run.name(r, NAME_OP, r["w"][0])]
check(len(sessions) == told["steps"], "%d sessions of %d" % (len(sessions), told["steps"]))
