"""A rank of a PyTorch job on the CPU that goes on with fewer ranks: elastic_job.py STEPS RANKS DIES_AT LATE_MS. Started by torchrun. Of the
first RANKS ranks, rank 0 and its launcher are killed after DIES_AT steps, as with its host; later, rank 1 is late in every step."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

steps, first, dies_at, pause_s = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) / 1000
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()


def lose_host():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1)  # dies here
    os.kill(os.getpid(), signal.SIGKILL)


model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(steps):
    optimizer.zero_grad()
    model(torch.randn(16, 64)).square().mean().backward()
    if ranks == first and rank == 0 and step == dies_at:
        lose_host()
    if ranks < first and rank == 1:
        time.sleep(pause_s)  # late here
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
dist.destroy_process_group()
