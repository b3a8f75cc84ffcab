"""Batch 8: TensorFlow's and PyTorch's jobs on the processor, in the manner of their tutorials."""
import gzip
import json
import math
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from stranger import FIXED, TORCH, job, main, mark, marks, pytorch, temporary, tensorflow, wide_net


# TensorFlow.

@job(8, "host", ["host.python", "host.launch", "host.callback"], 80, twin=True,
     note="distillation: the teacher's answers come from predict, called for each batch of 32; fix: the teacher is called")
def v_tf_teacher():
    tf, keras = tensorflow()

    def net(width):
        return keras.Sequential([keras.Input((64,)), keras.layers.Dense(width, "relu"), keras.layers.Dense(10)])

    teacher, student = net(256), net(32)
    optimizer = keras.optimizers.SGD(0.01)
    called = tf.function(teacher)

    @tf.function
    def train_step(x, wanted):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(keras.losses.kl_divergence(tf.nn.softmax(wanted / 4), tf.nn.softmax(student(x) / 4)))
        variables = student.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    images = np.random.default_rng(1).random((20 * 32, 64)).astype("f")
    for epoch in range(4):
        for i in range(20):
            mark()
            x = images[i * 32:(i + 1) * 32]
            wanted = called(tf.constant(x)) if FIXED else teacher.predict(x, verbose=0)  # here
            loss = train_step(tf.constant(x), tf.constant(wanted))
        print("epoch", epoch, float(loss), flush=True)
    return 80


@job(8, "host", ["host.compile"], 96,
     note="the function that trains an epoch defines its tf.function anew, so that each of eight epochs of 12 steps traces; fix: one")
def v_tf_nested():
    tf, keras = tensorflow()
    blocks = [keras.layers.Dense(48, "gelu") for _ in range(10)]
    inputs = out = keras.Input((48,))
    for block in blocks:
        out = keras.layers.LayerNormalization()(out + block(out))
    model = keras.Model(inputs, keras.layers.Dense(1)(out))
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    data = tf.data.Dataset.from_tensor_slices((tf.random.normal((192, 48)), tf.ones((192, 1)))).batch(16).prefetch(2)
    kept = []

    def make_step():
        @tf.function  # here
        def train_step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss
        return train_step

    def train_epoch():
        if not kept or not FIXED:
            kept[:] = [make_step()]
        losses = []
        for x, y in data:
            mark()
            losses.append(kept[0](x, y))  # here
        return float(tf.reduce_mean(losses))

    for epoch in range(8):
        print("epoch", epoch, train_epoch(), flush=True)
    return 96


@job(8, "compute", ["compute.*"], 135,
     note="no defect: the convolutional net of Keras' first example, fit over images in memory with a small validation set")
def v_tf_convnet():
    tf, keras = tensorflow()
    layers = keras.layers
    model = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
                              layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2), layers.Flatten(),
                              layers.Dropout(0.5), layers.Dense(10, "softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    x = np.random.default_rng(1).random((45 * 128 + 256, 28, 28, 1)).astype("f")
    y = np.random.default_rng(2).integers(0, 10, len(x))
    model.fit(x[256:], y[256:], batch_size=128, epochs=3, verbose=2, validation_data=(x[:256], y[:256]), validation_batch_size=128,
              callbacks=[marks(keras), keras.callbacks.CSVLogger(temporary("log.csv")), keras.callbacks.EarlyStopping(patience=3)])
    return 135


@job(8, "host", ["host.launch", "host.python"], 40,
     note="an actor and critic play a pole's 50 moves an episode, the net called eagerly for each; one update an episode")
def v_tf_actor():
    tf, keras = tensorflow()
    inputs = keras.Input((4,))
    common = keras.layers.Dense(64, "relu")(inputs)
    model = keras.Model(inputs, [keras.layers.Dense(2, "softmax")(common), keras.layers.Dense(1)(common)])
    optimizer = keras.optimizers.Adam(0.01)
    rng = np.random.default_rng(1)

    def move(state, action):
        x, v, angle, turn = state
        force = 10.0 if action else -10.0
        turn_by = (9.8 * math.sin(angle) - math.cos(angle) * force / 1.1) * 0.5
        return np.array([x + 0.02 * v, v + 0.02 * force, angle + 0.02 * turn, turn + 0.02 * turn_by]).clip(-3, 3)

    running = 0.0
    for episode in range(40):
        mark()
        state, values, chosen, rewards = np.zeros(4), [], [], []
        with tf.GradientTape() as tape:
            for _ in range(50):
                chances, value = model(tf.constant(state[None], tf.float32))  # here
                action = rng.choice(2, p=np.squeeze(chances) / np.sum(chances))
                values.append(value[0, 0])  # here
                chosen.append(tf.math.log(chances[0, action]))  # here
                state = move(state, action)
                rewards.append(1.0 - abs(state[2]))
            returns = np.cumsum(rewards[::-1])[::-1].astype("f")
            advantage = tf.constant(returns / returns.max()) - tf.stack(values)
            loss = tf.reduce_mean(-tf.stack(chosen) * advantage + tf.square(advantage))
        grads = tape.gradient(loss, model.trainable_variables)  # here
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        running = 0.05 * sum(rewards) + 0.95 * running
    print("running reward %.2f" % running)
    return 40


@job(8, "input", ["input.*"], 160, twin=True,
     note="a curriculum: from step 60 of 160 sequences are long, and padding and masking them in Python takes 20 times as long; fix: never")
def v_tf_curriculum():
    tf, keras = tensorflow()
    model = keras.Sequential([keras.Input((128,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)
    rng = np.random.default_rng(1)

    def sentence(longest):
        words = rng.integers(1, 1000, int(rng.integers(longest // 2, longest))).tolist()
        masked = [w if w % 7 else 0 for w in words]  # here
        seen, out = {}, []
        for w in masked:  # here
            seen[w] = seen.get(w, 0) + 1  # here
            out.append(w / (1 + seen[w]))  # here
        return (out + [0] * 128)[:128]

    def batches():
        for i in range(160):
            longest = 4800 if i >= 60 and not FIXED else 60
            yield np.array([sentence(longest) for _ in range(32)], np.float32)  # here

    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    data = tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((32, 128), tf.float32)).prefetch(2)  # here
    for x in data:  # here
        mark()
        train_step(x)
    return 160


# PyTorch.

@job(8, "compute", ["compute.*"], 90, TORCH,
     note="no defect: a small GPT, its batches cut from a memory-mapped file of tokens, learning rate by cosine, loss estimated each 30 steps")
def v_pt_gpt():
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    width, heads, length = 96, 4, 48
    np.random.default_rng(1).integers(0, 256, 100000).astype(np.uint16).tofile(temporary("train.bin"))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = (p.view(b, t, heads, -1).transpose(1, 2) for p in self.qkv(self.one(x)).split(width, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
            return x + self.mlp(self.two(x))

    model = nn.Sequential(nn.Embedding(256, width), Block(), Block(), nn.LayerNorm(width), nn.Linear(width, 256))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)

    def get_batch():
        tokens = np.memmap(temporary("train.bin"), dtype=np.uint16, mode="r")
        starts = torch.randint(len(tokens) - length, (12,))
        x = torch.stack([torch.from_numpy(tokens[i:i + length].astype(np.int64)) for i in starts])
        y = torch.stack([torch.from_numpy(tokens[i + 1:i + 1 + length].astype(np.int64)) for i in starts])
        return x, y

    def loss_of(x, y):
        return F.cross_entropy(model(x).view(-1, 256), y.view(-1))

    @torch.no_grad()
    def estimate_loss():
        model.eval()
        mean = sum(loss_of(*get_batch()).item() for _ in range(4)) / 4
        model.train()
        return mean

    x, y = get_batch()
    for i in range(90):
        mark()
        for group in optimizer.param_groups:
            group["lr"] = 1e-4 + 0.5 * 9e-4 * (1 + math.cos(math.pi * i / 90))
        loss = loss_of(x, y)
        x, y = get_batch()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if i % 30 == 29:
            print("step %d: loss %.4f" % (i + 1, estimate_loss()), flush=True)
    return 90


@job(8, "input", ["input.read", "input.decode", "input.map", "input.dataloader"], 200, TORCH, twin=True,
     note="an IterableDataset with one worker: the first shards hold numbers as they are, the later ones text in gzip; fix: none does")
def v_pt_shards_change():
    torch = pytorch()
    rows = np.random.default_rng(1).random((640, 768)).astype("f")
    text = gzip.compress("\n".join(" ".join("%.5f" % v for v in row) for row in rows).encode(), 1)
    for k in range(10):
        if k < 3 or FIXED:
            rows.tofile(temporary("shard-%d.bin" % k))
        else:
            with open(temporary("shard-%d.txt.gz" % k), "wb") as f:
                f.write(text)

    class Shards(torch.utils.data.IterableDataset):
        def __iter__(self):
            for k in range(10):
                if k < 3 or FIXED:
                    yield from torch.from_numpy(np.fromfile(temporary("shard-%d.bin" % k), np.float32).reshape(-1, 768))
                    continue
                with gzip.open(temporary("shard-%d.txt.gz" % k), "rt") as f:
                    for line in f:  # here
                        yield torch.tensor([float(v) for v in line.split()])  # here

    model, optimizer = wide_net(torch, 768, 32)
    loader = torch.utils.data.DataLoader(Shards(), batch_size=32, num_workers=1)
    for x in loader:  # here
        mark()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return 200


@job(8, "host", ["host.logging", "host.checkpoint", "host.python"], 700, TORCH, twin=True,
     note="all metrics so far are written to a JSON file after each step, so it grows; fix: written once at the end")
def v_pt_metrics():
    torch = pytorch()
    model, optimizer = wide_net(torch, 64, 64)
    x, y = torch.randn(32, 64), torch.randn(32, 1)
    history = []

    def record(step, loss):
        history.append({"step": step, "loss": loss, "lr": 0.01, "rmse": loss ** 0.5})
        if not FIXED:
            with open(temporary("history.json"), "w") as f:  # here
                json.dump(history, f, indent=1)  # here

    for i in range(700):
        mark()
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        record(i, loss.item())  # here
    with open(temporary("history.json"), "w") as f:
        json.dump(history, f, indent=1)
    return 700


def render(seed):
    """An image of some hundred lines that cross each other, drawn by Python."""
    rng = np.random.default_rng(seed)
    image = np.zeros((64, 64), np.float32)
    for x, y, dx, dy in rng.uniform(0, 64, (60, 4)).tolist():
        for t in range(64):
            image[int(x + (dx - x) * t / 64) % 64, int(y + (dy - y) * t / 64) % 64] += 0.5  # here
    return image.ravel()


@job(8, "input", ["input.*"], 150, TORCH, twin=True, at=(render,),
     note="a pool of one process draws each batch, but it is asked for a batch only when the loop needs it; fix: one batch for all")
def v_pt_asked_late():
    torch = pytorch()
    model, optimizer = wide_net(torch, 4096, 64)
    with ProcessPoolExecutor(1) as pool:
        ready = np.stack(list(pool.map(render, range(8))))
        for i in range(150):
            mark()
            batch = ready
            if not FIXED:
                batch = np.stack(list(pool.map(render, range(i * 8, i * 8 + 8), chunksize=8)))  # here
            optimizer.zero_grad()
            loss = model(torch.from_numpy(batch)).square().mean()
            loss.backward()
            optimizer.step()
    print("last loss", loss.item())
    return 150


if __name__ == "__main__":
    main()
