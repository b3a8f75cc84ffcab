"""Training jobs for a real GPU, each with one defect that its twin (--fixed) lacks.

usage: jobs.py JOB [--fixed] [--steps N]

Prints one line of JSON: steps done, seconds of the loop by the job's own clock, and a sum over its losses. With TFH_GPU_TURN
naming a file, a job locks it before its loop: several jobs load their libraries side by side, one has the GPU.
"""
import argparse
import fcntl
import json
import os
import sys
import time

WIDTH, BATCH = 4096, 4096


class Turn:
    """The loop's time, and that nobody else's loop runs meanwhile."""

    def __enter__(self):
        path = os.environ.get("TFH_GPU_TURN")
        self.file = open(path, "w") if path else None
        if self.file:
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.begin = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.begin
        if self.file:
            self.file.close()


def python_work(ms):
    """Holds the interpreter for so many milliseconds, whatever the machine."""
    end, total = time.perf_counter() + ms / 1e3, 0
    while time.perf_counter() < end:
        total += 1
    return total


def torch_job(name, steps, fixed):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    torch.manual_seed(0)
    gpu = torch.device("cuda")
    small = name in ("launches", "items")
    width, depth = (256, 40) if small else (WIDTH, 4)
    rows = 64 if small else BATCH
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)]
    net = nn.Sequential(*layers, nn.Linear(width, 16)).to(gpu, torch.float32 if small else torch.bfloat16)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    kind = net[-1].weight.dtype
    ready = torch.randn(rows, width, device=gpu, dtype=kind)
    labels = torch.arange(rows, device=gpu) % 16

    def step(x, y):
        loss = nn.functional.cross_entropy(net(x).float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    class Samples(Dataset):
        def __len__(self):
            return 4 * (steps + 10)

        def __getitem__(self, i):
            python_work(5)
            return torch.full((width,), i % 16 * 0.1)

    losses = torch.zeros((), device=gpu)
    if name == "input":
        # Four samples of 5 ms each in the loop's own process; the twin has eight workers.
        loader = DataLoader(Samples(), batch_size=4, num_workers=8 if fixed else 0, persistent_workers=fixed, pin_memory=True)
        batches = iter(loader)
        for _ in range(10):
            next(batches)
        step(ready, labels)
        with Turn() as turn:
            for x in batches:
                losses += step(ready + x.mean().to(gpu, non_blocking=True), labels).detach()
            losses.item()
        return steps, turn.seconds, losses.item()
    host = torch.randn(rows * 8, width)
    pinned = host.pin_memory()
    for _ in range(5):
        step(ready, labels)
    captured = None
    if name == "launches" and fixed:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step(ready, labels)
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        opt.zero_grad()
        with torch.cuda.graph(captured):
            captured_loss = step(ready, labels)
    torch.cuda.synchronize()
    with Turn() as turn:
        for i in range(steps):
            if name == "pageable":
                # 512 MiB that the driver must copy twice; the twin's are on the device.
                x = ready if fixed else host.to(gpu)[:rows].to(kind)
                losses += step(x, labels).detach()
            elif name == "pinned":
                # The copy is pinned, and the step waits for it all the same; the twin's are on the device.
                x = ready if fixed else pinned.to(gpu, non_blocking=True)[:rows].to(kind)
                losses += step(x, labels).detach()
            elif name == "python":
                losses += step(ready, labels).detach()
                if not fixed:
                    torch.cuda.synchronize()
                    python_work(10)
            elif name == "sleep":
                losses += step(ready, labels).detach()
                if not fixed:
                    torch.cuda.synchronize()
                    time.sleep(0.01)
            elif name == "items":
                # A look at each layer's mean after each of forty: nothing is queued ahead.
                x = ready
                for layer in net:
                    x = layer(x)
                    if not fixed:
                        x.mean().item()
                losses += x.float().mean().detach()
            elif captured:
                captured.replay()
                losses += captured_loss.detach()
            elif name == "save":
                losses += step(ready, labels).detach()
                if i % 10 == 9 and not fixed:
                    torch.save(net.state_dict(), "checkpoint.pt")
            else:
                losses += step(ready, labels).detach()
        losses.item()
    return steps, turn.seconds, losses.item()


def jax_job(name, steps, fixed):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp
    import numpy as np

    assert jax.devices()[0].platform == "gpu"
    w = [jnp.zeros((WIDTH, WIDTH), jnp.bfloat16) + 0.001 for _ in range(4)]

    def forward(w, x):
        for each in w:
            x = jax.nn.relu(x @ each)
        return x.astype(jnp.float32).mean()

    @jax.jit
    def step(w, x):
        loss, grads = jax.value_and_grad(forward)(w, x)
        return [a - 0.001 * g for a, g in zip(w, grads)], loss

    ready = jnp.ones((BATCH, WIDTH), jnp.bfloat16)
    host = np.ones((BATCH, WIDTH), np.float32)
    for _ in range(3):
        w, loss = step(w, ready)
    shapes = jnp.ones((BATCH * 2, WIDTH), jnp.bfloat16)
    loss.block_until_ready()
    total = 0.0
    with Turn() as turn:
        for i in range(steps):
            if name == "jax-feed" and not fixed:
                w, loss = step(w, jax.device_put(host).astype(jnp.bfloat16))
            elif name == "jax-input":
                if not fixed:
                    loss.block_until_ready()
                    python_work(10)
                w, loss = step(w, ready)
            elif name == "jax-shapes" and not fixed:
                w, loss = step(w, shapes[:BATCH + 8 * i])
            else:
                w, loss = step(w, ready)
        total = float(loss)
    return steps, turn.seconds, total


# name: (steps, class, its cause or causes that are both right)
JOBS = {
    "compute": (300, "compute-bound", ()),
    "input": (60, "input-bound", ("input.map", "input.dataloader", "input.generator")),
    "pageable": (40, "transfer-bound", ("transfer.h2d-pageable",)),
    "pinned": (80, "transfer-bound", ("transfer.h2d-pinned",)),
    "python": (150, "host-bound", ("host.python",)),
    "sleep": (150, "host-bound", ("host.sleep",)),
    "launches": (400, "host-bound", ("host.launch",)),
    "items": (200, "host-bound", ("host.sync", "host.launch")),
    "save": (100, "host-bound", ("host.checkpoint",)),
    "jax-compute": (300, "compute-bound", ()),
    "jax-feed": (100, "transfer-bound", ("transfer.h2d-pageable",)),
    "jax-input": (150, "host-bound", ("host.python",)),
    "jax-shapes": (6, "host-bound", ("host.compile",)),
}


def arguments(jobs):
    """The command's: job, fixed, and steps, by default those of the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=jobs)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--steps", type=int)
    args = parser.parse_args()
    args.steps = args.steps or jobs[args.job][0]
    return args


def main():
    args = arguments(JOBS)
    run = jax_job if args.job.startswith("jax") else torch_job
    done, seconds, total = run(args.job, args.steps, args.fixed)
    print(json.dumps(dict(job=args.job, fixed=args.fixed, steps=done, seconds=seconds, loss=total)))


if __name__ == "__main__":
    sys.exit(main())
