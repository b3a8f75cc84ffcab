"""Batch 14: PyTorch's jobs, and one of JAX."""
import os
import sys
import zlib

import numpy as np
from stranger import FIXED, FRAMEWORKS, LIBRARIES, TORCH, finish, job, main, mark, pytorch, temporary


@job(14, "input", ["input.read", "input.decode"], 120, LIBRARIES, twin=True,
     note="each sample is a random row of a compressed HDF5 data set, for which a chunk is inflated; fix: in memory")
def u_rec_hdf5():
    import h5py
    torch = pytorch()
    nn = torch.nn
    from torch.utils.data import DataLoader, Dataset

    FILE = temporary("features.h5")
    ROWS, DIM = 40_000, 256

    def build():
        g = np.random.default_rng(0)
        with h5py.File(FILE, "w") as f:
            d = f.create_dataset("x", (ROWS, DIM), "f4", chunks=(64, DIM), compression="gzip", compression_opts=4)
            for i in range(0, ROWS, 4000):
                d[i:i + 4000] = g.integers(0, 50, (4000, DIM))
            f["y"] = g.integers(0, 2, ROWS).astype("f4")

    class Clicks(Dataset):
        def __init__(self, in_memory):
            self.h5 = h5py.File(FILE, "r", rdcc_nbytes=1 << 20)
            self.x = self.h5["x"][:] if in_memory else self.h5["x"]
            self.y = self.h5["y"][:]

        def __len__(self):
            return ROWS

        def __getitem__(self, i):
            return self.x[i], self.y[i]  # here

    build()
    net = nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    torch.manual_seed(3)
    loader = DataLoader(Clicks(FIXED), batch_size=48, shuffle=True, drop_last=True)
    total, batches = 0.0, 120
    for i, (x, y) in enumerate(loader):
        mark()
        loss = nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(-1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 20 == 0:
            total = loss.item()
        if i + 1 == batches:
            break
    print("last loss", total)
    return batches


@job(14, "input", ["input.decode"], 144, FRAMEWORKS, twin=True,
     note="one worker of a DataLoader decodes PNG files and makes them smaller; fix: once")
def u_png_loader():
    import glob
    torch = pytorch()
    nn = torch.nn
    from PIL import Image
    from torch.utils.data import Dataset, DataLoader

    # plant disease pictures, 300x300 PNG, resized to 64x64 while loading
    ROOT = temporary("png")

    def synth():
        os.makedirs(ROOT, exist_ok=True)
        r = np.random.default_rng(4)
        for i in range(300):
            a = r.integers(0, 255, (30, 30, 3), dtype=np.uint8)
            Image.fromarray(a).resize((300, 300), Image.BICUBIC).save(f"{ROOT}/{i}.png")

    class Plants(Dataset):
        def __init__(self):
            self.files = sorted(glob.glob(ROOT + "/*.png"))
            self.cached = None
            if FIXED:
                self.cached = [self.load(f) for f in self.files]

        def load(self, f):
            im = Image.open(f).convert("RGB")  # here
            return np.asarray(im.resize((64, 64), Image.BILINEAR), np.float32) / 255

        def __len__(self):
            return len(self.files)

        def __getitem__(self, i):
            a = self.cached[i] if self.cached else self.load(self.files[i])
            return torch.from_numpy(a).permute(2, 0, 1), i % 7

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.c2, self.fc = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 16, 3, 2), nn.Linear(16 * 15 * 15, 7)

        def forward(self, x):
            return self.fc(self.c2(self.c1(x).relu()).relu().flatten(1))

    synth()
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    loader = DataLoader(Plants(), batch_size=25, shuffle=True, num_workers=1, persistent_workers=True, drop_last=True)
    n = 0
    for epoch in range(12):
        for x, y in loader:
            mark()
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            n += 1
        print("epoch", epoch, "loss %.3f" % loss.item())
    return n


@job(14, "input", ["input.map", "input.batch"], 1600, TORCH, twin=True,
     note="each row of a table becomes a tensor by itself and is collated, 256 a step; fix: by index")
def u_sweep():
    import itertools
    torch = pytorch()
    from torch.utils.data import DataLoader, Dataset, TensorDataset, BatchSampler, RandomSampler

    gen = torch.Generator().manual_seed(1)
    X = torch.randn(12800, 24, generator=gen)
    y = (X[:, :4].prod(1) > 0).long()

    class Rows(Dataset):
        def __init__(self):
            self.rows = list(zip(X.tolist(), y.tolist()))

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, i):
            x, label = self.rows[i]
            return torch.tensor(x), label  # here

    if FIXED:
        ds = TensorDataset(X, y)
        loader = DataLoader(ds, sampler=BatchSampler(RandomSampler(ds), 256, False), batch_size=None)
    else:
        loader = DataLoader(Rows(), batch_size=256, shuffle=True)

    grid = list(itertools.product([3e-3, 1e-3], [48, 96], [0, 1e-2]))
    results, steps = {}, 0
    for lr, width, wd in grid:
        model = torch.nn.Sequential(torch.nn.Linear(24, width), torch.nn.ReLU(), torch.nn.Linear(width, width),
                                    torch.nn.ReLU(), torch.nn.Linear(width, 2))
        opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=wd)
        crit = torch.nn.CrossEntropyLoss()
        for epoch in range(4):
            for xb, yb in loader:
                mark()
                steps += 1
                opt.zero_grad()
                crit(model(xb), yb).backward()
                opt.step()
        with torch.no_grad():
            results[(lr, width, wd)] = (model(X).argmax(1) == y).float().mean().item()
    best = max(results, key=results.get)
    print('best', best, results[best])
    return steps


@job(14, "compute or host", ["compute.cpu", "host.compile"], 300, TORCH, twin=True,
     note="each of three folds compiles its model (torch.compile), which takes most of the run; fix: not compiled")
def u_kfold_compile():
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = temporary("inductor")
    torch = pytorch()
    from torch import nn
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

    torch.manual_seed(0)
    N, F_IN = 9600, 256
    X = torch.randn(N, F_IN)
    y = (X[:, :8].sum(1) + 0.3 * torch.randn(N)).sign().clamp(0)
    folds = np.array_split(np.random.default_rng(0).permutation(N), 3)

    def make():
        m = nn.Sequential(nn.Linear(F_IN, 384), nn.GELU(), nn.LayerNorm(384), nn.Linear(384, 384), nn.GELU(),
                          nn.LayerNorm(384), nn.Linear(384, 1))
        return m if FIXED else torch.compile(m)  # here

    def fit(train_idx):
        torch._dynamo.reset()
        model, loss_fn = make(), nn.BCEWithLogitsLoss()
        opt = torch.optim.AdamW(model.parameters(), 1e-3)
        ds = TensorDataset(X[train_idx], y[train_idx])
        loader = DataLoader(ds, batch_size=None, sampler=BatchSampler(RandomSampler(ds), 128, True))
        for _ in range(2):
            for xb, yb in loader:
                mark()
                opt.zero_grad()
                loss_fn(model(xb).squeeze(1), yb).backward()
                opt.step()
        return model

    @torch.no_grad()
    def score(model, idx):
        return ((model(X[idx]).squeeze(1) > 0).float() == y[idx]).float().mean().item()

    scores = []
    for k in range(len(folds)):
        train = np.concatenate([f for j, f in enumerate(folds) if j != k])
        model = fit(train)
        scores.append(score(model, folds[k][:3200]))
        print("fold", k, scores[-1], flush=True)
    return 300


class TwoViews:
    """Two random crops of each picture, of u_simclr: its workers import it."""

    def __init__(self, n=640):
        self.x = np.random.default_rng(0).integers(0, 255, (n, 40, 40, 3), dtype=np.uint8)

    def __len__(self):
        return len(self.x)

    def view(self, im):
        import torch
        i, j = np.random.randint(0, 8, 2)
        v = im[i:i + 32, j:j + 32]
        if np.random.rand() < 0.5:
            v = v[:, ::-1]
        v = v.astype(np.float32) / 255 * np.random.uniform(0.6, 1.4)
        return torch.from_numpy(v.transpose(2, 0, 1).copy())

    def __getitem__(self, k):
        return self.view(self.x[k]), self.view(self.x[k])


@job(14, "input", ["input.dataloader"], 80, TORCH, twin=True,
     note="two spawned workers are started anew in each epoch; fix: they persist")
def u_simclr():
    torch = pytorch()
    nn = torch.nn
    import torch.nn.functional as F
    from torch.utils.data import DataLoader

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.Sequential(
                nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
                nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
            self.g = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 64))

        def forward(self, x):
            return F.normalize(self.g(self.f(x)), dim=1)

    def nt_xent(a, b, t=0.2):
        z = torch.cat([a, b])
        s = z @ z.T / t
        s.fill_diagonal_(-1e9)
        n = len(a)
        return F.cross_entropy(s, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))

    loader = DataLoader(TwoViews(), batch_size=32, shuffle=True, num_workers=2, drop_last=True,
                        multiprocessing_context="spawn", persistent_workers=FIXED)  # here
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(4):
        total = 0.0
        for a, b in loader:  # here
            mark()
            loss = nt_xent(net(a), net(b))
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.item()
        print("epoch", epoch, "loss", total / len(loader))
    return 4 * len(loader)


@job(14, "host", ["host.logging", "host.checkpoint", "host.python"], 200, TORCH, twin=True,
     note="16 fsync a step for a file of norms; fix: every tenth step")
def u_dpsgd():
    import csv
    torch = pytorch()
    from torch import nn
    from torch.func import functional_call, grad, vmap
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(1)
    X = torch.randn(2560, 1, 28, 28)
    Y = torch.randint(0, 10, (2560,))
    model = nn.Sequential(nn.Conv2d(1, 8, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 32), nn.ReLU(), nn.Linear(32, 10))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_one(p, x, y):
        out = functional_call(model, p, (x.unsqueeze(0),))
        return nn.functional.cross_entropy(out, y.unsqueeze(0))

    per_sample = vmap(grad(loss_one), in_dims=(None, 0, 0), randomness="different")

    class Audit:
        """Each line must survive a crash."""

        def __init__(self, path, every):
            self.f = open(path, "w", newline="")
            self.w = csv.writer(self.f)
            self.every, self.pending = every, 0

        def add(self, step, norms, clip):
            for i, n in enumerate(norms.tolist()):
                self.w.writerow([step, i, f"{n:.6f}", f"{min(1.0, clip / max(n, 1e-9)):.6f}"])
                self.pending += 1
                if self.pending >= self.every:
                    self.f.flush()
                    os.fsync(self.f.fileno())  # here
                    self.pending = 0

    audit = Audit(temporary("norms.csv"), 64 * 10 if FIXED else 4)
    loader = DataLoader(TensorDataset(X, Y), batch_size=64, shuffle=True)
    C, sigma = 1.0, 0.8
    step = 0
    for epoch in range(5):
        for x, y in loader:
            mark()
            g = per_sample(dict(model.named_parameters()), x, y)
            norms = torch.stack([v.flatten(1).norm(dim=1) for v in g.values()]).norm(dim=0)
            scale = (C / (norms + 1e-6)).clamp(max=1.0)
            for name, p in model.named_parameters():
                s = torch.einsum("b,b...->...", scale, g[name])
                p.grad = (s + sigma * C * torch.randn_like(s)) / len(x)
            opt.step()
            audit.add(step, norms, C)
            step += 1
    return step


SAMPLES = 1280  # of u_ddp_uneven


class Shard:
    def __init__(self, rank):
        rng = np.random.default_rng(rank)
        self.raw = (rng.normal(size=(64, 48, 48, 48)) * 50).astype(np.int16)
        heavy = rank == 1 and not FIXED
        self.packed = [zlib.compress(a.tobytes(), 1) for a in self.raw] if heavy else None

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        import torch
        k = i % 64
        if self.packed is not None and i >= SAMPLES // 2:
            a = np.frombuffer(zlib.decompress(self.packed[k]), np.int16).reshape(48, 48, 48)[:3]  # here
        else:
            a = self.raw[k, :3]
        return torch.from_numpy(a.astype(np.float32) / 50), i % 10


def train_shard(rank, world, port):
    torch = pytorch()
    dist = torch.distributed
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 24, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(24, 32, 3, 2, 1), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(512, 10))
    net = torch.nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    ce = torch.nn.CrossEntropyLoss()
    for epoch in range(3):
        for x, y in torch.utils.data.DataLoader(Shard(rank), batch_size=16):
            mark()
            opt.zero_grad()
            ce(net(x), y).backward()
            opt.step()
        if rank == 0:
            print("epoch", epoch, flush=True)
    if rank == 0:
        finish(240)
    dist.destroy_process_group()


@job(14, "input or communication", ["input.map", "communication.jitter"], 240, TORCH, twin=True, at=(Shard,),
     note="the second rank inflates its samples in the second half of each epoch, and the first waits for it;"
          " fix: not compressed")
def u_ddp_uneven():
    torch = pytorch()
    torch.multiprocessing.spawn(train_shard, args=(2, 29100 + os.getpid() % 400), nprocs=2)
    sys.exit(0)


@job(14, "host", ["host.python"], 400, TORCH, twin=True,
     note="every tenth step evaluates eight pictures with non-maximum suppression in Python; fix: never")
def u_detector():
    torch = pytorch()
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    S = 16  # cells per side

    class Boxes(Dataset):
        def __init__(self, n):
            g = torch.Generator().manual_seed(4)
            self.c = torch.rand(n, 3, 2, generator=g)

        def __len__(self):
            return len(self.c)

        def __getitem__(self, i):
            img, target = torch.zeros(1, 64, 64), torch.zeros(5, S, S)
            for cx, cy in self.c[i].tolist():
                x, y = int(cx * 56), int(cy * 56)
                img[:, y:y + 8, x:x + 8] = 1
                target[:, (y + 4) // 4, (x + 4) // 4] = torch.tensor([1, cx, cy, 0.125, 0.125])
            return img, target

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            ch = [1, 16, 32, 48]
            layers = []
            for a, b, s in zip(ch, ch[1:], (2, 2, 1)):
                layers += [nn.Conv2d(a, b, 3, s, 1), nn.BatchNorm2d(b), nn.SiLU()]
            self.net = nn.Sequential(*layers, nn.Conv2d(48, 5, 1))

        def forward(self, x):
            return self.net(x)

    def iou(a, b):
        x1, y1 = max(a[0], b[0]), max(a[1], b[1])  # here
        x2, y2 = min(a[2], b[2]), min(a[3], b[3])  # here
        inter = max(0.0, x2 - x1) * max(0.0, y2 - y1)  # here
        union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inter  # here
        return inter / union if union > 0 else 0.0

    def nms(boxes, scores, limit=0.7):
        order = sorted(range(len(boxes)), key=lambda k: -scores[k])
        keep = []
        while order:
            k = order.pop(0)
            keep.append(k)
            order = [j for j in order if iou(boxes[k], boxes[j]) < limit]  # here
        return keep

    @torch.no_grad()
    def evaluate(model, images, truth):
        model.eval()
        hits = total = 0
        out = model(images)
        for p, t in zip(out, truth):
            flat = p.flatten(1).T
            score = flat[:, 0].sigmoid().tolist()
            boxes = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for x, y, w, h in flat[:, 1:].tolist()]
            keep = nms(boxes, score)
            for cx, cy in t.tolist():
                total += 1
                hits += any(iou(boxes[k], (cx, cy, cx + 0.125, cy + 0.125)) > 0.3 for k in keep)
        model.train()
        return hits / total

    torch.manual_seed(0)
    data = Boxes(1600)
    model = Detector()
    opt = torch.optim.AdamW(model.parameters(), 2e-3)
    val_x = torch.stack([data[i][0] for i in range(8)])
    step = 0
    for epoch in range(4):
        for x, t in DataLoader(data, batch_size=16, shuffle=True):
            mark()
            p = model(x)
            obj = nn.functional.binary_cross_entropy_with_logits(p[:, 0], t[:, 0])
            box = ((p[:, 1:] - t[:, 1:]).abs() * t[:, :1]).sum() / t[:, 0].sum()
            opt.zero_grad()
            (obj + box).backward()
            opt.step()
            step += 1
            if step % 10 == 0 and not FIXED:
                print(step, round(float(obj + box), 4), "recall", round(evaluate(model, val_x, data.c[:8]), 3))
    return step


@job(14, "host", ["host.compile"], 80, LIBRARIES, twin=True,
     note="each batch is as long as its longest sentence, so JAX compiles in about 50 of 80 steps;"
          " fix: lengths in steps of 64")
def u_jax_lengths():
    import functools

    import jax
    import jax.numpy as jnp
    from torch.utils.data import DataLoader, Dataset

    PAD_TO = 64 if FIXED else 1

    class Sentences(Dataset):
        def __init__(self, n=160):
            r = np.random.default_rng(9)
            self.x = [r.integers(1, 500, r.integers(5, 190)) for _ in range(n)]

        def __len__(self):
            return len(self.x)

        def __getitem__(self, i):
            return self.x[i]

    def pad(rows):
        n = max(len(r) for r in rows)
        n = -(-n // PAD_TO) * PAD_TO  # here
        out = np.zeros((len(rows), n), np.int32)
        for k, r in enumerate(rows):
            out[k, :len(r)] = r
        return out

    def init(key, d=64):
        k = jax.random.split(key, 5)
        g = lambda k, *s: jax.random.normal(k, s) * s[0] ** -0.5
        return {"e": g(k[0], 500, d), "wx": g(k[1], d, d), "wh": g(k[2], d, d), "wz": g(k[3], d, d), "o": g(k[4], d, 500)}

    def loss_fn(p, x):
        e = p["e"][x]

        def cell(h, v):
            z = jax.nn.sigmoid(v @ p["wz"])
            h = z * h + (1 - z) * jnp.tanh(v @ p["wx"] + h @ p["wh"])
            return h, h

        _, hs = jax.lax.scan(cell, jnp.zeros((x.shape[0], e.shape[-1])), e.swapaxes(0, 1))
        logp = jax.nn.log_softmax(hs[:-1] @ p["o"])
        tgt = x.T[1:]
        ll = jnp.take_along_axis(logp, tgt[..., None], -1)[..., 0]
        return -(ll * (tgt > 0)).sum() / (tgt > 0).sum()

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(p, m, x):
        loss, g = jax.value_and_grad(loss_fn)(p, x)
        m = jax.tree.map(lambda a, b: 0.9 * a + b, m, g)
        return jax.tree.map(lambda a, b: a - 0.05 * b, p, m), m, loss

    p = init(jax.random.key(0))
    m = jax.tree.map(jnp.zeros_like, p)
    losses = []
    for epoch in range(2):
        for x in DataLoader(Sentences(), batch_size=4, shuffle=True, collate_fn=pad):
            mark()
            p, m, loss = update(p, m, jnp.asarray(x))  # here
            losses.append(loss)
            if len(losses) % 20 == 0:
                print(len(losses), float(losses[-1]))
    return len(losses)


if __name__ == "__main__":
    main()
