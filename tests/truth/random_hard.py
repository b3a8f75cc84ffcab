#!/usr/bin/env python3
"""Six jobs drawn at random (random_jobs): all steps are found, device times and calls are joined (tier A), every predicted step
lies between its bounds, and the report holds no line over 80 columns and no number that is none. What a crowded machine could
make wrong, class and times against measured twins, is for `make truth-random`."""
# serial
# timeout: 120
import os
import subprocess
import sys

import truth

if os.environ.get("TFH_SAN") or not os.path.exists(truth.TRAIN):
    print("needs the recorder and the simulated GPU, without sanitizers")
    sys.exit(77)
here = os.path.dirname(os.path.abspath(__file__))
sys.exit(subprocess.run([sys.executable, os.path.join(here, "random_jobs"), "--hard", "-n", "6",
                         *(["--seed", os.environ["SEED"]] if os.environ.get("SEED") else [])]).returncode)
