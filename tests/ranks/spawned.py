#!/usr/bin/env python3
"""Two processes that multiprocessing starts, spawned or forked, whose rank is an argument of their function. If the function sets RANK and
WORLD_SIZE before its first call of the driver, they are ranks of one job; else the report says that one of them is judged, and how to set a rank.
"""
import json
import os
import subprocess
import sys

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TOOL = f"{BUILD}/bin/tfhook"
if os.environ.get("TFH_SAN"):  # Python is not built for it
    sys.exit(77)
JOB = """
import ctypes as C, multiprocessing, os, sys, time
def work(rank, known):
    if known:
        os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), "2"
    cuda = C.CDLL("libcuda.so.1")
    context, memory = C.c_void_p(), C.c_uint64()
    host = C.create_string_buffer(100000)
    assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(C.byref(context), 0, 0) == 0
    assert cuda.cuMemAlloc_v2(C.byref(memory), len(host)) == 0
    for i in range(150):
        assert cuda.cuMemcpyHtoD_v2(memory, host, len(host)) == 0 and cuda.cuCtxSynchronize() == 0
        time.sleep(0.001)
if __name__ == "__main__":
    start = multiprocessing.get_context(sys.argv[1])
    workers = [start.Process(target=work, args=(rank, sys.argv[2] == "known")) for rank in range(2)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    sys.exit(any(w.exitcode for w in workers))
"""
with open(f"{TMP}/job.py", "w") as f:
    f.write(JOB)
env = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
env.update(LD_LIBRARY_PATH=f"{BUILD}/sim", TFHOOK_CUPTI_LIB=f"{BUILD}/sim/libcupti.so.13")
bad = 0
for start in "spawn", "fork":
    for known in "known", "unknown":
        out = f"{TMP}/{start}.{known}"
        done = subprocess.run([TOOL, "run", "-q", "-o", out, sys.executable, f"{TMP}/job.py", start, known], env=env, capture_output=True, text=True)
        said = json.loads(subprocess.run([TOOL, "report", "--json", out], stdout=subprocess.PIPE).stdout)
        ranks = sorted(r["rank"] for r in said["ranks"]) if known == "known" else []
        note = any("os.environ" in n and "TFHOOK_RANK" in n for n in said["remarks"])
        if done.returncode or ranks != ([0, 1] if known == "known" else []) or note != (known == "unknown"):
            bad += 1
            print("WRONG", start, known, done.returncode, done.stderr[-300:], ranks, said["remarks"])
sys.exit(bad > 0)
