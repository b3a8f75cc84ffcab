"""Batch 13: JAX's jobs on the processor. z_jm_ are jobs of z_jx_ whose steps are marked, z_jd_ one with a DataLoader."""
import contextlib
import functools
import io
import math
import zlib

import numpy as np
from stranger import FIXED, JAX, LIBRARIES, job, main, mark, step_scope


def unmarked(name):
    return contextlib.nullcontext()


def perceptron(scope):
    import jax
    import jax.numpy as jnp
    STEPS, WIDTH = 800, 384

    def init(key, sizes):
        keys = jax.random.split(key, len(sizes))
        return [(jax.random.normal(k, (a, b)) / a ** 0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes[:-1], sizes[1:])]

    def forward(params, x):
        for w, b in params[:-1]:
            x = jax.nn.gelu(x @ w + b)
        return x @ params[-1][0] + params[-1][1]

    def loss_fn(params, x, y):
        return jnp.mean((forward(params, x) - y) ** 2)

    @functools.partial(jax.jit, donate_argnums=0)
    def train_step(params, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss

    key = jax.random.key(0)
    params = init(key, [32, WIDTH, WIDTH, WIDTH, 1])
    x = jax.random.normal(key, (16, 256, 32))
    y = jnp.sin(x.sum(-1, keepdims=True))
    for step in range(STEPS):
        mark()
        with scope("train"):
            params, loss = train_step(params, x[step % 16], y[step % 16])
        if step % 50 == 49:
            print("step %d loss %.4f" % (step + 1, loss))
    jax.block_until_ready(params)
    return STEPS


@job(13, "compute", ["compute.cpu"], 800, JAX,
     note="no defect: a jitted step with data on the device; the loss is fetched every 50 steps")
def z_jx_async_mlp():
    return perceptron(unmarked)


@job(13, "compute", ["compute.cpu"], 800, JAX,
     note="the same with marked steps")
def z_jm_async_mlp():
    return perceptron(step_scope)


def op_by_op(seeds):
    import jax
    import jax.numpy as jnp
    HIDDEN, TIME, STEPS = 32, 40, len(seeds)

    def cell(p, h, x):
        return jnp.tanh(h @ p["h"] + x @ p["x"] + p["b"])

    def unrolled(p, xs):
        h = jnp.zeros((xs.shape[1], HIDDEN))
        for t in range(xs.shape[0]):
            h = cell(p, h, xs[t])  # here
        return h @ p["o"]

    def scanned(p, xs):
        h, _ = jax.lax.scan(lambda h, x: (cell(p, h, x), None), jnp.zeros((xs.shape[1], HIDDEN)), xs)
        return h @ p["o"]

    @jax.jit
    def update(p, xs, y):
        loss, g = jax.value_and_grad(lambda p: jnp.mean((scanned(p, xs) - y) ** 2))(p)
        return {k: p[k] - 0.1 * g[k] for k in p}, loss

    quick = jax.jit(scanned)

    def validate(p, xs, y):
        out = quick(p, xs) if FIXED else unrolled(p, xs)  # here
        return float(jnp.abs(out - y).mean())

    def batch(key, n):
        phase = jax.random.uniform(key, (n, 1)) * 6
        wave = jnp.sin(phase + jnp.arange(TIME + 1) * 0.3)
        return wave[:, :TIME].T[..., None], wave[:, -1:]

    k = jax.random.split(jax.random.key(1), STEPS + 6)
    p = {"h": jax.random.normal(k[0], (HIDDEN, HIDDEN)) * 0.1, "x": jax.random.normal(k[1], (1, HIDDEN)), "b": jnp.zeros(HIDDEN),
         "o": jax.random.normal(k[2], (HIDDEN, 1)) * 0.1}
    held_x, held_y = batch(k[3], 64)
    best = 9.9
    for step in seeds:
        mark()
        p, loss = update(p, *batch(k[step + 6], 64))
        best = min(best, validate(p, held_x, held_y))  # here
    print("best validation error %.4f" % best)
    return STEPS


@job(13, "host", ["host.launch", "host.python"], 240, JAX, twin=True, at=(op_by_op,),
     note="after each jitted step, validation runs op by op, in a loop over time; fix: jitted")
def z_jx_eager_eval():
    return op_by_op(range(240))


@job(13, "host", ["host.launch", "host.python"], 240, LIBRARIES, twin=True, at=(op_by_op,),
     note="the same with seeds from a DataLoader")
def z_jd_eager_eval():
    from torch.utils.data import DataLoader
    return op_by_op(DataLoader(range(240), batch_size=1, collate_fn=lambda s: s[0]))


@job(13, "input", ["input.decode"], 768, LIBRARIES, twin=True,
     note="flax and optax with a DataLoader: each sample is unpacked with zlib and numpy.load; fix: once")
def z_jx_packed_shards():
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import optax
    from torch.utils.data import DataLoader, Dataset
    SAMPLES, BATCH, EPOCHS = 1024, 16, 12

    def pack(a):
        f = io.BytesIO()
        np.save(f, a)
        return zlib.compress(f.getvalue())

    class Blobs(Dataset):
        def __init__(self):
            rng = np.random.default_rng(0)
            self.blobs = [pack((rng.random((64, 96)) * 20).astype(np.int16)) for _ in range(SAMPLES)]
            self.open = [self.unpack(b) for b in self.blobs] if FIXED else None

        def unpack(self, blob):
            return np.load(io.BytesIO(zlib.decompress(blob)))  # here

        def __len__(self):
            return SAMPLES

        def __getitem__(self, i):
            a = self.open[i] if FIXED else self.unpack(self.blobs[i])  # here
            return a.astype(np.float32).mean(0) / 20, i % 3

    class MLP(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(3)(nn.relu(nn.Dense(64)(x)))

    def collate(rows):
        return np.stack([r[0] for r in rows]), np.array([r[1] for r in rows])

    model, tx = MLP(), optax.adamw(1e-3)
    params = model.init(jax.random.key(0), jnp.zeros((1, 96)))
    state = tx.init(params)

    @jax.jit
    def step(params, state, x, y):
        loss, g = jax.value_and_grad(lambda p: optax.softmax_cross_entropy_with_integer_labels(model.apply(p, x), y).mean())(params)
        updates, state = tx.update(g, state, params)
        return optax.apply_updates(params, updates), state, loss

    loader = DataLoader(Blobs(), BATCH, shuffle=True, collate_fn=collate)
    for epoch in range(EPOCHS):
        for x, y in loader:
            mark()
            params, state, loss = step(params, state, x, y)
        print("epoch %d loss %.4f" % (epoch, loss))
    return EPOCHS * len(loader)


@job(13, "host", ["host.compile"], 64, JAX, twin=True,
     note="each token makes the sequence longer, so that each is compiled; fix: padded")
def z_jx_growing_decode():
    import jax
    import jax.numpy as jnp
    VOCAB, D, LENGTH = 256, 64, 64

    def make(key):
        k = jax.random.split(key, 6)
        return {"e": jax.random.normal(k[0], (VOCAB, D)), "pos": jax.random.normal(k[1], (LENGTH + 8, D)),
                **{n: jax.random.normal(q, (D, D)) / 8 for n, q in zip("qkvo", k[2:])}}

    @jax.jit
    def logits(p, ids, last):
        x = p["e"][ids] + p["pos"][:ids.shape[1]]
        att = jnp.einsum("btd,bsd->bts", x @ p["q"], x @ p["k"]) / 8
        causal = jnp.arange(ids.shape[1])
        att = jnp.where(causal[:, None] >= causal[None], att, -1e9)
        x = x + jax.nn.softmax(att) @ (x @ p["v"]) @ p["o"]
        return x[:, last] @ p["e"].T

    def generate(p, prompt):
        """Returns the prompt with LENGTH more tokens."""
        ids = prompt
        for n in range(LENGTH):
            mark()
            if FIXED:
                padded = jnp.zeros((ids.shape[0], LENGTH + 8), ids.dtype) if n == 0 else padded
                padded = padded.at[:, :8].set(prompt) if n == 0 else padded
                new = logits(p, padded, jnp.int32(7 + n)).argmax(-1)
                padded = padded.at[:, jnp.int32(8 + n)].set(new)
                ids = padded
            else:
                new = logits(p, ids, ids.shape[1] - 1).argmax(-1)  # here
                ids = jnp.concatenate([ids, new[:, None]], 1)  # here
            new.block_until_ready()
        return ids

    p = make(jax.random.key(0))
    out = generate(p, jnp.arange(32).reshape(4, 8) % VOCAB)
    print("made", out.shape, int(out.sum()))
    return LENGTH


def evolution(scope):
    import jax
    import jax.numpy as jnp
    CANDIDATES, MOVES, GENERATIONS = 24, 8, 300

    class Cart:
        def __init__(self):
            self.x = self.v = self.w = 0.0
            self.a = 0.05

        def push(self, force):
            for _ in range(40):  # here
                s, c = math.sin(self.a), math.cos(self.a)  # here
                t = (force + 0.05 * self.w * self.w * s) / 1.1  # here
                acc = (9.8 * s - c * t) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))  # here
                self.x += 0.0005 * self.v  # here
                self.v += 0.0005 * (t - 0.05 * acc * c / 1.1)  # here
                self.a += 0.0005 * self.w  # here
                self.w += 0.0005 * acc  # here
            return self.state()

        def state(self):
            return [self.x, self.v, self.a, self.w]

    class Carts:
        def __init__(self, n):
            self.s = np.tile(np.array([0, 0, 0.05, 0]), (n, 1))

        def push(self, force):
            x, v, a, w = self.s.T
            for _ in range(4):
                s, c = np.sin(a), np.cos(a)
                t = (force + 0.05 * w * w * s) / 1.1
                acc = (9.8 * s - c * t) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
                x, v, a, w = x + 0.005 * v, v + 0.005 * t, a + 0.005 * w, w + 0.005 * acc
            self.s = np.stack([x, v, a, w], 1)
            return self.s

    @jax.jit
    def act(theta, states):
        return jnp.tanh(jnp.einsum("ci,ci->c", theta, states)) * 10

    @jax.jit
    def mutate(mean, key):
        return mean + 0.3 * jax.random.normal(key, (CANDIDATES, 4))

    def evaluate(theta):
        if FIXED:
            carts = Carts(CANDIDATES)
            states = carts.s
        else:
            carts = [Cart() for _ in range(CANDIDATES)]
            states = [c.state() for c in carts]
        score = np.zeros(CANDIDATES)
        for _ in range(MOVES):
            force = np.asarray(act(theta, jnp.asarray(states, jnp.float32)))
            states = carts.push(force) if FIXED else [c.push(f) for c, f in zip(carts, force.tolist())]  # here
            score -= np.abs(np.asarray(states)[:, 2])
        return score

    mean = jnp.zeros(4)
    for generation in range(GENERATIONS):
        mark()
        with scope("generation"):
            theta = mutate(mean, jax.random.key(generation))
            score = evaluate(theta)  # here
            elite = np.argsort(score)[-6:]
            mean = theta[elite].mean(0)
    print("best %.3f" % score.max())
    return GENERATIONS


@job(13, "host", ["host.python"], 300, JAX, twin=True, at=(evolution,),
     note="an evolution strategy with a jitted policy and physics in Python, one candidate after the other; fix: numpy for all")
def z_jx_es_simulator():
    return evolution(unmarked)


@job(13, "host", ["host.python"], 300, JAX, twin=True, at=(evolution,),
     note="the same with marked steps")
def z_jm_es_simulator():
    return evolution(step_scope)


if __name__ == "__main__":
    main()
