#!/usr/bin/env python3
"""Eight ranks that PyTorch's own torchrun starts, on the simulated GPU and NCCL: all ranks are known, and the report names the one that is late, with
its cause and line.

Where the environment `torch` exists already.
timeout: 900
"""
import json
import os
import subprocess
import sys

SRC = os.environ["TFH_SRC"]
sys.path.insert(0, os.path.join(SRC, "tests", "tf"))
from tfrun import BUILD, SKIP, TMP, check  # noqa: E402

TOOL, JOB = os.path.join(BUILD, "bin", "tfhook"), os.path.join(SRC, "tests", "ranks", "job.py")
PYTHON = os.path.join(os.environ.get("TFH_VENVS") or os.path.join(SRC, "build", "venv"), "torch", "bin", "python")

if not os.path.exists(PYTHON) or not os.path.exists(BUILD + "/sim/libnccl.so.2"):
    print("no environment `torch` (make check-frameworks makes it), or no simulated NCCL")
    sys.exit(SKIP)
os.makedirs(TMP + "/rendezvous")
subprocess.run([TOOL, "run", "-q", "-o", TMP + "/run", "--", PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "8", JOB, TMP + "/rendezvous", "100",
                "late=5:0:20"],
               env=dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", TFHOOK_CUPTI_LIB=BUILD + "/sim/libcupti.so.13"), check=True, stderr=subprocess.DEVNULL)
said = json.loads(subprocess.run([TOOL, "report", "--json", TMP + "/run"], stdout=subprocess.PIPE, check=True).stdout)
check([r["rank"] for r in said["ranks"]] == list(range(8)), "ranks: %s" % [r["rank"] for r in said["ranks"]])
verdict = said["verdict"]
check(verdict["cause"] == "host.sleep" and (verdict["place"] or {}).get("file", "").endswith("job.py"), "verdict: %s" % verdict)
text = " ".join(subprocess.run([TOOL, "report", TMP + "/run"], stdout=subprocess.PIPE, text=True, check=True).stdout.split())
check("this is rank 5 of 8" in text, text[:500])
