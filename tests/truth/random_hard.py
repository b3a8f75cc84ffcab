#!/usr/bin/env python3
"""Six jobs drawn at random (random_jobs): all steps are found, device times and calls are joined (tier A), every predicted step
lies between its bounds, and the report holds no line over 80 columns and no number that is none. What a crowded machine could
make wrong, class and times against measured twins, is for `make truth-random`. The job of seed 11 has a thread that takes batches
ahead of the training."""
# serial
# timeout: 120
import os
import subprocess
import sys

import truth

if os.environ.get("TFH_SAN") or not os.path.exists(truth.TRAIN):
    print("needs the recorder and the simulated GPU, without sanitizers")
    sys.exit(77)
jobs = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "random_jobs"), "--hard"]
drawn = ["--seed", os.environ["SEED"]] if os.environ.get("SEED") else []
ahead, hard = (subprocess.run([sys.executable, *jobs, *more]).returncode for more in (["-n", "1", "--seed", "11"], ["-n", "6", *drawn]))
sys.exit(ahead or hard)
