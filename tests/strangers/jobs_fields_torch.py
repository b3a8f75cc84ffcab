"""Batch 15: PyTorch's loops, on the processor, one thread each."""
import collections
import gc
import logging
import math
import random
import threading
import time

import numpy as np
from stranger import FIXED, FRAMEWORKS, LIBRARIES, TORCH, job, main, mark, pytorch, temporary

HEALTHY = ["compute.cpu", "compute.dense", "compute.dominant-op"]


@job(15, "host", ["host.python", "host.logging"], 60, TORCH, twin=True,
     note="a debug message that nobody sees is a text of all gradients; fix: it is made by the logger. Four batches make a step")
def t_intents_debug():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    logging.basicConfig(level="INFO")
    log = logging.getLogger("intents")

    class Encoder(nn.Module):
        def __init__(self, vocab=3000, dim=64, intents=24):
            super().__init__()
            self.embed = nn.Embedding(vocab, dim, padding_idx=0)
            self.place = nn.Parameter(torch.randn(24, dim) * 0.02)
            layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.1, batch_first=True, norm_first=True)
            self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(dim, intents)

        def forward(self, x):
            return self.head(self.body(self.embed(x) + self.place, src_key_padding_mask=x == 0).mean(1))

    y = torch.randint(24, (16000,))
    x = torch.randint(1, 3000, (16000, 24))
    x[:, 2] = 10 + y
    x[torch.arange(24).expand(16000, -1) >= torch.randint(8, 25, (16000, 1))] = 0
    model = Encoder()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def gradients():
        return {n: p.grad for n, p in model.named_parameters() if p.grad is not None}

    data = torch.utils.data.TensorDataset(x, y)
    batch = right = 0
    for a, b in torch.utils.data.DataLoader(data, batch_size=24, shuffle=True, drop_last=True):
        if batch % 4 == 0:
            mark()
        logits = model(a)
        loss = F.cross_entropy(logits, b) / 4
        loss.backward()
        batch += 1
        if FIXED:
            log.debug("batch %d logits %s gradients %s", batch, logits, gradients())
        else:
            log.debug(f"batch {batch} logits {logits} gradients {gradients()}")  # here
        right += (logits.argmax(1) == b).sum().item()
        if batch % 4 == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
        if batch == 240:
            break
    return 60


@job(15, "host", ["host.python", "host.logging", "host.checkpoint", "host.code"], 1100, LIBRARIES, twin=True,
     note="all of the learning curve is written as CSV after each step; fix: a line is added")
def t_vae_history():
    import pandas as pd
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    path = temporary("curve.csv")

    def sprites(n=6000, size=20):
        x = torch.zeros(n, 1, size, size)
        for i in range(n):
            w, h = 3 + i % 6, 3 + (i // 6) % 6
            a, b = (i * 7) % (size - w), (i * 11) % (size - h)
            x[i, 0, b:b + h, a:a + w] = 1
        return x

    class VAE(nn.Module):
        def __init__(self, latent=8):
            super().__init__()
            self.enc = nn.Sequential(nn.Flatten(), nn.Linear(400, 256), nn.SiLU(), nn.Linear(256, 128), nn.SiLU())
            self.mu, self.logvar = nn.Linear(128, latent), nn.Linear(128, latent)
            self.dec = nn.Sequential(nn.Linear(latent, 128), nn.SiLU(), nn.Linear(128, 256), nn.SiLU(), nn.Linear(256, 400))

        def forward(self, x):
            h = self.enc(x)
            mu, logvar = self.mu(h), self.logvar(h)
            return self.dec(mu + torch.randn_like(mu) * (0.5 * logvar).exp()).view_as(x), mu, logvar

    class Curve:
        """A row for each step."""

        def __init__(self):
            self.table, self.file = pd.DataFrame(), open(path, "w")

        def add(self, **row):
            if FIXED:
                self.file.write(",".join("%.6g" % v for v in row.values()) + "\n")
                return
            self.table = pd.concat([self.table, pd.DataFrame([row])], ignore_index=True)  # here
            self.table.to_csv(path, index=False)  # here

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(sprites()), batch_size=128, shuffle=True, drop_last=True)
    net, curve, step = VAE(), Curve(), 0
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    while step < 1100:
        for (x,) in loader:
            mark()
            recon, mu, logvar = net(x)
            rec = F.binary_cross_entropy_with_logits(recon, x, reduction="sum") / len(x)
            kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
            opt.zero_grad()
            (rec + min(1.0, step / 500) * kl).backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 50.0)
            opt.step()
            curve.add(step=step, rec=rec.item(), kl=kl.item(), norm=norm.item())  # here
            step += 1
            if step == 1100:
                break
    return step


@job(15, "host", ["host.python"], 250, TORCH, twin=True,
     note="negatives are drawn one by one in Python; fix: by numpy. Two optimizers per step")
def t_two_tower():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    USERS, ITEMS, BATCH, NEG = 20_000, 30_000, 1024, 6
    g = np.random.default_rng(0)
    user = g.integers(0, USERS, 300_000)
    item = (g.zipf(1.2, 300_000) * 31 + user % 97) % ITEMS

    class Tower(nn.Module):
        def __init__(self, n, dim=32, out=32):
            super().__init__()
            self.table = nn.Embedding(n, dim, sparse=True)
            self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, out))

        def forward(self, ids):
            e = self.table(ids)
            return F.normalize(e + self.mlp(e), dim=-1)

    class Sampler:
        def __init__(self):
            self.rng = np.random.default_rng(1)
            self.seen = [set() for _ in range(USERS)]
            for u, i in zip(user.tolist(), item.tolist()):
                self.seen[u].add(i)
            self.keys = np.unique(user.astype(np.int64) * ITEMS + item)

        def negatives(self, users):
            out = np.empty((len(users), NEG), np.int64)
            for r, u in enumerate(users.tolist()):
                seen = self.seen[u]
                for c in range(NEG):  # here
                    j = int(self.rng.integers(ITEMS))  # here
                    while j in seen:  # here
                        j = int(self.rng.integers(ITEMS))  # here
                    out[r, c] = j  # here
            return out

        def negatives_fast(self, users):
            out = self.rng.integers(0, ITEMS, (len(users), NEG))
            key = users[:, None] * ITEMS + out
            at = np.searchsorted(self.keys, key).clip(max=len(self.keys) - 1)
            bad = self.keys[at] == key
            out[bad] = self.rng.integers(0, ITEMS, int(bad.sum()))
            return out

    user_tower, item_tower, sampler = Tower(USERS), Tower(ITEMS), Sampler()
    dense = list(user_tower.mlp.parameters()) + list(item_tower.mlp.parameters())
    both = (torch.optim.SparseAdam([user_tower.table.weight, item_tower.table.weight], lr=5e-3), torch.optim.Adam(dense, lr=1e-3))
    order = np.random.default_rng(2).permutation(len(user))
    draw = sampler.negatives_fast if FIXED else sampler.negatives
    for step in range(250):
        mark()
        rows = order[(step * BATCH) % (len(order) - BATCH):][:BATCH]
        negatives = draw(user[rows])  # here
        u = user_tower(torch.from_numpy(user[rows]))
        cand = torch.cat([torch.from_numpy(item[rows])[:, None], torch.from_numpy(negatives)], 1)
        scores = (u.unsqueeze(1) * item_tower(cand)).sum(-1) / 0.1
        loss = F.cross_entropy(scores, torch.zeros(len(rows), dtype=torch.long))
        for o in both:
            o.zero_grad()
        loss.backward()
        for o in both:
            o.step()
    return 250


@job(15, "host", ["host.python"], 80, TORCH, twin=True, says=r"garbage|gc\.collect",
     note="garbage is collected after each step, with 300,000 objects in memory; fix: when Python wants to")
def t_products_metric():
    import dataclasses
    torch = pytorch()
    nn = torch.nn

    @dataclasses.dataclass
    class Record:
        sku: str
        family: int
        tags: list
        price: dict

    words = ["red", "blue", "wood", "steel", "small", "large", "kitchen", "garden"]
    catalogue = [Record("SKU%07d" % i, i % 64, random.sample(words, 3), {"eur": [i % 100, 99], "usd": [i % 110, 49]})
                 for i in range(60_000)]
    base = torch.randn(64, 3, 24, 24)
    label = torch.arange(64).repeat_interleave(40)
    pictures = base[label] + 0.7 * torch.randn(len(label), 3, 24, 24)
    order = [int(f) * 40 + int(i) for _ in range(80) for f in torch.randperm(64)[:16] for i in torch.randperm(40)[:4]]
    net = nn.Sequential(nn.Conv2d(3, 12, 3, 1, 1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 24, 3, 1, 1),
                        nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(96, 64))
    opt = torch.optim.RMSprop(net.parameters(), lr=3e-4)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(pictures, label), batch_size=64, sampler=order)
    steps = 0
    for x, y in loader:
        mark()
        e = nn.functional.normalize(net(x))
        near = e @ e.T
        same = y[:, None] == y[None]
        loss = (near.masked_fill(same, -1).amax(1) - near.masked_fill(~same, 1).amin(1) + 0.1).relu().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps += 1
        if not FIXED:
            del e, loss
            gc.collect()  # here
    print(len(catalogue))
    return steps


@job(15, "host", ["host.lock"], 500, TORCH, twin=True, never="workers? instead of",
     note="a thread holds the lock of the replay buffer while it waits for the game; fix: only while it stores")
def t_dqn_actor():
    import multiprocessing
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional

    def game(conn):
        rng = np.random.default_rng(0)
        pos, ball, vel = 0.5, rng.random(2), np.array([0.03, 0.02])
        while (action := conn.recv()) is not None:
            time.sleep(1 / 160)
            pos = min(1.0, max(0.0, pos + (action - 1) * 0.04))
            ball = ball + vel
            vel = np.where((ball < 0) | (ball > 1), -vel, vel)
            conn.send((np.array([pos, *ball, *vel], np.float32), float(abs(pos - ball[0]) < 0.15)))

    class Replay:
        def __init__(self):
            self.items, self.lock = collections.deque(maxlen=50_000), threading.Lock()

        def sample(self, n):
            with self.lock:  # here
                picked = random.sample(self.items, n)
            s, a, r, s2 = map(np.array, zip(*picked))
            return torch.from_numpy(s), torch.from_numpy(a), torch.from_numpy(r.astype("float32")), torch.from_numpy(s2)

    class QNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(5, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
            self.value, self.adv = nn.Linear(256, 1), nn.Linear(256, 3)

        def forward(self, x):
            h = self.net(x)
            a = self.adv(h)
            return self.value(h) + a - a.mean(-1, keepdim=True)

    class Actor(threading.Thread):
        def __init__(self):
            super().__init__(daemon=True)
            self.frames, self.stop = 0, False

        @torch.no_grad()
        def play(self, s):
            far = random.random() < max(0.05, 1 - self.frames / 1500)
            a = random.randrange(3) if far else int(q(torch.from_numpy(s)).argmax())
            here.send(a)
            s2, r = here.recv()  # here
            return a, r, s2

        def run(self):
            s = np.zeros(5, np.float32)
            while not self.stop:
                if FIXED:
                    a, r, s2 = self.play(s)
                    with replay.lock:
                        replay.items.append((s, a, r, s2))
                else:
                    with replay.lock:  # here
                        a, r, s2 = self.play(s)  # here
                        replay.items.append((s, a, r, s2))
                    time.sleep(0)
                s = s2
                self.frames += 1
            here.send(None)

    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=game, args=(there,), daemon=True)
    process.start()
    q, target, replay = QNet(), QNet(), Replay()
    target.load_state_dict(q.state_dict())
    actor = Actor()
    actor.start()
    while actor.frames < 200:
        time.sleep(0.05)
    opt = torch.optim.Adam(q.parameters(), lr=3e-4)
    for i in range(500):
        mark()
        s, a, r, s2 = replay.sample(256)  # here
        with torch.no_grad():
            goal = r + 0.99 * target(s2).gather(1, q(s2).argmax(1, keepdim=True)).squeeze(1)
        loss = F.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), goal)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q.parameters(), 10)
        opt.step()
        if i % 200 == 199:
            target.load_state_dict(q.state_dict())
    actor.stop = True
    actor.join()
    process.join()
    return 500


@job(15, "compute or input", [*HEALTHY, "input.map", "input.decode"], 150, FRAMEWORKS,
     never_first=r"evaluation|tf\.data",
     note="a resumed job takes 300 batches from its loader to skip them, half of its run; fix: the sampler skips them")
def t_resume_yolo():
    from PIL import Image, ImageDraw, ImageEnhance
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    SIZE, SKIP, STEPS = 64, 300, 150

    class Boxes(torch.utils.data.Dataset):
        def __len__(self):
            return 12000

        def __getitem__(self, i):
            g = np.random.default_rng(i)
            img = Image.fromarray(g.integers(0, 255, (96, 96, 3), np.uint8)).resize((SIZE, SIZE), Image.BICUBIC)  # here
            w, h = g.integers(10, 30, 2)
            x, y = g.integers(0, SIZE - w), g.integers(0, SIZE - h)
            ImageDraw.Draw(img).rectangle([x, y, x + w, y + h], fill=tuple(g.integers(100, 255, 3).tolist()))
            img = ImageEnhance.Contrast(img).enhance(float(g.uniform(0.6, 1.4)))
            box = torch.tensor([x + w / 2, y + h / 2, w, h], dtype=torch.float32) / SIZE
            return torch.from_numpy(np.array(img)).permute(2, 0, 1).float() / 255, box

    c = [3, 16, 32, 64]
    net = nn.Sequential(*[m for a, b in zip(c, c[1:]) for m in (nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.SiLU(),
                                                                nn.Conv2d(b, b, 3, 1, 1), nn.BatchNorm2d(b), nn.SiLU())],
                        nn.Conv2d(64, 5, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)

    def criterion(out, box):
        cell = (box[:, :2] * 8).long().clamp(0, 7)
        at = cell[:, 1] * 8 + cell[:, 0]
        picked = out[torch.arange(len(out)), at, 1:].sigmoid()
        return F.binary_cross_entropy_with_logits(out[..., 0], F.one_hot(at, 64).float()) * 10 + F.l1_loss(picked, box)

    order = torch.randperm(12000, generator=torch.Generator().manual_seed(77)).tolist()
    data = torch.utils.data.Subset(Boxes(), order[SKIP * 16 if FIXED else 0:])
    done = 0
    for step, (img, box) in enumerate(torch.utils.data.DataLoader(data, batch_size=16, num_workers=1, drop_last=True)):  # here
        if not FIXED and step < SKIP:
            continue  # here
        mark()
        loss = criterion(net(img).flatten(2).transpose(1, 2), box)
        opt.zero_grad()
        loss.backward()
        opt.step()
        done += 1
        if done == STEPS:
            break
    return done


@job(15, "host", ["host.launch", "host.python"], 120, TORCH, twin=True,
     note="the cells of an LSTM are stepped in Python; fix: PyTorch's LSTM. On the processor, that time is within PyTorch's ops")
def t_load_forecast():
    torch = pytorch()
    nn = torch.nn
    torch.manual_seed(0)
    PAST, AHEAD, HIDDEN = 96, 8, 32
    t = torch.arange(60_000) / 96
    day, week = torch.sin(2 * math.pi * t), torch.sin(2 * math.pi * t / 7)
    x = torch.stack([10 * day + 4 * week + torch.randn(60_000), day, week, torch.randn(60_000).cumsum(0) * 0.01], 1)
    windows = ((x - x.mean(0)) / x.std(0)).unfold(0, PAST + AHEAD, 1).transpose(1, 2)

    class CellNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.ModuleList([nn.LSTMCell(4, HIDDEN), nn.LSTMCell(HIDDEN, HIDDEN)])

        def forward(self, x):
            state = [(x.new_zeros(len(x), HIDDEN), x.new_zeros(len(x), HIDDEN)) for _ in self.cells]
            for t in range(x.shape[1]):
                h = x[:, t]
                for k, cell in enumerate(self.cells):  # here
                    state[k] = cell(h, state[k])  # here
                    h = state[k][0]
            return h

    class FusedNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(4, HIDDEN, 2, batch_first=True)

        def forward(self, x):
            return self.rnn(x)[0][:, -1]

    body, head = (FusedNet if FIXED else CellNet)(), nn.Linear(HIDDEN, AHEAD * 3)
    parameters = [*body.parameters(), *head.parameters()]
    opt = torch.optim.Adam(parameters, lr=2e-3)
    q = torch.tensor([0.1, 0.5, 0.9])
    for _ in range(120):
        mark()
        w = windows[torch.randint(len(windows), (16,))]
        pred = w[:, PAST - 1:PAST, :1] + head(body(w[:, :PAST])).view(-1, AHEAD, 3)  # here
        e = w[:, PAST:, 0].unsqueeze(-1) - pred
        opt.zero_grad()
        torch.maximum(q * e, (q - 1) * e).mean().backward()  # here
        nn.utils.clip_grad_norm_(parameters, 1.0)
        opt.step()
    return 120


@job(15, "host or compute", ["host.alloc", "host.code", "host.python", "host.launch", "compute.cpu", "compute.dominant-op"], 100,
     TORCH, twin=True,
     note="the attention's bias is made anew in each layer, for each sample and head, a fifth of a step; fix: once")
def t_alibi_masks():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    LENGTH, HEADS, DIM, RESIDUES = 128, 8, 64, 26
    cache = {}

    def alibi(batch, length):
        slopes = 2.0 ** -torch.arange(1, HEADS + 1)
        bias = torch.zeros(batch, HEADS, length, length)  # here
        for b in range(batch):
            for h in range(HEADS):
                distance = (torch.arange(length)[None, :] - torch.arange(length)[:, None]).abs().float()  # here
                bias[b, h] = -slopes[h] * distance  # here
        return bias

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

        def forward(self, x, pad):
            b, n, _ = x.shape
            q, k, v = self.qkv(x).view(b, n, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
            if FIXED and n not in cache:
                cache[n] = alibi(1, n)
            bias = cache[n] if FIXED else alibi(b, n)  # here
            score = (q @ k.transpose(-1, -2) / (DIM // HEADS) ** 0.5 + bias).masked_fill(pad[:, None, None], float("-inf"))
            return self.out((score.softmax(-1) @ v).transpose(1, 2).reshape(b, n, DIM))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2, self.att = nn.LayerNorm(DIM), nn.LayerNorm(DIM), Attention()
            self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

        def forward(self, x, pad):
            x = x + self.att(self.n1(x), pad)
            return x + self.mlp(self.n2(x))

    class ProteinLM(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(RESIDUES, DIM), nn.Linear(DIM, RESIDUES)
            self.blocks = nn.ModuleList(Block() for _ in range(3))

        def forward(self, x):
            h = self.embed(x)
            for block in self.blocks:
                h = block(h, x == 0)
            return self.head(h)

    data = torch.randint(3, RESIDUES, (600, LENGTH))
    data[torch.arange(LENGTH).expand(600, -1) >= torch.randint(LENGTH // 2, LENGTH + 1, (600, 1))] = 0
    net = ProteinLM()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(100):
        mark()
        x = data[torch.randint(len(data), (8,))]
        hide = (torch.rand(x.shape) < 0.15) & (x != 0)
        loss = F.cross_entropy(net(x.masked_fill(hide, 1))[hide], x[hide])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return 100


if __name__ == "__main__":
    main()
