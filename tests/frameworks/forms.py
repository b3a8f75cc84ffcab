"""Training jobs of PyTorch's in the forms that people write them: kinds of loaders, precision, compiled models, several
processes, and the trainers of Lightning and HuggingFace. FIX=1 runs a job's twin, without its defect.
"""
import json
import logging
import os
import random
import socket
import sys
import time
import zlib

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "strangers"))
from stranger import BATCHES, FIXED, MENDED_ON, job, main, mark, pytorch, temporary  # noqa: E402

BATCHES["forms"] = "confirm"
MENDED_ON.update(("gradient_norms", "padding", "trainer_collator", "two_processes"))
ENV = "frameworks"
PACKED = zlib.compress(bytes(range(256)) * 1024, 9)


def net(torch):
    """8 to 15 ms a step, nearly all of it multiplying matrices."""
    nn = torch.nn

    class Frames(nn.Sequential):
        def forward(self, x):
            return super().forward(x).mean(1)
    return Frames(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def adam(torch, model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(torch, model, optimizer, x, y):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def batch(torch):
    return torch.randn(16, 16, 256), torch.arange(16) % 10


def inflate(times):
    for _ in range(0 if FIXED else times):
        zlib.decompress(PACKED)  # here


def count_words(n):
    counts = {}
    for k in range(n):
        counts[k % 97] = counts.get(k % 97, 0) + 1  # here
    return counts


try:
    from torch.utils.data import Dataset, IterableDataset
except ImportError:  # the table is read without PyTorch
    Dataset = IterableDataset = object


class Frames(Dataset):
    """Samples that are in memory."""

    def __init__(self, n):
        import torch
        self.n, self.x = n, torch.randn(32, 16, 256)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        self.slow(i)
        return self.x[i % 32], i % 10

    def slow(self, i):
        pass


class Inflated(Frames):
    def slow(self, i):
        inflate(12)


# Loaders.

@job("forms", "input", ["input.map", "input.decode"], 60, ENV, twin=True, at=(inflate,),
     note="one worker, started by spawn, inflates each sample")
def spawned_worker():
    torch = pytorch()
    model = net(torch)
    optimizer = adam(torch, model)
    for x, y in torch.utils.data.DataLoader(Inflated(960), batch_size=16, num_workers=1, multiprocessing_context="spawn"):
        mark()
        train(torch, model, optimizer, x, y)
    return 60


@job("forms", "input", ["input.map", "input.read"], 60, ENV, twin=True, note="a stream of samples from a slow store, read as they come")
def slow_stream():
    torch = pytorch()

    class Store(IterableDataset):
        def __iter__(self):
            x = torch.randn(16, 256)
            for i in range(960):
                if not FIXED:
                    time.sleep(0.0008)  # here
                yield x, i % 10

    model = net(torch)
    optimizer = adam(torch, model)
    for x, y in torch.utils.data.DataLoader(Store(), batch_size=16):
        mark()
        train(torch, model, optimizer, x, y)
    return 60


@job("forms", "input", ["input.map"], 90, ENV, twin=True, at=(count_words,),
     note="two workers that stay for three epochs; features are counted in Python for each sample")
def persistent_workers():
    torch = pytorch()

    class Counted(Frames):
        def slow(self, i):
            if not FIXED:
                count_words(40000)  # here

    model = net(torch)
    optimizer = adam(torch, model)
    loader = torch.utils.data.DataLoader(Counted(480), batch_size=16, num_workers=2, persistent_workers=True)
    for _ in range(3):
        for x, y in loader:
            mark()
            train(torch, model, optimizer, x, y)
    return 90


@job("forms", "input", ["input.read"], 60, ENV, twin=True, note="pinned batches where there is no GPU; each sample is a file of 2 MB that is read again")
def pinned_files():
    torch = pytorch()
    path = temporary("frames.bin")
    with open(path, "wb") as f:
        f.write(os.urandom(2 << 20))

    class Files(Frames):
        def slow(self, i):
            if not FIXED:
                with open(path, "rb") as f:
                    f.read()  # here

    model = net(torch)
    optimizer = adam(torch, model)
    for x, y in torch.utils.data.DataLoader(Files(960), batch_size=16, pin_memory=True):
        mark()
        train(torch, model, optimizer, x, y)
    return 60


@job("forms", "input", ["input.batch"], 60, ENV, twin=True, note="lists of different lengths are padded by a collate function in Python")
def padding():
    torch = pytorch()

    def pad(samples):
        if not FIXED:
            lists = [list(range(3000 + i % 50)) for _, i in samples]
            longest = max(map(len, lists))
            for values in lists:
                values = [v * 2 for v in values] + [0] * (longest - len(values))  # here
        return torch.utils.data.default_collate(samples)

    model = net(torch)
    optimizer = adam(torch, model)
    for x, y in torch.utils.data.DataLoader(Frames(960), batch_size=16, collate_fn=pad):
        mark()
        train(torch, model, optimizer, x, y)
    return 60


# Precision, compiled models, gathered gradients, several processes.

@job("forms", "compute", ["compute.cpu"], 60, ENV, note="no defect: bfloat16 by autocast, batches in memory")
def half_precision():
    torch = pytorch()
    model = net(torch)
    optimizer = adam(torch, model)
    for x, y in torch.utils.data.DataLoader(Frames(960), batch_size=16):
        with torch.autocast("cpu", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return 60


@job("forms", "host", ["host.python"], 60, ENV, twin=True, at=(count_words,), note="a compiled model; words are counted in Python behind each step")
def compiled_model():
    torch = pytorch()
    model = net(torch)
    compiled = torch.compile(model)
    optimizer = adam(torch, model)
    for x, y in torch.utils.data.DataLoader(Frames(960), batch_size=16):
        mark()
        train(torch, compiled, optimizer, x, y)
        if not FIXED:
            count_words(100000)  # here
    return 60


@job("forms", "host", ["host.logging"], 40, ENV, twin=True, note="gradients of three batches; each update writes 300 lines to a log")
def gathered_gradients():
    torch = pytorch()
    log = logging.getLogger("training")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(logging.FileHandler(temporary("training.log")))
    model = net(torch)
    optimizer = adam(torch, model)
    loader = torch.utils.data.DataLoader(Frames(1920), batch_size=16)
    for i, (x, y) in enumerate(loader):
        if i % 3 == 0:
            mark()
            optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y) / 3
        loss.backward()
        if i % 3 == 2:
            optimizer.step()
            for name in range(0 if FIXED else 1200):
                log.info("update %d, value %d: %f", i // 3, name, 0.5)  # here
    return 40


@job("forms", "input", ["input.*"], 60, ENV, twin=True, note="two processes exchange gradients (gloo); the loader of both is slow")
def two_processes():
    torch = pytorch()
    rank = int(os.environ.get("RANK", -1))
    if rank < 0:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            os.environ.update(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(s.getsockname()[1]), RANK="0")
        import subprocess
        other = subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, RANK="1"), stdout=subprocess.DEVNULL)
        two_processes()
        if other.wait():
            raise SystemExit("the other process failed")
        return 60
    torch.distributed.init_process_group("gloo")

    class Slow(Frames):
        def slow(self, i):
            if not FIXED:
                time.sleep(0.002)  # here

    model = torch.nn.parallel.DistributedDataParallel(net(torch))
    optimizer = adam(torch, model)
    for x, y in torch.utils.data.DataLoader(Slow(960), batch_size=16):
        mark()
        train(torch, model, optimizer, x, y)
    torch.distributed.destroy_process_group()
    return 60


# Between steps.

@job("forms", "host", ["host.checkpoint"], 100, ENV, twin=True, note="torch.save of the model, its optimizer and 60 MB more each tenth step")
def checkpoints():
    torch = pytorch()
    model = net(torch)
    optimizer = adam(torch, model)
    average = torch.ones(15 << 20)
    for i in range(100):
        mark()
        train(torch, model, optimizer, *batch(torch))
        if i % 10 == 9 and not FIXED:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "average": average}, temporary("last.pt"))  # here
    return 100


@job("forms", "host", ["host.python", "host.logging"], 60, ENV, twin=True, note="TensorBoard gets a histogram of all weights each step")
def histograms():
    torch = pytorch()
    from torch.utils.tensorboard import SummaryWriter
    writer = SummaryWriter(temporary("board"))
    model = net(torch)
    optimizer = adam(torch, model)
    x, y = batch(torch)
    for i in range(60):
        mark()
        loss = train(torch, model, optimizer, x, y)
        writer.add_scalar("loss", loss.item(), i)
        if not FIXED:
            for name, weights in model.named_parameters():
                writer.add_histogram(name, weights, i)  # here
    writer.close()
    return 60


@job("forms", "host", ["host.python"], 60, ENV, twin=True, note="the norm of each gradient is summed value by value, over lists")
def gradient_norms():
    torch = pytorch()
    model = net(torch)
    optimizer = adam(torch, model)
    x, y = batch(torch)
    for _ in range(60):
        mark()
        train(torch, model, optimizer, x, y)
        if not FIXED:
            norm = 0.0
            for p in model.parameters():
                for value in p.grad.flatten()[:40000].tolist():  # here
                    norm += value * value  # here
    return 60


# Trainers of others.

def tiny_bert(torch):
    from transformers import BertConfig, BertForSequenceClassification
    return BertForSequenceClassification(BertConfig(vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
                                                    intermediate_size=256, max_position_embeddings=128, num_labels=2))


class Sentences(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"input_ids": list(range(i % 7, i % 7 + 64)), "labels": i % 2}


def stacked(samples):
    import torch
    mark()
    return {k: torch.tensor([s[k] for s in samples]) for k in ("input_ids", "labels")}


def padded(samples):
    for s in samples if not FIXED else ():
        s["input_ids"] = [v for v in list(s["input_ids"]) * 600][:64]  # here
    return stacked(samples)


def trained(collate, callbacks):
    import torch
    from transformers import Trainer, TrainingArguments
    how = TrainingArguments(temporary("out"), max_steps=60, per_device_train_batch_size=16, report_to=[], save_strategy="no", use_cpu=True,
                            disable_tqdm=True, logging_strategy="no")
    Trainer(model=tiny_bert(torch), args=how, train_dataset=Sentences(960), data_collator=collate, callbacks=callbacks).train()
    return 60


@job("forms", "input", ["input.batch"], 60, ENV, twin=True, at=(padded,), note="HuggingFace's Trainer; the data collator pads in Python")
def trainer_collator():
    pytorch()
    return trained(padded, [])


@job("forms", "host", ["host.python", "host.callback"], 60, ENV, twin=True, at=(count_words,), note="HuggingFace's Trainer; a callback counts words behind each step")
def trainer_callback():
    pytorch()
    from transformers import TrainerCallback

    class Count(TrainerCallback):
        def on_step_end(self, args, state, control, **more):
            if not FIXED:
                count_words(200000)  # here
    return trained(stacked, [Count()])


def lightning_fit(data, callbacks):
    import warnings

    import lightning
    import torch
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net(torch)

        def training_step(self, both, i):
            mark()
            x, y = both
            return torch.nn.functional.cross_entropy(self.net(x), y)

        def configure_optimizers(self):
            return adam(torch, self.net)

    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, callbacks=callbacks)
    trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=16))
    return 80


@job("forms", "input", ["input.map"], 80, ENV, twin=True, note="Lightning; each sample draws its noise value by value")
def lightning_data():
    pytorch()

    class Noisy(Frames):
        def slow(self, i):
            if not FIXED:
                sum(random.gauss(0, 1) for _ in range(1500))  # here
    return lightning_fit(Noisy(640), [])


@job("forms", "host", ["host.sleep", "host.callback"], 80, ENV, twin=True, note="Lightning; a callback waits for a quota behind each batch")
def lightning_callback():
    pytorch()
    import lightning

    class Quota(lightning.Callback):
        def on_train_batch_end(self, *args):
            if not FIXED:
                time.sleep(0.008)  # here
    return lightning_fit(Frames(640), [Quota()])


if __name__ == "__main__":
    main()
