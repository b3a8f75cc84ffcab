"""Batch 11: PyTorch's and JAX's jobs on the processor: habits that cost more than half of a step."""
import collections
import math
import multiprocessing
import os
import re
import subprocess
import sys
import zlib

import numpy as np
from stranger import FIXED, FRAMEWORKS, LIBRARIES, TORCH, fit, job, main, mark, pytorch, temporary, wide_net


# Several processes.

@job(11, "communication", ["communication.*"], 300, TORCH, twin=True,
     note="torchrun, two processes: 82 small gradients are averaged one by one, each by an exchange that is waited for; fix: all as one")
def x_pt_averages():
    if "RANK" not in os.environ:
        os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1",
                                  "--nproc-per-node=2", *sys.argv])
    torch = pytorch()
    dist = torch.distributed
    dist.init_process_group("gloo")
    if dist.get_rank() > 0:
        sys.stdout = open(os.devnull, "w")
    nn = torch.nn
    model = nn.Sequential(*(layer for _ in range(40) for layer in (nn.Linear(48, 48), nn.ReLU())), nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    data = torch.utils.data.TensorDataset(torch.randn(9600, 48), torch.randint(0, 10, (9600,)))

    def average():
        if FIXED:
            grads = [p.grad for p in model.parameters()]
            flat = torch.cat([g.flatten() for g in grads])
            dist.all_reduce(flat)
            for g, part in zip(grads, flat.split([g.numel() for g in grads])):
                g.copy_(part.view_as(g) / 2)
            return
        for p in model.parameters():
            dist.all_reduce(p.grad)  # here
            p.grad /= 2

    for x, y in torch.utils.data.DataLoader(data, batch_size=16, sampler=torch.utils.data.DistributedSampler(data)):
        mark()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        average()  # here
        optimizer.step()
    dist.destroy_process_group()
    return 300


class Measurements:
    """Samples of 1,536 numbers, kept as arrays or as compressed text."""

    def __init__(self, n, as_text):
        rows = np.random.default_rng(1).random((64, 1536), dtype=np.float32)
        self.n, self.as_text = n, as_text
        self.rows = [zlib.compress(" ".join("%.5f" % v for v in row).encode()) for row in rows] if as_text else list(rows)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        row = self.rows[i % 64]
        if self.as_text:
            row = np.array([float(v) for v in zlib.decompress(row).split()], np.float32)  # here
        return row


def train_rank(rank, meeting):
    torch = pytorch()
    torch.distributed.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
    model, optimizer = wide_net(torch, 1536, 128)
    model = torch.nn.parallel.DistributedDataParallel(model)
    for x in torch.utils.data.DataLoader(Measurements(150 * 96, rank == 1 and not FIXED), batch_size=96):  # here
        mark()
        fit(model, optimizer, x)
    torch.distributed.destroy_process_group()


@job(11, "any", ["communication.jitter", "input.*"], 150, TORCH, twin=True, says="rank 1", at=(Measurements.__getitem__, train_rank),
     note="two processes: the second one's share of the data lies there as compressed text, so the first waits for it; fix: arrays")
def x_pt_late_share():
    meeting = temporary("meeting" + str(os.getpid()))
    child = multiprocessing.get_context("fork").Process(target=train_rank, args=(1, meeting))
    child.start()
    train_rank(0, meeting)
    child.join()
    return 150


def play(seed, results, games):
    """An actor: moves a ball on a slope, one move after the other, and sends what it saw."""
    rng = np.random.default_rng(seed)
    for _ in range(games):
        place, speed, seen = 0.0, 0.0, []
        for _ in range(40 if FIXED else 20000):  # here
            push = float(rng.random()) - 0.5  # here
            speed = 0.99 * speed + 0.01 * push - 0.0025 * math.cos(3 * place)  # here
            place = min(max(place + speed, -1.2), 0.6)  # here
            seen.append((place, speed, push, float(place > 0.5)))  # here
        results.put(np.array(seen[-40:], np.float32))  # here


@job(11, "any", ["input.*", "host.wait"], 300, TORCH, twin=True, at=(play,),
     note="actor and learner: two processes play long games for each update, and the learner waits for them; fix: short games")
def x_pt_actors():
    context = multiprocessing.get_context("fork")
    results = context.Queue(8)
    actors = [context.Process(target=play, args=(k, results, 150), daemon=True) for k in range(2)]
    for actor in actors:
        actor.start()
    torch = pytorch()
    model, optimizer = wide_net(torch, 4, 64)
    best = 0.0
    for update in range(300):
        game = torch.from_numpy(results.get())  # here
        mark()
        for part in game.split(20):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(part).squeeze(1), part[:, 3])
            loss.backward()
        optimizer.step()
        best = max(best, float(game[:, 0].max()))
    print("highest", best)
    for actor in actors:
        actor.join()
    return 300


class Augmenter:
    """Crops and turns images with a pool of processes."""

    def __init__(self, images, pool):
        self.images, self.pool = images, pool

    def __getstate__(self):
        return {"images": self.images}

    def one(self, i):
        return turned(self.images[i % len(self.images)], i)

    def batch(self, first):
        return np.stack(self.pool.map(self.one, range(first, first + 8), chunksize=1))  # here


KEPT = np.random.default_rng(1).random((40, 64, 64, 3), dtype=np.float32)


def turned(image, i):
    return np.rot90(image[8:56, 8:56], i % 4).copy()


def turned_kept(i):
    return turned(KEPT[i % len(KEPT)], i)


@job(11, "any", ["input.*", "host.python", "host.wait", "host.lock"], 100, TORCH, twin=True, at=(Augmenter.batch,),
     note="a pool maps a bound method, so that all 2 MB of images are pickled for each of 8 tasks; fix: a function of the module")
def x_pt_bound_method():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        torch = pytorch()
        augmenter = Augmenter(KEPT, pool)
        model, optimizer = wide_net(torch, 48 * 48 * 3, 32)
        for i in range(100):
            mark()
            if FIXED:
                batch = np.stack(pool.map(turned_kept, range(8 * i, 8 * i + 8), chunksize=1))
            else:
                batch = augmenter.batch(8 * i)  # here
            fit(model, optimizer, torch.from_numpy(batch).flatten(1))
    return 100


# Loaders.

@job(11, "input", ["input.*"], 300, TORCH, twin=True,
     note="a sampler of its own draws each index by weight with numpy's choice, which sums 40,000 weights each time; fix: all at once")
def x_pt_balanced():
    torch = pytorch()
    rng = np.random.default_rng(1)
    y = (rng.random(40000) < 0.02).astype(np.int64)
    x = torch.randn(40000, 64)

    class Balanced(torch.utils.data.Sampler):
        def __init__(self, labels, n):
            counts = np.bincount(labels)
            weights = 1.0 / counts[labels]
            self.weights, self.n = weights / weights.sum(), n

        def __len__(self):
            return self.n

        def __iter__(self):
            if FIXED:
                yield from rng.choice(len(self.weights), self.n, p=self.weights).tolist()
                return
            for _ in range(self.n):
                yield int(rng.choice(len(self.weights), p=self.weights))  # here

    data = torch.utils.data.TensorDataset(x, torch.from_numpy(y))
    model, optimizer = wide_net(torch, 64, 64)
    for epoch in range(3):
        total = 0.0
        for batch, labels in torch.utils.data.DataLoader(data, batch_size=32, sampler=Balanced(y, 3200)):  # here
            mark()
            optimizer.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch).squeeze(1), labels.float())
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch", epoch, total / 100, flush=True)
    return 300


def heat_maps(joints, size=48, sigma=4.0):
    """For each joint a picture with a round spot."""
    if FIXED:
        at = np.arange(size)
        x, y = (np.exp(-(at[None] - joints[:, k, None]) ** 2 / (2 * sigma ** 2)) for k in range(2))
        return (y[:, :, None] * x[:, None, :]).astype(np.float32)
    maps = np.zeros((len(joints), size, size), np.float32)
    for k, (x, y) in enumerate(joints):
        for row in range(max(0, int(y) - 12), min(size, int(y) + 13)):
            for column in range(max(0, int(x) - 12), min(size, int(x) + 13)):
                maps[k, row, column] = math.exp(-((row - y) ** 2 + (column - x) ** 2) / (2 * sigma ** 2))  # here
    return maps


@job(11, "input", ["input.map", "input.dataloader", "input.cpu"], 150, TORCH, twin=True, at=(heat_maps,),
     note="poses: two workers draw the spot of each of 17 joints pixel by pixel in Python; fix: as a product of two rows")
def x_pt_poses():
    torch = pytorch()
    nn = torch.nn

    class Poses(torch.utils.data.Dataset):
        def __len__(self):
            return 150 * 8

        def __getitem__(self, i):
            rng = np.random.default_rng(i)
            return rng.random((3, 48, 48), dtype=np.float32), heat_maps(rng.uniform(0, 48, (17, 2)))  # here

    model = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 17, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for image, maps in torch.utils.data.DataLoader(Poses(), batch_size=8, num_workers=2, shuffle=True):  # here
        mark()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(image), maps).backward()
        optimizer.step()
    return 150


@job(11, "input", ["input.*"], 260, TORCH, twin=True,
     note="two phases: 120 steps on tensors are fine, then 140 steps on reviews that are split into words as they are read; fix: split before")
def x_pt_two_phases():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abcdefghij"), 6)) for _ in range(400)]
    reviews = [" ".join(rng.choice(words, 1200)) + "." for _ in range(64)]
    number = {w: i + 1 for i, w in enumerate(words)}

    def split(text):
        found = [number.get(w.lower(), 0) for w in re.findall(r"\w+|[^\w\s]", text)]  # here
        return torch.tensor(found[:256])

    class Reviews(torch.utils.data.Dataset):
        done = [split(r) for r in reviews] if FIXED else None

        def __len__(self):
            return 140 * 64

        def __getitem__(self, i):
            return self.done[i % 64] if FIXED else split(reviews[i % 64])  # here

    embed = nn.Embedding(401, 32)
    encoder = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 32))
    head = nn.Linear(32, 1)
    optimizer = torch.optim.Adam([*embed.parameters(), *encoder.parameters()], 1e-3)
    tokens = torch.utils.data.TensorDataset(torch.randint(0, 401, (120 * 16, 64)))
    for (x,) in torch.utils.data.DataLoader(tokens, batch_size=16):
        mark()
        optimizer.zero_grad()
        clean = embed(x)
        F.mse_loss(encoder(F.dropout(clean, 0.3)), clean.detach()).backward()
        optimizer.step()
    print("pre-trained", flush=True)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], 1e-4)
    for x in torch.utils.data.DataLoader(Reviews(), batch_size=64):  # here
        mark()
        optimizer.zero_grad()
        head(encoder(embed(x[:, ::16]).mean(1))).square().mean().backward()
        optimizer.step()
    return 260


# The loop's own work.

@job(11, "any", ["compute.cpu", "host.python", "host.launch"], 400, TORCH, twin=True,
     note="a recurrent net written out with one cell and 80 moments, each several small operations; fix: nn.LSTM over all of them")
def x_pt_cells():
    torch = pytorch()
    nn = torch.nn
    cell, whole, head = nn.LSTMCell(16, 32), nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 1)
    used = whole if FIXED else cell
    optimizer = torch.optim.SGD([*used.parameters(), *head.parameters()], 0.01)
    data = torch.utils.data.TensorDataset(torch.randn(50 * 16, 80, 16), torch.randn(50 * 16, 1))

    def read(x):
        if FIXED:
            return whole(x)[0][:, -1]
        h, c = torch.zeros(len(x), 32), torch.zeros(len(x), 32)
        for t in range(x.shape[1]):
            h, c = cell(x[:, t], (h, c))  # here
        return h

    for epoch in range(8):
        for x, y in torch.utils.data.DataLoader(data, batch_size=16, shuffle=True):
            mark()
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(head(read(x)), y)  # here
            loss.backward()  # here
            optimizer.step()
        print("epoch", epoch, loss.item(), flush=True)
    return 400


@job(11, "any", ["host.python", "host.alloc", "compute.cpu"], 400, TORCH, twin=True,
     note="Q-learning: the memory is a tensor to which each step appends by torch.cat, so all of it is copied; fix: written in place")
def x_pt_memory():
    torch = pytorch()
    model, optimizer = wide_net(torch, 256, 64)
    memory, used = torch.zeros(400 * 64 if FIXED else 0, 256), 0
    for i in range(400):
        mark()
        with torch.no_grad():
            x = torch.rand(64, 256)
            seen = x + 0.01 * model(x)
        if FIXED:
            memory[used:used + 64] = seen
        else:
            memory = torch.cat([memory, seen])  # here
        used += 64
        fit(model, optimizer, memory[torch.randint(0, used, (64,))])
        if i % 100 == 99:
            print("kept", used, flush=True)
    return 400


@job(11, "compute", ["compute.*"], 80, TORCH, twin=True,
     note="an embedding of 250,000 words has a dense gradient of 64 MB, though a batch touches 1,280 rows; fix: sparse=True")
def x_pt_dense_embedding():
    torch = pytorch()
    nn = torch.nn
    embed, head = nn.EmbeddingBag(250000, 64, mode="mean", sparse=FIXED), nn.Linear(64, 5)
    optimizer = torch.optim.SGD([*embed.parameters(), *head.parameters()], 0.1)
    data = torch.utils.data.TensorDataset(torch.randint(0, 250000, (80 * 64, 20)), torch.randint(0, 5, (80 * 64,)))
    for i, (x, y) in enumerate(torch.utils.data.DataLoader(data, batch_size=64)):
        mark()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(head(embed(x)), y)
        loss.backward()  # here
        optimizer.step()  # here
        if i % 20 == 19:
            print("step %d: %.3f" % (i + 1, loss.item()), flush=True)
    return 80


@job(11, "host", ["host.python", "host.sync", "host.code"], 240, TORCH, twin=True,
     note="triplets: the farthest like and nearest unlike sample are sought by two Python loops over the distances; fix: with masks")
def x_pt_triplets():
    torch = pytorch()
    model, optimizer = wide_net(torch, 64, 64)
    model[-1] = torch.nn.Linear(64, 16)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    data = torch.utils.data.TensorDataset(torch.randn(80 * 48, 64), torch.randint(0, 6, (80 * 48,)))

    def hardest(distances, labels):
        far, near = [], []
        for i in range(len(labels)):
            worst, best = (-1.0, i), (1e9, i)
            for j in range(len(labels)):
                d = distances[i, j].item()  # here
                if labels[i] == labels[j]:  # here
                    worst = max(worst, (d, j))
                else:
                    best = min(best, (d, j))
            far.append(worst[1])
            near.append(best[1])
        return torch.tensor(far), torch.tensor(near)

    def hardest_by_mask(distances, labels):
        like = labels[:, None] == labels[None]
        return distances.masked_fill(~like, -1).argmax(1), distances.masked_fill(like, 1e9).argmin(1)

    for _ in range(3):
        for x, y in torch.utils.data.DataLoader(data, batch_size=48, shuffle=True):
            mark()
            z = model(x)
            with torch.no_grad():
                far, near = (hardest_by_mask if FIXED else hardest)(torch.cdist(z, z), y)  # here
            loss = torch.nn.functional.triplet_margin_loss(z, z[far], z[near])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return 240


@job(11, "any", ["host.python", "compute.cpu", "host.launch", "host.code"], 400, TORCH, twin=True,
     note="detect_anomaly was left on, so that each operation keeps the stack it was called from; fix: off")
def x_pt_anomaly():
    torch = pytorch()
    nn = torch.nn
    torch.autograd.set_detect_anomaly(not FIXED)
    layers = nn.ModuleList([nn.Linear(32, 32) for _ in range(24)])
    head = nn.Linear(32, 4)
    optimizer = torch.optim.SGD([*layers.parameters(), *head.parameters()], 0.01)
    data = torch.utils.data.TensorDataset(torch.randn(100 * 16, 32), torch.randint(0, 4, (100 * 16,)))

    def forward(x):
        for layer in layers:
            x = x + 0.1 * torch.tanh(layer(x))  # here
        return head(x)

    for _ in range(4):
        for x, y in torch.utils.data.DataLoader(data, batch_size=16):
            mark()
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(forward(x), y)  # here
            loss.backward()  # here
            optimizer.step()
    return 400


@job(11, "host", ["host.wait", "host.python", "host.logging", "host.unknown", "host.process"], 400, TORCH, twin=True,
     note="each step's memory is asked for by running ps, whose output goes into a list of metrics; fix: from the process's own file")
def x_pt_ps():
    torch = pytorch()
    model, optimizer = wide_net(torch, 512, 256)
    data = torch.utils.data.TensorDataset(torch.randn(100 * 32, 512))
    metrics = []

    def memory():
        if FIXED:
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * 4
        told = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)  # here
        return int(told.stdout)

    for epoch in range(4):
        for (x,) in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
            mark()
            loss = fit(model, optimizer, x)
            metrics.append((loss.item(), memory()))  # here
        print("epoch %d: %d kB" % (epoch, metrics[-1][1]), flush=True)
    return 400


@job(11, "host", ["host.python", "host.code"], 800, LIBRARIES, twin=True,
     note="pandas: each batch's rows are joined to a frame of all so far, and their mean by class is taken; fix: sums by class")
def x_pt_history():
    torch = pytorch()
    import pandas as pd
    model, optimizer = wide_net(torch, 64, 64)
    data = torch.utils.data.TensorDataset(torch.randn(800 * 64, 64), torch.randint(0, 8, (800 * 64,)))
    history = pd.DataFrame({"step": [], "class": [], "error": [], "name": []})
    sums, counts = np.zeros(8), np.zeros(8)
    for i, (x, y) in enumerate(torch.utils.data.DataLoader(data, batch_size=64)):
        mark()
        optimizer.zero_grad()
        errors = (model(x).squeeze(1) - y).square()
        errors.mean().backward()
        optimizer.step()
        errors, classes = errors.detach().numpy(), y.numpy()
        if FIXED:
            sums += np.bincount(classes, errors, 8)
            counts += np.bincount(classes, minlength=8)
            means = sums / np.maximum(counts, 1)
        else:
            rows = pd.DataFrame({"step": i, "class": classes, "error": errors, "name": ["sample %d" % k for k in range(64)]})  # here
            history = pd.concat([history, rows], ignore_index=True)  # here
            means = history.groupby(["class", "name"])["error"].mean().groupby("class").mean().to_numpy()  # here
        if i % 200 == 199:
            print("step %d" % (i + 1), means[:3], flush=True)
    return 800


@job(11, "compute", ["compute.*"], 40, TORCH,
     note="no defect: L-BFGS on all of the data, whose closure is called up to 20 times a step")
def x_pt_lbfgs():
    torch = pytorch()
    x, y = torch.randn(1024, 128), torch.randn(1024, 1)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.2, max_iter=20, tolerance_grad=0, tolerance_change=0)
    history = collections.deque(maxlen=10)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for i in range(40):
        mark()
        history.append(float(optimizer.step(closure)))
        if i % 10 == 9:
            print("step %d: %.4f" % (i + 1, history[-1]), flush=True)
    return 40


# JAX.

def jax_net(jax, widths):
    jnp = jax.numpy
    keys = jax.random.split(jax.random.key(0), len(widths))
    params = [(jax.random.normal(k, (a, b)) * a ** -0.5, jnp.zeros(b)) for k, a, b in zip(keys, widths, widths[1:])]

    def loss(params, x):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        return jnp.square(x @ params[-1][0] + params[-1][1]).mean()
    return params, loss


@job(11, "host", ["host.compile"], 60, FRAMEWORKS, twin=True,
     note="JAX: the trainer's method makes its jitted function anew, as a lambda, so that each step compiles it; fix: made once")
def x_jx_lambda():
    torch = pytorch()
    import jax

    class Trainer:
        def __init__(self):
            self.params, self.loss = jax_net(jax, (64, 128, 128, 1))
            self.kept = self.make() if FIXED else None

        def make(self):
            return jax.jit(lambda params, x: jax.tree.map(lambda p, g: p - 0.01 * g, params, jax.grad(self.loss)(params, x)))

        def train_step(self, x):
            step = self.kept if FIXED else self.make()
            self.params = step(self.params, x)  # here

    trainer = Trainer()
    data = torch.utils.data.TensorDataset(torch.randn(60 * 32, 64))
    for (x,) in torch.utils.data.DataLoader(data, batch_size=32):
        mark()
        trainer.train_step(x.numpy())  # here
    jax.block_until_ready(trainer.params)
    return 60


@job(11, "input", ["input.*"], 600, FRAMEWORKS, twin=True,
     note="JAX: the data set changes each sample by operations of jax.numpy, each dispatched by itself; fix: by numpy")
def x_jx_samples():
    torch = pytorch()
    import jax
    xp = np if FIXED else jax.numpy
    images = np.random.default_rng(1).random((128, 16, 16), dtype=np.float32)

    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return 600 * 16

        def __getitem__(self, i):
            image = xp.asarray(images[i % 128])  # here
            image = xp.flip(image, 1) if i % 2 else image  # here
            image = xp.roll(image, i % 5, 0)  # here
            image = xp.clip(image * 1.2 - 0.1, 0, 1)  # here
            return (image - image.mean()) / (image.std() + 1e-5)  # here

    def collate(samples):
        return np.stack([np.asarray(s).reshape(-1) for s in samples])  # here

    params, loss = jax_net(jax, (256, 128, 1))
    step = jax.jit(lambda params, x: jax.tree.map(lambda p, g: p - 0.01 * g, params, jax.grad(loss)(params, x)))
    for x in torch.utils.data.DataLoader(Images(), batch_size=16, collate_fn=collate):  # here
        mark()
        params = step(params, x)
    jax.block_until_ready(params)
    return 600


if __name__ == "__main__":
    main()
