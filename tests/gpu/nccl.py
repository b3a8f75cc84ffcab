#!/usr/bin/env python3
"""Question 13: NCCL with the real library. Two ranks of a DDP job say the same as without tfhook, each collective that NCCL's own log
counts was recorded in each rank, and a rank that comes late is named. With one GPU both ranks share it: NCCL takes them for two
hosts (NCCL_HOSTID) and exchanges over a socket, which is slow, but the calls and kernels are the real ones.
timeout: 600"""
import collections
import glob
import json
import os
import re
import socket
import subprocess
import sys

import gpu
from gpu import PY, build, check, failed, has, need_gpu, part, records, report, run

need_gpu("that the collectives of a PyTorch job over NCCL are all recorded and that a late rank is named (question 13)")
if gpu.DRIVER or not has("torch"):
    print("no torch here")
    sys.exit(77)
PROGRAM = """
import os, sys, time, torch, torch.distributed as dist
rank, late = int(os.environ["RANK"]), float(sys.argv[1]) / 1e3
say = lambda *what: os.write(1, (" ".join(map(str, (rank, *what))) + "\\n").encode())  # a line of one rank stays a line
torch.cuda.set_device(rank % torch.cuda.device_count())
dist.init_process_group("nccl")
torch.manual_seed(0)
net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)], torch.nn.Linear(256, 16)).cuda()
ddp = torch.nn.parallel.DistributedDataParallel(net)
opt = torch.optim.SGD(ddp.parameters(), lr=1e-3)
x, y = torch.randn(64, 256, device="cuda"), torch.arange(64, device="cuda") % 16
for step in range(60):
    if rank == 1 and late:
        time.sleep(late)
    loss = torch.nn.functional.cross_entropy(ddp(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
    if step % 10 == 9:
        loss = loss.detach().clone(); dist.all_reduce(loss); say(step, "%.6f" % loss.item())
parts = [torch.zeros(8, device="cuda") for _ in range(2)]
dist.all_gather(parts, torch.full((8,), float(rank), device="cuda"))
say(sum(p.sum().item() for p in parts))
dist.destroy_process_group()
"""
# Calls as NCCL's log names them; ncclBcast() calls what ncclBroadcast() does, and is logged as that.
LOGGED = re.compile(r"NCCL INFO (AllReduce|Broadcast|Reduce|AllGather|ReduceScatter|Send|Recv): opCount")


def job(late):
    """A shell line that starts both ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    each = "".join(f"NCCL_HOSTID=rank{rank} RANK={rank} LOCAL_RANK={rank} {PY} ddp.py {late} & p{rank}=$!; " for rank in range(2))
    return ["bash", "-c", f"cat > ddp.py <<'END'\n{PROGRAM}\nEND\nexport WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={port} "
            f"NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 OMP_NUM_THREADS=2\n{each} wait $p0 && wait $p1"]


def lines(done):
    return sorted(done[1].splitlines())


def both(name, late):
    plain, _, _ = run(name + "-plain", job(late), timeout=150)
    if plain[0]:
        print(f"{name}: does not run here without tfhook: {plain[2][-600:]}")
        return
    place = f"{gpu.tmp}/{name}"
    settings = dict(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="COLL", NCCL_DEBUG_FILE=f"{place}/nccl.%p", timeout=150)
    got, runs, _ = run(name, [f"{build}/bin/tfhook", "run", "-o", f"{place}/tfhook-run", "--", *job(late)], **settings)
    check(got[0] == 0 and lines(got) == lines(plain), name, "says something else with tfhook", got, plain)
    keep = os.environ.get("TFH_GPU_KEEP")
    if keep:
        subprocess.run(["cp", "-r", runs[0], f"{keep}/{name}"])
    counted = {}
    for log in glob.glob(f"{place}/nccl.*"):
        found = collections.Counter("nccl" + m for m in LOGGED.findall(open(log, errors="replace").read()))
        if found:
            counted[log.rsplit(".", 1)[1]] = found
    check(len(counted) == 2, name, "NCCL's logs", {k: dict(v) for k, v in counted.items()})
    for pid, theirs in counted.items():
        files = glob.glob(f"{runs[0]}/*.{pid}.*tft") or glob.glob(f"{runs[0]}/*{pid}*.tft")
        out = subprocess.run([f"{build}/tests/hook/show", *files], capture_output=True, text=True)
        ours = collections.Counter(r["fn"].replace("Bcast", "Broadcast") for r in map(json.loads, out.stdout.splitlines())
                                   if r["kind"] in (1, 9))
        wrong = {n: (theirs[n], ours[n]) for n in theirs if theirs[n] != ours[n]}
        check(not wrong, name, pid, "counted by NCCL and by us", wrong)
    told = subprocess.run([f"{build}/bin/tfhook", "report", "--json", runs[0]], capture_output=True, text=True)
    told = json.loads(told.stdout)
    verdict = [told["verdict"][k] for k in ("class", "cause", "confidence")]
    screen = subprocess.run([f"{build}/bin/tfhook", "report", runs[0]], capture_output=True, text=True).stdout
    if late:  # the report is on the rank for which the other one waits
        check(verdict[1] == "host.sleep" and "this is rank 1 of 2" in screen and "ddp.py" in screen, name, "verdict", verdict, screen)
    report(question=13, job=name, counted=[dict(v) for v in counted.values()], verdict=verdict, steps=told["steps"]["total"],
           screen=screen.splitlines())


part("balanced", both, "nccl-balanced", 0)
part("late", both, "nccl-late", 40)
sys.exit(failed())
