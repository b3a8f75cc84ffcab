"""Jobs of PyTorch's frameworks and tools as people write them, of tests/gpu/strangers.py."""
import io
import random
import sys

from jobs import Turn
from stranger import CPU, DEVICE, job, size, summed, sync, usual_step, wide_net


def language_model():
    """An encoder over tokens, 75 million parameters: 7 TFLOP a step with 16,384 tokens."""
    import torch
    from torch import nn
    torch.manual_seed(0)
    width, depth = size(1024, 32), size(6, 1)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(4096, width)
            layer = nn.TransformerEncoderLayer(width, size(16, 2), 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
            self.head = nn.Linear(width, 4096)

        def forward(self, tokens):
            return nn.functional.cross_entropy(self.head(self.body(self.embed(tokens))).flatten(0, 1).float(), tokens.flatten())

    return Model()


def tokens(count):
    import torch
    return torch.randint(0, 4096, (count, size(512, 16)))


def warm(net, *batch):
    """Libraries loaded and kernels chosen before the loop."""
    import torch
    net.to(DEVICE)
    for _ in range(2):
        with torch.autocast(DEVICE, torch.bfloat16):
            out = net(*[x.to(DEVICE) for x in batch])
        getattr(out, "logits", out).float().mean().backward()
    net.zero_grad(set_to_none=True)
    sync()


# HuggingFace.

def gpt2_trainer(steps, layers, width, rows, data, collator=None, workers=0):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=4096, n_positions=512, n_embd=width, n_layer=layers, n_head=size(8, 2)))
    ids = torch.zeros(rows, size(512, 16), dtype=torch.long)
    warm(model, ids)
    turn = Turn()

    class Timed(TrainerCallback):
        def on_train_begin(self, *_, **__):
            turn.__enter__()

        def on_train_end(self, *_, **__):
            turn.__exit__()

    args = TrainingArguments(output_dir="trainer", max_steps=steps, per_device_train_batch_size=rows, bf16=not CPU, use_cpu=CPU,
                             report_to="none", save_strategy="no", logging_steps=20, disable_tqdm=True,
                             dataloader_num_workers=workers, dataloader_pin_memory=not CPU, remove_unused_columns=False)
    trainer = Trainer(model=model, args=args, train_dataset=data, data_collator=collator, callbacks=[Timed()])
    stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        loss = trainer.train().training_loss
    finally:
        sys.stdout = stdout
    return turn.seconds, loss


@job(60, "compute-bound", needs="transformers")
def hf_trainer(steps, fixed):
    # 100 million parameters and 8,192 tokens a step; samples are ready in memory.
    rows = size(16, 2)
    ids = tokens(rows * (steps + 4)) % 4096
    return gpt2_trainer(steps, size(8, 1), size(1024, 32), rows, [{"input_ids": row, "labels": row} for row in ids])


class SlowTokenizer:
    """The longest piece first, character by character, as one writes it before one knows of fast tokenizers."""

    def __init__(self, length):
        self.length = length
        self.pieces = {chr(97 + i % 26) + chr(97 + i // 26 % 26) * (i // 676 + 1): i for i in range(4000)}

    def __call__(self, rows):
        import torch
        batch = []
        for row in rows:
            ids, text, at = [], row["text"], 0
            while at < len(text):
                for n in range(10, 1, -1):
                    if text[at:at + n] in self.pieces:
                        break
                ids.append(self.pieces.get(text[at:at + n], 0))
                at += 1 if n == 2 else n
            batch.append((ids + [0] * self.length)[:self.length])
        ids = torch.tensor(batch)
        return {"input_ids": ids, "labels": ids}


@job(40, "input-bound", "input.dataloader", "input.batch", "input.decode", "input.map", needs="transformers", twin=True)
def hf_tokenize(steps, fixed):
    # The collator tokenizes 16 texts of 2,500 letters in the loop's own process, tens of ms a step; the twin has eight workers.
    rng = random.Random(0)
    texts = [{"text": "".join(rng.choices("abcdefghijklmnop", k=size(2500, 200)))} for _ in range(64)]
    rows = size(16, 2)
    data = [texts[i % 64] for i in range(rows * (steps + 4))]
    return gpt2_trainer(steps, size(4, 1), size(512, 32), rows, data, SlowTokenizer(size(512, 16)), 8 if fixed else 0)


@job(80, "compute-bound", needs="accelerate")
def accelerate_loop(steps, fixed):
    # The loop of accelerate's own examples, with clipping and a schedule.
    import torch
    from accelerate import Accelerator
    from torch.utils.data import DataLoader, TensorDataset
    accelerator = Accelerator(mixed_precision="no" if CPU else "bf16", cpu=CPU)
    rows = size(32, 2)
    net = language_model()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: 1 / (1 + i))
    loader = DataLoader(TensorDataset(tokens(rows * steps)), batch_size=rows, shuffle=True, pin_memory=not CPU)
    warm(net, tokens(rows))
    net, opt, loader, schedule = accelerator.prepare(net, opt, loader, schedule)
    total = torch.zeros((), device=accelerator.device)
    with Turn() as turn:
        for batch, in loader:
            loss = net(batch)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            schedule.step()
            opt.zero_grad()
            total += loss.detach()
        total = total.item()
    return turn.seconds, total


# Lightning.

def lightning_fit(steps, net, loader, sample, log=None):
    import lightning
    import torch
    import logging
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warm(net, *sample)

    class Task(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.turn, self.total = net, Turn(), 0

        def on_train_start(self):
            self.turn.__enter__()

        def training_step(self, batch, i):
            loss = self.net(*batch)
            self.total = self.total + loss.detach()
            return loss

        def on_after_backward(self):
            if log:
                log(self)

        def on_train_end(self):
            self.total = float(self.total)
            self.turn.__exit__()

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-4)

    task = Task()
    trainer = lightning.Trainer(max_steps=steps, accelerator="cpu" if CPU else "gpu", devices=1, logger=False,
                                precision="32-true" if CPU else "bf16-mixed", enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(task, loader)
    return task.turn.seconds, task.total


@job(80, "compute-bound", needs="lightning")
def lightning_loop(steps, fixed):
    from torch.utils.data import DataLoader, TensorDataset
    rows = size(32, 2)
    loader = DataLoader(TensorDataset(tokens(rows * steps)), batch_size=rows, shuffle=True, num_workers=2, pin_memory=not CPU)
    return lightning_fit(steps, language_model(), loader, [tokens(rows)])


def image_net():
    """A small network over images that returns its loss."""
    import torch
    from torch import nn
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 32, 7, 4), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(),
                                      nn.Conv2d(64, 64, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                      nn.Linear(64, 10))

        def forward(self, x, y):
            return nn.functional.cross_entropy(self.body(x).float(), y)

    return Net()


@job(24, "input-bound", "input.dataloader", "input.map", "input.decode", needs="lightning", twin=True)
def lightning_transform(steps, fixed):
    # Jitter, a flip and a blur in NumPy, 5 ms for each of 8 images, in the loop's own process; the twin has eight workers.
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Images(Dataset):
        raw = np.random.default_rng(0).integers(0, 255, (8, 256, 256, 3), dtype=np.uint8)

        def __len__(self):
            return 8 * steps

        def __getitem__(self, i):
            image = self.raw[i % 8].astype(np.float64) / 255
            image = np.clip(image * np.random.uniform(0.8, 1.2, 3) + np.random.normal(0, 0.02, image.shape), 0, 1)
            for axis in (0, 1):
                image = sum(np.roll(image, k, axis) for k in (-1, 0, 1)) / 3
            top, left = np.random.randint(0, 32, 2)
            image = image[top:top + 224, left:left + 224][:, ::random.choice((1, -1))]
            return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1), dtype=np.float32)), i % 10

    loader = DataLoader(Images(), batch_size=8, num_workers=8 if fixed else 0, pin_memory=not CPU)
    return lightning_fit(steps, image_net(), loader, [torch.zeros(8, 3, 224, 224), torch.arange(8)])


@job(50, "host-bound", "host.sync", "host.logging", "host.python", needs="lightning", twin=True)
def lightning_log(steps, fixed):
    # Each parameter's gradient norm is fetched with .item() and logged each step, 84 waits; the twin logs none.
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(41)], nn.Linear(512, 10))

        def forward(self, x, y):
            return nn.functional.cross_entropy(self.body(x).float(), y)

    def log(task):
        for name, p in task.net.named_parameters():
            task.log("grad/" + name, p.grad.norm().item())

    data = TensorDataset(torch.randn(64 * steps, 512), torch.arange(64 * steps) % 10)
    return lightning_fit(steps, Net(), DataLoader(data, batch_size=64), [torch.zeros(64, 512), torch.arange(64) % 10],
                         None if fixed else log)


# Vision.

@job(24, "input-bound", "input.decode", "input.dataloader", "input.map", needs="torchvision", twin=True)
def resnet_jpeg(steps, fixed):
    # 32 JPEG files from memory a step, about 5 ms each, and two workers for them; the twin has fourteen.
    import numpy as np
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset
    from torchvision import models, transforms
    torch.manual_seed(0)
    rows, files = size(32, 4), []
    for i in range(16):
        coarse = np.random.default_rng(i).integers(0, 255, (40, 50, 3), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(coarse).resize((640, 480)).save(file, "JPEG", quality=92)
        files.append(file.getvalue())
    transform = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                    transforms.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))])

    class Files(Dataset):
        def __len__(self):
            return rows * (steps + 2)

        def __getitem__(self, i):
            return transform(Image.open(io.BytesIO(files[i % 16])).convert("RGB")), i % 100

    net = models.resnet18(num_classes=100).to(DEVICE, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step(x, y):
        x = x.to(DEVICE, non_blocking=True, memory_format=torch.channels_last)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(net(x), y.to(DEVICE, non_blocking=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    loader = iter(DataLoader(Files(), batch_size=rows, num_workers=14 if fixed else 2, pin_memory=not CPU))
    total = torch.zeros((), device=DEVICE)
    for _ in range(2):
        step(*next(loader))
    with Turn() as turn:
        for x, y in loader:
            total += step(x, y)
        total = total.item()
    return turn.seconds, total


@job(60, "compute-bound", needs="timm")
def timm_amp(steps, fixed):
    # ViT-S in half precision with a GradScaler and 256 images a step that are on the device.
    import timm
    import torch
    torch.manual_seed(0)
    net = timm.create_model(size("vit_small_patch16_224", "vit_tiny_patch16_224"), pretrained=False, num_classes=100).to(DEVICE)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler(DEVICE, enabled=not CPU)
    rows = size(256, 1)
    x, y = torch.randn(rows, 3, 224, 224, device=DEVICE), torch.arange(rows, device=DEVICE) % 100

    def step():
        opt.zero_grad()
        with torch.autocast(DEVICE, size(torch.float16, torch.bfloat16)):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        return loss.detach()

    return summed(step, steps)


@job(60, "compute-bound")
def gan(steps, fixed):
    # A DCGAN with its two optimizers and the tutorial's four .item() a step: 20 ms of convolutions make them harmless.
    import torch
    from torch import nn
    torch.manual_seed(0)
    f, rows = size(64, 4), size(512, 4)

    def up(a, b, *how):
        return [nn.ConvTranspose2d(a, b, 4, *how, bias=False), nn.BatchNorm2d(b), nn.ReLU(True)]

    def down(a, b):
        return [nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2, True)]

    make = nn.Sequential(*up(100, 8 * f, 1, 0), *up(8 * f, 4 * f, 2, 1), *up(4 * f, 2 * f, 2, 1), *up(2 * f, f, 2, 1),
                         nn.ConvTranspose2d(f, 3, 4, 2, 1, bias=False), nn.Tanh()).to(DEVICE)
    judge = nn.Sequential(*down(3, f), *down(f, 2 * f), *down(2 * f, 4 * f), *down(4 * f, 8 * f),
                          nn.Conv2d(8 * f, 1, 4, 1, 0, bias=False), nn.Flatten(0)).to(DEVICE)
    opt_d = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_g = torch.optim.Adam(make.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real = torch.randn(rows, 3, 64, 64, device=DEVICE)
    bce, one, zero = nn.BCEWithLogitsLoss(), torch.ones(rows, device=DEVICE), torch.zeros(rows, device=DEVICE)

    def step():
        judge.zero_grad()
        out = judge(real)
        loss = bce(out, one)
        loss.backward()
        d_x = out.mean().item()
        fake = make(torch.randn(rows, 100, 1, 1, device=DEVICE))
        other = bce(judge(fake.detach()), zero)
        other.backward()
        opt_d.step()
        make.zero_grad()
        loss_g = bce(judge(fake), one)
        loss_g.backward()
        opt_g.step()
        return loss.item() + other.item() + loss_g.item() + 0 * d_x

    for _ in range(3):
        step()
    with Turn() as turn:
        total = sum(step() for _ in range(steps))
    return turn.seconds, total


# PyTorch's own tools.

def compiled_loop(steps, net, x, y, **how):
    import torch
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    forward = torch.compile(net, **how) if how else net
    return summed(lambda: usual_step(forward, opt, x, y)[0], steps, warm=5)


@job(300, "compute-bound", needs="triton")
def compile_default(steps, fixed):
    return compiled_loop(steps, *wide_net(size(4096, 64), 4, size(4096, 32)), mode="default")


# Small layers as CUDA graphs: whether the device's 3 us kernels or what is left of Python is longer depends on the machine.
@job(400, None, needs="triton")
def compile_graphs(steps, fixed):
    return compiled_loop(steps, *wide_net(256, 20, 64), mode="reduce-overhead")


@job(300, "host-bound", "host.launch", twin=True)
def eager_small(steps, fixed):
    # Forty layers of a few us each, launched one by one; the twin compiles them to CUDA graphs.
    return compiled_loop(steps, *wide_net(256, 40, 64), **(dict(mode="reduce-overhead") if fixed else {}))


@job(40, "compute-bound")
def accumulate(steps, fixed):
    # Four micro-batches to a step of the optimizer: 40 steps, or 160 by who counts batches.
    import torch
    net = language_model()
    rows = size(16, 2)
    batches = tokens(rows * 8).to(DEVICE).split(rows)
    warm(net, batches[0])
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
    total = torch.zeros((), device=DEVICE)
    with Turn() as turn:
        for i in range(steps * 4):
            with torch.autocast(DEVICE, torch.bfloat16):
                loss = net(batches[i % 8]) / 4
            loss.backward()
            total += loss.detach()
            if i % 4 == 3:
                opt.step()
                opt.zero_grad()
        total = total.item()
    return turn.seconds, total


# cuDNN's own launches for short steps of a sequence may take the host longer than the device: compute or host.launch.
@job(50, None)
def lstm_packed(steps, fixed):
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence
    torch.manual_seed(0)
    width, rows, longest = size(1024, 16), size(64, 4), size(200, 10)
    net = nn.LSTM(width, width, 2, batch_first=True).to(DEVICE)
    head = nn.Linear(width, 16).to(DEVICE)
    opt = torch.optim.Adam([*net.parameters(), *head.parameters()])
    x, y = torch.randn(rows, longest, width, device=DEVICE), torch.arange(rows, device=DEVICE) % 16
    rng = random.Random(0)

    def step():
        lengths = sorted((rng.randint(longest // 4, longest) for _ in range(rows)), reverse=True)
        packed = pack_padded_sequence(x[:, :lengths[0]], torch.tensor(lengths), batch_first=True)
        loss = nn.functional.cross_entropy(head(net(packed)[1][0][-1]), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        return loss.detach()

    return summed(step, steps)


@job(40, "input-bound", "input.dataloader", "input.batch", "input.map", "input.generator", needs="torch_geometric", twin=True)
def gnn_sample(steps, fixed):
    # Two hops of neighbours drawn in Python by the loader's collate function, in the loop's process; the twin has eight workers.
    import torch
    from torch.utils.data import DataLoader
    from torch_geometric.nn import SAGEConv
    torch.manual_seed(0)
    rng, nodes, seeds = random.Random(0), size(20000, 500), size(256, 16)
    near = [[rng.randrange(nodes) for _ in range(20)] for _ in range(nodes)]
    features = torch.randn(nodes, 128)

    def sample(batch):
        ids, place, edges, front = list(batch), {n: i for i, n in enumerate(batch)}, [], list(batch)
        for fanout in (15, 10):
            found = []
            for node in front:
                for other in rng.sample(near[node], fanout):
                    if other not in place:
                        place[other] = len(ids)
                        ids.append(other)
                        found.append(other)
                    edges.append((place[other], place[node]))
            front = found
        return features[torch.tensor(ids)], torch.tensor(edges).t().contiguous(), torch.tensor(batch) % 16

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = SAGEConv(128, 256), SAGEConv(256, 16)

        def forward(self, x, edges):
            return self.second(self.first(x, edges).relu(), edges)

    net = Net().to(DEVICE)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    loader = iter(DataLoader(range(seeds * (steps + 3)), batch_size=seeds, collate_fn=lambda b: sample([n % nodes for n in b]),
                             num_workers=8 if fixed else 0, pin_memory=not CPU))

    def step(x, edges, y):
        out = net(x.to(DEVICE, non_blocking=True), edges.to(DEVICE, non_blocking=True))[:len(y)]
        loss = torch.nn.functional.cross_entropy(out, y.to(DEVICE, non_blocking=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    for _ in range(3):
        step(*next(loader))
    total = torch.zeros((), device=DEVICE)
    with Turn() as turn:
        for batch in loader:
            total += step(*batch)
        total = total.item()
    return turn.seconds, total
