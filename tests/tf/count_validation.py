#!/usr/bin/env python3
"""Train and validation iterators, made anew each epoch: each has its own id, whatever addresses they get.

timeout: 180
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tfrun import check, check_job, job  # noqa: E402

run = job("train_val", "--defect", "slow_generator", "--ms", "2")
told = check_job(run, "Generator")
counts = sorted(run.by_iterator().values())
want = sorted([told["steps"] // 2] * 2 + [told["eval_steps"] // 2] * 2)
check(counts == want, "batches by iterator: %s, not %s" % (counts, want))
