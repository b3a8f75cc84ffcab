"""Batch 13: PyTorch's loaders, and what runs beside the loop, in small projects of several classes."""
import collections
import itertools
import json
import multiprocessing as mp
import os
import pathlib
import random
import sqlite3
import threading
import time

import numpy as np
from stranger import FIXED, TORCH, job, main, mark, pytorch, temporary


@job(13, "input", ["input.map"], 120, TORCH, twin=True,
     note="the filters of a mel spectrogram are made anew for each clip; fix: once")
def z_pt_keyword_mels():
    torch = pytorch()
    import torch.nn.functional as F
    from torch.utils.data import DataLoader, Dataset
    RATE, N_FFT, N_MELS = 16000, 512, 40

    def mel_filters(n_fft, n_mels, rate):
        hz = lambda m: 700 * (10 ** (m / 2595) - 1)
        points = hz(np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), n_mels + 2))
        bins, fb = np.fft.rfftfreq(n_fft, 1 / rate), np.zeros((n_mels, n_fft // 2 + 1), np.float32)
        for m in range(n_mels):
            for k, f in enumerate(bins):
                if points[m] < f <= points[m + 1]:  # here
                    fb[m, k] = (f - points[m]) / (points[m + 1] - points[m])  # here
                elif points[m + 1] < f < points[m + 2]:  # here
                    fb[m, k] = (points[m + 2] - f) / (points[m + 2] - points[m + 1])  # here
        return torch.from_numpy(fb)

    class LogMel:
        def __init__(self):
            self.window, self.filters = torch.hann_window(N_FFT), mel_filters(N_FFT, N_MELS, RATE)  # here

        def __call__(self, wave):
            spec = torch.stft(wave, N_FFT, 256, window=self.window, return_complex=True).abs().square()
            return (self.filters @ spec + 1e-6).log()

    class Keywords(Dataset):
        def __init__(self, path, n):
            self.clips = np.memmap(path, np.int16, "r", shape=(n, RATE))
            self.labels = np.random.default_rng(1).integers(0, 12, n)
            self.logmel = LogMel()

        def __len__(self):
            return len(self.clips)

        def __getitem__(self, i):
            wave = torch.from_numpy(self.clips[i].astype(np.float32) / 32768)
            features = self.logmel if FIXED else LogMel()  # here
            return features(wave)[None], int(self.labels[i])

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.c2 = torch.nn.Conv2d(1, 8, 5, 2), torch.nn.Conv2d(8, 16, 3, 2)
            self.out = torch.nn.Linear(16, 12)

        def forward(self, x):
            return self.out(F.relu(self.c2(F.relu(self.c1(x)))).mean((2, 3)))

    def train_epoch(net, loader, opt):
        total = 0.0
        for x, y in loader:
            mark()
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        return total / len(loader)

    torch.manual_seed(0)
    path = temporary("clips.i16")
    np.random.default_rng(0).integers(-9000, 9000, (480, RATE)).astype(np.int16).tofile(path)
    loader = DataLoader(Keywords(path, 480), batch_size=8, shuffle=True)
    net = Net()
    opt = torch.optim.AdamW(net.parameters(), 2e-3)
    for epoch in range(2):
        print("epoch %d: loss %.3f" % (epoch, train_epoch(net, loader, opt)))
    return 2 * len(loader)


@job(13, "input", ["input.read"], 252, TORCH, twin=True,
     note="each of a tile's ten bands is a small file that is read again in every epoch; fix: kept in memory")
def z_pt_tile_files():
    torch = pytorch()
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, random_split
    BANDS = ["B%02d" % b for b in range(1, 11)]
    TILES, SIDE, BATCH, EPOCHS = 640, 24, 32, 14

    def prepare(root):
        root.mkdir(exist_ok=True)
        rng = np.random.default_rng(3)
        for t in range(TILES):
            folder = root / ("tile_%04d" % t)
            folder.mkdir(exist_ok=True)
            for band in BANDS:
                rng.integers(0, 10000, (SIDE, SIDE)).astype(np.uint16).tofile(folder / (band + ".raw"))

    class Tiles(Dataset):
        def __init__(self, root):
            self.folders = sorted(str(p) for p in root.iterdir())
            self.cover = np.random.default_rng(4).integers(0, 7, len(self.folders))
            self.kept = {}

        def __len__(self):
            return len(self.folders)

        def read(self, folder):
            return b"".join(open(os.path.join(folder, band + ".raw"), "rb").read() for band in BANDS)  # here

        def __getitem__(self, i):
            raw = self.kept.get(i)
            if raw is None:
                raw = self.read(self.folders[i])  # here
                if FIXED:
                    self.kept[i] = raw
            x = np.frombuffer(raw, np.uint16).reshape(len(BANDS), SIDE, SIDE).astype(np.float32)
            return torch.from_numpy(x / 10000), int(self.cover[i])

    def make_net():
        return nn.Sequential(nn.Conv2d(10, 12, 3, stride=2), nn.BatchNorm2d(12), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                             nn.Linear(48, 7))

    def evaluate(net, loader):
        net.eval()
        right = n = 0
        with torch.no_grad():
            for x, y in loader:
                right += int((net(x).argmax(1) == y).sum())
                n += len(y)
        net.train()
        return right / n

    torch.manual_seed(1)
    home = pathlib.Path(temporary("tiles"))
    prepare(home)
    train, valid = random_split(Tiles(home), [576, 64])
    loader, held = DataLoader(train, BATCH, shuffle=True), DataLoader(valid, BATCH)
    net, criterion = make_net(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS)
    for epoch in range(EPOCHS):
        for x, y in loader:
            mark()
            opt.zero_grad(set_to_none=True)
            criterion(net(x), y).backward()
            opt.step()
        schedule.step()
        print("epoch %d accuracy %.3f" % (epoch, evaluate(net, held)))
    return EPOCHS * len(loader)


@job(13, "input", ["input.read", "input.map"], 188, TORCH, twin=True,
     note="a SELECT with an OFFSET fetches each row of a batch; fix: one SELECT for all")
def z_pt_sqlite_ratings():
    torch = pytorch()
    from torch.utils.data import DataLoader, Dataset
    USERS, ITEMS, RATINGS = 800, 500, 24000

    def create(path):
        rng = np.random.default_rng(0)
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE ratings (user INTEGER, item INTEGER, stars REAL, at TEXT)")
        rows = zip(rng.integers(0, USERS, RATINGS).tolist(), rng.integers(0, ITEMS, RATINGS).tolist(), 
                   rng.integers(1, 6, RATINGS).tolist())
        db.executemany("INSERT INTO ratings VALUES (?, ?, ?, datetime('now'))", rows)
        db.commit()
        return db

    class Ratings(Dataset):
        def __init__(self, db):
            self.db = db
            self.rows = db.execute("SELECT user, item, stars FROM ratings").fetchall() if FIXED else None

        def __len__(self):
            return RATINGS

        def __getitem__(self, i):
            if self.rows:
                user, item, stars = self.rows[i]
            else:
                user, item, stars = self.db.execute("SELECT user, item, stars FROM ratings LIMIT 1 OFFSET ?", (i,)).fetchone()  # here
            return user, item, stars

    class Factors(torch.nn.Module):
        def __init__(self, k=24):
            super().__init__()
            self.user, self.item = torch.nn.Embedding(USERS, k), torch.nn.Embedding(ITEMS, k)
            self.bias = torch.nn.Parameter(torch.tensor(3.0))

        def forward(self, u, i):
            return (self.user(u) * self.item(i)).sum(-1) + self.bias

    path = temporary("app.%d.db" % os.getpid())
    db = create(path)
    model = Factors()
    optimizer = torch.optim.Adagrad(model.parameters(), 0.05)
    loader = DataLoader(Ratings(db), batch_size=128, shuffle=True)
    running = None
    for step, (user, item, stars) in enumerate(loader):
        mark()
        loss = torch.nn.functional.mse_loss(model(user, item), stars.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
        if step % 40 == 0:
            print("step %d rmse %.3f" % (step, running ** 0.5))
    return len(loader)


@job(13, "input", ["input.map", "input.dataloader", "input.unknown"], 168, TORCH, twin=True,
     note="an epoch is twelve batches, and for each, two new worker processes load a lexicon; fix: persistent_workers")
def z_pt_short_epochs():
    torch = pytorch()
    from torch.utils.data import DataLoader, Dataset

    class Words(Dataset):
        """Every worker builds its own lexicon when it is asked for the first time."""

        def __init__(self, n=384):
            self.n, self.lexicon = n, None

        def __len__(self):
            return self.n

        def load_lexicon(self):
            self.lexicon = {"word%d" % i: (i * 2654435761) % 4001 for i in range(180000)}  # here

        def __getitem__(self, i):
            if self.lexicon is None:
                self.load_lexicon()  # here
            ids = [self.lexicon["word%d" % ((i * 31 + j) % 180000)] for j in range(24)]
            return torch.tensor(ids), i % 5

    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(4001, 64)
            self.rnn = torch.nn.GRU(64, 64, batch_first=True)
            self.out = torch.nn.Linear(64, 5)

        def forward(self, ids):
            return self.out(self.rnn(self.embed(ids))[0][:, -1])

    model = Tagger()
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    loader = DataLoader(Words(), 32, shuffle=True, num_workers=2, persistent_workers=FIXED)  # here
    best = float("inf")
    for epoch in range(14):
        seen = 0.0
        for ids, y in loader:  # here
            mark()
            loss = torch.nn.functional.cross_entropy(model(ids), y)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            seen += loss.item()
        best = min(best, seen)
    print("best epoch %.3f" % best)
    return 14 * len(loader)


@job(13, "input", ["input.batch", "input.dataloader"], 720, TORCH, twin=True,
     note="rows of a table in memory are taken and joined one by one; fix: a batch at a time")
def z_pt_sweep_rows():
    torch = pytorch()
    from torch import nn
    from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler
    ROWS, BATCH, EPOCHS = 20480, 512, 3

    class Table(Dataset):
        def __init__(self, x, y):
            self.x, self.y = x, y

        def __len__(self):
            return len(self.x)

        def __getitem__(self, i):
            return self.x[i], self.y[i]  # here

    def make_loader(x, y):
        data = Table(x, y)
        if FIXED:
            return DataLoader(data, sampler=BatchSampler(RandomSampler(data), BATCH, False), batch_size=None)
        return DataLoader(data, batch_size=BATCH, shuffle=True)

    def trial(lr, hidden, x, y):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(30, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        opt = torch.optim.SGD(net.parameters(), lr)
        loader = make_loader(x, y)
        for _ in range(EPOCHS):
            for a, b in loader:  # here
                mark()
                loss = nn.functional.binary_cross_entropy_with_logits(net(a).squeeze(1), b)
                opt.zero_grad()
                loss.backward()
                opt.step()
        with torch.no_grad():
            return float(((net(x).squeeze(1) > 0) == (y > 0.5)).float().mean())

    g = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, 30, generator=g)
    y = (x[:, :5].sum(1) + 0.3 * torch.randn(ROWS, generator=g) > 0).float()
    results = {}
    for lr, hidden in itertools.product([0.01, 0.1, 1.0], [32, 64]):
        results[lr, hidden] = trial(lr, hidden, x, y)
    print("best", max(results, key=results.get))
    return 6 * EPOCHS * ROWS // BATCH


@job(13, "host or input", ["host.sleep", "input.unknown"], 240, TORCH, twin=True,
     note="a thread that makes batches and the loop poll a list every 20 ms; fix: a condition variable")
def z_pt_polling_feeder():
    torch = pytorch()

    class Buffer:
        def __init__(self, size):
            self.items, self.size, self.ready = [], size, threading.Condition()

        def put(self, item):
            if FIXED:
                with self.ready:
                    self.ready.wait_for(lambda: len(self.items) < self.size)
                    self.items.append(item)
                    self.ready.notify_all()
                return
            while len(self.items) >= self.size:
                time.sleep(0.02)  # here
            self.items.append(item)

        def get(self):
            if FIXED:
                with self.ready:
                    self.ready.wait_for(lambda: self.items)
                    item = self.items.pop(0)
                    self.ready.notify_all()
                return item
            while not self.items:
                time.sleep(0.02)  # here
            return self.items.pop(0)

    class Feeder(threading.Thread):
        def __init__(self, buffer, steps):
            super().__init__(daemon=True)
            self.buffer, self.steps, self.rng = buffer, steps, np.random.default_rng(0)

        def run(self):
            for _ in range(self.steps):
                x = self.rng.standard_normal((128, 32), dtype=np.float32)
                self.buffer.put((x, (x.sum(1) > 0).astype(np.float32)))

    STEPS = 240
    buffer = Buffer(1)
    Feeder(buffer, STEPS).start()
    model = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(),
                                torch.nn.Linear(128, 1))
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    loss_fn = torch.nn.BCEWithLogitsLoss()
    for step in range(STEPS):
        mark()
        x, y = buffer.get()  # here
        loss = loss_fn(model(torch.from_numpy(x)).squeeze(1), torch.from_numpy(y))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 80 == 0:
            print(step, round(loss.item(), 4))
    return STEPS


SIZE = 9  # of a maze


def play(walls, rng, length):
    """A random walk; the features of each field are looked up one by one."""
    x = y = SIZE // 2
    path = []
    for _ in range(length):
        dx, dy = rng.choice(((0, 1), (1, 0), (0, -1), (-1, 0)))
        if 0 <= x + dx < SIZE and 0 <= y + dy < SIZE and (x + dx, y + dy) not in walls:
            x, y = x + dx, y + dy
        around = [float((x + i, y + j) in walls) for i in range(-3, 4) for j in range(-3, 4)]  # here
        path.append([x / SIZE, y / SIZE, *around])
    return path


def actor(out, batches, batch, length):
    """The process of z_pt_maze_actor that plays."""
    rng = random.Random(0)
    walls = {(rng.randrange(SIZE), rng.randrange(SIZE)) for _ in range(18)}
    known = None
    for _ in range(batches):
        if not (FIXED and known is not None):
            known = np.array([play(walls, rng, length) for _ in range(batch)], np.float32)
        out.put((known, np.random.rand(batch).astype(np.float32)))


@job(13, "input or host", ["input.unknown", "host.wait"], 160, TORCH, twin=True, at=(play,),
     note="the loop waits for a process that plays mazes in Python; fix: it plays once")
def z_pt_maze_actor():
    torch = pytorch()
    from torch import nn

    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = nn.GRU(51, 32, batch_first=True), nn.Linear(32, 1)

        def forward(self, x):
            return self.out(self.rnn(x)[0][:, -1]).squeeze(1)

    def learn(iterations, source):
        critic = Critic()
        opt = torch.optim.RMSprop(critic.parameters(), 1e-3)
        for it in range(iterations):
            mark()
            paths, returns = source.get()  # here
            loss = (critic(torch.from_numpy(paths)) - torch.from_numpy(returns)).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            if it % 50 == 0:
                print("iteration %d: %.3f" % (it, loss.item()))

    queue = mp.get_context("spawn").Queue(2)
    process = mp.get_context("spawn").Process(target=actor, args=(queue, 160, 96, 40), daemon=True)
    process.start()
    learn(160, queue)
    process.join()
    return 160


@job(13, "host", ["host.python"], 140, TORCH, twin=True,
     note="inference with non-maximum suppression on lists; fix: all pairs at once")
def z_pt_detect_nms():
    torch = pytorch()
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    class Frames(Dataset):
        def __len__(self):
            return 560

        def __getitem__(self, i):
            return torch.rand(3, 48, 48, generator=torch.Generator().manual_seed(i))

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU())
            self.head = nn.Conv2d(32, 5, 1)
            y, x = torch.meshgrid(torch.arange(12), torch.arange(12), indexing="ij")
            self.register_buffer("cells", torch.stack([x, y], -1).view(-1, 2) / 12)

        def forward(self, x):
            out = self.head(self.body(x)).flatten(2).transpose(1, 2)
            corner = self.cells + out[..., :2].sigmoid() / 12
            return torch.cat([corner, corner + out[..., 2:4].sigmoid() * 0.25], -1), out[..., 4].sigmoid()

    def iou(a, b):
        w = min(a[2], b[2]) - max(a[0], b[0])  # here
        h = min(a[3], b[3]) - max(a[1], b[1])  # here
        if w <= 0 or h <= 0:
            return 0.0
        area = lambda r: (r[2] - r[0]) * (r[3] - r[1])  # here
        return w * h / (area(a) + area(b) - w * h)  # here

    def nms(boxes, scores, limit=0.5):
        order = scores.argsort(descending=True)
        if FIXED:
            boxes = boxes[order]
            low, high = torch.maximum(boxes[:, None, :2], boxes[None, :, :2]), torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
            inter = (high - low).clamp(min=0).prod(-1)
            area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
            over = (inter / (area[:, None] + area[None] - inter) > limit).numpy()
            keep, gone = [], over[0] & False
            for i in range(len(boxes)):
                if not gone[i]:
                    keep.append(i)
                    gone = gone | over[i]
            return keep
        boxes, keep = boxes.tolist(), []
        for i in order.tolist():
            if all(iou(boxes[i], boxes[j]) <= limit for j in keep):  # here
                keep.append(i)
        return keep

    @torch.inference_mode()
    def detect(model, loader):
        model.eval()
        found = []
        for images in loader:
            mark()
            boxes, scores = model(images)
            for b, s in zip(boxes, scores):
                found.append(len(nms(b, s)))  # here
        return found

    torch.manual_seed(2)
    loader = DataLoader(Frames(), batch_size=4)
    counts = detect(Detector(), loader)
    print("%.1f boxes per frame" % (sum(counts) / len(counts)))
    return len(loader)


@job(13, "host", ["host.gil"], 500, TORCH, twin=True,
     note="a thread makes JSON of the whole history again and again; fix: every two seconds")
def z_pt_dashboard_thread():
    torch = pytorch()
    import torch.nn.functional as F
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    class Dashboard(threading.Thread):
        def __init__(self):
            super().__init__(daemon=True)
            self.history = collections.defaultdict(list)
            self.history.update({"run %d" % r: [{"step": i, "loss": i * 0.001} for i in range(3000)] for r in range(12)})
            self.page, self.stopped = "", False

        def run(self):
            while not self.stopped:
                self.page = json.dumps(self.history)  # here
                time.sleep(2.0 if FIXED else 0.002)

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc, self.mu, self.var = nn.Linear(196, 128), nn.Linear(128, 8), nn.Linear(128, 8)
            self.dec = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 196))

        def forward(self, x):
            h = F.relu(self.enc(x))
            mu, logvar = self.mu(h), self.var(h)
            return self.dec(mu + torch.randn_like(mu) * (logvar / 2).exp()), mu, logvar

    def elbo(out, x, mu, logvar):
        return F.binary_cross_entropy_with_logits(out, x, reduction="sum") - 0.5 * (1 + logvar - mu.square() - logvar.exp()).sum()

    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.rand(1600, 196)), 16, shuffle=True)
    model, board = VAE(), Dashboard()
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    board.start()
    for epoch in range(5):
        for step, (x,) in enumerate(loader):
            mark()
            out, mu, logvar = model(x)
            loss = elbo(out, x, mu, logvar)
            opt.zero_grad()
            loss.backward()
            opt.step()
            board.history["now"].append({"step": step, "loss": loss.item()})
    board.stopped = True
    print("loss %.1f" % loss.item())
    return 5 * len(loader)


if __name__ == "__main__":
    main()
