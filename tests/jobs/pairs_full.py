#!/usr/bin/env python3
"""The rest of the matrix, for `make check-wheels`: every shape with every input defect, with and without a final prefetch of
its own, with heavy compute, and with a slow callback. pairs.py has the others. TFH_SHAPES names the shapes to run."""
# serial
# timeout: 5400
import os
import sys

from pairs import PAIRS
from pairs_lib import SKIP, Scenario, run_pairs

SHAPES = ["eager", "func_next", "func_loop", "keras", "tf1", "train_val", "steps_per_execution"]
INPUT = ["slow_map", "slow_generator", "slow_read"]


def matrix():
    for shape in os.environ.get("TFH_SHAPES", "").split() or SHAPES:
        for defect in INPUT:
            for prefetch in ("explicit", "default"):
                yield Scenario(shape, defect, prefetch)
        yield Scenario(shape, "compute", "default")
        yield Scenario(shape, "callback", "default")


if not os.environ.get("TFH_FULL"):
    print("only with TFH_FULL=1, as in make check-wheels")
    sys.exit(SKIP)
run_pairs([s for s in matrix() if s not in PAIRS])
