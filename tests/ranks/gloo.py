#!/usr/bin/env python3
"""Eight ranks of a real PyTorch job that exchange over gloo, started by torchrun (TFH_RANKS=32: so many): all are known, the one that is
late leads with its cause and line, and the others wait for it.

Where the environment `torch` exists already.
timeout: 1800
"""
import os
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of, tool  # noqa: E402

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL, JOB, RANKS, LATE = f"{BUILD}/bin/tfhook", f"{SRC}/tests/ranks/gloo_job.py", int(os.environ.get("TFH_RANKS", "8")), 5
PYTHON = os.path.join(os.environ.get("TFH_VENVS") or f"{SRC}/build/venv", "torch/bin/python")
if os.environ.get("TFH_SAN") or not os.path.exists(PYTHON):
    print("no environment `torch`: make check-frameworks makes it")
    sys.exit(77)


# On a crowded machine, the others take long, too: the pause is to be longer.
subprocess.run([TOOL, "run", "-q", "-o", f"{TMP}/run", "--", PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS), JOB, "40", str(LATE), "1000"],
               env=dict(os.environ, OMP_NUM_THREADS="1"), check=True, stderr=subprocess.DEVNULL)
said = report_of(f"{TMP}/run")
ranks, verdict = {r["rank"]: r for r in said["ranks"]}, said["verdict"]
check(sorted(ranks) == list(range(RANKS)) and said["world"]["ranks"] == said["world"]["seen"] == RANKS, "ranks", sorted(ranks), said["world"])
check({r["steps"] for r in ranks.values()} <= set(range(30, 41)), "steps", {n: r["steps"] for n, r in ranks.items()})
with open(JOB) as f:
    line = next(n for n, text in enumerate(f, 1) if "# here" in text)
place = verdict["place"] or {}
check((verdict["cause"], place.get("line")) == ("host.sleep", line) and place.get("file", "").endswith("gloo_job.py"), "verdict", verdict)
check([n for n, r in ranks.items() if r["straggler"]] == [LATE] and ranks[LATE]["cause"] == "host.sleep", "late", ranks[LATE])
waits = {n: r["waits_for_others_s"] / r["step_s"] for n, r in ranks.items()}
check(all((share > 0.5) == (n != LATE) for n, share in waits.items()), "who waits", waits)
text = " ".join(tool("report", f"{TMP}/run").split())
check(f"this is rank {LATE} of {RANKS}" in text, "text", text[:500])
sys.exit(failed())
