"""Batch 33: PyTorch's jobs, modelled on trainers of speakers, forecasts and transcripts, on the processor."""
import collections
import math
import os
import sys

import numpy as np
from stranger import FIXED, TORCH, finish, job, main, mark, pytorch, temporary

HEALTHY = ["compute.cpu", "compute.dense", "compute.dominant-op"]


@job(33, "host", ["host.python", "host.code"], 150, TORCH, twin=True,
     note="speaker verification: after each epoch 9,000 trials are scored pair by pair, which takes longer than the epoch; fix: "
          "all at once. The steps only compute")
def s_vox_trials():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    speakers, mels, frames, crops = 60, 40, 64, 4

    class Block(nn.Module):
        def __init__(self, dim, dilation):
            super().__init__()
            self.conv = nn.Conv1d(dim, dim, 3, padding=dilation, dilation=dilation)
            self.norm = nn.BatchNorm1d(dim)
            self.gate = nn.Sequential(nn.Linear(dim, dim // 4), nn.ReLU(), nn.Linear(dim // 4, dim), nn.Sigmoid())

        def forward(self, x):
            y = self.norm(F.relu(self.conv(x)))
            return x + y * self.gate(y.mean(2)).unsqueeze(2)

    class SpeakerNet(nn.Module):
        def __init__(self, dim=64, out=64):
            super().__init__()
            self.stem = nn.Conv1d(mels, dim, 5, padding=2)
            self.blocks = nn.Sequential(*[Block(dim, d) for d in (1, 2, 3)])
            self.attention = nn.Conv1d(dim, dim, 1)
            self.out = nn.Linear(2 * dim, out)
            self.w, self.b = nn.Parameter(torch.tensor(10.0)), nn.Parameter(torch.tensor(-5.0))

        def forward(self, x):
            h = self.blocks(self.stem(x))
            a = self.attention(h).softmax(2)
            mean = (a * h).sum(2)
            std = ((a * h * h).sum(2) - mean * mean).clamp(min=1e-6).sqrt()
            return self.out(torch.cat([mean, std], 1))

        def loss(self, pairs):
            cos = F.cosine_similarity(pairs[:, 0].unsqueeze(2), pairs[:, 1].T.unsqueeze(0))
            return F.cross_entropy(cos * self.w.clamp(min=1e-6) + self.b, torch.arange(len(pairs)))

    voices = torch.randn(speakers, mels, 1)

    def utterances(who, n):
        return voices[who].repeat_interleave(n, 0) + torch.randn(len(who) * n, mels, frames)

    held_out = torch.randint(speakers, (80,))
    trials = [(int(held_out[a] == held_out[b]), "utt%03d" % a, "utt%03d" % b) for a, b in torch.randint(80, (9000, 2)).tolist()]

    def equal_error(scores, labels):
        order = np.argsort(-np.asarray(scores))
        labels = np.asarray(labels)[order]
        accepted, false = np.cumsum(labels) / max(1, labels.sum()), np.cumsum(1 - labels) / max(1, (1 - labels).sum())
        return float(false[np.argmin(np.abs(1 - accepted - false))])

    def evaluate(net):
        net.eval()
        feats = {}
        with torch.no_grad():
            for i, who in enumerate(held_out):
                feats["utt%03d" % i] = net(utterances(who[None], crops))
        labels = [label for label, _, _ in trials]
        if FIXED:
            every = F.normalize(torch.stack(list(feats.values())), dim=2)
            at = {name: i for i, name in enumerate(feats)}
            left, right = (every[[at[t[side]] for t in trials]] for side in (1, 2))
            scores = -torch.cdist(left, right).mean((1, 2)).numpy()
        else:
            scores = []
            for _, a, b in trials:  # here
                left = F.normalize(feats[a], p=2, dim=1)  # here
                right = F.normalize(feats[b], p=2, dim=1)  # here
                distance = torch.cdist(left, right).detach().numpy()  # here
                scores.append(-float(np.mean(distance)))  # here
        net.train()
        return equal_error(scores, labels)

    net = SpeakerNet()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=2e-5)
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 2, 0.9)
    best = 1.0
    for epoch in range(6):
        total = 0.0
        for _ in range(25):
            mark()
            x = utterances(torch.randperm(speakers)[:24], 2)
            loss = net.loss(net(x).view(24, 2, -1))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        scheduler.step()
        error = evaluate(net)  # here
        if error <= best:
            best = error
            torch.save({"model": net.state_dict(), "optimizer": opt.state_dict(), "epoch": epoch}, temporary("best.pt"))
        print("epoch %d loss %.3f eer %.3f" % (epoch, total / 25, error))
    return 150


def mine(rank, world, port):
    """One of the processes of s_pt_gather_objects."""
    torch = pytorch()
    nn, F, dist = torch.nn, torch.nn.functional, torch.distributed
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    steps, batch, classes = 100, 384, 40
    model = nn.parallel.DistributedDataParallel(nn.Sequential(
        nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, classes)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 20))
    g = torch.Generator().manual_seed(rank)
    hard = collections.deque(maxlen=200)
    for step in range(steps):
        mark()
        x, y = torch.randn(batch, 128, generator=g), torch.randint(classes, (batch,), generator=g)
        logits = model(x)
        each = F.cross_entropy(logits, y, reduction="none", label_smoothing=0.1)
        opt.zero_grad(set_to_none=True)
        each.mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        warm.step()
        if FIXED:
            worst = each.detach().topk(8)
            everyones = [torch.empty(8) for _ in range(world)]
            dist.all_gather(everyones, worst.values)
            hard.extend(torch.cat(everyones).tolist())
        else:
            scores = logits.detach().softmax(1)
            first = step * batch
            rows = [{"image": "r%d-%06d" % (rank, first + i), "label": int(y[i]), "loss": float(each[i]),  # here
                     "scores": [float(s) for s in scores[i]]} for i in range(batch)]  # here
            gathered = [None] * world
            dist.all_gather_object(gathered, rows)  # here
            merged = sorted((r for part in gathered for r in part), key=lambda r: -r["loss"])  # here
            hard.extend(r["loss"] for r in merged[:16])
        if rank == 0 and step % 20 == 0:
            print("step %d loss %.3f hard %.3f" % (step, each.mean().item(), sum(hard) / len(hard)))
    if rank == 0:
        finish(steps)
    dist.destroy_process_group()


@job(33, "host", ["host.python", "host.code"], 100, TORCH, twin=True, at=(mine,),
     note="two ranks with DDP make a dictionary of each sample's scores and gather all as objects in each step, to find hard "
          "examples; fix: the eight largest losses as a tensor")
def s_pt_gather_objects():
    torch = pytorch()
    torch.multiprocessing.spawn(mine, args=(2, 29900 + os.getpid() % 90), nprocs=2)
    sys.exit(0)


@job(33, "compute", HEALTHY, 160, TORCH,
     note="no defect: a forecast from windows in memory; one cycle of the rate, averaged weights, validation, early stop")
def s_pt_forecast():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    past, ahead, channels = 96, 24, 7
    t = torch.arange(20000.0)
    series = torch.stack([torch.sin(t / (9 + 3 * c)) + 0.1 * torch.randn(len(t)) for c in range(channels)], 1)
    split = 16000
    mean, std = series[:split].mean(0), series[:split].std(0)
    windows = ((series - mean) / std).unfold(0, past + ahead, 1)

    class Residual(nn.Module):
        def __init__(self, a, b, hidden=256):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(a, hidden), nn.ReLU(), nn.Linear(hidden, b), nn.Dropout(0.1))
            self.skip, self.norm = nn.Linear(a, b), nn.LayerNorm(b)

        def forward(self, x):
            return self.norm(self.body(x) + self.skip(x))

    class Forecast(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Sequential(Residual(past, 256), Residual(256, 256))
            self.mix = nn.GRU(256, 96, batch_first=True, bidirectional=True)
            self.decode = nn.Sequential(Residual(448, 256), nn.Linear(256, ahead))
            self.straight = nn.Linear(past, ahead)

        def forward(self, x):
            h = self.encode(x)
            return self.decode(torch.cat([h, self.mix(h)[0]], 2)) + self.straight(x)

    net, average = Forecast(), Forecast()
    average.load_state_dict(net.state_dict())
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    cycle = torch.optim.lr_scheduler.OneCycleLR(opt, 2e-3, total_steps=160)
    best, patience, step, kept = math.inf, 0, 0, None
    for _ in range(4):
        for rows in torch.randperm(split - past - ahead).split(32)[:40]:
            mark()
            w = windows[rows]
            loss = F.huber_loss(net(w[..., :past]), w[..., past:])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            cycle.step()
            with torch.no_grad():
                torch._foreach_lerp_(list(average.parameters()), list(net.parameters()), 0.01)
            step += 1
            if step % 20 == 0:
                print("step %d loss %.4f rate %.5f" % (step, loss.item(), cycle.get_last_lr()[0]))
        average.eval()
        with torch.no_grad():
            w = windows[split:split + 256]
            error = F.mse_loss(average(w[..., :past]), w[..., past:]).item()
        average.train()
        patience = 0 if error < best else patience + 1
        if error < best:
            best, kept = error, {k: v.clone() for k, v in average.state_dict().items()}
        if patience == 5:
            break
    torch.save(kept, temporary("forecast.pt"))
    return step


@job(33, "host", ["host.python", "host.code"], 90, TORCH, twin=True,
     note="transcription: the beams of each utterance are searched in Python, by frames; fix: the best path. A batch is a step")
def s_ctc_beams():
    torch = pytorch()
    nn = torch.nn
    torch.manual_seed(0)
    letters = "_abcdefghijklmnopqrstuvwxyz' "

    class Acoustic(nn.Module):
        def __init__(self, dim=128):
            super().__init__()
            self.conv = nn.Sequential(nn.Conv1d(64, dim, 11, stride=2, padding=5), nn.Hardtanh(0, 20), nn.BatchNorm1d(dim))
            self.rnn = nn.GRU(dim, dim, 2, batch_first=True, bidirectional=True)
            self.head = nn.Linear(2 * dim, len(letters))

        def forward(self, x):
            h, _ = self.rnn(self.conv(x).transpose(1, 2))
            return self.head(h)

    def log_add(*values):
        top = max(values)
        return top if top == -math.inf else top + math.log(sum(math.exp(v - top) for v in values))

    def beam_search(frames, width=6, prune=-6.0):
        beams = [((), (0.0, -math.inf))]
        for row in frames:
            following = collections.defaultdict(lambda: (-math.inf, -math.inf))
            for c, p in enumerate(row):  # here
                if p < prune:
                    continue
                for prefix, (blank, other) in beams:  # here
                    if c == 0:
                        b, o = following[prefix]
                        following[prefix] = (log_add(b, blank + p, other + p), o)  # here
                        continue
                    last = prefix[-1] if prefix else None
                    longer = prefix + (c,)
                    b, o = following[longer]
                    if c == last:
                        following[longer] = (b, log_add(o, blank + p))  # here
                        b, o = following[prefix]
                        following[prefix] = (b, log_add(o, other + p))  # here
                    else:
                        following[longer] = (b, log_add(o, blank + p, other + p))  # here
            beams = sorted(following.items(), key=lambda kv: log_add(*kv[1]), reverse=True)[:width]  # here
        return "".join(letters[c] for c in beams[0][0])

    def best_path(frames):
        path = torch.tensor(frames).argmax(1).unique_consecutive().tolist()
        return "".join(letters[c] for c in path if c)

    net = Acoustic().eval()
    g = torch.Generator().manual_seed(1)
    with open(temporary("transcripts.txt"), "w") as out, torch.inference_mode():
        for batch in range(90):
            mark()
            audio = torch.randn(8, 64, 240, generator=g)
            one, other = nn.functional.one_hot(torch.randint(len(letters), (2, 8, 120), generator=g), len(letters))
            planted = 9.0 * one + 7.5 * other
            emissions = (net(audio) + planted).log_softmax(2)
            for i, frames in enumerate(emissions.tolist()):
                out.write("%d-%d %s\n" % (batch, i, best_path(frames) if FIXED else beam_search(frames)))  # here
    return 90


if __name__ == "__main__":
    main()
