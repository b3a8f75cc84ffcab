"""Loops of plain PyTorch as people write them, of tests/gpu/strangers.py."""
import os
import random
import threading
import time

from jobs import Turn
from stranger import CPU, DEVICE, alone, job, ranks, size, sync, usual_step, wide_net


@job(30, "host-bound", "host.python", twin=True)
def rl(steps, fixed):
    # REINFORCE: 32 moves of 1,024 carts in plain Python, a small forward pass between them, then one update; the twin's carts are
    # on the device. 30 updates, or 960 by who counts moves.
    import torch
    from torch import nn
    torch.manual_seed(0)
    carts, moves = size(1024, 8), 32
    net = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2)).to(DEVICE)
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    state = [[random.Random(i).uniform(-0.05, 0.05) for _ in range(4)] for i in range(carts)]

    def act(state, actions):
        after, rewards = [], []
        for (x, v, angle, spin), action in zip(state, actions):
            push = (10.0 if action else -10.0) + 0.05 * spin * spin * angle
            turn = (9.8 * angle - push / 1.1) / (0.5 * (4 / 3 - 0.1 / 1.1))
            x, v, angle, spin = x + 0.02 * v, v + 0.02 * (push - 0.05 * turn) / 1.1, angle + 0.02 * spin, spin + 0.02 * turn
            over = abs(x) > 2.4 or abs(angle) > 0.2
            after.append([0.01, 0.0, 0.01, 0.0] if over else [x, v, angle, spin])
            rewards.append(0.0 if over else 1.0)
        return after, rewards

    def act_there(state, action):
        x, v, angle, spin = state.unbind(1)
        push = 20.0 * action - 10.0 + 0.05 * spin * spin * angle
        turn = (9.8 * angle - push / 1.1) / (0.5 * (4 / 3 - 0.1 / 1.1))
        after = torch.stack([x + 0.02 * v, v + 0.02 * (push - 0.05 * turn) / 1.1, angle + 0.02 * spin, spin + 0.02 * turn], 1)
        over = (after[:, 0].abs() > 2.4) | (after[:, 2].abs() > 0.2)
        return torch.where(over[:, None], 0.01, after), 1.0 - over.float()

    def update():
        nonlocal state
        chosen, earned = [], []
        for _ in range(moves):
            seen = state if fixed else torch.tensor(state, device=DEVICE)
            policy = torch.distributions.Categorical(logits=net(seen), validate_args=False)
            action = policy.sample()
            chosen.append(policy.log_prob(action))
            if fixed:
                state, rewards = act_there(state, action)
            else:
                state, rewards = act(state, action.tolist())
                rewards = torch.tensor(rewards, device=DEVICE)
            earned.append(rewards)
        back = torch.stack(earned).flip(0).cumsum(0).flip(0)
        loss = -(torch.stack(chosen) * (back - back.mean())).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    if fixed:
        state = torch.tensor(state, device=DEVICE)
    for _ in range(2):
        update()
    with Turn() as turn:
        total = sum(update() for _ in range(steps))
    return turn.seconds, total


@job(40, "transfer-bound", "transfer.d2h", twin=True)
def evaluate(steps, fixed):
    # 88 MB of logits fetched for each batch of a segmentation, kept on the host; the twin fetches the chosen classes, 1 MB.
    import torch
    from torch import nn
    torch.manual_seed(0)
    side, rows = size(512, 16), 4
    net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 21, 3, padding=1)).to(DEVICE).eval()
    x, kept = torch.randn(rows, 3, side, side, device=DEVICE), []
    with torch.no_grad():
        for _ in range(3):
            net(x).cpu()
        with Turn() as turn:
            for _ in range(steps):
                out = net(x)
                kept.append(out.argmax(1).to(torch.uint8).cpu() if fixed else out.cpu())
    return turn.seconds, float(kept[-1].float().mean())


@job(20, "communication-bound", "communication.transfer", twin=True)
def ddp_gloo(steps, fixed):
    # Two processes on one GPU, 64 MB of gradients summed by gloo through the hosts' memory; the twin sums in each fifth step.
    if not ranks():
        return alone("ddp-gloo", steps, fixed, 2)
    import contextlib
    import datetime
    import torch
    import torch.distributed as dist
    from torch import nn
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    torch.manual_seed(0)
    width = size(2048, 32)
    net = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(4)], nn.Linear(width, 16)).to(DEVICE)
    net = nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    x = torch.randn(size(1024, 8), width, device=DEVICE)
    y = torch.arange(len(x), device=DEVICE) % 16
    for _ in range(2):
        usual_step(net, opt, x, y)
    sync()
    total = torch.zeros((), device=DEVICE)
    dist.barrier()
    with Turn() if dist.get_rank() == 0 else contextlib.nullcontext() as turn:
        dist.barrier()
        for i in range(steps):
            with net.no_sync() if fixed and i % 5 else contextlib.nullcontext():
                total += usual_step(net, opt, x, y)[0]
        total = total.item()
        dist.barrier()
    dist.destroy_process_group()
    return turn.seconds if turn else 0, total


@job(200, "compute-bound")
def prefetch(steps, fixed):
    # NVIDIA's prefetcher: 16 MB from pinned memory on a stream of its own while 3 ms are computed.
    import torch
    net, x, y = wide_net(size(4096, 64), 4, size(4096, 32))
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    host = [torch.randn(x.shape[0] // 2, x.shape[1]).bfloat16() for _ in range(4)]
    host = host if CPU else [h.pin_memory() for h in host]
    side = None if CPU else torch.cuda.Stream()

    class Prefetcher:
        def __init__(self, batches):
            self.batches = iter(batches)
            self.preload()

        def preload(self):
            self.next = next(self.batches, None)
            if self.next is not None and side:
                with torch.cuda.stream(side):
                    self.next = self.next.to(DEVICE, non_blocking=True)

        def take(self):
            if side:
                torch.cuda.current_stream().wait_stream(side)
            batch = self.next
            if batch is not None and side:
                batch.record_stream(torch.cuda.current_stream())
            self.preload()
            return batch

    for _ in range(5):
        usual_step(net, opt, x, y)
    sync()
    total = torch.zeros((), device=DEVICE)
    with Turn() as turn:
        batches = Prefetcher(host[i % 4] for i in range(steps))
        while (batch := batches.take()) is not None:
            total += usual_step(net, opt, torch.cat([batch, batch]), y)[0]
        total = total.item()
    return turn.seconds, total


@job(60, "host-bound", "host.alloc", twin=True)
def empty_cache(steps, fixed):
    # The cache is emptied "to save memory" in each step that keeps 120 tensors of 12 MB: as many cudaMalloc and cudaFree.
    import torch
    net, x, y = wide_net(size(512, 16), size(60, 4), size(12288, 32))
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    for _ in range(3):
        usual_step(net, opt, x, y)
    sync()
    total = torch.zeros((), device=DEVICE)
    with Turn() as turn:
        for _ in range(steps):
            total += usual_step(net, opt, x, y)[0]
            if not fixed and not CPU:
                torch.cuda.empty_cache()
        total = total.item()
    return turn.seconds, total


@job(100, "host-bound", "host.python", "host.logging", twin=True)
def metrics(steps, fixed):
    # A confusion matrix of 65,536 predictions counted in a Python dictionary each step; the twin counts on the device.
    import torch
    rows = size(65536, 256)
    net, x, y = wide_net(size(1024, 32), 4, rows)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    for _ in range(3):
        usual_step(net, opt, x, y)
    sync()
    total, counts = torch.zeros((), device=DEVICE), {}
    there = torch.zeros(256, dtype=torch.long, device=DEVICE)
    ones = torch.ones(rows, dtype=torch.long, device=DEVICE)
    with Turn() as turn:
        for _ in range(steps):
            loss, out = usual_step(net, opt, x, y)
            total += loss
            if fixed:
                there.scatter_add_(0, y * 16 + out.argmax(1), ones)
            else:
                for want, got in zip(y.tolist(), out.argmax(1).tolist()):
                    counts[want, got] = counts.get((want, got), 0) + 1
        total = total.item()
    return turn.seconds, total


@job(100, "host-bound", "host.checkpoint", twin=True)
def checkpoint(steps, fixed):
    # The model and Adam's state, 400 MB, written each 20 steps of 3 ms: most of the loop's time, though most steps have none.
    import torch
    net, x, y = wide_net(size(4096, 64), 4, size(4096, 32))
    opt = torch.optim.Adam(net.parameters(), lr=1e-4)
    for _ in range(3):
        usual_step(net, opt, x, y)
    sync()
    total = torch.zeros((), device=DEVICE)
    with Turn() as turn:
        for i in range(steps):
            total += usual_step(net, opt, x, y)[0]
            if i % 20 == 19 and not fixed:
                torch.save({"step": i, "model": net.state_dict(), "optimizer": opt.state_dict()}, "last.pt")
        total = total.item()
    return turn.seconds, total


@job(100, "host-bound", "host.sleep", "host.wait", twin=True)
def poll(steps, fixed):
    # Before each step the job looks every 2 ms whether a coordinator has written "go", which takes 12 ms; the twin does not.
    import torch
    net, x, y = wide_net(size(4096, 64), 4, size(4096, 32))
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    for _ in range(3):
        usual_step(net, opt, x, y)
    sync()

    def coordinator():
        for i in range(steps):
            while not os.path.exists(f"ready-{i}"):
                time.sleep(0.001)
            time.sleep(0.012)
            os.rename(f"ready-{i}", f"go-{i}")

    threading.Thread(target=coordinator, daemon=True).start()
    total = torch.zeros((), device=DEVICE)
    with Turn() as turn:
        for i in range(steps):
            total += usual_step(net, opt, x, y)[0]
            if not fixed:
                sync()
                open(f"ready-{i}", "w").close()
                while not os.path.exists(f"go-{i}"):
                    time.sleep(0.002)
                os.remove(f"go-{i}")
        total = total.item()
    return turn.seconds, total


@job(60, "compute-bound", needs="triton")
def triton_kernels(steps, fixed):
    # A step of three kernels of the author's own, a few ms each: forward, gradient, update.
    # Kernels find names among a module's own, not among a function's.
    global triton, tl
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def work(x, y, n, rounds, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < n)
        for _ in range(rounds):
            value = tl.sin(value) * 1.0001 + 0.001
        tl.store(y + at, value, mask=at < n)

    n = 1 << 24
    x, y, z = (torch.rand(n, device=DEVICE) for _ in range(3))

    def step():
        for a, b in ((x, y), (y, z), (z, x)):
            work[(triton.cdiv(n, 1024),)](a, b, n, 500, BLOCK=1024)

    for _ in range(2):
        step()
    sync()
    with Turn() as turn:
        for _ in range(steps):
            step()
        total = x.mean().item()
    return turn.seconds, total
