#!/usr/bin/env python3
"""Keras fit, one and several steps per call: one get-next record per step.

timeout: 180
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tfrun import NAME_OP, check, check_job, job  # noqa: E402

run = job("keras", "--defect", "slow_map", "--ms", "2", "--prefetch", "explicit")
told = check_job(run, "Map")
run = job("steps_per_execution", "--prefetch", "none")
told = check_job(run, "BatchV2")
calls = [r for r in run.calls("TFE_Execute") if "step_on_iterator" in run.name(r, NAME_OP, r["w"][0])
         or "train_function" in run.name(r, NAME_OP, r["w"][0])]
check(len(calls) == told["steps"] // told["execution"], "%d calls of several steps" % len(calls))
