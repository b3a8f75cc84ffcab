"""Training jobs of PyTorch's on the processor, each with a defect that its twin (--fixed) lacks.

usage: torch_jobs.py JOB [--fixed] [--steps N] [--workers N] [--start fork|spawn] [...]

Prints one line of JSON: what the job counted itself (optimizer steps, batches, backward passes), seconds of its training
loop and of what it waited in the loader by its own clock, a hash of losses and weights, and the line of the defect (the
one that ends in "# SLOW:" and its name).
"""
import argparse
import contextlib
import copy
import gc
import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

SIZE, CLASSES = 256, 10
FRAMES = 16  # of a sample: computing is most of a step, and takes longer than what wakes and cools a processor
PACKED = zlib.compress(bytes(range(256)) * 4096, 9)
HERE = os.path.abspath(__file__)


def sample(i):
    g = torch.Generator().manual_seed(i)
    return torch.randn(FRAMES, SIZE, generator=g), torch.tensor(i % CLASSES)


class Plain(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return sample(i)


class Ready(Plain):
    """Samples that are there: nothing to make."""
    def __init__(self, n):
        super().__init__(n)
        self.samples = [sample(i) for i in range(32)]

    def __getitem__(self, i):
        return self.samples[i % 32]


class Decodes(Ready):
    def __getitem__(self, i):
        for _ in range(4):
            zlib.decompress(PACKED)  # SLOW: decode
        return super().__getitem__(i)


class Sleeps(Ready):
    def __getitem__(self, i):
        time.sleep(0.001)  # SLOW: sleep
        return super().__getitem__(i)


class Python(Ready):
    def __getitem__(self, i):
        total = 0
        for k in range(15000):
            total += k * i  # SLOW: python
        return super().__getitem__(i)


class Reads(Ready):
    """A file that is no longer in memory when it is read."""
    path = os.path.join(tempfile.gettempdir(), "tfhook-torch-job-file")

    def __init__(self, n):
        super().__init__(n)
        if not os.path.exists(self.path):
            with open("%s.%d" % (self.path, os.getpid()), "wb") as f:
                f.write(os.urandom(1 << 20))
            os.rename(f.name, self.path)

    def __getitem__(self, i):
        fd = os.open(self.path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.read(fd, 1 << 20)  # SLOW: disk
        os.close(fd)
        return super().__getitem__(i)


class Tokens(Ready):
    """Text that is split and looked up word by word."""
    words = {"w%d" % i: i for i in range(5000)}
    text = " ".join("w%d" % (i * 7 % 5000) for i in range(3000))

    def __getitem__(self, i):
        ids = [self.words.get(w, 0) for w in self.text.split()]  # SLOW: tokens
        x, y = super().__getitem__(i)
        return x + ids[i] / 5000, y


class Records(Ready):
    """A line of JSON for each sample."""
    record = json.dumps({"x": [k * 0.5 for k in range(4000)]})

    def __getitem__(self, i):
        json.loads(self.record)["x"][i % 4]  # SLOW: records
        return super().__getitem__(i)


class Files(Ready):
    """A sample is spread over many small files."""
    def __init__(self, n):
        super().__init__(n)
        self.dir = tempfile.TemporaryDirectory(prefix="tfhook-torch-files")
        for k in range(120):
            with open(os.path.join(self.dir.name, str(k)), "wb") as f:
                f.write(os.urandom(8192))

    def __getitem__(self, i):
        for k in range(120):
            with open(os.path.join(self.dir.name, str(k)), "rb") as f:  # SLOW: files
                f.read()
        return super().__getitem__(i)


class Noise(Ready):
    """Augmentation by tensors, not by Python."""
    def __getitem__(self, i):
        x, y = super().__getitem__(i)
        for _ in range(3):
            x = x + torch.randn(8192).sort().values[:SIZE] * 1e-3  # SLOW: noise
        return x, y


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for i in range(first, self.n, step):
            yield sample(i)


class Trickle(Stream):
    """A stream from a slow place."""
    def __iter__(self):
        for item in super().__iter__():
            time.sleep(0.002)  # SLOW: trickle
            yield item


def slow_collate(samples):
    time.sleep(0.04)  # SLOW: collate
    return torch.utils.data.default_collate(samples)


class Net(nn.Sequential):
    def forward(self, x):
        return super().forward(x).mean(1)


def net(width):
    return Net(nn.Linear(SIZE, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))


# name: (data set, collate function, samples a batch, hidden width)
JOBS = {
    "plain": (Plain, None, 16, 512), "decode": (Decodes, None, 16, 512), "sleep": (Sleeps, None, 16, 512),
    "python": (Python, None, 16, 512), "disk": (Reads, None, 16, 512), "collate": (Ready, slow_collate, 16, 512),
    "compute": (Ready, None, 16, 512), "stream": (Stream, None, 16, 512), "trickle": (Trickle, None, 16, 512), "workers": (Sleeps, None, 16, 512),
    "log": (Ready, None, 16, 512), "save": (Ready, None, 16, 512), "pause": (Ready, None, 16, 512),
    "gil": (Ready, None, 16, 512), "item": (Ready, None, 16, 512),
    "tokens": (Tokens, None, 16, 512), "records": (Records, None, 16, 512), "files": (Files, None, 16, 512),
    "noise": (Noise, None, 16, 512),
    **{name: (Ready, None, 16, 512) for name in ("metrics", "average", "collect", "lines", "child", "locked", "norms")},
}
SLOW_DATA = ("decode", "sleep", "python", "disk", "collate", "tokens", "records", "files", "noise")


class After:
    """What jobs do behind each step, which their twins do not."""

    def metrics(self, job):
        with torch.no_grad():
            guessed = job.model(job.x).argmax(1).tolist()
        job.right = sum(a == b for a, b in list(zip(guessed, job.y.tolist())) * 8000)  # SLOW: metrics

    def average(self, job):
        job.kept = [copy.deepcopy(job.model.state_dict()) for _ in range(20)]  # SLOW: average

    def collect(self, job):
        job.garbage = [[] for _ in range(5000)]
        gc.collect()  # SLOW: collect

    def lines(self, job):
        for k in range(1000):
            job.log_to.info("step %d part %d", job.steps, k)  # SLOW: lines

    def child(self, job):
        subprocess.run(["sleep", "0.008"], check=True)  # SLOW: child

    def locked(self, job):
        with job.lock:  # SLOW: locked
            pass

    def norms(self, job):
        for p in job.model.parameters():
            job.norm = sum(x.item() ** 2 for x in p.detach().reshape(-1)[:2000])  # SLOW: norms


def hold(job):
    while True:
        with job.lock:
            time.sleep(0.01)
        time.sleep(0.0005)


def spin(stop):
    n = 0
    while not stop.is_set():
        for _ in range(100000):
            n += 1  # SLOW: gil


class Job:
    def __init__(self, a):
        self.a, self.steps, self.batches, self.passes, self.waited = a, 0, 0, 0, 0.0
        self.hash, self.begun = hashlib.sha256(), []
        self.log = tempfile.NamedTemporaryFile("w", suffix=".log") if a.job in ("log", "lines") else None
        self.behind = None if a.fixed else getattr(After(), a.job, None)
        self.lock = threading.Lock()
        if a.job == "lines":
            self.log_to = logging.getLogger("job")
            self.log_to.setLevel(logging.INFO)
            self.log_to.addHandler(logging.FileHandler(self.log.name))
        data, collate, batch, width = JOBS[a.job]
        if a.fixed and a.job in SLOW_DATA:
            data, collate = Ready, None
        workers = a.workers if not (a.fixed and a.job == "workers") else 4
        more = dict(multiprocessing_context=a.start, persistent_workers=a.persistent) if workers else {}
        self.loader = DataLoader(data(a.steps * a.accumulate * batch // a.epochs), batch_size=batch, num_workers=workers,
                                 collate_fn=collate, pin_memory=a.pin, **more)
        self.test = DataLoader(Plain(batch * 4), batch_size=batch) if a.evaluate else None
        self.model = net(width)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        if a.ddp:
            self.model = nn.parallel.DistributedDataParallel(self.model)

    def train_step(self, x, y):
        with torch.autocast("cpu", torch.bfloat16) if self.a.amp else contextlib.nullcontext():
            loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.passes += 1
        if self.passes % self.a.accumulate == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.steps += 1
            self.after(loss)
        return loss

    def after(self, loss):
        if self.a.fixed:
            return
        if self.behind:
            self.behind(self)
        elif self.log:
            print(self.steps, loss.item(), file=self.log, flush=True)
            os.fsync(self.log.fileno())  # SLOW: log
        elif self.a.job == "save" and self.steps % 2 == 0:
            self.save(os.path.join(tempfile.gettempdir(), "tfhook-torch-job.%d.pt" % os.getpid()))
        elif self.a.job == "pause":
            time.sleep(0.01)  # SLOW: pause
        elif self.a.job == "item":
            loss.item()

    def save(self, path):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, path)  # SLOW: save
        os.unlink(path)

    def epoch(self):
        it, losses = iter(self.loader), []
        while True:
            t = time.perf_counter()
            batch = next(it, None)
            self.waited += time.perf_counter() - t
            if batch is None:
                break
            if self.batches % self.a.accumulate == 0:
                self.begun.append(t)
            self.batches += 1
            self.x, self.y = batch
            losses.append(self.train_step(*batch).detach())
        self.hash.update(torch.stack(losses).float().numpy().tobytes())
        with torch.no_grad():
            for x, y in self.test or ():
                self.model(x)

    def run(self):
        stop = threading.Event()
        if self.a.job == "gil" and not self.a.fixed:
            threading.Thread(target=spin, args=(stop,), daemon=True).start()
        if self.a.job == "locked" and not self.a.fixed:
            threading.Thread(target=hold, args=(self,), daemon=True).start()
        t = time.perf_counter()
        for _ in range(self.a.epochs):
            self.epoch()
        t = time.perf_counter() - t
        stop.set()
        for p in self.model.parameters():
            self.hash.update(p.detach().numpy().tobytes())
        return t


def step_ms(begun):
    """Mean of the steps behind the first ones, ms."""
    first = len(begun) // 10 + 2
    return (begun[-1] - begun[first]) * 1e3 / (len(begun) - 1 - first) if len(begun) > first + 1 else None


def line_of(name):
    with open(HERE) as f:
        for number, line in enumerate(f, 1):
            if line.rstrip().endswith("# SLOW: " + name):
                return number
    return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("job", choices=JOBS)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--accumulate", type=int, default=1)
    p.add_argument("--workers", type=int, default=0)
    p.add_argument("--start", default="fork")
    for name in ("fixed", "persistent", "pin", "amp", "evaluate", "ddp", "profile"):
        p.add_argument("--" + name, action="store_true")
    a = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if a.ddp:
        torch.distributed.init_process_group("gloo")
    job = Job(a)
    beside = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) if a.profile else contextlib.nullcontext()
    with beside:
        seconds = job.run()
    name = "sleep" if a.job == "workers" else a.job
    told = {"steps": job.steps, "batches": job.batches, "backward": job.passes, "seconds": seconds, "step_ms": step_ms(job.begun),
            "waited": job.waited, "hash": job.hash.hexdigest(), "line": line_of(name), "torch": torch.__version__}
    if a.profile:
        told["keys"] = {e.key: e.count for e in beside.key_averages()}
    if a.ddp:
        torch.distributed.destroy_process_group()
    print(json.dumps(told))


if __name__ == "__main__":
    sys.exit(main())
