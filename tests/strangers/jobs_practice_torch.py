"""Batch 5: PyTorch's jobs on the processor, as people write them: trainers with hooks, loops fed by hand, loaders, side threads."""
import hashlib
import json
import os
import random
import re
import socket
import sys
import time

import numpy as np
from stranger import FIXED, TORCH, fit, job, main, mark, pytorch, temporary, thread, wide_net


# Input.

@job(5, "any", ["input.*", "host.python"], 90, TORCH, twin=True,
     note="a loop fed by a plain generator: text is split by regular expressions and looked up word by word, on the training thread")
def p_pt_tokenize():
    torch = pytorch()
    rng = random.Random(1)
    words = ["w%d" % i for i in range(5000)]
    vocabulary = {w: i for i, w in enumerate(words)}
    texts = [" ".join(rng.choice(words) + rng.choice(",.;! ") for _ in range(260)) for _ in range(16)]
    pattern = re.compile(r"[a-z]+[0-9]+|[^\sa-z0-9]")

    def tokens(text):
        ids = []
        for piece in pattern.findall(text.lower()):  # here
            ids.append(vocabulary.get(piece, 0))  # here
        return ids[:128] + [0] * (128 - len(ids))  # here

    def batches():
        ready = torch.tensor([tokens(t) for t in texts], dtype=torch.float32) / 5000
        for _ in range(90):
            if FIXED:
                yield ready
            else:
                yield torch.tensor([tokens(t) for t in texts], dtype=torch.float32) / 5000  # here

    model, optimizer = wide_net(torch, 128, 384)
    for x in batches():  # here
        mark()
        fit(model, optimizer, x)
    return 90


@job(5, "input", ["input.read"], 80, TORCH, twin=True,
     note="DataLoader without workers over a folder of 2,000 small files, 40 of them opened for each batch of 8 samples, in page cache")
def p_pt_small_files():
    torch = pytorch()
    from torch.utils.data import DataLoader, Dataset
    for i in range(2000):
        with open(temporary("%04d.bin" % i), "wb") as f:
            f.write(np.full(512, i, np.float32).tobytes())

    class Parts(Dataset):
        def __len__(self):
            return 640

        def __getitem__(self, i):
            if FIXED:
                return torch.ones(128)
            parts = []
            for k in range(40):
                with open(temporary("%04d.bin" % ((i * 40 + k) % 2000)), "rb") as f:  # here
                    parts.append(np.frombuffer(f.read(), np.float32)[:128])  # here
            return torch.from_numpy(np.stack(parts).mean(0)) / 2000

    model, optimizer = wide_net(torch, 128, 256)
    for x in DataLoader(Parts(), batch_size=8):  # here
        mark()
        fit(model, optimizer, x)
    return 80


@job(5, "input", ["input.map", "input.cpu", "input.dataloader"], 80, TORCH, twin=True,
     note="one worker for a costly augmentation in numpy, row by row; the step is a third of it")
def p_pt_one_worker():
    torch = pytorch()
    from torch.utils.data import DataLoader, Dataset
    images = np.random.default_rng(1).random((16, 96, 96, 3)).astype("f")

    class Images(Dataset):
        def __len__(self):
            return 640

        def __getitem__(self, i):
            image = images[i % 16]
            if not FIXED:
                rng = np.random.default_rng(i)
                out = np.empty_like(image)
                for row in range(96):
                    shifted = np.roll(image[row], rng.integers(-4, 5), axis=0)  # here
                    out[row] = np.clip(shifted * rng.uniform(0.8, 1.2) + rng.normal(0, 0.01, shifted.shape), 0, 1)  # here
                image = out
            return torch.from_numpy(image.reshape(-1)[:512].copy())

    model, optimizer = wide_net(torch, 512, 512)
    for x in DataLoader(Images(), batch_size=8, num_workers=1):  # here
        mark()
        fit(model, optimizer, x)
    return 80


# Computing: nothing is wrong.

@job(5, "compute", ["compute.*"], 80, TORCH,
     note="no defect: an encoder layer on data from memory; a progress bar each step, mean loss each tenth")
def p_pt_healthy():
    torch = pytorch()
    from torch.utils.data import DataLoader, TensorDataset
    nn = torch.nn
    model = nn.Sequential(nn.TransformerEncoderLayer(96, 4, 256, batch_first=True), nn.Flatten(), nn.Linear(96 * 32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    data = TensorDataset(torch.randn(80 * 12, 32, 96), torch.randn(80 * 12, 1))
    running, n = 0.0, 0
    for x, y in DataLoader(data, batch_size=12, shuffle=True):
        mark()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
        n += 1
        sys.stderr.write("\r%3d%%|%-20s| %d/80" % (n * 100 // 80, "#" * (n // 4), n))
        if n % 10 == 0:
            print("step %d loss %.4f" % (n, running / 10), flush=True)
            running = 0.0
    return 80


# Hosts.

class Trainer:
    """A loop with hooks, as in libraries of trainers."""

    def __init__(self, model, optimizer, hooks):
        self.model, self.optimizer, self.hooks, self.step = model, optimizer, hooks, 0

    def call(self, name, *args):
        for hook in self.hooks:
            getattr(hook, name, lambda *_: None)(self, *args)

    def training_step(self, x):
        return self.model(x).square().mean()

    def fit(self, batches):
        for x in batches:
            mark()
            self.call("on_train_batch_start", x)
            self.optimizer.zero_grad()
            loss = self.training_step(x)
            loss.backward()
            self.optimizer.step()
            self.step += 1
            self.call("on_train_batch_end", loss)


class Table:
    """A hook that formats a table of all of the parameters' rows."""

    def on_train_batch_end(self, trainer, loss):
        if FIXED:
            return
        lines = []
        for name, p in trainer.model.named_parameters():
            for k, v in enumerate(p.detach().view(-1)[:1500].tolist()):
                lines.append("%-20s %5d %12.6f %s" % (name, k, v, "+" if v > 0 else "-"))  # here
        self.text = "\n".join(sorted(lines))  # here


@job(5, "host", ["host.callback", "host.python"], 90, TORCH, twin=True, at=(Table,),
     note="a trainer class with hooks, one of which formats a table of 5,000 rows at the end of each batch; fix: no table")
def p_pt_hook():
    torch = pytorch()
    model, optimizer = wide_net(torch, 256, 256)
    data = torch.randn(90, 32, 256)
    Trainer(model, optimizer, [Table()]).fit(data)
    return 90


@job(5, "host", ["host.wait", "host.logging"], 100, TORCH, twin=True,
     note="metrics are pushed over a local socket each step, and the loop waits for the answer (7 ms) of another process")
def p_pt_push():
    torch = pytorch()
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    child = os.fork()
    if not child:
        peer, _ = server.accept()
        while peer.recv(65536):
            time.sleep(0.007)
            peer.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        os._exit(0)
    metrics = socket.create_connection(("127.0.0.1", port))
    model, optimizer = wide_net(torch, 128, 384)
    x = torch.randn(32, 128)
    for i in range(100):
        mark()
        loss = fit(model, optimizer, x)
        if not FIXED:
            metrics.sendall(b"POST /loss %d %f\r\n\r\n" % (i, loss.item()))  # here
            metrics.recv(4096)  # here
    metrics.close()
    os.waitpid(child, 0)
    return 100


@job(5, "host", ["host.logging"], 150, TORCH, twin=True,
     note="gradients' figures as lines of JSON, flushed and synced to disk each step; fix: none are written")
def p_pt_fsync():
    torch = pytorch()
    model, optimizer = wide_net(torch, 128, 256)
    x = torch.randn(32, 128)
    with open(temporary("metrics.jsonl"), "w") as log:
        for i in range(150):
            mark()
            loss = fit(model, optimizer, x)
            if not FIXED:
                for name, p in model.named_parameters():
                    log.write(json.dumps({"step": i, "name": name, "loss": loss.item(), "norm": p.grad.norm().item()}) + "\n")  # here
                    log.flush()  # here
                    os.fsync(log.fileno())  # here
    return 150


@job(5, "host", ["host.python"], 160, TORCH, twin=True,
     note="grows ever slower: each step the median of all losses so far is taken from a list that is never cut; fix: no median")
def p_pt_leak():
    torch = pytorch()
    model, optimizer = wide_net(torch, 128, 256)
    x = torch.randn(32, 128)
    history = []
    for _ in range(160):
        mark()
        loss = fit(model, optimizer, x)
        if not FIXED:
            history.extend((loss - k * 1e-6).item() if k < 2 else random.random() for k in range(400))  # here
            below = sum(1 for a in history if a < history[-1])  # here
            smooth = 0.0
            for value in history:  # here
                smooth = 0.99 * smooth + 0.01 * value  # here
            assert below <= len(history) and smooth >= 0
    return 160


@job(5, "host", ["host.gil"], 480, TORCH, twin=True,
     note="an exporter thread writes JSON with an indent (Python code) all the time; the step is small operations; fix: no thread")
def p_pt_exporter():
    torch = pytorch()
    model, optimizer = wide_net(torch, 64, 64)
    x = torch.randn(8, 64)
    state = {"layer%d" % i: list(range(60)) for i in range(60)}
    running = [True]

    def export():
        while running[0]:
            json.dumps(state, indent=1)

    if not FIXED:
        exporter = thread(export)
    for _ in range(480):
        mark()
        fit(model, optimizer, x)
    running[0] = False
    if not FIXED:
        exporter.join()
    return 480


@job(5, "host", ["host.checkpoint"], 100, TORCH, twin=True,
     note="each fifth step model and optimizer (12 MB) are saved, read again for a checksum, synced and renamed; fix: none")
def p_pt_checksum():
    torch = pytorch()
    nn = torch.nn
    model = nn.Sequential(nn.Linear(256, 1000), nn.ReLU(), nn.Linear(1000, 700), nn.ReLU(), nn.Linear(700, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x = torch.randn(8, 256)

    def save():
        path = temporary("last.pt")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".tmp")  # here
        with open(path + ".tmp", "rb+") as f:
            digest = hashlib.blake2b(f.read()).hexdigest()  # here
            os.fsync(f.fileno())  # here
        os.replace(path + ".tmp", path)
        return digest

    for i in range(100):
        mark()
        fit(model, optimizer, x)
        if i % 5 == 4 and not FIXED:
            save()  # here
    return 100


if __name__ == "__main__":
    main()
