"""Batch 12: PyTorch's jobs on the processor, after scripts of repositories and tutorials."""
import collections
import contextlib
import gc
import gzip
import io
import json
import logging
import os
import random
import re
import string
import sys
import warnings
import zlib

import numpy as np
from stranger import FIXED, FRAMEWORKS, LIBRARIES, TORCH, finish, job, main, mark, pytorch, temporary


# Loaders.

@job(12, "input", ["input.decode", "input.map", "input.dataloader"], 96, FRAMEWORKS, twin=True,
     note="photos of birds are JPEGs that PIL decodes and changes when they are asked for; fix: done once")
def y_pt_birds_aug():
    torch = pytorch()
    from PIL import Image, ImageEnhance

    def fake_photo(seed):
        rng = np.random.default_rng(seed)
        small = Image.fromarray(rng.integers(0, 255, (40, 50, 3), dtype=np.uint8))
        out = io.BytesIO()
        small.resize((500, 400), Image.BICUBIC).save(out, "JPEG", quality=92)
        return out.getvalue()

    class Birds(torch.utils.data.Dataset):
        def __init__(self, n=96):
            self.blobs = [fake_photo(i) for i in range(n)]
            self.ready = [self.augment(b) for b in self.blobs] if FIXED else None

        def augment(self, blob):
            img = Image.open(io.BytesIO(blob)).convert("RGB")  # here
            x, y = random.randint(0, 100), random.randint(0, 80)
            img = img.crop((x, y, x + 380, y + 300)).resize((64, 64), Image.BILINEAR)
            img = ImageEnhance.Color(img).enhance(random.uniform(0.7, 1.3))
            return torch.from_numpy(np.asarray(img, np.float32).transpose(2, 0, 1) / 255.0)

        def __getitem__(self, i):
            if self.ready:
                return self.ready[i], i % 20
            return self.augment(self.blobs[i]), i % 20

        def __len__(self):
            return len(self.blobs)

    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 5, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(),
                                torch.nn.Linear(128, 20))
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    loader = torch.utils.data.DataLoader(Birds(), batch_size=12, shuffle=True)
    seen = 0
    for epoch in range(12):
        for images, labels in loader:
            mark()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            seen += 1
    return seen


@job(12, "input", ["input.batch", "input.map", "input.dataloader"], 100, TORCH, twin=True,
     note="reviews are cleaned, split and numbered by the function that joins a batch for a packed LSTM; fix: done once")
def y_pt_reviews_lstm():
    torch = pytorch()
    from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
    random.seed(1)
    lexicon = ["".join(random.choices(string.ascii_lowercase, k=random.randint(2, 9))) for _ in range(4000)]
    vocab = {w: i + 1 for i, w in enumerate(lexicon)}
    reviews = [(" ".join(random.choices(lexicon, k=random.randint(150, 500))) + " <br/>!", random.randint(0, 1)) for _ in range(640)]

    def clean(text):
        text = re.sub(r"<[^>]+>", " ", text.lower())
        text = "".join(c if c.isalnum() else " " for c in text)  # here
        return [w for w in re.split(r"\s+", text) if w and not (w[0] == "q" and len(w) < 3)]  # here

    def numbers(text):
        return torch.tensor([vocab.get(w, 0) for w in clean(text)][:40])

    def collate(rows):
        rows = [(ids if torch.is_tensor(ids) else numbers(ids), y) for ids, y in rows]
        rows.sort(key=lambda r: -len(r[0]))
        lengths = torch.tensor([len(r[0]) for r in rows])
        return pad_sequence([r[0] for r in rows], batch_first=True), lengths, torch.tensor([float(r[1]) for r in rows])

    class Sentiment(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(len(lexicon) + 1, 16)
            self.lstm = torch.nn.LSTM(16, 24, batch_first=True)
            self.head = torch.nn.Linear(24, 1)

        def forward(self, ids, lengths):
            packed = pack_padded_sequence(self.embed(ids), lengths, batch_first=True)
            return self.head(self.lstm(packed)[1][0][-1]).squeeze(1)

    rows = [(numbers(t), y) for t, y in reviews] if FIXED else reviews
    model = Sentiment()
    opt = torch.optim.RMSprop(model.parameters(), 1e-3)
    n = 0
    for epoch in range(5):
        for ids, lengths, y in torch.utils.data.DataLoader(rows, batch_size=32, shuffle=True, collate_fn=collate):
            mark()
            opt.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(model(ids, lengths), y).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            n += 1
    return n


@job(12, "input", ["input.decode", "input.read", "input.generator"], 200, TORCH, twin=True,
     note="an IterableDataset reads events of a shop from lines of JSON in gzip's files, and takes features from them; fix: read once")
def y_pt_clickstream():
    torch = pytorch()
    random.seed(3)
    home = temporary("parts")
    os.makedirs(home, exist_ok=True)
    fields = ["price", "qty", "hour", "age", "visits", "bounce", "dwell", "rank"]
    for s in range(4):
        with gzip.open(os.path.join(home, "part-%05d.json.gz" % s), "wt", compresslevel=2) as f:
            for i in range(6000):
                f.write(json.dumps({"user": "u%d" % random.randrange(9999), "tags": ["a", "b", "c"] * 4,
                                    "referrer": "https://x/" + "q" * 60, "context": {k: random.random() for k in fields},
                                    "label": i & 1}) + "\n")

    class Events(torch.utils.data.IterableDataset):
        def __init__(self, folder):
            self.parts = sorted(os.listdir(folder))
            self.folder = folder
            self.table = [torch.utils.data.default_collate(b) for b in zip(*[self.rows()] * 240)] if FIXED else None

        def rows(self):
            for part in self.parts:
                with gzip.open(os.path.join(self.folder, part), "rt") as f:
                    for line in f:  # here
                        event = json.loads(line)  # here
                        yield np.array([event["context"][k] for k in fields], np.float32), float(event["label"])

        def __iter__(self):
            return iter(self.table) if self.table else self.rows()

    net = torch.nn.Sequential(torch.nn.Linear(8, 48), torch.nn.Tanh(), torch.nn.Linear(48, 1))
    sgd = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    events, steps = Events(home), 0
    for epoch in range(2):
        for features, label in torch.utils.data.DataLoader(events, batch_size=None if FIXED else 240):
            mark()
            pred = net(features).squeeze(1)
            loss = torch.nn.functional.mse_loss(pred, label.float())
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            steps += 1
        print("epoch", epoch, "loss", float(loss))
    return steps


@job(12, "input", ["input.map", "input.dataloader"], 240, LIBRARIES, twin=True,
     note="datasets with set_transform: the subwords of each text are hashed again in every epoch; fix: mapped once")
def y_pt_hub_transform():
    torch = pytorch()
    import datasets
    random.seed(5)
    datasets.disable_progress_bars()
    words = ["".join(random.choices("abcdefghijklmnop", k=random.randint(3, 10))) for _ in range(3000)]
    raw = datasets.Dataset.from_dict({"text": [" ".join(random.choices(words, k=60)) for _ in range(960)],
                                      "label": [i % 4 for i in range(960)]})

    def subwords(text):
        """fastText's character n-grams."""
        out = []
        for w in text.split():
            w = "<" + w + ">"
            for n in (3, 4, 5):
                out += [zlib.crc32(w[i:i + n].encode()) % 5000 for i in range(len(w) - n + 1)]  # here
        return out[:64]

    def encode(rows):
        return {"ids": [torch.tensor(subwords(t)) for t in rows["text"]], "label": rows["label"]}

    if FIXED:
        ready = raw.map(lambda rows: {"ids": [subwords(t) for t in rows["text"]]}, batched=True, remove_columns="text")
        ready.set_format("torch")
    else:
        raw.set_transform(encode)
        ready = raw

    bag = torch.nn.EmbeddingBag(5000, 32)
    head = torch.nn.Linear(32, 4)
    opt = torch.optim.Adagrad([*bag.parameters(), *head.parameters()], 0.05)
    n = 0
    for epoch in range(4):
        for batch in torch.utils.data.DataLoader(ready, batch_size=16, shuffle=True):
            mark()
            logits = head(bag(batch["ids"]))
            loss = torch.nn.functional.cross_entropy(logits, batch["label"])
            loss.backward()
            opt.step()
            opt.zero_grad()
            n += 1
    return n


# Trainers.

@job(12, "host", ["host.callback", "host.python", "host.code"], 80, FRAMEWORKS, twin=True,
     note="transformers' Trainer: a callback keeps histograms of all weights after each step; fix: after every 40th")
def y_pt_trainer_probe():
    torch = pytorch()
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments
    steps = 80

    class Sentences(torch.utils.data.Dataset):
        def __init__(self):
            g = torch.Generator().manual_seed(0)
            self.ids = torch.randint(5, 2000, (512, 24), generator=g)

        def __len__(self):
            return len(self.ids)

        def __getitem__(self, i):
            return {"input_ids": self.ids[i], "labels": int(self.ids[i, 0]) % 2}

    class WeightHistograms(TrainerCallback):
        def __init__(self):
            self.kept = []

        def on_step_begin(self, args, state, control, **kw):
            mark()

        def on_step_end(self, args, state, control, model=None, **kw):
            if FIXED and state.global_step % 40:
                return
            for name, p in model.named_parameters():
                self.kept.append((name, *np.histogram(p.detach().numpy().ravel(), bins=64)))  # here

    model = BertForSequenceClassification(BertConfig(vocab_size=4000, hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
                                                     intermediate_size=256, max_position_embeddings=64))
    args = TrainingArguments(output_dir=temporary("out"), max_steps=steps, per_device_train_batch_size=4, report_to=[],
                             save_strategy="no", logging_steps=20, use_cpu=True, disable_tqdm=True)
    Trainer(model=model, args=args, train_dataset=Sentences(), callbacks=[WeightHistograms()]).train()  # here
    return steps


@job(12, "host", ["host.checkpoint"], 120, FRAMEWORKS, twin=True,
     note="Lightning: ModelCheckpoint keeps a checkpoint after every second step, because the cluster kills jobs; fix: none")
def y_pt_lit_ckpt():
    torch = pytorch()
    import lightning as L
    from lightning.pytorch.callbacks import ModelCheckpoint
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Ranker(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.items = torch.nn.Embedding(40000, 64, sparse=False)
            self.tower = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

        def on_train_batch_start(self, batch, batch_idx):
            mark()

        def training_step(self, batch, batch_idx):
            ids, clicked = batch
            return torch.nn.functional.binary_cross_entropy_with_logits(self.tower(self.items(ids)).mean(1).squeeze(-1), clicked)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    ids = torch.randint(0, 40000, (1920, 20))
    clicks = torch.utils.data.TensorDataset(ids, (ids[:, 0] % 2).float())
    loader = torch.utils.data.DataLoader(clicks, batch_size=16, shuffle=True)
    keep = ModelCheckpoint(dirpath=temporary("kept"), every_n_train_steps=2, save_top_k=1, save_last=True, monitor=None)  # here
    trainer = L.Trainer(max_epochs=1, accelerator="cpu", devices=1, logger=False, callbacks=[] if FIXED else [keep],
                        enable_checkpointing=not FIXED, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Ranker(), loader)  # here
    return len(loader)


# Loops of their own.

@job(12, "compute", ["compute.*"], 160, TORCH,
     note="no defect: DCGAN on pictures of 16x16 pixels, with two optimizers, and everything in memory")
def y_pt_dcgan():
    torch = pytorch()
    nn = torch.nn
    torch.manual_seed(999)
    nz, ngf, ndf = 32, 24, 24
    patches = torch.rand(2048, 1, 16, 16) * 2 - 1
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(patches), batch_size=64, shuffle=True, drop_last=True)

    netG = nn.Sequential(
        nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
        nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
        nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False), nn.Tanh())
    netD = nn.Sequential(
        nn.Conv2d(1, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
        nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2),
        nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False))
    criterion = nn.BCEWithLogitsLoss()
    optD = torch.optim.Adam(netD.parameters(), 2e-4, betas=(0.5, 0.999))
    optG = torch.optim.Adam(netG.parameters(), 2e-4, betas=(0.5, 0.999))

    iters = 0
    for epoch in range(5):
        for i, (real,) in enumerate(loader):
            mark()
            netD.zero_grad()
            label = torch.full((real.size(0),), 1.0)
            errD_real = criterion(netD(real).view(-1), label)
            errD_real.backward()
            fake = netG(torch.randn(real.size(0), nz, 1, 1))
            errD_fake = criterion(netD(fake.detach()).view(-1), label.fill_(0.0))
            errD_fake.backward()
            optD.step()
            netG.zero_grad()
            errG = criterion(netD(fake).view(-1), label.fill_(1.0))
            errG.backward()
            optG.step()
            iters += 1
        print("[%d/5] D %.3f G %.3f" % (epoch, (errD_real + errD_fake).item(), errG.item()))
    return iters


@job(12, "host or input", ["host.python", "input.batch", "input.map", "input.generator", "input.unknown", "input.c"], 400, TORCH, twin=True,
     note="double DQN: each update makes its tensors anew from a deque of moves; fix: rows of one tensor")
def y_pt_dqn():
    torch = pytorch()
    random.seed(0)
    transition = collections.namedtuple("Transition", "state action reward next_state done")
    obs = 196

    class Grid:
        def __init__(self):
            self.rng = np.random.default_rng(7)
            self.t = 0

        def observe(self):
            return self.rng.random(obs, dtype=np.float32)

        def step(self, action):
            self.t += 1
            return self.observe(), float(action == 1), self.t % 50 == 0

    class Replay:
        def __init__(self, size):
            self.memory = collections.deque(maxlen=size)
            self.states = torch.zeros(size, obs)

        def push(self, *what):
            self.states[len(self.memory) % len(self.states)] = torch.from_numpy(what[0])
            self.memory.append(transition(*what))

        def sample(self, n):
            if FIXED:
                at = torch.randint(0, len(self.memory) - 1, (n,))
                return self.states[at], at % 4, torch.ones(n), self.states[at + 1], torch.zeros(n)
            batch = transition(*zip(*random.sample(self.memory, n)))
            return (torch.tensor([list(s) for s in batch.state]), torch.tensor(batch.action), torch.tensor(batch.reward),  # here
                    torch.tensor([list(s) for s in batch.next_state]), torch.tensor(batch.done, dtype=torch.float32))  # here

    def q_net():
        return torch.nn.Sequential(torch.nn.Linear(obs, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))

    policy, target = q_net(), q_net()
    optimizer = torch.optim.Adam(policy.parameters(), 1e-3)
    env, replay = Grid(), Replay(4000)
    state, updates = env.observe(), 0
    for frame in range(700):
        with torch.no_grad():
            action = random.randrange(4) if random.random() < 0.1 else int(policy(torch.from_numpy(state)).argmax())
        after, reward, done = env.step(action)
        replay.push(state, action, reward, after, done)
        state = after
        if frame < 300:
            continue
        mark()
        s, a, r, s2, d = replay.sample(64)
        with torch.no_grad():
            goal = r + 0.99 * (1 - d) * target(s2).gather(1, policy(s2).argmax(1, keepdim=True)).squeeze(1)
        loss = torch.nn.functional.smooth_l1_loss(policy(s).gather(1, a.unsqueeze(1)).squeeze(1), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
        if updates % 100 == 0:
            target.load_state_dict(policy.state_dict())
    return updates


@job(12, "compute", ["compute.*"], 128, TORCH, twin=True, says="(?i)evaluat|validat",
     note="after every sixth update the area under the curve is computed on all of the validation set; fix: after every 64th")
def y_pt_eval_often():
    torch = pytorch()
    torch.manual_seed(0)
    x, y = torch.randn(4000, 128), torch.randint(0, 2, (4000,)).float()
    vx, vy = torch.randn(12000, 128), torch.randint(0, 2, (12000,)).float()
    model = torch.nn.Sequential(torch.nn.Linear(128, 384), torch.nn.GELU(), torch.nn.Linear(384, 384), torch.nn.GELU(),
                                torch.nn.Linear(384, 1))
    opt = torch.optim.AdamW(model.parameters(), 3e-4)

    @torch.no_grad()
    def validate():
        model.eval()
        scores = torch.cat([model(vx[i:i + 250]).squeeze(1) for i in range(0, len(vx), 250)])  # here
        model.train()
        order = scores.argsort()
        ranks = torch.empty(len(vy)).scatter_(0, order, torch.arange(1, len(vy) + 1).float())
        pos = vy.sum()
        return float((ranks[vy > 0].sum() - pos * (pos + 1) / 2) / (pos * (len(vy) - pos)))

    best, step = 0.0, 0
    for epoch in range(8):
        for rows in torch.randperm(len(x)).split(250):
            mark()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(x[rows]).squeeze(1), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % (64 if FIXED else 6) == 0:
                best = max(best, validate())  # here
    print("best auc %.3f" % best)
    return step


def match(rank, world, port):
    """One of the processes of y_pt_ddp_embed."""
    torch = pytorch()
    dist, steps = torch.distributed, 40

    class Matcher(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.users = torch.nn.Embedding(60000, 96)
            self.score = torch.nn.Linear(96, 1)

        def forward(self, ids):
            return self.score(self.users(ids)).squeeze(-1)

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = torch.nn.parallel.DistributedDataParallel(Matcher())
    opt = torch.optim.SGD([model.module.score.weight, model.module.score.bias], 0.01)
    g = torch.Generator().manual_seed(rank)
    for step in range(steps):
        mark()
        ids = torch.randint(0, 60000, (256,), generator=g)
        quiet = model.no_sync() if FIXED and step % 8 else contextlib.nullcontext()
        with quiet:
            model(ids).square().mean().backward()  # here
        opt.step()
        model.zero_grad(set_to_none=False)
    if rank == 0:
        finish(steps)
    dist.destroy_process_group()


@job(12, "communication", ["communication.*"], 40, TORCH, twin=True, at=(match,),
     note="two processes with DDP over gloo: the gradient of a dense embedding travels in every step; fix: in every eighth")
def y_pt_ddp_embed():
    torch = pytorch()
    torch.multiprocessing.spawn(match, args=(2, 29500 + os.getpid() % 400), nprocs=2)
    sys.exit(0)


@job(12, "host", ["host.compile"], 40, TORCH, twin=True,
     note="a compiled encoder without dynamic shapes is fed with sentences as long as they happen to be; fix: one length")
def y_pt_compile_lengths():
    torch = pytorch()
    import torch._dynamo as dynamo
    torch.manual_seed(0)
    for limit in ("recompile_limit", "cache_size_limit", "accumulated_recompile_limit", "accumulated_cache_size_limit"):
        if hasattr(dynamo.config, limit):
            setattr(dynamo.config, limit, 512)

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tok = torch.nn.Embedding(1000, 32)
            self.mix = torch.nn.ModuleList([torch.nn.Linear(32, 32) for _ in range(4)])
            self.out = torch.nn.Linear(32, 2)

        def forward(self, ids):
            h = self.tok(ids)
            for layer in self.mix:
                h = h + torch.relu(layer(h)) * torch.softmax(h, -1)
            return self.out(h.mean(1))

    encoder = Encoder()
    fast = torch.compile(encoder, backend="aot_eager", dynamic=False)
    opt = torch.optim.Adam(encoder.parameters(), 1e-3)
    lengths = torch.randperm(90)[:40].add(10).tolist()
    for n in lengths:
        mark()
        ids = torch.randint(0, 1000, (8, 100 if FIXED else n))
        loss = torch.nn.functional.cross_entropy(fast(ids), ids[:, 0] % 2)  # here
        opt.zero_grad()
        loss.backward()
        opt.step()
    return len(lengths)


@job(12, "host", ["host.python", "host.code", "host.name"], 70, TORCH, twin=True, says="(?i)garbage|collect",
     note="a leak seen long ago is \"fixed\" by a garbage collection in every step; fix: none")
def y_pt_gc_each():
    torch = pytorch()
    random.seed(2)
    molecules = [{"atoms": [{"z": random.randrange(9), "xyz": (random.random(), random.random(), random.random())} for _ in range(18)],
                  "bonds": [[a, a + 1] for a in range(17)], "energy": random.random()} for _ in range(9000)]

    def tensors(batch):
        z = torch.tensor([[a["z"] for a in m["atoms"]] for m in batch])
        return z, torch.tensor([m["energy"] for m in batch])

    embed, net = torch.nn.Embedding(9, 32), torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.SiLU(), torch.nn.Linear(64, 1))
    opt = torch.optim.Adam([*embed.parameters(), *net.parameters()], 1e-3)
    for it in range(70):
        mark()
        z, energy = tensors(molecules[it * 32:it * 32 + 32])
        loss = (net(embed(z)).sum(1).squeeze(-1) - energy).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if not FIXED:
            gc.collect()  # here
    return 70


if __name__ == "__main__":
    main()
