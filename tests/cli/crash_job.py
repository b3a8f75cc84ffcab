"""Ranks that train together over NCCL; one of them crashes in the middle, the others wait for it until their launcher ends them.

usage: crash_job.py RANKS CRASHING STEP     the launcher; it exits with 1
       crash_job.py RANKS CRASHING STEP RANK
"""
import ctypes
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "jobs"))
from device import Device  # noqa: E402


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def rank_main(ranks, crashing, last, rank):
    nccl, d, comm, unique = ctypes.CDLL("libnccl.so.2"), Device(), ctypes.c_void_p(), Id()
    if rank == 0:
        assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
        with open("id.new", "wb") as f:
            f.write(bytes(unique))
        os.rename("id.new", "id")
    while not os.path.exists("id"):
        time.sleep(0.01)
    with open("id", "rb") as f:
        ctypes.memmove(ctypes.byref(unique), f.read(), 128)
    assert nccl.ncclCommInitRank(ctypes.byref(comm), ranks, unique, rank) == 0
    step = 0
    while True:
        d.up()
        d.train(2)
        if rank == crashing and step == last:
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGSEGV)
        assert nccl.ncclAllReduce(d.memory, d.memory, ctypes.c_size_t(1000), 7, 0, comm, d.stream) == 0
        d.down()
        step += 1


def main():
    ranks, crashing, last = (int(a) for a in sys.argv[1:4])
    if len(sys.argv) > 4:
        rank_main(ranks, crashing, last, int(sys.argv[4]))
    jobs = [subprocess.Popen([sys.executable, *sys.argv, str(rank)], env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks)))
            for rank in range(ranks)]
    jobs[crashing].wait()
    time.sleep(3)  # the launcher's patience
    for job in jobs:
        job.terminate()
    for job in jobs:
        job.wait()
    sys.exit(1)


main()
