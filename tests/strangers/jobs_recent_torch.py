"""Batch 34: adapters, features of a frame, graphs' requests and two ranks in PyTorch, on the processor."""
import math
import os
import queue
import random
import threading
import time
from multiprocessing import get_context

import numpy as np
from stranger import FIXED, LIBRARIES, TORCH, finish, job, main, mark, pytorch, temporary, thread

HEALTHY = ["compute.cpu", "compute.dense", "compute.dominant-op"]


@job(34, "compute or host", [*HEALTHY, "host.code", "host.python", "host.alloc"], 60, TORCH, twin=True,
     note="adapters on a frozen model of 4 bits, which is decoded in each of its layers for each small batch, most of the "
          "step; fix: decoded once. Four batches make a step")
def s_pt_nf4_adapters():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    DIM, LAYERS, HEADS, VOCABULARY, LENGTH, RANK, BLOCK, ACCUMULATE, STEPS = 256, 3, 4, 500, 32, 8, 64, 4, 60
    LEVELS = torch.tensor(np.sort(np.random.default_rng(1).standard_normal(16)).astype("f4"))

    class FourBit(nn.Module):
        """Codes of 4 bits, two to a byte, and a scale for each block."""

        def __init__(self, inputs, outputs):
            super().__init__()
            weight = torch.randn(outputs, inputs) / math.sqrt(inputs)
            blocks = weight.view(-1, BLOCK)
            scale = blocks.abs().amax(1, keepdim=True)
            codes = torch.bucketize(blocks / scale, LEVELS / LEVELS.abs().max()).clamp(max=15).to(torch.uint8).view(-1)
            self.register_buffer("packed", codes[::2] << 4 | codes[1::2])
            self.register_buffer("scale", scale)
            self.shape, self.kept = (outputs, inputs), None

        def decode(self):
            high, low = self.packed >> 4, self.packed & 15  # here
            codes = torch.stack([high, low], 1).view(-1).long()  # here
            values = (LEVELS / LEVELS.abs().max())[codes]  # here
            return (values.view(-1, BLOCK) * self.scale).view(self.shape)  # here

        def weight(self):
            if not FIXED:
                return self.decode()  # here
            if self.kept is None:
                self.kept = self.decode()
            return self.kept

        def forward(self, x):
            return F.linear(x, self.weight())  # here

    class Adapted(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.base = FourBit(inputs, outputs)
            self.a = nn.Parameter(torch.randn(RANK, inputs) * 0.02)
            self.b = nn.Parameter(torch.zeros(outputs, RANK))

        def forward(self, x):
            return self.base(x) + (x @ self.a.T @ self.b.T) * 2  # here

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
            self.qkv, self.out = Adapted(DIM, 3 * DIM), Adapted(DIM, DIM)
            self.up, self.down = Adapted(DIM, 4 * DIM), Adapted(4 * DIM, DIM)

        def forward(self, x):
            b, n, _ = x.shape
            q, k, v = self.qkv(self.n1(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(b, n, DIM))
            return x + self.down(F.gelu(self.up(self.n2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.norm = nn.Embedding(VOCABULARY, DIM).requires_grad_(False), nn.LayerNorm(DIM)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))

        def forward(self, ids):
            x = self.embed(ids)
            for block in self.blocks:
                x = block(x)
            return self.norm(x) @ self.embed.weight.T

    def loss_of(ids):
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    @torch.no_grad()
    def evaluate():
        model.eval()
        total = sum(float(loss_of(ids)) for ids in held_out.split(1)) / 8
        model.train()
        return total

    corpus = torch.randint(0, VOCABULARY, (600, LENGTH)).cumsum(1) % VOCABULARY
    held_out, corpus = corpus[:8], corpus[8:]
    model = Model()
    learnt = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=3e-4)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1, s / 10) * 0.5 * (1 + math.cos(math.pi * s / STEPS)))
    order = torch.randperm(len(corpus))
    best, batches = math.inf, iter(torch.utils.data.DataLoader(corpus[order], batch_size=1))
    for step in range(STEPS):
        mark()
        running = 0.0
        for _ in range(ACCUMULATE):
            loss = loss_of(next(batches)) / ACCUMULATE
            loss.backward()
            running += loss.item()
        norm = nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 9:
            print("step %d loss %.3f norm %.2f lr %.1e" % (step + 1, running, norm, schedule.get_last_lr()[0]))
        if step % 30 == 29:
            score = evaluate()
            if score < best:
                best = score
                torch.save({n: p for n, p in model.named_parameters() if p.requires_grad}, temporary("adapter.pt"))
    return STEPS


@job(34, "input or host", ["input.map", "input.generator", "input.decode", "input.batch", "host.python"], 160, LIBRARIES, twin=True,
     note="each batch of clicks is joined with frames of users and items, and each user's last prices averaged, by pandas, in the "
          "main process; fix: joined before")
def s_pd_features():
    import pandas as pd
    torch = pytorch()
    nn = torch.nn
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    USERS, ITEMS, CLICKS, BATCH, EPOCHS = 20_000, 6_000, 40_960, 512, 2

    users = pd.DataFrame({"user": np.arange(USERS), "age": rng.integers(16, 80, USERS), "city": rng.integers(0, 200, USERS),
                          "plan": rng.choice(["free", "plus", "family"], USERS)})
    items = pd.DataFrame({"item": np.arange(ITEMS), "price": rng.gamma(2, 20, ITEMS), "brand": rng.integers(0, 400, ITEMS),
                          "kind": rng.choice(["book", "film", "game", "tool"], ITEMS)})
    clicks = pd.DataFrame({"user": rng.integers(0, USERS, CLICKS), "item": rng.integers(0, ITEMS, CLICKS),
                           "when": np.sort(rng.integers(0, 86_400 * 30, CLICKS)), "bought": rng.random(CLICKS) < 0.2})
    history = clicks.merge(items[["item", "price"]], on="item").sort_values("when").groupby("user").tail(3)

    def features(rows):
        frame = rows.merge(users, on="user", how="left").merge(items, on="item", how="left")  # here
        spent = history[history.user.isin(rows.user)].groupby("user").price.agg(["mean", "max", "count"])  # here
        frame = frame.join(spent, on="user").fillna(0.0)  # here
        frame["plan"] = frame.plan.map({"free": 0, "plus": 1, "family": 2})  # here
        frame["kind"] = pd.Categorical(frame.kind, ["book", "film", "game", "tool"]).codes  # here
        frame["hour"] = pd.to_datetime(frame.when, unit="s").dt.hour  # here
        ids = frame[["user", "item", "city", "brand", "plan", "kind", "hour"]].to_numpy(np.int64)  # here
        dense = frame[["age", "price", "mean", "max", "count"]].to_numpy(np.float32)
        return torch.from_numpy(ids), torch.from_numpy(np.log1p(dense)), torch.from_numpy(frame.bought.to_numpy(np.float32))

    class Clicks(torch.utils.data.Dataset):
        def __init__(self):
            self.made = features(clicks) if FIXED else None

        def __len__(self):
            return len(clicks)

        def __getitem__(self, rows):
            if FIXED:
                return [part[rows] for part in self.made]
            return features(clicks.iloc[rows])  # here

    class Ranker(nn.Module):
        def __init__(self):
            super().__init__()
            sizes = (USERS, ITEMS, 200, 400, 3, 4, 24)
            self.register_buffer("offsets", torch.tensor(np.cumsum([0, *sizes[:-1]])))
            self.table = nn.EmbeddingBag(sum(sizes), 32, mode="sum", sparse=True)
            self.deep = nn.Sequential(nn.Linear(37, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))

        def forward(self, ids, dense):
            return self.deep(torch.cat([self.table(ids + self.offsets), dense], 1)).squeeze(1)

    data = Clicks()
    sampler = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(data), BATCH, drop_last=True)
    loader = torch.utils.data.DataLoader(data, sampler=sampler, batch_size=None)
    model = Ranker()
    sparse = torch.optim.SparseAdam(model.table.parameters(), 1e-3)
    dense_part = torch.optim.Adam(model.deep.parameters(), 1e-3)
    lossy, steps = nn.BCEWithLogitsLoss(), 0
    for epoch in range(EPOCHS):
        total = 0.0
        for ids, dense, bought in loader:  # here
            mark()
            loss = lossy(model(ids, dense), bought)
            for optimizer in (sparse, dense_part):
                optimizer.zero_grad()
            loss.backward()
            for optimizer in (sparse, dense_part):
                optimizer.step()
            total += loss.item()
            steps += 1
        print("epoch %d: loss %.4f" % (epoch, total / (CLICKS // BATCH)))
    return steps


@job(34, "input", ["input.map", "input.decode"], 90, TORCH, twin=True,
     note="a worker resamples each clip, for which it makes the filter of 44,100 to 16,000 Hz anew; fix: the filter is kept")
def s_asr_resample():
    import wave
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    FROM, TO, CLIPS, BATCH, EPOCHS, WIDTH = 441, 160, 240, 8, 3, 64

    rng = np.random.default_rng(0)
    paths = []
    for i in range(CLIPS):
        paths.append(temporary("clip%03d.wav" % i))
        with wave.open(paths[-1], "wb") as f:
            f.setnchannels(1)
            f.setsampwidth(2)
            f.setframerate(44100)
            f.writeframes((rng.standard_normal(22050) * 5000).astype("<i2").tobytes())
    kept = {}

    def filters(old, new):
        half = math.ceil(WIDTH * old / min(old, new))
        at = torch.arange(-half, half + old, dtype=torch.float64)[None, None] / old  # here
        t = (torch.arange(0, -new, -1, dtype=torch.float64)[:, None, None] / new + at) * min(old, new) * 0.99  # here
        t = t.clamp(-WIDTH, WIDTH)  # here
        window = torch.cos(t * math.pi / WIDTH / 2) ** 2  # here
        t = t * math.pi
        sinc = torch.where(t == 0, torch.ones_like(t), t.sin() / t)  # here
        return (sinc * window * 0.99 * min(old, new) / old).float(), half  # here

    def resample(x):
        if FIXED and "filter" not in kept:
            kept["filter"] = filters(FROM, TO)
        kernel, half = kept["filter"] if FIXED else filters(FROM, TO)  # here
        y = F.conv1d(F.pad(x[None, None], (half, half + FROM)), kernel, stride=FROM)
        return y[0].T.reshape(-1)[:math.ceil(TO * len(x) / FROM)]

    class Clips(torch.utils.data.Dataset):
        def __len__(self):
            return CLIPS

        def __getitem__(self, i):
            with wave.open(paths[i]) as f:
                x = torch.frombuffer(bytearray(f.readframes(f.getnframes())), dtype=torch.int16) / 32768
            x = resample(x)  # here
            mel = torch.stft(x, 400, 160, window=torch.hann_window(400), return_complex=True).abs().clamp(min=1e-5).log()
            first = int(torch.randint(0, 150, ()))
            mel[first:first + 20] = 0
            return mel[:, :48], i % 30

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.front = nn.Conv1d(201, 96, 3, 2, 1)
            self.body = nn.GRU(96, 96, batch_first=True)
            self.head = nn.Linear(96, 30)

        def forward(self, x):
            h, _ = self.body(self.front(x).relu().transpose(1, 2))
            return self.head(h.mean(1))

    model, steps = Net(), 0
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    loader = torch.utils.data.DataLoader(Clips(), batch_size=BATCH, shuffle=True, num_workers=1, persistent_workers=True)
    for epoch in range(EPOCHS):
        right = 0
        for mel, word in loader:  # here
            mark()
            out = model(mel)
            loss = F.cross_entropy(out, word, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            right += int((out.argmax(1) == word).sum())
            steps += 1
        print("epoch %d: %.3f right" % (epoch, right / CLIPS))
    return steps


@job(34, "host or input", ["host.python", "host.code", "host.checkpoint", "host.wait", "input.read"], 320, TORCH, twin=True,
     note="a server of one model with 24 adapters loads the adapter of each batch from its file anew; fix: those loaded are kept. "
          "A batch of requests is a step")
def s_serve_adapters():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    DIM, LAYERS, RANK, ADAPTERS, CLIENTS, BATCHES, MOST = 192, 6, 128, 24, 6, 320, 4
    random.seed(0)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(DIM), nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

        def forward(self, x, adapter, name):
            h = self.norm(x)
            h = self.up(h) + h @ adapter[name + ".a"] @ adapter[name + ".b"]
            return x + self.down(F.gelu(h))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.layers = nn.Embedding(1000, DIM), nn.ModuleList(Layer() for _ in range(LAYERS))

        def forward(self, ids, adapter):
            x = self.embed(ids)
            for i, layer in enumerate(self.layers):
                x = layer(x, adapter, "layer%d" % i)
            return x.mean(1)

    for n in range(ADAPTERS):
        made = {}
        for i in range(LAYERS):
            made["layer%d.a" % i], made["layer%d.b" % i] = torch.randn(DIM, RANK) / 50, torch.randn(RANK, 4 * DIM) / 50
            for moment in ("exp_avg", "exp_avg_sq"):
                made["layer%d.%s" % (i, moment)] = torch.randn(RANK, 5 * DIM)
        torch.save(made, temporary("adapter%02d.pt" % n))

    class Engine:
        def __init__(self):
            self.model, self.loaded = Model().eval(), {}

        def adapter(self, n):
            if n not in self.loaded:
                if not FIXED:
                    self.loaded.clear()
                self.loaded[n] = torch.load(temporary("adapter%02d.pt" % n), weights_only=True)  # here
            return self.loaded[n]

        @torch.inference_mode()
        def answer(self, n, batch):
            length = max(len(ids) for ids in batch)
            ids = torch.zeros(len(batch), length, dtype=torch.long)
            for row, one in zip(ids, batch):
                row[:len(one)] = torch.tensor(one)
            return self.model(ids, self.adapter(n)).norm(dim=1).tolist()  # here

    class Scheduler:
        """Requests by adapter; the adapter with the oldest request is next."""

        def __init__(self):
            self.waiting, self.some = [], threading.Condition()

        def put(self, request):
            with self.some:
                self.waiting.append(request)
                self.some.notify()

        def take(self):
            with self.some:
                while not self.waiting:
                    self.some.wait()
                n = self.waiting[0]["adapter"]
                batch = [r for r in self.waiting if r["adapter"] == n][:MOST]
                self.waiting = [r for r in self.waiting if r not in batch]
            return n, batch

    engine, scheduler, over = Engine(), Scheduler(), threading.Event()

    def client(seed):
        draw, answers = random.Random(seed), queue.Queue()
        while not over.is_set():
            scheduler.put({"adapter": draw.randrange(ADAPTERS), "at": time.perf_counter(), "answers": answers,
                           "ids": [draw.randrange(1000) for _ in range(draw.randint(16, 48))]})
            answers.get()

    for seed in range(CLIENTS):
        thread(client, seed)
    late = []
    for served in range(BATCHES):
        mark()
        n, batch = scheduler.take()
        values = engine.answer(n, [r["ids"] for r in batch])  # here
        for request, value in zip(batch, values):
            late.append(time.perf_counter() - request["at"])
            request["answers"].put(value)
        if served % 50 == 49:
            print("%d batches, median %.1f ms" % (served + 1, 1e3 * sorted(late)[len(late) // 2]))
    over.set()
    return BATCHES


def _length_rank(rank, ranks, path):
    """A rank of s_gloo_lengths, which tells its steps if it is the first."""
    torch = pytorch()
    import torch.distributed as dist
    nn, F = torch.nn, torch.nn.functional
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=ranks)
    torch.manual_seed(0)
    STEPS, BATCH, EPOCHS = 120, 8, 3
    rng = np.random.default_rng(3)
    lengths = np.sort(np.clip(rng.gamma(2.2, 30, STEPS * BATCH * ranks // EPOCHS).astype(int), 8, 240))
    texts = [torch.from_numpy(rng.integers(1, 800, n)) for n in lengths]
    if FIXED:
        mine = [i for i in range(len(texts)) if i // BATCH % ranks == rank]
    else:
        mine = list(range(len(texts)))[rank * len(texts) // ranks:(rank + 1) * len(texts) // ranks]  # here

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(800, 96, padding_idx=0)
            layer = nn.TransformerEncoderLayer(96, 4, 256, 0.1, batch_first=True)
            self.encoder, self.head = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(96, 12)

        def forward(self, ids):
            return self.head(self.encoder(self.embed(ids), src_key_padding_mask=ids == 0))  # here

    def average():
        flat = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        dist.all_reduce(flat)  # here
        flat /= ranks
        at = 0
        for p in model.parameters():
            p.grad.copy_(flat[at:at + p.numel()].view_as(p))
            at += p.numel()

    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    steps = 0
    for epoch in range(EPOCHS):
        chunks = [mine[i:i + BATCH] for i in range(0, len(mine), BATCH)]
        random.Random(epoch).shuffle(chunks)
        for chunk in chunks:
            mark()
            ids = nn.utils.rnn.pad_sequence([texts[i] for i in chunk], batch_first=True)
            loss = F.cross_entropy(model(ids).flatten(0, 1), (ids % 12).flatten())  # here
            optimizer.zero_grad()
            loss.backward()  # here
            average()  # here
            optimizer.step()
            steps += 1
        both = torch.tensor([float(loss), 1.0])
        dist.all_reduce(both)
        if rank == 0:
            print("epoch %d: loss %.3f" % (epoch, both[0] / both[1]))
    dist.barrier()
    if rank == 0:
        finish(steps)
    dist.destroy_process_group()


@job(34, "communication or compute", ["communication.jitter", "communication.transfer", "compute.imbalance", *HEALTHY], 120, TORCH,
     twin=True, at=(_length_rank,), says=r"(?i)rank 1|late|unequal|uneven|imbalance",
     note="texts are sorted by length, and the second of two ranks gets the longer half, so that the first one waits for it in each "
          "step; fix: batches go to the ranks in turn")
def s_gloo_lengths():
    spawn = get_context("spawn")
    path = temporary("ranks%d" % os.getpid())
    processes = [spawn.Process(target=_length_rank, args=(rank, 2, path)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    os._exit(0)


if __name__ == "__main__":
    main()
