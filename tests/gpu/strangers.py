"""Training jobs for a real GPU as different people write them: frameworks and habits of their own, each with a truth.

usage: strangers.py JOB [--fixed] [--steps N]

As jobs.py: one line of JSON, TFH_GPU_TURN locked around the loop. The truth is what the author of the job knows of it: where
its time goes by design. Causes that are all right are listed. A class of None says that two classes are defensible: one of the
causes must be named then, and without causes the verdict is only told. --fixed runs the twin without the defect; a job without
a defect is its own twin.

TFH_GPU_DEVICE=cpu runs the jobs of PyTorch's and JAX's on a processor in small, to try the scripts themselves.
With TFH_GPU_ALONE naming a file, a job locks it before it uses the device at all, so that nothing disturbs its warm-up.
TFH_GPU_LIMIT is after how many seconds a job that has imported its packages ends itself (60).
"""
import fcntl
import importlib
import json
import os
import signal
import sys

import strangers_frameworks  # noqa: F401
import strangers_loops  # noqa: F401
import strangers_other  # noqa: F401
import strangers_tensorflow  # noqa: F401
from jobs import arguments
from stranger import JOBS, NEEDS, TWINS, WORK

__all__ = ["JOBS", "NEEDS", "TWINS"]


def main():
    args = arguments(JOBS)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    for module in NEEDS[args.job].split(","):
        try:
            importlib.import_module(module)
        except ImportError as missing:
            sys.exit(f"{args.job} needs {module}: {missing}")
    alone = os.environ.get("TFH_GPU_ALONE")
    if alone:
        locked = open(alone, "w")
        fcntl.flock(locked, fcntl.LOCK_EX)
    signal.alarm(int(os.environ.get("TFH_GPU_LIMIT", "60")))
    seconds, total = WORK[args.job](args.steps, args.fixed)
    print(json.dumps(dict(job=args.job, fixed=args.fixed, steps=args.steps, seconds=seconds, loss=total)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
