"""Training jobs of PyTorch's in two processes that exchange gradients (DDP over gloo). FIX=1 runs a job's twin, without its defect.
"""
import os
import socket
import subprocess
import sys
import time
import zlib

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "strangers"))
from stranger import BATCHES, FIXED, job, main, mark, pytorch, temporary  # noqa: E402

BATCHES["exchanges"] = "seen"
PACKED = zlib.compress(bytes(range(256)) * 1024, 9)
RANK = int(os.environ.get("RANK", -1))


def exchange(cls, causes, steps, at=(), says="", twin=True, note=""):
    """A row of the table. The process that is started starts both ranks, as torchrun does."""
    def put(function):
        def two():
            if RANK >= 0:
                import torch.distributed as dist
                torch = pytorch()
                dist.init_process_group("gloo")
                function(torch, dist)
                dist.destroy_process_group()
            else:
                both()
            return steps
        two.__name__ = function.__name__
        job("exchanges", cls, causes, steps, "torch", twin=twin, at=(function, *at), says=says, note=note)(two)
        return function
    return put


def both():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        env = dict(os.environ, WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(s.getsockname()[1]))
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env=dict(env, RANK=str(r), LOCAL_RANK=str(r)),
                              stdout=None if r == 0 else subprocess.DEVNULL) for r in (0, 1)]
    if any([r.wait() for r in ranks]):
        raise SystemExit("a rank failed")
    os._exit(0)  # rank 0 has printed what the job says of itself


def wrapped(torch, model, **how):
    return torch.nn.parallel.DistributedDataParallel(model, **how), torch.optim.SGD(model.parameters(), lr=1e-3)


def frames_net(torch, width=256):
    """Few weights, and much to compute with them."""
    nn = torch.nn

    class Frames(nn.Sequential):
        def forward(self, x):
            return super().forward(x).mean(1)
    return Frames(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def wide_net(torch, width=2048):
    """Many weights, and little to compute with them."""
    nn = torch.nn
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def batches(torch, n, frames=32, slow=None, rows=16):
    class Frames(torch.utils.data.Dataset):
        x = torch.randn(32, frames, 256)

        def __len__(self):
            return n * rows

        def __getitem__(self, i):
            if slow:
                slow()
            return self.x[i % 32], i % 10
    return torch.utils.data.DataLoader(Frames(), batch_size=rows)


def train(torch, model, optimizer, x, y):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def inflate():
    for _ in range(6):
        zlib.decompress(PACKED)  # here


@exchange("communication", ["communication.transfer"], 60, note="the exchange of the gradients of 17 MB takes longer than computing them")
def gradients(torch, dist):
    model = wide_net(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    model = model if FIXED else torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    x, y = torch.randn(1, 64), torch.arange(1)
    for _ in range(60):
        mark()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # here
        optimizer.step()


@exchange("input", ["input.map"], 60, at=(inflate,), says="rank 1", note="the loader of rank 1 inflates each sample, and rank 0 waits")
def slow_loader(torch, dist):
    model, optimizer = wrapped(torch, frames_net(torch))
    for x, y in batches(torch, 60, slow=inflate if RANK == 1 and not FIXED else None):
        mark()
        train(torch, model, optimizer, x, y)


@exchange("compute", ["compute.*"], 60, says="rank 1", note="rank 1 got the long sequences, and rank 0 waits")
def long_sequences(torch, dist):
    model, optimizer = wrapped(torch, frames_net(torch))
    for x, y in batches(torch, 60, frames=128 if RANK == 1 and not FIXED else 32):
        mark()
        train(torch, model, optimizer, x, y)


@exchange("communication", ["communication.transfer"], 30, note="four micro-batches a step, each of which exchanges all gradients")
def accumulate(torch, dist):
    import contextlib
    model, optimizer = wrapped(torch, wide_net(torch), gradient_as_bucket_view=True)
    x, y = torch.randn(1, 64), torch.arange(1)
    for _ in range(30):
        mark()
        optimizer.zero_grad()
        for micro in range(4):
            with model.no_sync() if FIXED and micro < 3 else contextlib.nullcontext():
                torch.nn.functional.cross_entropy(model(x), y).backward()  # here
        optimizer.step()


@exchange("communication", ["communication.transfer"], 80, note="120 metrics a step, each reduced over the ranks by itself")
def metrics(torch, dist):
    model, optimizer = wrapped(torch, frames_net(torch, 128))
    sums = torch.zeros(120)
    for x, y in batches(torch, 80):
        mark()
        sums += train(torch, model, optimizer, x, y).detach()
        if FIXED:
            dist.all_reduce(sums)
            continue
        for i in range(120):
            dist.all_reduce(sums[i])  # here


@exchange("communication", ["communication.transfer"], 60, note="a mean of the gradients by hand: each of 80 tensors is exchanged by itself")
def averaged_by_hand(torch, dist):
    nn = torch.nn
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(40)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    model = nn.parallel.DistributedDataParallel(model) if FIXED else model
    x, y = torch.randn(32, 64), torch.arange(32)
    for _ in range(60):
        mark()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        for p in [] if FIXED else model.parameters():
            dist.all_reduce(p.grad)  # here
            p.grad /= 2
        optimizer.step()


@exchange("host", ["host.checkpoint"], 60, says="rank 0", note="rank 0 saves the model behind each step, and rank 1 waits at a barrier")
def barrier(torch, dist):
    model, optimizer = wrapped(torch, frames_net(torch))
    kept = {"weights": [torch.randn(1 << 20) for _ in range(4)]}
    for x, y in batches(torch, 60):
        mark()
        train(torch, model, optimizer, x, y)
        if RANK == 0 and not FIXED:
            torch.save(kept, temporary("model.pt"))  # here
        dist.barrier()


@exchange("compute", ["compute.*"], 60, twin=False, note="nothing is wrong: find_unused_parameters costs little, and computing takes the step")
def unused_parameters(torch, dist):
    model, optimizer = wrapped(torch, frames_net(torch, 512), find_unused_parameters=True)
    for x, y in batches(torch, 60):
        mark()
        train(torch, model, optimizer, x, y)


@exchange("host", ["host.sleep"], 80, says="rank 1", note="rank 1 waits for a quota behind each step, and rank 0 for rank 1")
def quota(torch, dist):
    model, optimizer = wrapped(torch, frames_net(torch))
    x, y = torch.randn(16, 32, 256), torch.arange(16) % 10
    for _ in range(80):
        mark()
        train(torch, model, optimizer, x, y)
        if RANK == 1 and not FIXED:
            time.sleep(0.02)  # here


def trained(rank, port):
    """One of two ranks that torch.multiprocessing.spawn starts, whose number is in no environment. Rank 1 has the long sequences."""
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo", "tcp://127.0.0.1:%d" % port, rank=rank, world_size=2)
    torch.set_num_threads(1)
    model, optimizer = wrapped(torch, frames_net(torch))
    x, y = torch.randn(16, 160 if rank and not FIXED else 32, 256), torch.arange(16) % 10
    for _ in range(80):
        train(torch, model, optimizer, x, y)
    dist.destroy_process_group()


def spawned():
    import torch.multiprocessing
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    torch.multiprocessing.spawn(trained, (port,), nprocs=2)


if __name__ == "__main__":
    spawned() if sys.argv[1:] == ["spawned"] else main()
