"""Batch 32: a small GPT and a server in PyTorch, on the processor, one thread each."""
import queue
import random
import time

import numpy as np
from stranger import FIXED, TORCH, job, main, mark, pytorch, temporary, thread

HEALTHY = ["compute.cpu", "compute.dense", "compute.dominant-op"]


@job(32, "compute", HEALTHY, 60, TORCH,
     note="healthy: a small GPT, its batches from a file in memory, four of them a step, an evaluation now and then")
def s_pt_nano():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    BLOCK, BATCH, VOCAB, ACCUMULATE, STEPS = 64, 8, 512, 4, 60
    path = temporary("train.bin")
    ((np.arange(2_000_000) * 7 + np.arange(2_000_000) // 11) % VOCAB).astype(np.uint16).tofile(path)

    def get_batch():
        data = np.memmap(path, dtype=np.uint16, mode="r")
        ix = torch.randint(len(data) - BLOCK - 1, (BATCH,))
        x = torch.stack([torch.from_numpy(data[i:i + BLOCK].astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + BLOCK].astype(np.int64)) for i in ix])
        return x, y

    class Block(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.n1, self.n2, self.heads = nn.LayerNorm(dim), nn.LayerNorm(dim), heads
            self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
            self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

        def forward(self, x):
            b, n, d = x.shape
            q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, d)
            x = x + self.proj(a)
            return x + self.mlp(self.n2(x))

    class GPT(nn.Module):
        def __init__(self, dim=128, depth=3):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(VOCAB, dim), nn.Embedding(BLOCK, dim)
            self.blocks, self.norm = nn.ModuleList(Block(dim, 4) for _ in range(depth)), nn.LayerNorm(dim)
            self.head = nn.Linear(dim, VOCAB, bias=False)
            self.head.weight = self.wte.weight

        def forward(self, x, y):
            h = self.wte(x) + self.wpe.weight[:x.shape[1]]
            for block in self.blocks:
                h = block(h)
            return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), y.flatten())

    @torch.no_grad()
    def estimate_loss():
        net.eval()
        out = torch.stack([net(*get_batch()) for _ in range(8)]).mean()
        net.train()
        return float(out)

    net = GPT()
    decay = [p for p in net.parameters() if p.dim() > 1]
    rest = [p for p in net.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=6e-4)
    x, y = get_batch()
    for it in range(STEPS):
        mark()
        for group in opt.param_groups:
            group["lr"] = 6e-4 * min(1, (it + 1) / 10)
        if it % 20 == 0:
            print("step %d val %.3f" % (it, estimate_loss()))
        for _ in range(ACCUMULATE):
            loss = net(x, y) / ACCUMULATE
            x, y = get_batch()
            loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        if it % 10 == 0:
            print("iter %d loss %.3f" % (it, loss.item() * ACCUMULATE))
    return STEPS


@job(32, "host", ["host.sleep", "host.wait", "host.lock"], 250, TORCH, twin=True,
     note="the server waits 25 ms for 16 requests, but its six clients wait for answers; fix: batches of six. "
          "A batch is a step")
def s_pt_serve_window():
    torch = pytorch()
    nn = torch.nn
    torch.manual_seed(0)
    BATCHES, CLIENTS = 250, 6
    vocab = {w: i for i, w in enumerate("abcdefghijklmnopqrstuvwxyz ")}

    class Classifier(nn.Module):
        def __init__(self, dim=128):
            super().__init__()
            self.embed = nn.Embedding(27, dim)
            layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, batch_first=True)
            self.body, self.head = nn.TransformerEncoder(layer, 3), nn.Linear(dim, 5)

        def forward(self, x):
            return self.head(self.body(self.embed(x)).mean(1)).softmax(-1)

    class Batcher:
        """Collects requests until the window is over, or the batch full."""

        def __init__(self, window=0.025, most=16):
            self.requests, self.window, self.most = queue.Queue(), window, most

        def collect(self):
            batch = [self.requests.get()]
            end = time.monotonic() + self.window
            while len(batch) < self.most and time.monotonic() < end:
                try:
                    batch.append(self.requests.get_nowait())
                except queue.Empty:
                    time.sleep(0.0002 if FIXED else 0.002)  # here
            return batch

        def ask(self, text):
            answer = queue.Queue()
            self.requests.put((text, answer))
            return answer.get()

    def client(n):
        rng = random.Random(n)
        while True:
            batcher.ask("".join(rng.choice("abcdefghij klmnop") for _ in range(48)))

    net, batcher, counts = Classifier().eval(), Batcher(most=CLIENTS if FIXED else 16), [0] * 5
    for n in range(CLIENTS):
        thread(client, n)
    served = 0
    with torch.inference_mode():
        while served < BATCHES:
            mark()
            batch = batcher.collect()  # here
            ids = torch.tensor([[vocab[c] for c in text] for text, _ in batch])
            out = net(ids)
            for (_, answer), row in zip(batch, out.tolist()):
                counts[int(np.argmax(row))] += 1
                answer.put(row)
            served += 1
            if served % 100 == 0:
                print("served %d batches, %s" % (served, counts))
    return served


if __name__ == "__main__":
    main()
