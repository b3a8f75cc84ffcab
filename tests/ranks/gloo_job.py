"""A rank of a PyTorch job on the CPU that averages gradients over gloo: gloo_job.py STEPS LATE_RANK LATE_MS. Started by torchrun."""
import sys
import time

import torch
import torch.distributed as dist

steps, late, pause_s = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) / 1000
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(steps):
    optimizer.zero_grad()
    model(torch.randn(16, 64)).square().mean().backward()
    if dist.get_rank() == late:
        time.sleep(pause_s)  # here
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
dist.destroy_process_group()
