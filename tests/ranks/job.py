#!/usr/bin/env python3
"""One rank of a job on the simulated GPU and NCCL, started by whatever launcher: job.py RENDEZVOUS STEPS [staged] [WHAT=RANK:STEP[:MS]...]
RENDEZVOUS is a folder that all ranks share. Ranks exchange in pairs (split by rank / 2), then all together, in every step. If staged, the
first half of the ranks, a stage of a pipeline, first sends a batch to the second half.
  late=2:0:20   from that step on, the rank takes so much longer
  pause=3:40:500  in that step it takes so much longer
  hang=3:40     it stops in a lock, outside any recorded call
  stuck=3:40    it waits for an exchange that no other rank enters, while they wait for it: a deadlock
  kill=1:40     it kills itself
  again=1:40:2  it fails the first two times that it is started
Prints nothing."""
import ctypes
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "jobs"))
from device import Device  # noqa: E402

F32, SUM = 7, 0


def number(*names):
    return next(int(os.environ[name]) for name in names if name in os.environ)


def ordinal():
    """Of several devices the one of the rank's number on its host; DEVICES_REVERSED: from the last one on."""
    local, devices = number("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"), int(os.environ.get("SIM_DEVICES", "1"))
    return 0 if devices == 1 else devices - 1 - local if "DEVICES_REVERSED" in os.environ else local


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Exchange:
    def __init__(self, device, rendezvous, rank, ranks):
        self.nccl, self.device, self.id = ctypes.CDLL("libnccl.so.2"), device, Id()
        if not rank:
            self.call("ncclGetUniqueId", ctypes.byref(self.id))
            with open(rendezvous + "/new", "wb") as f:
                f.write(bytes(self.id))
            os.rename(rendezvous + "/new", rendezvous + "/id")
        while not os.path.exists(rendezvous + "/id"):
            time.sleep(0.01)
        with open(rendezvous + "/id", "rb") as f:
            ctypes.memmove(ctypes.byref(self.id), f.read(), 128)
        self.all = ctypes.c_void_p()
        self.call("ncclCommInitRank", ctypes.byref(self.all), ranks, self.id, rank)
        self.pair = self.split(rank // 2, rank)

    def call(self, name, *args):
        rc = getattr(self.nccl, name)(*args)
        if rc:
            raise RuntimeError("%s: error %d" % (name, rc))

    def split(self, color, key):
        comm = ctypes.c_void_p()
        self.call("ncclCommSplit", self.all, color, key, ctypes.byref(comm), None)
        return comm

    def stage(self, comm, first, n=1000):
        move, peer = ("ncclSend", 1) if first else ("ncclRecv", 0)
        self.call(move, self.device.memory, ctypes.c_size_t(n), F32, peer, comm, self.device.stream)

    def reduce(self, comm, n=1000):
        self.call("ncclAllReduce", self.device.memory, self.device.memory, ctypes.c_size_t(n), F32, SUM, comm, self.device.stream)


def stop_here(lock):
    lock.acquire()  # the line that hangs


def main():
    rendezvous, steps = sys.argv[1], int(sys.argv[2])
    rank = number("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
    ranks = number("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
    plans = {}
    staged = "staged" in sys.argv[3:]
    for word in sys.argv[3 + staged:]:
        what, plan = word.split("=")
        plan = [int(x) for x in plan.split(":")]
        if plan[0] == rank:
            plans[what] = plan
    device = Device(1, ordinal())
    exchange = Exchange(device, rendezvous, rank, ranks)
    odd = exchange.split(0, rank)
    stages = exchange.split(rank % (ranks // 2), rank) if staged else None
    exchange.reduce(odd)
    device.sync()
    lock = threading.Lock()
    lock.acquire()
    for step in range(steps):
        def now(what):
            return what in plans and plans[what][1] == step
        device.up(4000)
        device.run(2)
        if "late" in plans and step >= plans["late"][1]:
            time.sleep(plans["late"][2] / 1000)
        if now("pause"):
            time.sleep(plans["pause"][2] / 1000)
        if now("hang"):
            stop_here(lock)
        if now("stuck"):
            exchange.reduce(odd)
            device.sync()
        if now("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if now("again"):
            failed = sum(name.startswith("failed.") for name in os.listdir(rendezvous))
            if failed < plans["again"][2]:
                open("%s/failed.%d" % (rendezvous, failed), "w").close()
                os._exit(7)
        if staged:
            exchange.stage(stages, rank < ranks // 2)
        exchange.reduce(exchange.pair)
        exchange.reduce(exchange.all)
        device.sync()


main()
