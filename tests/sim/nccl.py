#!/usr/bin/env python3
"""The simulated NCCL computes what it should between processes and devices; its kernels last until the last rank's has
started and end together; they take the time that the set bandwidth gives."""
import glob
import json
import os
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
pids = []


def run(name, ranks, *args, **settings):
    """Starts the ranks; their truth logs' kernels, one list for each rank."""
    print(name)
    folder = os.path.join(tmp, name.replace(" ", "-"))
    os.mkdir(folder)
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), ASAN_OPTIONS="detect_leaks=0")
    env.update(("SIM_" + k, str(v)) for k, v in settings.items())
    mode = args[0]
    jobs = []
    for rank in range(ranks):
        command = [os.path.join(build, "tests/sim/nccl"), mode]
        if mode != "devices":
            command += [os.path.join(folder, "id"), str(ranks), str(rank), *args[1:]]
        jobs.append(subprocess.Popen(command, env=dict(env, SIM_TRUTH=os.path.join(folder, "truth.%d" % rank)),
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for rank, job in enumerate(jobs):
        try:
            out = job.communicate(timeout=50)[0]
        except subprocess.TimeoutExpired:
            job.kill()
            out = "hangs: " + job.communicate()[0]
        check(job.returncode == 0 and not out, "rank %d: %s %s" % (rank, job.returncode, out[-600:]))
    pids.extend(job.pid for job in jobs)
    kernels = []
    for rank in range(ranks):
        events = [json.loads(line) for line in open(os.path.join(folder, "truth.%d" % rank))]
        kernels.append([e for e in events if e["ev"] == "op" and e["kind"] == "kernel"])
    return kernels


def together(kernels):
    """The ranks' collectives, one list of kernels for each."""
    of_all = [[k for k in rank if "SendRecv" not in k["name"]] for rank in kernels]
    check(len({len(rank) for rank in of_all}) == 1 and of_all[0], "as many collectives on every rank")
    return list(zip(*of_all))


def correct(ranks):
    kernels = run("%d ranks" % ranks, ranks, "all")
    names = {k["name"] for k in kernels[0]}
    for plain in ("AllReduce_Sum_f32_RING_LL", "AllReduce_MinMax_bf16_RING_LL", "AllReduce_PreMulSum_f16_RING_LL",
                  "AllReduce_SumPostDiv_u64_RING_LL", "Broadcast_RING_LL", "Reduce_Sum_u32_RING_LL", "AllGather_RING_LL",
                  "ReduceScatter_Sum_u32_RING_LL", "SendRecv"):
        name = "ncclDevKernel_" + plain
        check("_Z%d%s24ncclDevKernelArgsStorageILm4096EE" % (len(name), name) in names, name)


def bandwidth():
    for gbps in (1, 4):
        kernels = run("bandwidth %d" % gbps, 2, "all", NCCL_GBPS=gbps, NCCL_LATENCY="1ms")
        last = together(kernels)[-1]
        want = 1000000 + 4000000 / gbps  # 2 * (n - 1) / n of the bytes
        for k in last:
            check(k["end"] - max(o["start"] for o in last) == int(want), "time of 4 MB")


def late():
    kernels = run("a late rank", 3, "late", "400")
    first, second, third = together(kernels)
    starts = [k["start"] for k in second]
    check(max(starts[:2]) + 100e6 < starts[2], "the last one starts late")
    for group in (first, second, third):
        check({k["end"] - max(o["start"] for o in group) for k in group} >= {20000 + int(2 * 2 / 3 * 4096 / 10)},
              "all last until the last one has started, and the operation's time longer")
        check(len({k["end"] for k in group}) == 1, "kernels of one operation end together")
    check(all(k["end"] - k["start"] > 100e6 for k in second[:2]), "the kernels of the others wait")


for n in (1, 2, 4):
    correct(n)
bandwidth()
late()
run("abort", 2, "abort")
run("two devices", 1, "devices", DEVICES=2)
print("what is left")
check(not any(glob.glob("/dev/shm/simnccl-%d-*" % pid) for pid in pids), "files in /dev/shm")
sys.exit(failed())
