"""Jobs of PyTorch's on the processor."""
import collections
import gzip
import json
import os
import queue
import random
import re
import sys
import time
import zlib

from stranger import FIXED, TORCH, fit, job, main, mark, pytorch, small_net, temporary, thread, wide_net


# Loaders.

@job(2, "input", ["input.*"], 80, TORCH, note="DataLoader without workers, slow collate (pads token lists in Python)")
def pt_collate():
    torch = pytorch()
    from torch.utils.data import DataLoader
    data = [list(range(200 + i % 50)) for i in range(640)]

    def pad(items):
        longest = max(map(len, items))
        out = []
        for _ in range(24):
            out = [x + [0] * (longest - len(x)) for x in items]  # here
            out = [[v * 2 for v in x] for x in out]  # here
        return torch.tensor(out, dtype=torch.float32)[:, :64]

    model, optimizer = small_net(torch)
    for x in DataLoader(data, batch_size=8, collate_fn=pad):
        fit(model, optimizer, x)
    return 80


@job(2, "input", ["input.*"], 90, TORCH, note="own prefetch thread fills a queue with tensors; it sleeps (object store)")
def pt_prefetcher():
    torch = pytorch()
    batches = queue.Queue(2)
    model, optimizer = small_net(torch)

    def fetch():
        for _ in range(90):
            time.sleep(0.012)  # here
            batches.put(torch.ones(8, 64))  # here

    thread(fetch)
    for _ in range(90):
        x = batches.get()  # here
        fit(model, optimizer, x)
    return 90


@job(3, "input", ["input.*"], 80, TORCH, twin=True,
     note="an image folder: DataLoader, 2 workers, each item inflates and normalises for 12 ms, batches of 4")
def pt_folder():
    torch = pytorch()
    from torch.utils.data import DataLoader, Dataset
    packed = zlib.compress(random.Random(1).randbytes(1 << 15) * 8)

    class Folder(Dataset):
        def __len__(self):
            return 320

        def __getitem__(self, i):
            image = b""
            end = time.perf_counter() + (0 if FIXED else 0.012)
            while time.perf_counter() < end:  # here
                image = zlib.decompress(packed)  # here
            return torch.ones(64) * len(image)

    model, optimizer = small_net(torch)
    for x in DataLoader(Folder(), batch_size=4, num_workers=2):
        mark()
        fit(model, optimizer, x / 1e6)
    return 80


@job(4, "input", ["input.decode", "input.map", "input.read"], 80, TORCH, twin=True,
     note="IterableDataset over gzipped shards of JSON lines, parsed and normalised in __iter__, no workers")
def pt_shards():
    torch = pytorch()
    from torch.utils.data import DataLoader, IterableDataset
    for s in range(4):
        with gzip.open(temporary("s%d.gz" % s), "wt", 1) as f:
            for i in range(160):
                f.write(json.dumps({"id": i, "feat": [round(random.random(), 6) for _ in range(900)], "label": i % 2}) + "\n")

    class Shards(IterableDataset):
        def __iter__(self):
            if FIXED:
                for _ in range(640):
                    yield torch.ones(64)
                return
            for s in range(4):
                with gzip.open(temporary("s%d.gz" % s), "rt") as f:
                    for line in f:  # here
                        row = json.loads(line)  # here
                        yield torch.tensor(row["feat"][:64])

    model, optimizer = wide_net(torch, 64, 512)
    for x in DataLoader(Shards(), batch_size=8):
        mark()
        fit(model, optimizer, x)
    return 80


@job(4, "input", ["input.batch", "input.map"], 90, TORCH, twin=True,
     note="bfloat16 autocast, two workers, a collate function that pads token lists in Python")
def pt_pad_collate():
    torch = pytorch()
    from torch.utils.data import DataLoader, Dataset

    class Texts(Dataset):
        def __len__(self):
            return 90 * 8

        def __getitem__(self, i):
            return list(range(i % 50 + 200))

    def pad(items):
        if FIXED:
            return torch.zeros(8, 128)
        out = []
        for item in items:
            row = [0] * 4000
            for k in range(4000):  # here
                row[k] = item[k % len(item)] * 31 % 997  # here
            for k in range(4000):  # here
                row[k] = (row[k] + k) % 911  # here
            out.append(row)
        return torch.tensor(out, dtype=torch.float32)[:, :128] / 997

    model, optimizer = wide_net(torch, 128, 256)
    for x in DataLoader(Texts(), batch_size=8, num_workers=2, collate_fn=pad):
        mark()
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    return 90


@job(4, "any", ["*"], 90, TORCH, never="loader is too slow in every",
     note="a dataset that caches in a dict: the first of three epochs decodes (12 ms a batch), the others do not")
def pt_epoch_cache():
    torch = pytorch()
    from torch.utils.data import DataLoader, Dataset
    packed = zlib.compress(random.Random(1).randbytes(1 << 15) * 8)

    class Cached(Dataset):
        def __init__(self):
            self.cache = {}

        def __len__(self):
            return 30 * 8

        def __getitem__(self, i):
            if i not in self.cache:
                for _ in range(3):  # here
                    zlib.decompress(packed)  # here
                self.cache[i] = torch.randn(128)
            return self.cache[i]

    model, optimizer = wide_net(torch, 128, 512)
    loader = DataLoader(Cached(), batch_size=8)
    for _ in range(3):
        for x in loader:
            mark()
            fit(model, optimizer, x)
    return 90


@job(4, "input", ["input.map", "input.decode"], 100, TORCH, twin=True,
     note="one worker that tokenises by regular expression; the model is small")
def pt_regex_worker():
    torch = pytorch()
    from torch.utils.data import DataLoader, Dataset
    text = " ".join("Token%d, it's." % (i * 7 % 900) for i in range(700))
    pattern = re.compile(r"'s|[A-Za-z]+|\d+|[^\sA-Za-z\d]")

    class Lines(Dataset):
        def __len__(self):
            return 400

        def __getitem__(self, i):
            if FIXED:
                return torch.ones(64)
            counts = collections.Counter(w.lower() for w in pattern.findall(text))  # here
            return torch.tensor([float(counts["token"] % 7)] * 64)

    model, optimizer = wide_net(torch, 64, 256)
    for x in DataLoader(Lines(), batch_size=4, num_workers=1):
        mark()
        fit(model, optimizer, x)
    return 100


# Computing.

@job(2, "compute", ["compute.*"], 50, TORCH, note="plain training, computing on the processor")
def pt_plain():
    torch = pytorch()
    nn = torch.nn
    from torch.utils.data import DataLoader, TensorDataset
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for x, in DataLoader(TensorDataset(torch.ones(6400, 512)), batch_size=128):
        fit(model, optimizer, x)
    return 50


@job(4, "compute", ["compute.*"], 80, TORCH, note="no defect: convolution on random images from memory, loss printed each tenth step")
def pt_conv():
    torch = pytorch()
    nn = torch.nn
    from torch.utils.data import DataLoader, TensorDataset
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    data = TensorDataset(torch.randn(640, 3, 32, 32), torch.randint(0, 10, (640,)))
    for i, (x, y) in enumerate(DataLoader(data, batch_size=8, shuffle=True)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print("loss", loss.item(), file=sys.stderr)
    return 80


@job(4, "any", ["*"], 60, TORCH, says="evaluat",
     note="20 steps an epoch, then an evaluation of 200 batches each epoch: evaluating takes longer than training")
def pt_eval_heavy():
    torch = pytorch()
    from torch.utils.data import DataLoader, TensorDataset
    model, optimizer = wide_net(torch, 128, 512)
    training = DataLoader(TensorDataset(torch.randn(20 * 32, 128)), batch_size=32, shuffle=True)
    validation = DataLoader(TensorDataset(torch.randn(200 * 32, 128)), batch_size=32)
    for _ in range(3):
        model.train()
        for (x,) in training:
            mark()
            fit(model, optimizer, x)
        model.eval()
        total = 0
        with torch.no_grad():
            for (x,) in validation:
                total += model(x).square().mean().item()
    return 60


# The host between the steps.

@job(3, "host", ["host.checkpoint"], 100, TORCH, twin=True, note="torch.save of 40 MB each fifth step")
def pt_saves():
    torch = pytorch()
    model, optimizer = small_net(torch)
    average = torch.ones(10 << 20)
    for i in range(100):
        mark()
        fit(model, optimizer, torch.ones(256, 64))
        if i % 5 == 4 and not FIXED:
            torch.save({"model": model.state_dict(), "ema": average, "step": i}, temporary("last.pt"))  # here
    return 100


@job(4, "host", ["host.logging"], 30, TORCH, twin=True,
     note="gradients of four micro batches; each micro batch appends lines of JSON to a log and syncs it")
def pt_accumulate_log():
    torch = pytorch()
    from torch.utils.data import DataLoader, TensorDataset
    model, optimizer = wide_net(torch, 128, 768)
    log = open(temporary("train.jsonl"), "w")
    data = DataLoader(TensorDataset(torch.randn(120 * 16, 128)), batch_size=16)
    for i, (x,) in enumerate(data):
        if i % 4 == 0:
            mark()
            optimizer.zero_grad()
        loss = model(x).square().mean() / 4
        loss.backward()
        if not FIXED:
            log.write(json.dumps({"i": i, "loss": loss.item()}) + "\n")  # here
            log.flush()  # here
            os.fsync(log.fileno())  # here
            for k in range(60):  # here
                log.write(json.dumps({"i": i, "k": k}) + "\n")  # here
                log.flush()  # here
                os.fsync(log.fileno())  # here
        if i % 4 == 3:
            optimizer.step()
    return 30


@job(4, "host", ["host.python"], 90, TORCH, twin=True, note="accuracy per class is computed by a Python loop over predictions each step")
def pt_confusion():
    torch = pytorch()
    from torch.utils.data import DataLoader, TensorDataset
    model, optimizer = wide_net(torch, 128, 512)
    data = DataLoader(TensorDataset(torch.randn(90 * 32, 128)), batch_size=32)
    table = [[0] * 10 for _ in range(10)]

    def confusion(predictions):
        for repeat in range(0 if FIXED else 300):
            for p in predictions:  # here
                table[int(p * 10) % 10][repeat % 10] += 1  # here

    for (x,) in data:
        mark()
        fit(model, optimizer, x)
        with torch.no_grad():
            predictions = model(x).flatten().tolist()
        confusion(predictions)
    return 90


if __name__ == "__main__":
    main()
