"""Batch 35: a boundary loss, a translator's validation, two ranks and a graph's net in PyTorch, on the processor."""
import json
import os
import subprocess
import sys
import time

import numpy as np
from stranger import FIXED, LIBRARIES, MARKS, TORCH, job, main, mark, pytorch, temporary

HEALTHY = ["compute.cpu", "compute.dense", "compute.dominant-op"]


@job(35, "host", ["host.code", "host.python"], 120, LIBRARIES, twin=True,
     note="the boundary loss makes the distance maps of all masks anew in each step; fix: once for each mask, with the data")
def s_pt_boundary_loss():
    torch = pytorch()
    from scipy.ndimage import distance_transform_edt
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    SIZE, CLASSES = 96, 6
    g = np.random.default_rng(0)

    def block(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())

    class UNet(nn.Module):
        def __init__(self, c=6):
            super().__init__()
            self.stem = nn.Conv2d(1, c, 4, 4)
            self.d1, self.d2, self.mid = block(c, c), block(c, 2 * c), block(2 * c, 4 * c)
            self.u2, self.u1, self.out = block(6 * c, 2 * c), block(3 * c, c), nn.Conv2d(c, CLASSES, 1)

        def forward(self, x):
            a = self.d1(self.stem(x))
            b = self.d2(F.max_pool2d(a, 2))
            m = self.mid(F.max_pool2d(b, 2))
            m = self.u2(torch.cat([F.interpolate(m, scale_factor=2), b], 1))
            return F.interpolate(self.out(self.u1(torch.cat([F.interpolate(m, scale_factor=2), a], 1))), scale_factor=4, mode="bilinear")

    def one_case():
        mask = np.zeros((SIZE, SIZE), np.int64)
        yy, xx = np.mgrid[:SIZE, :SIZE]
        for c in range(1, CLASSES):
            y, x, r = g.integers(20, 76, 2).tolist() + [int(g.integers(6, 18))]
            mask[(yy - y) ** 2 + (xx - x) ** 2 < r * r] = c
        return (mask + g.normal(0, 0.6, mask.shape)).astype(np.float32)[None], mask

    def one_hot_to_distance(seg):
        """The level set of each class: negative within, positive outside."""
        res = np.zeros(seg.shape, np.float32)
        for k in range(len(seg)):
            inside = seg[k].astype(bool)
            if inside.any():
                outside = ~inside
                res[k] = distance_transform_edt(outside) * outside - (distance_transform_edt(inside) - 1) * inside  # here
        return res

    class Cases(torch.utils.data.Dataset):
        def __init__(self, n):
            self.cases = [one_case() for _ in range(n)]
            self.maps = [one_hot_to_distance(np.eye(CLASSES)[m].transpose(2, 0, 1)) for _, m in self.cases] if FIXED else None

        def __len__(self):
            return len(self.cases)

        def __getitem__(self, i):
            image, mask = self.cases[i]
            return (image, mask, self.maps[i]) if FIXED else (image, mask, np.float32(0))

    class BoundaryLoss:
        def __call__(self, prob, target):
            hot = F.one_hot(target, CLASSES).permute(0, 3, 1, 2).numpy()
            maps = np.stack([one_hot_to_distance(sample) for sample in hot])  # here
            return (prob[:, 1:] * torch.from_numpy(maps)[:, 1:]).mean()

    class Dice:
        def __call__(self, prob, target):
            hot = F.one_hot(target, CLASSES).permute(0, 3, 1, 2)
            both = (prob * hot).sum((2, 3))
            return 1 - ((2 * both + 1) / (prob.sum((2, 3)) + hot.sum((2, 3)) + 1)).mean()

    data = Cases(240)
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, drop_last=True)
    net, boundary, dice = UNet(), BoundaryLoss(), Dice()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    sched = torch.optim.lr_scheduler.PolynomialLR(opt, 120, 0.9)
    alpha, steps = 0.01, 0
    for epoch in range(4):
        seen = []
        for image, mask, maps in loader:
            mark()
            logits = net(image)
            prob = logits.softmax(1)
            edge = (prob[:, 1:] * maps[:, 1:]).mean() if FIXED else boundary(prob, mask)  # here
            loss = F.cross_entropy(logits, mask) + dice(prob, mask) + alpha * edge
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 12)
            opt.step()
            sched.step()
            seen.append(loss.item())
            steps += 1
        alpha = min(1.0, alpha + 0.01)
        print("epoch %d  loss %.4f  lr %.2e" % (epoch, np.mean(seen), sched.get_last_lr()[0]), flush=True)
    return steps


@job(35, "compute or host", [*HEALTHY, "host.launch", "host.python", "host.code"], 90, TORCH, says=r"greedy|translate",
     note="after each epoch 60 sentences are translated, one by one and word by word, two thirds of the run; its steps only compute. "
          "Fix: all sentences of the validation at once")
def s_pt_translate_val():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    VOCAB, LENGTH, BOS, DIM = 600, 14, 1, 64
    src = torch.randint(3, VOCAB, (1140, LENGTH))
    tgt = torch.cat([torch.full((1140, 1), BOS), (src * 7 + 3) % (VOCAB - 3) + 3], 1)

    class Seq2Seq(nn.Module):
        def __init__(self):
            super().__init__()
            self.src, self.tgt, self.place = nn.Embedding(VOCAB, DIM), nn.Embedding(VOCAB, DIM), nn.Embedding(64, DIM)
            self.body = nn.Transformer(DIM, 4, 2, 2, 2 * DIM, 0.1, batch_first=True, norm_first=True)
            self.head = nn.Linear(DIM, VOCAB)

        def encode(self, x):
            return self.body.encoder(self.src(x) + self.place.weight[:x.shape[1]])

        def decode(self, y, memory):
            mask = nn.Transformer.generate_square_subsequent_mask(y.shape[1])
            return self.head(self.body.decoder(self.tgt(y) + self.place.weight[:y.shape[1]], memory, tgt_mask=mask))

    def greedy_decode(model, x):
        memory = model.encode(x)  # here
        out = torch.full((len(x), 1), BOS)
        for _ in range(LENGTH):  # here
            word = model.decode(out, memory)[:, -1].argmax(-1, keepdim=True)  # here
            out = torch.cat([out, word], 1)  # here
        return out

    def overlap(a, b):
        """The share of pairs of words that both have, as BLEU's second part."""
        pairs = [set(zip(t.tolist(), t[1:].tolist())) for t in (a, b)]
        return len(pairs[0] & pairs[1]) / max(1, len(pairs[0]))

    @torch.no_grad()
    def validate(model, x, y):
        model.eval()
        if FIXED:
            scores = [overlap(a, b) for a, b in zip(greedy_decode(model, x), y)]
        else:
            scores = [overlap(greedy_decode(model, x[i:i + 1])[0], y[i]) for i in range(len(x))]  # here
        model.train()
        return float(np.mean(scores))

    model = Seq2Seq()
    opt = torch.optim.Adam(model.parameters(), 5e-4, betas=(0.9, 0.98))
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: min((i + 1) / 60, (60 / (i + 1)) ** 0.5))
    train = torch.utils.data.TensorDataset(src[:1080], tgt[:1080])
    best, steps = -1, 0
    for epoch in range(3):
        total = 0.0
        for x, y in torch.utils.data.DataLoader(train, batch_size=36, shuffle=True):
            mark()
            out = model.decode(y[:, :-1], model.encode(x))
            loss = F.cross_entropy(out.flatten(0, 1), y[:, 1:].flatten(), label_smoothing=0.1)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            total += loss.item()
            steps += 1
        score = validate(model, src[1080:], tgt[1080:])  # here
        if score > best:
            best = score
            torch.save(model.state_dict(), temporary("best.pt"))
        print("epoch %d  loss %.3f  valid %.4f" % (epoch, total / 30, score), flush=True)
    return steps


def ranks(name):
    """Two processes by torchrun, which call the job again; what the first one measured."""
    notes = temporary("marks.json")
    subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", os.path.abspath(__file__),
                    name], check=True, env=dict(os.environ, JOB_MARKS=notes, OMP_NUM_THREADS="1"))
    with open(notes) as f:
        MARKS.extend(json.load(f))


@job(35, "communication", ["communication.transfer"], 80, TORCH, twin=True,
     note="two ranks with DDP accumulate four batches, but exchange gradients after each; fix: no_sync for the first three")
def s_ddp_accumulate():
    if "JOB_MARKS" not in os.environ:
        ranks("s_ddp_accumulate")
        return 80
    torch = pytorch()
    import contextlib

    import torch.distributed as dist
    nn, F = torch.nn, torch.nn.functional
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    ACCUMULATE, STEPS = 4, 80

    class Tagger(nn.Module):
        def __init__(self, vocab=12000, dim=192, tags=40):
            super().__init__()
            self.embed = nn.Embedding(vocab, dim)
            self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
            self.wide = nn.Sequential(nn.Linear(2 * dim, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU())
            self.out = nn.Linear(1024, tags)

        def forward(self, x):
            h, _ = self.rnn(self.embed(x))
            return self.out(self.wide(h.amax(1)))

    words = torch.randint(12000, (4096, 8))
    tags = words.sum(1) % 40
    data = torch.utils.data.TensorDataset(words, tags)
    sampler = torch.utils.data.distributed.DistributedSampler(data, world, rank, shuffle=True, drop_last=True)
    loader = torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler, drop_last=True)
    model = nn.parallel.DistributedDataParallel(Tagger())
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    done, micro, epoch, shown = 0, 0, 0, 0.0
    while done < STEPS:
        sampler.set_epoch(epoch)
        for x, y in loader:
            if micro % ACCUMULATE == 0:
                mark()
            last = micro % ACCUMULATE == ACCUMULATE - 1
            with model.no_sync() if FIXED and not last else contextlib.nullcontext():
                loss = F.cross_entropy(model(x), y) / ACCUMULATE
                loss.backward()  # here
            shown += loss.item()
            micro += 1
            if last:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                opt.zero_grad(set_to_none=False)
                done += 1
                if done % 20 == 0 and rank == 0:
                    print("step %d  loss %.4f" % (done, shown / 20), flush=True)
                    shown = 0.0
                if done == STEPS:
                    break
        epoch += 1
    if rank == 0:
        with open(os.environ["JOB_MARKS"], "w") as f:
            json.dump(MARKS, f)
    dist.barrier()
    dist.destroy_process_group()
    return done


@job(35, "compute", HEALTHY, 200, TORCH, note="no defect: a graph's net on the whole graph, so that an epoch is a step, with a test after each")
def s_gcn_whole_graph():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    NODES, FEATURES, CLASSES, LINKS = 2700, 1400, 7, 5400
    label = torch.randint(CLASSES, (NODES,))
    x = (torch.rand(NODES, FEATURES) < 0.01 + 0.02 * F.one_hot(label, CLASSES).float().repeat_interleave(200, 1)).float()
    x = x / x.sum(1, keepdim=True).clamp_min(1)
    link = torch.randint(NODES, (2, LINKS))
    both = torch.cat([link, link.flip(0), torch.arange(NODES).expand(2, -1)], 1)
    degree = torch.bincount(both[0], minlength=NODES).float().rsqrt()
    adjacent = torch.sparse_coo_tensor(both, degree[both[0]] * degree[both[1]], (NODES, NODES)).coalesce()
    part = torch.randperm(NODES)
    masks = dict(zip(("train", "val", "test"), part.split([140, 500, NODES - 640])))

    class GCNConv(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.lin, self.bias = nn.Linear(a, b, bias=False), nn.Parameter(torch.zeros(b))

        def forward(self, x):
            return torch.sparse.mm(adjacent, self.lin(x)) + self.bias

    class GCN(nn.Module):
        def __init__(self, hidden=96):
            super().__init__()
            self.conv1, self.conv2 = GCNConv(FEATURES, hidden), GCNConv(hidden, CLASSES)

        def forward(self, x):
            x = F.dropout(x, 0.5, self.training)
            x = F.dropout(self.conv1(x).relu(), 0.5, self.training)
            return self.conv2(x)

    model = GCN()
    opt = torch.optim.Adam([dict(params=model.conv1.parameters(), weight_decay=5e-4),
                            dict(params=model.conv2.parameters(), weight_decay=0)], lr=0.01)

    def train():
        model.train()
        opt.zero_grad()
        loss = F.cross_entropy(model(x)[masks["train"]], label[masks["train"]])
        loss.backward()
        opt.step()
        return float(loss.detach())

    @torch.no_grad()
    def test():
        model.eval()
        pred = model(x).argmax(-1)
        return [float((pred[m] == label[m]).float().mean()) for m in masks.values()]

    best = final = 0.0
    times = []
    for epoch in range(1, 201):
        mark()
        start = time.perf_counter()
        loss = train()
        train_acc, val_acc, test_acc = test()
        if val_acc > best:
            best, final = val_acc, test_acc
        times.append(time.perf_counter() - start)
        if epoch % 10 == 0:
            print("Epoch: %03d, Loss: %.4f, Train: %.4f, Val: %.4f, Test: %.4f" % (epoch, loss, train_acc, val_acc, final))
    print("Median time per epoch: %.4fs" % np.median(times))
    return 200


if __name__ == "__main__":
    main()
