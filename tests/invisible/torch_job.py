"""Trains on the processor in the ways that PyTorch's users do, and prints every loss to the last bit and a checksum of
the weights: torch_job.py [plain|fork|spawn|gloo]."""
import hashlib
import io
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, i):
        x = torch.linspace(0, 1, 32) * (i + 1) / 256
        return x, (x * x).sum()


def model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))


def train(net, loader, tell):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        tell(loss.item().hex())


def checksum(net):
    saved = io.BytesIO()
    torch.save([p.tolist() for p in net.parameters()], saved)
    return hashlib.sha256(repr([p.tolist() for p in net.parameters()]).encode()).hexdigest(), len(saved.getvalue())


def worker(rank, world, address, tensor):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world)
    net = torch.nn.parallel.DistributedDataParallel(model())
    sampler = torch.utils.data.DistributedSampler(Points(), world, rank, shuffle=False)
    losses = []
    train(net, DataLoader(Points(), batch_size=16, sampler=sampler), losses.append)
    tensor[rank] = float.fromhex(losses[-1])
    dist.barrier()
    if rank == 0:
        print("\n".join(losses), *checksum(net.module), sep="\n")
    dist.destroy_process_group()


def main(how):
    torch.set_num_threads(1)
    if how == "gloo":
        import tempfile
        shared = torch.zeros(2).share_memory_()
        with tempfile.TemporaryDirectory() as place:
            mp.spawn(worker, (2, "file://" + place + "/meet", shared), nprocs=2)
        print(shared.tolist())
        return
    net = model()
    options = {} if how == "plain" else {"num_workers": 2, "multiprocessing_context": how, "persistent_workers": True}
    loader = DataLoader(Points(), batch_size=16, **options)
    for _ in range(2):
        train(net, loader, print)
    print(*checksum(net), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plain")
