"""What the jobs of tests/gpu/strangers.py are made with."""
import json
import os
import socket
import subprocess
import sys

from jobs import Turn

CPU = os.environ.get("TFH_GPU_DEVICE") == "cpu"
DEVICE = "cpu" if CPU else "cuda"

# name: (steps, class, its causes that are all right); the module that it needs; whether a twin differs from it.
JOBS, NEEDS, TWINS, WORK = {}, {}, set(), {}


def job(steps, cls, *causes, needs="torch", twin=False):
    def add(work):
        name = work.__name__.replace("_", "-")
        JOBS[name], NEEDS[name], WORK[name] = (steps, cls, causes), needs, work
        if twin:
            TWINS.add(name)
        return work
    return add


def size(gpu, cpu):
    return cpu if CPU else gpu


def sync():
    import torch
    if not CPU:
        torch.cuda.synchronize()


def wide_net(width, depth, rows):
    """A step of `depth` square layers on rows that are on the device, in bfloat16: matrix multiplications and little else."""
    import torch
    from torch import nn
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)]
    net = nn.Sequential(*layers, nn.Linear(width, 16)).to(DEVICE, torch.bfloat16)
    x = torch.randn(rows, width, device=DEVICE, dtype=torch.bfloat16)
    y = torch.arange(rows, device=DEVICE) % 16
    return net, x, y


def usual_step(net, opt, x, y):
    from torch import nn
    opt.zero_grad(set_to_none=True)
    out = net(x)
    loss = nn.functional.cross_entropy(out.float(), y)
    loss.backward()
    opt.step()
    return loss.detach(), out.detach()


def summed(step, steps, warm=3):
    """The measured loop of most jobs: its seconds, and the sum of the losses that the steps return."""
    import torch
    for _ in range(warm):
        step()
    sync()
    total = torch.zeros((), device=DEVICE)
    with Turn() as turn:
        for _ in range(steps):
            total += step()
        total = total.item()
    return turn.seconds, total


def ranks():
    """Whether this process is one of several that were started by alone()."""
    return "WORLD_SIZE" in os.environ


def alone(name, steps, fixed, count):
    """Starts `count` ranks of the job as a launcher does and takes what the first one says."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, f"{os.path.dirname(os.path.abspath(__file__))}/strangers.py", name, "--steps", str(steps)]
    each = [subprocess.Popen(command + ["--fixed"] * fixed, text=True, stdout=subprocess.DEVNULL if i else subprocess.PIPE,
                             env=dict(os.environ, RANK=str(i), LOCAL_RANK=str(i), WORLD_SIZE=str(count), OMP_NUM_THREADS="4",
                                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))) for i in range(count)]
    said = each[0].communicate()[0]
    if any([p.wait() for p in each]):
        sys.exit(f"{name}: a rank failed")
    told = json.loads(said.strip().splitlines()[-1])
    return told["seconds"], told["loss"]
