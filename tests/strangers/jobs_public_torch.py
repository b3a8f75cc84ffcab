"""Batch 32: PyTorch's loops as public repositories have them, on the processor, one thread each.

Speech, diffusion, detection, a masked language model, and a graph.
"""
import copy
import math
import random
import re

import numpy as np
from stranger import FIXED, TORCH, job, main, mark, pytorch, temporary

HEALTHY = ["compute.cpu", "compute.dense", "compute.dominant-op"]


@job(32, "input", ["input.batch", "input.map", "input.decode"], 60, TORCH, twin=True,
     note="the collate function makes both spectrograms of each clip in the main process; fix: they lie beside the clips")
def s_pt_tts_mels():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    RATE, HOP, WIN, MELS, BATCH, CLIPS = 16000, 200, 800, 80, 16, 512

    class Audio:
        """What turns clips into features: in NumPy, one clip at a time."""

        def __init__(self):
            hz = np.linspace(0, RATE / 2, WIN // 2 + 1)
            mel = 2595 * np.log10(1 + hz / 700)
            centre = np.linspace(0, mel[-1], MELS + 2)[1:-1, None]
            self.basis = np.maximum(0, 1 - np.abs(mel[None] - centre) / (mel[-1] / (MELS + 1))).astype(np.float32)
            self.window = np.hanning(WIN).astype(np.float32)

        def stft(self, y):
            y = np.append(y[0], y[1:] - 0.97 * y[:-1])  # here
            y = np.pad(y, WIN // 2, mode="reflect")
            frames = np.lib.stride_tricks.sliding_window_view(y, WIN)[::HOP]  # here
            return np.abs(np.fft.rfft(frames * self.window, axis=1)).T  # here

        def to_db(self, s):
            return np.clip((20 * np.log10(np.maximum(1e-5, s)) + 80) / 100, 0, 1)

        def melspectrogram(self, y):
            return self.to_db(self.basis @ self.stft(y))  # here

        def spectrogram(self, y):
            return self.to_db(self.stft(y))  # here

    class Clips(torch.utils.data.Dataset):
        def __init__(self, ap):
            g = np.random.default_rng(0)
            self.ap, self.items = ap, []
            for i in range(CLIPS):
                n = int(g.integers(6000, 16000))
                wav = np.sin(np.cumsum(g.uniform(0.05, 0.4, n))).astype(np.float32)
                text = g.integers(1, 60, n // 1200)
                self.items.append((text, wav))
            self.features = [(ap.melspectrogram(w), ap.spectrogram(w)) for _, w in self.items[:64]] * 8 if FIXED else None

        def __len__(self):
            return CLIPS

        def __getitem__(self, i):
            return (*self.items[i], self.features[i % 64] if FIXED else None)

        def collate(self, batch):
            batch.sort(key=lambda item: -len(item[0]))
            if FIXED:
                mel, linear = zip(*[f for _, _, f in batch])
            else:
                mel = [self.ap.melspectrogram(w).astype("float32") for _, w, _ in batch]  # here
                linear = [self.ap.spectrogram(w).astype("float32") for _, w, _ in batch]  # here
            frames = 16000 // HOP + 1
            text = np.stack([np.pad(t, (0, 20 - len(t))) for t, _, _ in batch])
            def pad(parts):
                return torch.from_numpy(np.stack([np.pad(p, ((0, 0), (0, frames - p.shape[1]))) for p in parts]).astype("float32"))
            return torch.from_numpy(text), pad(mel), pad(linear), torch.tensor([m.shape[1] for m in mel])

    class Tacotron(nn.Module):
        def __init__(self, dim=64):
            super().__init__()
            self.embed = nn.Embedding(60, dim)
            self.encoder = nn.GRU(dim, dim // 2, batch_first=True, bidirectional=True)
            self.attention = nn.MultiheadAttention(dim, 4, batch_first=True)
            self.prenet = nn.Linear(MELS, dim)
            self.decoder = nn.GRU(dim, dim, batch_first=True)
            self.mel, self.postnet = nn.Linear(dim, MELS), nn.Linear(MELS, WIN // 2 + 1)

        def forward(self, text, mel):
            memory, _ = self.encoder(self.embed(text))
            shifted = F.pad(mel.transpose(1, 2), (0, 0, 1, 0))[:, :-1]
            h = self.prenet(shifted).relu()
            h = h + self.attention(h, memory, memory, need_weights=False)[0]
            out = self.mel(self.decoder(h)[0])
            return out, self.postnet(out)

    data = Clips(Audio())
    net = Tacotron()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) / 40, (40 / (s + 1)) ** 0.5))
    loader = torch.utils.data.DataLoader(data, BATCH, shuffle=True, drop_last=True, collate_fn=data.collate)
    step, average = 0, None
    while step < 60:
        for text, mel, linear, lengths in loader:  # here
            mark()
            out, post = net(text, mel)
            keep = (torch.arange(mel.shape[2])[None] < lengths[:, None]).unsqueeze(-1).float()
            loss = ((out - mel.transpose(1, 2)).abs() * keep).mean() + ((post - linear.transpose(1, 2)).abs() * keep).mean()
            opt.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            schedule.step()
            average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
            step += 1
            if step % 20 == 0:
                print("step %d loss %.4f norm %.3f lr %.5f" % (step, average, norm, schedule.get_last_lr()[0]))
            if step == 60:
                break
    return step


@job(32, "host", ["host.python", "host.code", "host.alloc", "host.launch", "host.copy"], 200, TORCH, twin=True,
     note="the average of the weights goes through three state_dicts and a deep copy, half of a step; fix: lerp of all, in place")
def s_pt_ema_copy():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.norm, self.fc1, self.fc2 = nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
            self.scale, self.shift = nn.Linear(dim, dim), nn.Linear(dim, dim)

        def forward(self, x, t):
            h = self.norm(x) * (1 + self.scale(t)) + self.shift(t)
            return x + self.fc2(F.silu(self.fc1(h)))

    class Denoiser(nn.Module):
        def __init__(self, dim=128, depth=10):
            super().__init__()
            self.inp, self.time, self.out = nn.Linear(64, dim), nn.Linear(32, dim), nn.Linear(dim, 64)
            self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))

        def forward(self, x, t):
            f = torch.exp(-math.log(1e4) * torch.arange(16) / 16)
            angle = t[:, None].float() * f
            t, h = self.time(torch.cat([angle.sin(), angle.cos()], 1)), self.inp(x)
            for block in self.blocks:
                h = block(h, t)
            return self.out(h)

    class EMA:
        """The weights' moving average, kept as a model for sampling."""

        def __init__(self, model, decay=0.999):
            self.model, self.decay, self.updates = copy.deepcopy(model).eval(), decay, 0
            self.pairs = ([p for p in self.model.parameters()], [p for p in model.parameters()])

        @torch.no_grad()
        def update(self, model):
            self.updates += 1
            d = min(self.decay, (1 + self.updates) / (10 + self.updates))
            if FIXED:
                torch._foreach_lerp_(*self.pairs, 1 - d)
                return
            source = copy.deepcopy(model).state_dict()  # here
            average = self.model.state_dict()  # here
            for name, value in source.items():  # here
                average[name] = average[name] * d + value.detach().clone() * (1 - d)  # here
            self.model.load_state_dict(average)  # here

    class Diffusion:
        def __init__(self, steps=400):
            self.steps = steps
            self.keep = torch.cumprod(1 - torch.linspace(1e-4, 0.03, steps), 0)

        def noised(self, x):
            t = torch.randint(0, self.steps, (len(x),))
            noise = torch.randn_like(x)
            a = self.keep[t][:, None]
            return a.sqrt() * x + (1 - a).sqrt() * noise, t, noise

    data = torch.randn(8, 64)[torch.randint(8, (20_000,))] + 0.1 * torch.randn(20_000, 64)
    net, diffusion = Denoiser(), Diffusion()
    ema = EMA(net)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, foreach=True)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), 16, shuffle=True, drop_last=True)
    step = 0
    for (x,) in loader:
        mark()
        noisy, t, noise = diffusion.noised(x)
        loss = F.mse_loss(net(noisy, t), noise)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        ema.update(net)  # here
        step += 1
        if step % 100 == 0:
            print("step %d loss %.4f" % (step, loss.item()))
        if step == 200:
            break
    return step


@job(32, "compute or host", [*HEALTHY, "host.python"], 160, TORCH, says=r"(?i)validat|evaluat|outside|between",
     note="each epoch's mAP is made box by box in Python, more than half of the run; its steps only compute. Fix: matrices of IoU")
def s_pt_detect_map():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    SIZE, GRID, CLASSES, EPOCHS = 64, 8, 6, 4

    def scene(n, seed):
        g = np.random.default_rng(seed)
        x = g.normal(0, 0.1, (n, 3, SIZE, SIZE)).astype("float32")
        target, boxes = np.zeros((n, 5 + CLASSES, GRID, GRID), "float32"), []
        for i in range(n):
            own = []
            for _ in range(g.integers(2, 6)):
                w, h = g.integers(8, 24, 2)
                a, b, c = g.integers(0, SIZE - w), g.integers(0, SIZE - h), g.integers(CLASSES)
                x[i, c % 3, b:b + h, a:a + w] += 0.5 + c / 6
                cx, cy = int((a + w / 2) * GRID / SIZE), int((b + h / 2) * GRID / SIZE)
                target[i, :5, cy, cx] = 1, (a + w / 2) / SIZE, (b + h / 2) / SIZE, w / SIZE, h / SIZE
                target[i, 5:, cy, cx] = np.eye(CLASSES)[c]
                own.append((c, a, b, a + w, b + h))
            boxes.append(own)
        return torch.from_numpy(x), torch.from_numpy(target), boxes

    def iou(a, b):
        w = min(a[2], b[2]) - max(a[0], b[0])  # here
        h = min(a[3], b[3]) - max(a[1], b[1])  # here
        if w <= 0 or h <= 0:
            return 0.0
        return w * h / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h)  # here

    def ious(a, b):
        low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
        inter = (high - low).clip(0).prod(-1)
        area = [(m[:, 2] - m[:, 0]) * (m[:, 3] - m[:, 1]) for m in (a, b)]
        return inter / (area[0][:, None] + area[1][None] - inter)

    def match_slow(found, truth, limit):
        taken, hits = set(), []
        for box in found:
            best, at = 0.0, -1
            for j, t in enumerate(truth):  # here
                if j in taken:  # here
                    continue
                o = iou(box, t)  # here
                if o > best:
                    best, at = o, j
            hits.append(best >= limit)
            if best >= limit:
                taken.add(at)
        return hits

    def match_fast(found, truth, limit):
        if not len(found) or not len(truth):
            return [False] * len(found)
        return (ious(np.array(found), np.array(truth)).max(1) >= limit).tolist()

    class MeanAP:
        def __init__(self):
            self.found, self.truth = [], []

        def update(self, out, boxes):
            p = out.sigmoid().numpy()
            for i in range(len(p)):
                at = np.argsort(-p[i, 0].ravel())[:40]
                x, y, w, h = p[i, 1:5].reshape(4, -1)[:, at] * SIZE
                self.found.append((p[i, 5:].argmax(0).ravel()[at], np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], 1)))
                self.truth.append(boxes[i])

        def compute(self):
            match, hits = (match_fast if FIXED else match_slow), 0
            for limit in np.arange(0.5, 1.0, 0.05):
                for (classes, found), truth in zip(self.found, self.truth):
                    for c in range(CLASSES):
                        mine = [t[1:] for t in truth if t[0] == c]
                        if mine:
                            hits += sum(match(found[classes >= 0].tolist(), mine, limit))  # here
            return hits

    c = [3, 16, 32, 48]
    net = nn.Sequential(*[m for a, b in zip(c, c[1:]) for m in (nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.SiLU(),
                                                                nn.Conv2d(b, b, 3, 1, 1), nn.BatchNorm2d(b), nn.SiLU())],
                        nn.Conv2d(48, 5 + CLASSES, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS)
    x, target, _ = scene(640, 0)
    val_x, _, val_boxes = scene(96, 1)
    best, steps = -1, 0
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, target), 16, shuffle=True, drop_last=True)
    for epoch in range(EPOCHS):
        net.train()
        for img, goal in loader:
            mark()
            out = net(img)
            obj = F.binary_cross_entropy_with_logits(out[:, 0], goal[:, 0])
            m = goal[:, 0] > 0
            box = F.l1_loss(out.permute(0, 2, 3, 1)[m][:, 1:5].sigmoid(), goal.permute(0, 2, 3, 1)[m][:, 1:5])
            cls = F.binary_cross_entropy_with_logits(out.permute(0, 2, 3, 1)[m][:, 5:], goal.permute(0, 2, 3, 1)[m][:, 5:])
            opt.zero_grad()
            (10 * obj + box + cls).backward()
            opt.step()
            steps += 1
        schedule.step()
        net.eval()
        metric = MeanAP()
        with torch.no_grad():
            for i in range(0, len(val_x), 16):
                metric.update(net(val_x[i:i + 16]), val_boxes[i:i + 16])
        score = metric.compute()  # here
        print("epoch %d mAP %d" % (epoch, score))
        if score > best:
            best = score
            torch.save({"model": net.state_dict(), "epoch": epoch}, temporary("best.pt"))
    return steps


@job(32, "input", ["input.batch", "input.map", "input.decode", "input.generator"], 120, TORCH, twin=True,
     note="the collate function of the only worker splits texts into pieces; fix: token ids are stored. Two batches make a step")
def s_pt_mlm_tokens():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    LENGTH, VOCAB = 48, 1500
    g = random.Random(0)
    pieces = ["".join(g.choice("etaoinshrdlcu") for _ in range(g.randint(1, 4))) for _ in range(VOCAB)]
    vocab = {p: i + 5 for i, p in enumerate(dict.fromkeys(pieces))}

    class WordPiece:
        """Longest piece first, as BERT's slow tokenizer does it."""
        words = re.compile(r"\w+|[^\w\s]")

        def __init__(self):
            self.calls = 0

        def pieces_of(self, word):
            out, start = [], 0
            while start < len(word):
                end = len(word)
                while end > start and word[start:end] not in vocab:  # here
                    end -= 1
                if end == start:
                    return [1]
                out.append(vocab[word[start:end]])
                start = end
            return out

        def __call__(self, text):
            ids = [2]
            for word in self.words.findall(text.lower()):  # here
                ids += self.pieces_of(word)  # here
            return (ids[:LENGTH - 1] + [3] + [0] * LENGTH)[:LENGTH]

    texts = [" ".join("".join(g.choice(pieces) for _ in range(g.randint(1, 4))) for _ in range(800)) for _ in range(500)]
    tokenizer = WordPiece()

    class Texts(torch.utils.data.Dataset):
        def __init__(self):
            self.ids = [tokenizer(t) for t in texts] if FIXED else None

        def __len__(self):
            return 40_000

        def __getitem__(self, i):
            return self.ids[i % 500] if FIXED else texts[i % 500]

    class MaskingCollator:
        def __call__(self, rows):
            x = torch.tensor(rows if FIXED else [tokenizer(t) for t in rows])  # here
            labels = x.clone()
            masked = (torch.rand(x.shape) < 0.15) & (x > 4)
            labels[~masked] = -100
            x[masked] = 4
            return {"input_ids": x, "labels": labels}

    class Bert(nn.Module):
        def __init__(self, dim=64):
            super().__init__()
            self.embed, self.place = nn.Embedding(VOCAB + 5, dim), nn.Parameter(torch.randn(LENGTH, dim) * 0.02)
            layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
            self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
            self.head = nn.Linear(dim, VOCAB + 5)

        def forward(self, input_ids, labels):
            hidden = self.body(self.embed(input_ids) + self.place)
            keep = labels != -100
            return F.cross_entropy(self.head(hidden[keep]), labels[keep])

    net, steps, total = Bert(), 0, 0.0
    opt = torch.optim.AdamW(net.parameters(), lr=5e-4, weight_decay=0.01)
    loader = torch.utils.data.DataLoader(Texts(), 24, shuffle=True, num_workers=1, collate_fn=MaskingCollator(), drop_last=True)
    for micro, batch in enumerate(loader):  # here
        if micro % 2 == 0:
            mark()
        loss = net(**batch) / 2
        loss.backward()
        total += loss.detach()
        if micro % 2 == 1:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            steps += 1
            if steps % 50 == 0:
                print("step %d loss %.3f" % (steps, float(total) / 50))
                total = 0.0
            if steps == 120:
                break
    return steps


@job(32, "host or input", ["host.python", "input.generator", "input.map", "input.unknown"], 150, TORCH, twin=True,
     note="two hops of neighbours are drawn node by node in Python, in the loop; fix: by NumPy from a table of rows")
def s_pt_sage_sampler():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    NODES, FEATURES, CLASSES, FAN = 40_000, 64, 16, (8, 6)
    g = np.random.default_rng(0)
    source = np.sort(g.integers(0, NODES, 600_000))
    target = (source + g.zipf(1.5, 600_000) * 17) % NODES
    start = np.searchsorted(source, np.arange(NODES + 1))
    x = torch.randn(NODES, FEATURES)
    y = torch.randint(CLASSES, (NODES,))

    class NeighborSampler:
        def __init__(self):
            self.lists = {n: target[start[n]:start[n + 1]].tolist() for n in range(NODES)}
            self.random = random.Random(0)

        def hop(self, nodes, fan):
            rows, cols = [], []
            where = {n: i for i, n in enumerate(nodes)}
            for i, n in enumerate(nodes):  # here
                near = self.lists[n]
                for m in (near if len(near) <= fan else self.random.sample(near, fan)):  # here
                    if m not in where:  # here
                        where[m] = len(where)  # here
                    rows.append(i)  # here
                    cols.append(where[m])  # here
            return list(where), torch.tensor([rows, cols])  # here

        def hop_fast(self, nodes, fan):
            nodes = np.asarray(nodes)
            first, count = start[nodes], start[nodes + 1] - start[nodes]
            picked = target[np.minimum(first[:, None] + (g.random((len(nodes), fan)) * count[:, None]).astype(int), 599_999)]
            rows = np.repeat(np.arange(len(nodes)), fan)
            new, at = np.unique(picked.ravel(), return_inverse=True)
            return np.concatenate([nodes, new]), torch.from_numpy(np.stack([rows, len(nodes) + at]))

        def __call__(self, seeds):
            nodes, blocks = seeds.tolist(), []
            for fan in FAN:
                size = len(nodes)
                nodes, edges = (self.hop_fast if FIXED else self.hop)(nodes, fan)  # here
                blocks.append((size, edges))
            return torch.as_tensor(np.asarray(nodes)), blocks[::-1]

    class Sage(nn.Module):
        def __init__(self, dim=96):
            super().__init__()
            sizes = [FEATURES, dim, CLASSES]
            self.own = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
            self.near = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in zip(sizes, sizes[1:]))

        def forward(self, h, blocks):
            for k, (size, (rows, cols)) in enumerate(blocks):
                mean = h.new_zeros(size, h.shape[1]).index_add(0, rows, h[cols])
                count = h.new_zeros(size).index_add(0, rows, h.new_ones(len(rows))).clamp(min=1)
                h = self.own[k](h[:size]) + self.near[k](mean / count[:, None])
                if k == 0:
                    h = F.dropout(h.relu(), 0.3, self.training)
            return h

    net, sampler = Sage(), NeighborSampler()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    steps, right, seen = 0, 0, 0
    for epoch in range(3):
        order = torch.randperm(NODES)[:50 * 256].view(50, 256)
        net.train()
        for seeds in order:
            mark()
            nodes, blocks = sampler(seeds)  # here
            out = net(x[nodes], blocks)
            loss = F.cross_entropy(out, y[seeds])
            opt.zero_grad()
            loss.backward()
            opt.step()
            right += int((out.argmax(1) == y[seeds]).sum())
            seen += len(seeds)
            steps += 1
        print("epoch %d accuracy %.3f" % (epoch, right / seen))
    return steps


if __name__ == "__main__":
    main()
