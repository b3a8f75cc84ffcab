"""Batch 12: JAX's jobs on the processor. Four get their data by themselves, and four (y_jx2_) are the same with a DataLoader."""
import functools
import math

import numpy as np
from stranger import FIXED, JAX, LIBRARIES, job, main, mark


def cut_out(batch, rng):
    """Flips, shifts and cuts pictures, one by one."""
    out = np.empty_like(batch)
    for k, img in enumerate(batch):
        if rng.random() < 0.5:
            img = img[:, ::-1]
        padded = np.pad(img, ((4, 4), (4, 4), (0, 0)), mode="reflect")  # here
        top, left = rng.integers(0, 9, 2)
        img = padded[top:top + 32, left:left + 32].copy()
        cy, cx = rng.integers(0, 24, 2)
        img[cy:cy + 8, cx:cx + 8] = 0.0
        out[k] = (img - img.mean((0, 1))) / (img.std((0, 1)) + 1e-5)  # here
    return out


def classifier(jax, rng):
    jnp = jax.numpy
    pictures = rng.random((1024, 32, 32, 3), dtype=np.float32)
    marks = rng.integers(0, 10, 1024)
    params = {"a": rng.standard_normal((3072, 24)).astype(np.float32) * 0.02, "b": rng.standard_normal((24, 10)).astype(np.float32) * 0.1}

    @jax.jit
    def update(params, x, y):
        def loss(p):
            logits = jax.nn.gelu(x.reshape(len(x), -1) @ p["a"]) @ p["b"]
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()
        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), value
    return pictures, marks, params, update


@job(12, "input or host", ["input.map", "host.python", "input.generator", "input.unknown", "input.c"], 250, JAX, twin=True, at=(cut_out,),
     note="pictures are flipped, shifted and cut by numpy, one by one, before each call of a jitted step; fix: done once")
def y_jx_cutout():
    import jax
    rng = np.random.default_rng(0)
    pictures, marks, params, update = classifier(jax, rng)
    ready = cut_out(pictures, rng) if FIXED else None
    for step in range(250):
        mark()
        at = rng.integers(0, 1024, 48)
        batch = ready[at] if FIXED else cut_out(pictures[at], rng)  # here
        params, value = update(params, batch, marks[at])
        if step % 50 == 0:
            print(step, float(value))
    jax.block_until_ready(params)
    return 250


@job(12, "input", ["input.batch", "input.map", "input.dataloader"], 250, LIBRARIES, twin=True, at=(cut_out,),
     note="the same, in the function of a DataLoader that joins a batch")
def y_jx2_cutout():
    import jax
    from torch.utils.data import DataLoader
    rng = np.random.default_rng(0)
    pictures, marks, params, update = classifier(jax, rng)

    def collate(pairs):
        batch, labels = np.stack([p[0] for p in pairs]), np.array([p[1] for p in pairs])
        return (batch if FIXED else cut_out(batch, rng)), labels

    table = list(zip(pictures, marks)) * 12
    loader = DataLoader(table[:250 * 48], batch_size=48, shuffle=True, collate_fn=collate)
    for step, (batch, labels) in enumerate(loader):
        mark()
        params, value = update(params, batch, labels)
        if step % 50 == 0:
            print(step, float(value))
    jax.block_until_ready(params)
    return 250


GOAL = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]


def distance(word):
    row = list(range(len(GOAL) + 1))
    for i, c in enumerate(word, 1):
        last, row[0] = row[0], i
        for j, g in enumerate(GOAL, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (c != g))  # here
    return row[-1]


def reward(words):
    return np.array([-distance(w) for w in np.asarray(words).tolist()], np.float32)  # here


def improver(jax):
    jnp = jax.numpy

    @jax.jit
    def improve(theta, key):
        words = jax.random.categorical(key, theta, axis=-1, shape=(96, len(GOAL)))
        if FIXED:
            r = -(words != jnp.array(GOAL)).sum(1).astype(jnp.float32)
        else:
            r = jax.pure_callback(reward, jax.ShapeDtypeStruct((96,), jnp.float32), words)  # here

        def objective(t):
            logp = jnp.take_along_axis(jax.nn.log_softmax(t)[None], words[..., None], 2).sum((1, 2))
            return -((r - r.mean()) * logp).mean()
        return theta - 0.3 * jax.grad(objective)(theta), r.mean()
    return improve, jnp.zeros((len(GOAL), 10)), jax.random.key(0)


@job(12, "host", ["host.callback", "host.python"], 300, JAX, twin=True, at=(distance, reward, improver),
     note="a jitted step calls the reward, an edit distance in Python, by pure_callback; fix: a distance that JAX computes")
def y_jx_reward_cb():
    import jax
    improve, theta, key = improver(jax)
    for it in range(300):
        mark()
        key, sub = jax.random.split(key)
        theta, mean = improve(theta, sub)
        if it % 25 == 0:
            print("it %d reward %.2f" % (it, mean))
    jax.block_until_ready(theta)
    return 300


@job(12, "host", ["host.callback", "host.python"], 300, LIBRARIES, twin=True, at=(distance, reward, improver),
     note="the same, with seeds from a DataLoader")
def y_jx2_reward_cb():
    import jax
    from torch.utils.data import DataLoader
    improve, theta, key = improver(jax)
    seeds = DataLoader(range(300), batch_size=1, collate_fn=lambda s: s[0])
    for it, seed in enumerate(seeds):
        mark()
        sub = jax.random.fold_in(key, seed)
        theta, mean = improve(theta, sub)
        if it % 25 == 0:
            print("it %d reward %.2f" % (it, mean))
    jax.block_until_ready(theta)
    return 300


def forecaster(jax):
    jnp = jax.numpy
    hidden, inputs = 96, 12
    k = jax.random.split(jax.random.key(1), 4)
    p = {"wx": jax.random.normal(k[0], (inputs, 3 * hidden)) * 0.1, "wh": jax.random.normal(k[1], (hidden, 3 * hidden)) * 0.1,
         "o": jax.random.normal(k[2], (hidden, inputs)) * 0.1}
    weather = jax.random.normal(k[3], (2000, inputs))

    def cell(p, h, x):
        zx, rx, nx = jnp.split(x @ p["wx"], 3, -1)
        zh, rh, nh = jnp.split(h @ p["wh"], 3, -1)
        z, r = jax.nn.sigmoid(zx + zh), jax.nn.sigmoid(rx + rh)
        return (1 - z) * jnp.tanh(nx + r * nh) + z * h

    def loss(p, window):
        def body(h, x):
            h = cell(p, h, x)
            return h, h @ p["o"]
        _, guess = jax.lax.scan(body, jnp.zeros((window.shape[1], hidden)), window[:-1])
        return jnp.mean((guess - window[1:]) ** 2)

    @jax.jit
    def train_step(p, starts):
        window = weather[starts[None, :] + jnp.arange(49)[:, None]]
        value, g = jax.value_and_grad(loss)(p, window)
        return jax.tree.map(lambda a, b: a - 0.02 * b, p, g), value
    return p, train_step


@job(12, "compute", ["compute.*"], 150, JAX,
     note="no defect: a recurrent net over 48 hours of weather, by lax.scan, with all data on the device")
def y_jx_weather_gru():
    import jax
    p, train_step = forecaster(jax)
    for epoch in range(6):
        for part in jax.random.randint(jax.random.key(epoch), (25, 64), 0, 1900):
            mark()
            p, value = train_step(p, part)
        print("epoch", epoch, float(value))
    return 150


@job(12, "compute", ["compute.*"], 150, LIBRARIES,
     note="no defect: the same, with the beginnings of its windows from a DataLoader")
def y_jx2_weather_gru():
    import jax
    from torch.utils.data import DataLoader
    p, train_step = forecaster(jax)
    for epoch in range(6):
        for part in DataLoader(range(1600), batch_size=64, shuffle=True, collate_fn=np.array):
            mark()
            p, value = train_step(p, part)
        print("epoch", epoch, float(value))
    return 150


STEPS = 45


def descent(jax):
    jnp = jax.numpy
    key = jax.random.key(0)
    x = jax.random.normal(key, (2048, 16))
    y = jnp.sin(x.sum(1, keepdims=True))
    layers = [jax.random.normal(jax.random.fold_in(key, i), s) * 0.2 for i, s in enumerate([(16, 64), (64, 64), (64, 64), (64, 1)])]

    def sgd(layers, xb, yb, lr):
        def loss(ws):
            h = xb
            for w in ws[:-1]:
                h = jnp.tanh(h @ w)
            return jnp.mean((h @ ws[-1] - yb) ** 2)
        return [w - lr * g for w, g in zip(layers, jax.grad(loss)(layers))]

    return x, y, layers, jax.jit(sgd) if FIXED else functools.partial(jax.jit, static_argnames="lr")(sgd)


@job(12, "host", ["host.compile"], 45, JAX, twin=True,
     note="the rate of a cosine schedule is a static argument of the jitted step, which is compiled for each; fix: an ordinary one")
def y_jx_static_lr():
    import jax
    x, y, layers, step_fn = descent(jax)
    for i in range(STEPS):
        mark()
        lr = 0.05 * (1 + math.cos(math.pi * i / STEPS))
        rows = slice(i * 40 % 2000, i * 40 % 2000 + 40)
        layers = step_fn(layers, x[rows], y[rows], lr=lr)  # here
    jax.block_until_ready(layers)
    return STEPS


@job(12, "host", ["host.compile"], 45, LIBRARIES, twin=True,
     note="the same, with rows from a DataLoader")
def y_jx2_static_lr():
    import jax
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    x, y, layers, step_fn = descent(jax)
    table = TensorDataset(torch.from_numpy(np.array(x[:1800])), torch.from_numpy(np.array(y[:1800])))
    for i, (xb, yb) in enumerate(DataLoader(table, batch_size=40)):
        mark()
        lr = 0.05 * (1 + math.cos(math.pi * i / STEPS))
        layers = step_fn(layers, xb.numpy(), yb.numpy(), lr=lr)  # here
    jax.block_until_ready(layers)
    return STEPS


if __name__ == "__main__":
    main()
