"""Batch 10: PyTorch's and JAX's jobs on the processor, after what people complain about in forums and issues."""
import os
import sqlite3
import warnings
import zlib

import numpy as np
from stranger import FIXED, FRAMEWORKS, TORCH, job, main, mark, pytorch, temporary, wide_net


# PyTorch.

@job(10, "host", ["host.gil", "host.logging", "host.python", "host.callback"], 120, FRAMEWORKS, twin=True,
     note="Lightning: histograms of all weights and gradients go to TensorBoard behind each batch; fix: the loss alone")
def w_pt_tensorboard():
    torch = pytorch()
    warnings.filterwarnings("ignore")
    import lightning
    from torch.utils.tensorboard import SummaryWriter

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            nn = torch.nn
            self.net = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(64, 64), nn.ReLU())), nn.Linear(64, 1))
            self.writer = SummaryWriter(temporary("runs"))

        def training_step(self, batch, i):
            mark()
            x, y = batch
            return torch.nn.functional.mse_loss(self.net(x), y)

        def on_train_batch_end(self, out, batch, i):
            self.writer.add_scalar("loss", out["loss"].item(), self.global_step)
            if not FIXED:
                for name, p in self.net.named_parameters():
                    self.writer.add_histogram("weights/" + name, p, self.global_step)  # here
                    self.writer.add_histogram("gradients/" + name, p.grad, self.global_step)  # here

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-3)

    data = torch.utils.data.TensorDataset(torch.randn(60 * 32, 64), torch.randn(60 * 32, 1))
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False)
    trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=32))
    return 120


@job(10, "input", ["input.*"], 240, TORCH, twin=True,
     note="a small data set: 6 batches an epoch, and each of 40 epochs starts two worker processes anew; fix: they persist")
def w_pt_short_epochs():
    torch = pytorch()
    model, optimizer = wide_net(torch, 256, 128)
    data = torch.utils.data.TensorDataset(torch.randn(6 * 32, 256), torch.randn(6 * 32, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True, num_workers=2, persistent_workers=FIXED)
    for epoch in range(40):
        total = 0.0
        for x, y in loader:  # here
            mark()
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 10 == 9:
            print("epoch %d: loss %.3f" % (epoch + 1, total / 6), flush=True)
    return 240


@job(10, "host", ["host.python"], 100, TORCH, twin=True,
     note="policy gradient: 48 carts take 40 moves for each update, and are moved one by one in Python; fix: moved together by numpy")
def w_pt_carts():
    torch = pytorch()
    nn = torch.nn
    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(policy.parameters(), 1e-2)

    def move_one(state, action):
        x, v, a, w = state
        force = 10.0 if action else -10.0
        sin, cos = np.sin(a), np.cos(a)  # here
        push = (force + 0.05 * w * w * sin) / 1.1  # here
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))  # here
        nxt = np.array([x + 0.02 * v, v + 0.02 * (push - 0.05 * turn * cos / 1.1), a + 0.02 * w, w + 0.02 * turn])  # here
        return (np.zeros(4) if abs(nxt[2]) > 0.2 or abs(nxt[0]) > 2.4 else nxt), 1.0 - abs(nxt[2])  # here

    def move_all(states, actions):
        x, v, a, w = states.T
        force = np.where(actions == 1, 10.0, -10.0)
        sin, cos = np.sin(a), np.cos(a)
        push = (force + 0.05 * w * w * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
        nxt = np.stack([x + 0.02 * v, v + 0.02 * (push - 0.05 * turn * cos / 1.1), a + 0.02 * w, w + 0.02 * turn], 1)
        reward = 1.0 - np.abs(nxt[:, 2])
        nxt[(np.abs(nxt[:, 2]) > 0.2) | (np.abs(nxt[:, 0]) > 2.4)] = 0
        return nxt, reward

    states = np.zeros((48, 4))
    for update in range(100):
        mark()
        seen, acted, rewards = [], [], []
        for _ in range(40):
            observed = torch.as_tensor(states, dtype=torch.float32)
            with torch.no_grad():
                actions = torch.distributions.Categorical(logits=policy(observed)).sample()
            if FIXED:
                states, reward = move_all(states, actions.numpy())
            else:
                moved = [move_one(s, a) for s, a in zip(states, actions.tolist())]  # here
                states, reward = np.stack([m[0] for m in moved]), np.array([m[1] for m in moved])  # here
            seen.append(observed)
            acted.append(actions)
            rewards.append(torch.as_tensor(reward, dtype=torch.float32))
        returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
        advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
        chosen = torch.distributions.Categorical(logits=policy(torch.stack(seen))).log_prob(torch.stack(acted))
        optimizer.zero_grad()
        (-chosen * advantage).mean().backward()
        optimizer.step()
        if update % 20 == 19:
            print("update %d, return %.2f" % (update + 1, returns[0].mean()), flush=True)
    return 100


@job(10, "host", ["host.python", "host.code", "host.logging", "host.checkpoint"], 150, FRAMEWORKS, twin=True,
     note="GAN: discriminator and generator are updated in turn, and a grid of pictures is saved as PNG behind each batch; fix: not saved")
def w_pt_gan_pictures():
    torch = pytorch()
    from PIL import Image
    nn, F = torch.nn, torch.nn.functional
    gen = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 1024), nn.Tanh())
    dis = nn.Sequential(nn.Linear(1024, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
    opt_g, opt_d = (torch.optim.Adam(m.parameters(), 2e-4, betas=(0.5, 0.999)) for m in (gen, dis))
    real = torch.utils.data.TensorDataset(torch.rand(30 * 64, 1024) * 2 - 1)
    fixed = torch.randn(64, 32)
    yes, no = torch.ones(64, 1), torch.zeros(64, 1)

    def save_grid(images, path):
        grid = images.view(8, 8, 32, 32).permute(0, 2, 1, 3).reshape(256, 256)
        pixels = ((grid + 1) * 127.5).clamp(0, 255).byte().numpy()
        Image.fromarray(pixels).resize((512, 512), Image.BICUBIC).save(path, optimize=True)  # here

    for epoch in range(5):
        for i, (x,) in enumerate(torch.utils.data.DataLoader(real, batch_size=64, shuffle=True)):
            mark()
            fake = gen(torch.randn(64, 32))
            opt_d.zero_grad()
            loss_d = F.binary_cross_entropy_with_logits(dis(x), yes) + F.binary_cross_entropy_with_logits(dis(fake.detach()), no)
            loss_d.backward()
            opt_d.step()
            opt_g.zero_grad()
            loss_g = F.binary_cross_entropy_with_logits(dis(fake), yes)
            loss_g.backward()
            opt_g.step()
            if not FIXED:
                with torch.no_grad():
                    save_grid(gen(fixed), temporary("%d-%d.png" % (epoch, i)))  # here
        print("epoch", epoch, loss_d.item(), loss_g.item(), flush=True)
    return 150


@job(10, "input", ["input.*"], 120, TORCH, twin=True,
     note="each sample is fetched from sqlite by LIMIT 1 OFFSET n, which walks there; four batches make an update; fix: by its key")
def w_pt_sqlite():
    torch = pytorch()
    rows = np.random.default_rng(1).random((2560, 64), dtype=np.float32)
    with sqlite3.connect(temporary("samples.db")) as base:
        base.execute("create table if not exists samples (id integer primary key, x blob, y real)")
        base.executemany("insert or replace into samples values (?, ?, ?)", ((i, r.tobytes() * 4, float(r[0])) for i, r in enumerate(rows)))
    query = "select x, y from samples " + ("where id = ?" if FIXED else "limit 1 offset ?")

    class Samples(torch.utils.data.Dataset):
        def __init__(self):
            self.base = sqlite3.connect(temporary("samples.db"))

        def __len__(self):
            return len(rows)

        def __getitem__(self, i):
            x, y = self.base.execute(query, (i,)).fetchone()  # here
            return torch.from_numpy(np.frombuffer(x, np.float32).copy()), y

    model, optimizer = wide_net(torch, 256, 64)
    micro = 0
    loader = torch.utils.data.DataLoader(Samples(), batch_size=16, shuffle=True)
    for _ in range(3):
        for x, y in loader:  # here
            if micro % 4 == 0:
                mark()
            (torch.nn.functional.mse_loss(model(x).squeeze(1), y.float()) / 4).backward()
            micro += 1
            if micro % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
    return micro // 4


@job(10, "compute", ["compute.*"], 40, FRAMEWORKS, twin=True,
     note="accelerate and a small BERT: short sentences are padded to 160 tokens, always; fix: to the longest of the batch")
def w_pt_max_length():
    torch = pytorch()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from accelerate import Accelerator
    from transformers import BertConfig, BertForSequenceClassification
    accelerator = Accelerator(cpu=True)
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    sentences = [rng.integers(5, 1000, int(rng.integers(12, 48))).tolist() for _ in range(320)]

    def collate(samples):
        length = max(len(s) for s in samples) if FIXED else 160
        ids = torch.tensor([s + [0] * (length - len(s)) for s in samples])
        return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": ids[:, 0] % 2}

    model = BertForSequenceClassification(BertConfig(vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
                                                     intermediate_size=512))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    loader = torch.utils.data.DataLoader(sentences, batch_size=8, shuffle=True, collate_fn=collate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    model.train()
    for i, batch in enumerate(loader):
        mark()
        loss = model(**batch).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if i % 10 == 9:
            print("step %d loss %.3f" % (i + 1, loss.item()), flush=True)
    return 40


@job(10, "host", ["host.compile"], 30, TORCH, twin=True,
     note="torch.compile without dynamic shapes, and each batch has a length of its own, so each compiles; fix: one length")
def w_pt_compiled_lengths():
    torch = pytorch()
    import torch._dynamo
    torch._dynamo.config.recompile_limit = 100
    nn = torch.nn
    embed, rnn, head = nn.Embedding(500, 48), nn.Sequential(*(nn.Linear(48, 48) for _ in range(3))), nn.Linear(48, 1)
    optimizer = torch.optim.SGD([p for m in (embed, rnn, head) for p in m.parameters()], 0.01)

    @torch.compile(backend="aot_eager", dynamic=False)
    def loss_of(tokens):
        x = embed(tokens)
        for layer in rnn:
            x = x + torch.tanh(layer(x))
        return head(x.mean(1)).square().mean()

    lengths = np.random.default_rng(1).permutation(np.arange(20, 50))
    for i in range(30):
        mark()
        tokens = torch.randint(0, 500, (8, 50 if FIXED else int(lengths[i])))
        optimizer.zero_grad()
        loss = loss_of(tokens)  # here
        loss.backward()  # here
        optimizer.step()
        if i % 10 == 0:
            print("step", i, loss.item(), flush=True)
    return 30


@job(10, "input", ["input.*"], 160, TORCH, twin=True,
     note="an IterableDataset whose two workers inflate and parse every record, and drop those of the other; fix: dropped unparsed")
def w_pt_unsharded():
    torch = pytorch()
    rng = np.random.default_rng(1)
    records = [zlib.compress(" ".join("%.4f" % v for v in rng.random(3000)).encode(), 6) for _ in range(80)]

    class Records(torch.utils.data.IterableDataset):
        def __iter__(self):
            worker = torch.utils.data.get_worker_info()
            for i in range(160 * 16):
                mine = i % worker.num_workers == worker.id
                if FIXED and not mine:
                    continue
                values = [float(v) for v in zlib.decompress(records[i % 80]).split()]  # here
                if mine:
                    yield torch.from_numpy(np.array(values, np.float32))

    model, optimizer = wide_net(torch, 3000, 16)
    for x in torch.utils.data.DataLoader(Records(), batch_size=16, num_workers=2):  # here
        mark()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return 160


@job(10, "input", ["input.*"], 80, FRAMEWORKS, twin=True,
     note="photographs of 1,200 by 900 are decoded as they are and then made 64 by 64, for each sample; fix: small JPEGs on disk")
def w_pt_photographs():
    torch = pytorch()
    from PIL import Image
    rng = np.random.default_rng(1)
    for k in range(24):
        small = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        small.resize((80, 60) if FIXED else (1200, 900), Image.BICUBIC).save(temporary("%d.jpg" % k), quality=90)

    class Photographs(torch.utils.data.Dataset):
        def __len__(self):
            return 80 * 4

        def __getitem__(self, i):
            with Image.open(temporary("%d.jpg" % (i % 24))) as image:
                pixels = np.asarray(image.convert("RGB").resize((64, 64), Image.BILINEAR), np.float32)  # here
            return torch.from_numpy(pixels).permute(2, 0, 1) / 255, i % 10

    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    model(torch.zeros(1, 3, 64, 64))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for x, y in torch.utils.data.DataLoader(Photographs(), batch_size=4):  # here
        mark()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return 80


@job(10, "compute", ["compute.*"], 80, FRAMEWORKS,
     note="no defect: transformers' Trainer, a small GPT-2 on tokens from memory, logging each tenth step, one evaluation in the end")
def w_pt_trainer():
    torch = pytorch()
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
    tokens = torch.randint(0, 500, (80 * 8 + 32, 64))
    model = GPT2LMHeadModel(GPT2Config(vocab_size=500, n_positions=64, n_embd=128, n_layer=2, n_head=4))

    class Marks(TrainerCallback):
        def on_step_begin(self, args, state, control, **more):
            mark()

    args = TrainingArguments(temporary("out"), max_steps=80, per_device_train_batch_size=8, logging_steps=10, save_strategy="no",
                             report_to=[], use_cpu=True, disable_tqdm=True, per_device_eval_batch_size=8)
    samples = [{"input_ids": t, "labels": t} for t in tokens]
    trainer = Trainer(model, args, train_dataset=samples[32:], eval_dataset=samples[:32], callbacks=[Marks()])
    torch.set_num_threads(1)
    trainer.train()
    mark()
    print(trainer.evaluate())
    return 80


# JAX, with batches from PyTorch's DataLoader, as numpy arrays.

def jax_and_loader(data, batch, **more):
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    torch = pytorch()
    import jax
    more.setdefault("collate_fn", np.stack)
    return jax, torch.utils.data.DataLoader(data, batch_size=batch, **more)


def layers_of(jax, sizes):
    keys = jax.random.split(jax.random.PRNGKey(0), len(sizes))
    return [{"w": jax.random.normal(k, (a, b)) * a ** -0.5, "b": jax.numpy.zeros(b)} for k, a, b in zip(keys, sizes, sizes[1:])]


def forward(jax, params, x):
    for layer in params:
        x = jax.numpy.tanh(x @ layer["w"] + layer["b"])
    return x


@job(10, "host", ["host.compile"], 36, FRAMEWORKS, twin=True,
     note="a jitted step, but batches are cut to their longest sentence, of 36 lengths, so each is compiled; fix: padded to 68")
def w_jx_lengths():
    rng = np.random.default_rng(1)
    lengths = rng.permutation(np.arange(32, 68))
    sentences = [rng.random((lengths[i // 16], 24), dtype=np.float32) for i in range(36 * 16)]

    def collate(samples):
        out = np.zeros((16, 68 if FIXED else len(samples[0]), 24), np.float32)
        for row, s in zip(out, samples):
            row[:len(s)] = s
        return out

    jax, loader = jax_and_loader(sentences, 16, collate_fn=collate)
    params = layers_of(jax, [24, 48, 48, 48, 1])

    @jax.jit
    def train_step(params, x):
        loss, grads = jax.value_and_grad(lambda p: (forward(jax, p, x).mean(1) ** 2).mean())(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss

    for x in loader:
        mark()
        params, loss = train_step(params, x)  # here
    print("loss", float(loss))
    return 36


@job(10, "host", ["host.python", "host.callback"], 300, FRAMEWORKS, twin=True,
     note="pure_callback: the jitted loss asks a numpy and Python function for weights of samples in each step; fix: in jnp")
def w_jx_callback():
    samples = np.random.default_rng(1).random((300 * 32, 64), dtype=np.float32)
    jax, loader = jax_and_loader(samples, 32)
    jnp = jax.numpy
    params = layers_of(jax, [64, 128, 128, 1])

    def neighbours(x):
        x = np.asarray(x).tolist()
        weights = []
        for a in x:
            nearest = min(sum((u - v) * (u - v) for u, v in zip(a, b)) for b in x[:24] if b is not a)  # here
            weights.append(1 / (1 + nearest))
        return np.array(weights, np.float32)

    def weights_of(x):
        if FIXED:
            return 1 / (1 + jnp.sort(((x[:, None] - x[None, :24]) ** 2).sum(-1), 1)[:, 1])
        return jax.pure_callback(neighbours, jax.ShapeDtypeStruct((32,), jnp.float32), x)

    @jax.jit
    def train_step(params, x):
        weights = weights_of(x)
        loss, grads = jax.value_and_grad(lambda p: (weights * forward(jax, p, x)[:, 0] ** 2).mean())(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss

    for i, x in enumerate(loader):
        mark()
        params, loss = train_step(params, x)  # here
        if i % 10 == 9:
            print("step %d loss %.4f" % (i + 1, float(loss)), flush=True)  # here
    return 300


@job(10, "host", ["host.launch", "host.python"], 400, FRAMEWORKS, twin=True,
     note="the gradient is jitted, but Adam is written out leaf by leaf and runs op by op; fix: jitted as well")
def w_jx_adam():
    samples = np.random.default_rng(1).random((400 * 32, 64), dtype=np.float32)
    jax, loader = jax_and_loader(samples, 32)
    jnp = jax.numpy
    params = layers_of(jax, [64] + [64] * 12 + [1])
    first, second = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))

    @jax.jit
    def gradient(params, x):
        return jax.value_and_grad(lambda p: (forward(jax, p, x) ** 2).mean())(params)

    def adam(params, first, second, grads, t):
        def leaf(p, m, v, g):
            m = 0.9 * m + 0.1 * g  # here
            v = 0.999 * v + 0.001 * g * g  # here
            return p - 1e-3 * (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8), m, v  # here
        flat, tree = jax.tree.flatten(params)
        new = [leaf(*parts) for parts in zip(flat, *(jax.tree.leaves(t) for t in (first, second, grads)))]  # here
        return [jax.tree.unflatten(tree, list(part)) for part in zip(*new)]

    if FIXED:
        adam = jax.jit(adam)
    for i, x in enumerate(loader):
        mark()
        loss, grads = gradient(params, x)
        params, first, second = adam(params, first, second, grads, np.float32(i + 1))  # here
        if i % 20 == 19:
            print("step %d loss %.4f" % (i + 1, float(loss)), flush=True)
    return 400


if __name__ == "__main__":
    main()
