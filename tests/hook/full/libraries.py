#!/usr/bin/env python3
"""The lookups of NVIDIA's libraries, each with a runtime of its own inside, come back as those of the runtime library do:
cuBLAS, cuDNN, cuRAND, NCCL and nvJPEG of the environment `libraries`, one at a time and all in one process.
timeout: 600"""
import glob
import os
import subprocess
import sys

MAKES = {"cublas/lib/libcublas.so.12": "cublasCreate_v2", "cudnn/lib/libcudnn_graph.so.9": "cudnnCreate",
         "curand/lib/libcurand.so.10": "curandCreateGenerator", "nccl/lib/libnccl.so.2": "ncclCommInitAll",
         "nvjpeg/lib/libnvjpeg.so.12": "nvjpegCreateSimple"}

py = os.environ.get("TFH_PY")
if not py:
    print("no environment: scripts/python-env libraries")
    sys.exit(77)
place = subprocess.run([py, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True,
                       text=True, check=True).stdout.strip() + "/nvidia"
# They find each other by their names.
os.environ["TFH_LIBRARIES"] = ":".join(glob.glob(f"{place}/*/lib"))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lookups import build, check, failed, prove  # noqa: E402

client = f"{build}/tests/hook/cudart"
jobs = {path.split("/")[0]: f"{place}/{path}:{make}" for path, make in MAKES.items()}
for name, job in jobs.items():
    check(os.path.exists(job.split(":")[0]), name, "is not there")
    prove(name, 1, [client, job])
prove("all", len(jobs), [client, *jobs.values()])
sys.exit(failed())
