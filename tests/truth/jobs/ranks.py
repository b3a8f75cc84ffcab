#!/usr/bin/env python3
"""Ranks of one job on this machine, each with a plan of its own: ranks.py TRAIN STEPS PLAN PLAN ...
They meet in `coll` kernels. Prints what the last rank prints."""
import os
import subprocess
import sys
import tempfile

train, steps, plans = sys.argv[1], sys.argv[2], sys.argv[3:]
meet = os.path.join(tempfile.mkdtemp(), "meet")
ranks = []
for i, plan in enumerate(plans):
    env = dict(os.environ, TRAIN_RANK=str(i), TRAIN_RANKS=str(len(plans)), SIM_RENDEZVOUS=meet, TFHOOK_RANK=str(i),
               TFHOOK_WORLD_SIZE=str(len(plans)), TFHOOK_LOCAL_RANK=str(i))
    ranks.append(subprocess.Popen([train, steps, plan], env=env, stdout=subprocess.PIPE, text=True))
told = [r.communicate()[0] for r in ranks]
sys.stdout.write(told[-1])
sys.exit(max(r.returncode for r in ranks))
