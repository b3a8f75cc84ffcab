"""Batch 15: training with libraries, with ranks, and with TensorFlow and JAX, on the processor."""
import itertools
import json
import os
import subprocess
import sys

import numpy as np
from stranger import FIXED, FRAMEWORKS, LIBRARIES, TORCH, finish, job, main, mark, pytorch, temporary

HEALTHY = ["compute.cpu", "compute.dense", "compute.dominant-op"]


@job(15, "compute", HEALTHY, 240, TORCH, note="no defect: five updates of the critic for one of the generator, an optimizer each")
def t_wgan_gp():
    torch = pytorch()
    nn = torch.nn
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    c, n = 32, 48

    def real_batch():
        angle = torch.rand(n, 1, 1, generator=g) * 6.283
        yy, xx = torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing="ij")
        return torch.sin(8 * (xx * angle.cos() + yy * angle.sin())).unsqueeze(1) + 0.05 * torch.randn(n, 1, 16, 16, generator=g)

    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(32, 2 * c * 16)
            self.up = nn.Sequential(nn.BatchNorm2d(2 * c), nn.ReLU(), nn.ConvTranspose2d(2 * c, c, 4, 2, 1), nn.BatchNorm2d(c),
                                    nn.ReLU(), nn.ConvTranspose2d(c, 1, 4, 2, 1), nn.Tanh())

        def forward(self, z):
            return self.up(self.fc(z).view(-1, 2 * c, 4, 4))

    def penalty(real, fake):
        a = torch.rand(n, 1, 1, 1)
        mix = (a * real + (1 - a) * fake).requires_grad_()
        grad, = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True)
        return ((grad.flatten(1).norm(dim=1) - 1) ** 2).mean()

    gen = Generator()
    critic = nn.Sequential(nn.Conv2d(1, c, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(c, 2 * c, 4, 2, 1), nn.LeakyReLU(0.2),
                           nn.Flatten(), nn.Linear(2 * c * 16, 1))
    opt_g = torch.optim.Adam(gen.parameters(), lr=1e-4, betas=(0.0, 0.9))
    opt_c = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
    for _ in range(40):
        for _ in range(5):
            mark()
            real = real_batch()
            with torch.no_grad():
                fake = gen(torch.randn(n, 32))
            loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake)
            opt_c.zero_grad()
            loss.backward()
            opt_c.step()
        mark()
        loss = -critic(gen(torch.randn(n, 32))).mean()
        opt_g.zero_grad()
        loss.backward()
        opt_g.step()
    return 240


def two_ranks(worker, *args):
    """Runs a rank in each of two processes; rank 0 tells of itself."""
    import torch.multiprocessing
    torch.multiprocessing.spawn(worker, args=(temporary("store"), *args), nprocs=2)
    sys.exit(0)


def join_ranks(rank, store):
    torch = pytorch()
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2, init_method="file://" + store)
    torch.manual_seed(0)
    return torch


def residual_mlp(rank, store):
    torch = join_ranks(rank, store)
    nn, F, dist = torch.nn, torch.nn.functional, torch.distributed

    class Layer(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

        def forward(self, x):
            return x + self.down(F.gelu(self.up(self.norm(x))))

    model = nn.Sequential(nn.Linear(40, 64), *[Layer(64) for _ in range(24)], nn.LayerNorm(64), nn.Linear(64, 5))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def average():
        if not FIXED:
            for p in model.parameters():
                dist.all_reduce(p.grad)  # here
                p.grad /= 2
            return
        grads = [p.grad for p in model.parameters()]
        flat = torch.cat([g.flatten() for g in grads])
        dist.all_reduce(flat)
        flat /= 2
        for g, part in zip(grads, flat.split([g.numel() for g in grads])):
            g.copy_(part.view_as(g))

    g = torch.Generator().manual_seed(100 + rank)
    x = torch.randn(20_000, 40, generator=g)
    y = (x[:, :5] + 0.3 * x[:, 5:10] ** 2).argmax(1)
    for _ in range(80):
        mark()
        pick = torch.randint(len(x), (256,), generator=g)
        loss = F.cross_entropy(model(x[pick]), y[pick])
        opt.zero_grad()
        loss.backward()
        average()  # here
        opt.step()
    if rank == 0:
        finish(80)
    dist.destroy_process_group()


@job(15, "communication", ["communication.transfer"], 80, TORCH, twin=True, at=(residual_mlp,),
     note="148 small exchanges per step between two ranks; fix: one large one")
def t_resmlp_ranks():
    two_ranks(residual_mlp)


def mixer(rank, store):
    torch = join_ranks(rank, store)
    nn, F = torch.nn, torch.nn.functional

    class Mixer(nn.Module):
        def __init__(self, patches=49, dim=96, depth=3):
            super().__init__()
            self.embed, self.head, self.depth = nn.Linear(48, dim), nn.Linear(dim, 20), depth
            self.tok = nn.ModuleList(nn.Sequential(nn.Linear(patches, 2 * patches), nn.GELU(), nn.Linear(2 * patches, patches))
                                     for _ in range(depth))
            self.chan = nn.ModuleList(nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
                                      for _ in range(depth))
            self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth))

        def forward(self, x):
            x = self.embed(x)
            for i in range(self.depth):
                x = x + self.tok[i](self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
                x = x + self.chan[i](self.norms[2 * i + 1](x))
            return self.head(x.mean(1))

    x = torch.randn(2048, 49, 48)
    data = torch.utils.data.TensorDataset(x, x.mean(1)[:, :20].argmax(1))
    sampler = torch.utils.data.DistributedSampler(data, 2, rank)
    loader = torch.utils.data.DataLoader(data, batch_size=16, sampler=sampler, drop_last=True)
    model = nn.parallel.DistributedDataParallel(Mixer())
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    path = os.path.join(os.path.dirname(store), "snapshot.pt")

    def save(step):
        torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "loader": x, "step": step}, path + ".tmp")
        with open(path + ".tmp", "rb+") as f:
            os.fsync(f.fileno())
        os.replace(path + ".tmp", path)

    step = 0
    while step < 100:
        sampler.set_epoch(step)
        for a, b in itertools.islice(loader, 100 - step):
            mark()
            loss = F.cross_entropy(model(a), b)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 5 == 0:
                if rank == 0:
                    save(step)
                torch.distributed.barrier()
    if rank == 0:
        finish(100)
    torch.distributed.destroy_process_group()


@job(15, "compute", HEALTHY, 100, TORCH, says="checkpoint",
     note="rank 0 saves every fifth step and syncs the file, rank 1 waits: a tenth of the loop, so that computing is the class")
def t_ddp_snapshots():
    two_ranks(mixer)


@job(15, "compute", HEALTHY, 150, LIBRARIES,
     note="deforming pictures in a worker is fast enough; a table of errors in each step takes a tenth of it")
def t_cells_segment():
    from scipy.ndimage import gaussian_filter, map_coordinates
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    SIZE, CLASSES, c = 80, 3, 8
    yy, xx = np.mgrid[:SIZE, :SIZE]

    class Cells(torch.utils.data.Dataset):
        def __init__(self):
            g = np.random.default_rng(0)
            self.pictures = []
            for _ in range(40):
                mask = np.zeros((SIZE, SIZE), np.int64)
                for k in range(8):
                    cy, cx, r = g.integers(0, SIZE), g.integers(0, SIZE), g.integers(4, 10)
                    mask[(yy - cy) ** 2 + (xx - cx) ** 2 < r * r] = 1 + k % 2
                self.pictures.append((np.array([0.1, 0.6, 0.9])[mask] + 0.1 * g.normal(size=mask.shape), mask))

        def __len__(self):
            return 8 * 150

        def __getitem__(self, i):
            g = np.random.default_rng(i)
            img, mask = self.pictures[i % 40]
            dy, dx = (gaussian_filter(g.uniform(-1, 1, img.shape), 5) * 30 for _ in range(2))
            at = np.array([yy + dy, xx + dx])
            img, mask = map_coordinates(img, at, order=3, mode="reflect"), map_coordinates(mask, at, order=0, mode="reflect")
            return torch.from_numpy(img.astype("float32"))[None], torch.from_numpy(mask.astype("int64"))

    def block(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.d1, self.d2, self.mid = block(1, c), block(c, 2 * c), block(2 * c, 4 * c)
            self.u2, self.u1, self.head = block(6 * c, 2 * c), block(3 * c, c), nn.Conv2d(c, CLASSES, 1)

        def forward(self, x):
            a = self.d1(x)
            b = self.d2(F.max_pool2d(a, 2))
            m = self.mid(F.max_pool2d(b, 2))
            m = self.u2(torch.cat([F.interpolate(m, scale_factor=2), b], 1))
            return self.head(self.u1(torch.cat([F.interpolate(m, scale_factor=2), a], 1)))

    net = UNet()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for img, mask in torch.utils.data.DataLoader(Cells(), batch_size=8, shuffle=True, num_workers=1):
        mark()
        out = net(img)
        loss = F.cross_entropy(out, mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
        table = np.zeros((CLASSES, CLASSES), np.int64)
        np.add.at(table, (mask.flatten().numpy(), out.argmax(1).flatten().numpy()), 1)
    print(table)
    return 150


@job(15, "compute", HEALTHY, 120, LIBRARIES,
     note="a worker unpacks 8 s of sound for each second that it uses, which is fast enough")
def t_keywords_wds():
    import io
    import webdataset as wds
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    RATE = 16000
    g = np.random.default_rng(0)
    t = np.arange(8 * RATE) / RATE
    for shard in range(4):
        with wds.TarWriter(temporary("%03d.tar" % shard)) as tar:
            for i in range(16):
                label = int(g.integers(10))
                wave = 0.3 * np.sin(2 * np.pi * (200 + 90 * label) * t + g.random()) + 0.2 * g.normal(size=t.size)
                packed = io.BytesIO()
                np.savez_compressed(packed, wave=(wave * 32767).clip(-32768, 32767).astype("int16"))
                tar.write({"__key__": "%03d%04d" % (shard, i), "npz": packed.getvalue(), "cls": str(label).encode()})

    def to_sample(s):
        wave = torch.from_numpy(np.load(io.BytesIO(s["npz"]))["wave"].astype("float32") / 32768)
        at = int(torch.randint(0, wave.numel() - RATE, ()))
        return wave[at:at + RATE], int(s["cls"])

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("window", torch.hann_window(400))
            self.body = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1),
                                      nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU())
            self.head = nn.Linear(64, 10)

        def forward(self, wave):
            spec = torch.stft(wave, 400, 160, window=self.window, return_complex=True).abs().add(1e-4).log()
            return self.head(self.body(spec.unsqueeze(1)).mean((2, 3)))

    shards = [temporary("%03d.tar" % shard) for shard in range(4)]
    data = wds.WebDataset(shards, resampled=True, shardshuffle=False).shuffle(64).map(to_sample).batched(16)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for wave, label in itertools.islice(wds.WebLoader(data, batch_size=None, num_workers=1), 120):
        mark()
        loss = F.cross_entropy(net(wave), torch.as_tensor(label), label_smoothing=0.05)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    return 120


@job(15, "host", ["host.python", "host.code", "host.callback"], 300, LIBRARIES, twin=False,
     note="validation, four times an epoch, draws 150 samples to see how sure its score is, a third of the run; the steps compute")
def t_churn_lightning():
    import logging
    import warnings
    warnings.filterwarnings("ignore")
    torch = pytorch()
    import lightning as L
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    nn = torch.nn

    def make_data(rows, seed):
        g = np.random.default_rng(seed)
        x = g.normal(size=(rows, 96)).astype("float32")
        logit = x[:, :8].sum(1) * 0.4 + 0.5 * np.sin(x[:, 9] * x[:, 10]) - 1.5
        y = (g.random(rows) < 1 / (1 + np.exp(-logit))).astype("float32")
        return torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))

    def auc(y, p):
        rank = np.empty(len(p))
        rank[p.argsort()] = np.arange(len(p))
        ones = int(y.sum())
        return (rank[y > 0].sum() - ones * (ones - 1) / 2) / (ones * (len(y) - ones))

    def auc_interval(y, p):
        g = np.random.default_rng(0)
        scores = []
        for _ in range(150):
            pick = g.integers(0, len(y), len(y))
            scores.append(auc(y[pick], p[pick]))  # here
        return np.percentile(scores, [2.5, 97.5])

    class Churn(L.LightningModule):
        def __init__(self):
            super().__init__()
            sizes = [96, 320, 320, 320]
            self.net = nn.Sequential(*[m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.BatchNorm1d(b),
                                                                                              nn.GELU())], nn.Linear(320, 1))
            self.loss, self.held = nn.BCEWithLogitsLoss(), []

        def training_step(self, batch, _):
            mark()
            return self.loss(self.net(batch[0]).squeeze(-1), batch[1])

        def validation_step(self, batch, _):
            self.held.append((self.net(batch[0]).squeeze(-1).sigmoid(), batch[1]))

        def on_validation_epoch_end(self):
            p, y = (torch.cat(part).numpy() for part in zip(*self.held))
            self.held.clear()
            self.log("auc", auc(y, p))
            if not FIXED:
                low, high = auc_interval(y, p)  # here
                self.log_dict({"low": low, "high": high})

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, val_check_interval=25, num_sanity_val_steps=0)
    trainer.fit(Churn(), torch.utils.data.DataLoader(make_data(25600, 1), batch_size=256, shuffle=True),
                torch.utils.data.DataLoader(make_data(8000, 2), batch_size=1024))
    return 300


@job(15, "compute", HEALTHY, 60, FRAMEWORKS, never_first=r"longer 1st|first steps, beyond",
     note="no defect: a Trainer whose teacher is larger than its student; two batches make a step")
def t_distil_trainer():
    torch = pytorch()
    import transformers
    from transformers import BertConfig, BertForSequenceClassification
    F = torch.nn.functional
    transformers.logging.set_verbosity_error()

    def reviews(n, seed):
        g = np.random.default_rng(seed)
        y = g.integers(0, 2, n)
        x = g.integers(3, 2000, (n, 64))
        x = np.where(g.random((n, 64)) < 0.1, 3 + 50 * y[:, None] + g.integers(0, 50, (n, 64)), x)
        return [{"input_ids": a, "attention_mask": np.ones_like(a), "labels": int(b)} for a, b in zip(x, y)]

    def bert(layers, width):
        return BertForSequenceClassification(BertConfig(vocab_size=2000, hidden_size=width, num_hidden_layers=layers,
                                                        num_attention_heads=4, intermediate_size=4 * width,
                                                        max_position_embeddings=64, num_labels=2))

    teacher = bert(6, 192).eval()

    class Distiller(transformers.Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            out = model(**inputs)
            with torch.no_grad():
                goal = teacher(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits
            soft = F.kl_div(F.log_softmax(out.logits / 2, -1), F.softmax(goal / 2, -1), reduction="batchmean") * 4
            loss = 0.5 * out.loss + 0.5 * soft
            return (loss, out) if return_outputs else loss

    class Marks(transformers.TrainerCallback):
        def on_step_begin(self, *args, **more):
            mark()

    conf = transformers.TrainingArguments(
        output_dir=temporary("out"), max_steps=60, per_device_train_batch_size=8, per_device_eval_batch_size=32,
        gradient_accumulation_steps=2, learning_rate=3e-4, logging_steps=20, eval_strategy="steps", eval_steps=30, save_strategy="no",
        report_to=[], disable_tqdm=True, use_cpu=True)
    Distiller(bert(2, 128), conf, train_dataset=reviews(2000, 1), eval_dataset=reviews(128, 2), callbacks=[Marks()]).train()
    return 60


def ridge_trial(lr, dropout):
    import transformers
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    x = torch.rand(12000, 20)
    y = 10 * torch.sin(3.14 * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    net = nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Dropout(dropout), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
    opt = torch.optim.AdamW(net.parameters(), lr=lr)
    plan = transformers.get_linear_schedule_with_warmup(opt, 5, 60)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=160, shuffle=True)
    for a, b in itertools.islice(loader, 60):
        mark()
        loss = F.mse_loss(net(a).squeeze(1), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        plan.step()
    return 60


@job(15, "any", ["*", "-"], 60, FRAMEWORKS, says="import",
     note="four trials, a process each, one after another: importing takes far longer than their 60 steps")
def t_ridge_sweep():
    if os.environ.get("TRIAL"):
        return ridge_trial(*json.loads(os.environ["TRIAL"]))
    for conf in itertools.product([3e-4, 1e-3], [0.0, 0.2]):
        env = dict(os.environ, TRIAL=json.dumps(conf))
        done = subprocess.run([sys.executable, *sys.argv], env=env, capture_output=True, text=True, check=True)
    print(done.stdout.splitlines()[-1])
    sys.exit(0)


if __name__ == "__main__":
    main()
