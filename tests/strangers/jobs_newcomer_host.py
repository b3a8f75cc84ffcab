"""Batch 12: TensorFlow's jobs on the processor, and three of PyTorch's that change, grow or serve."""
import csv
import os
import queue
import random
import threading
import time

import numpy as np
from stranger import FIXED, TORCH, job, main, mark, marks, pytorch, quiet_tensorflow, temporary


# TensorFlow.

@job(12, "input", ["input.generator"], 400, twin=True,
     note="from_generator reads lines with csv.DictReader, and makes a number of every cell by itself; fix: one array of all")
def y_tf_ledger_gen():
    tf, _ = quiet_tensorflow()
    columns = ["c%02d" % i for i in range(24)]
    path = temporary("ledger.csv")
    random.seed(4)
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(columns + ["fraud"])
        for i in range(12800):
            out.writerow(["%.4f" % random.random() for _ in columns] + [i & 1])

    def rows():
        with open(path, newline="") as f:
            for row in csv.DictReader(f):  # here
                yield np.array([float(row[c]) for c in columns], np.float32), np.float32(row["fraud"])  # here

    if FIXED:
        table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)
        ds = tf.data.Dataset.from_tensor_slices((table[:, :-1], table[:, -1]))
    else:
        ds = tf.data.Dataset.from_generator(rows, output_signature=(tf.TensorSpec((24,)), tf.TensorSpec(())))
    ds = ds.batch(64).prefetch(2)

    w1 = tf.Variable(tf.random.normal((24, 64), stddev=0.1))
    w2 = tf.Variable(tf.random.normal((64, 1), stddev=0.1))

    @tf.function
    def update(x, y):
        with tf.GradientTape() as tape:
            logit = tf.squeeze(tf.nn.relu(x @ w1) @ w2, 1)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, logit))
        for v, g in zip((w1, w2), tape.gradient(loss, (w1, w2))):
            v.assign_sub(0.1 * g)
        return loss

    n = 0
    for epoch in range(2):
        for x, y in ds:
            mark()
            loss = update(x, y)
            n += 1
        print("epoch %d: %.4f" % (epoch, float(loss)))
    return n


@job(12, "input", ["input.map"], 160, twin=True,
     note="spectra of sounds are computed by numpy in a py_function, one after the other; fix: cached")
def y_tf_bird_calls():
    tf, keras = quiet_tensorflow()
    clips = np.random.default_rng(0).standard_normal((320, 8000)).astype(np.float32)
    labels = np.arange(320) % 10
    filters = np.abs(np.random.default_rng(1).standard_normal((129, 32))).astype(np.float32)

    def features(wave):
        frames = np.lib.stride_tricks.sliding_window_view(wave.numpy(), 256)[::64] * np.hanning(256)
        power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
        return np.log(power.astype(np.float32) @ filters + 1e-6)

    def prepare(wave, label):
        f = tf.py_function(features, [wave], tf.float32)  # here
        f.set_shape((122, 32))
        return f, label

    ds = tf.data.Dataset.from_tensor_slices((clips, labels)).map(prepare)  # here
    if FIXED:
        ds = ds.cache()
        print(sum(1 for _ in ds), "clips cached")
    ds = ds.batch(16, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

    net = keras.Sequential([keras.Input((122, 32)), keras.layers.Conv1D(8, 9, strides=4, activation="relu"),
                            keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(10)])
    net.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    net.fit(ds, epochs=8, verbose=0, callbacks=[marks(keras)])
    return 8 * 20


@job(12, "input", ["input.read", "input.decode"], 320, twin=True,
     note="wide records in gzip's files are interleaved one file at a time, and only their beginnings are used; fix: not compressed")
def y_tf_gz_shards():
    tf, _ = quiet_tensorflow()
    home, rng = temporary("shards"), np.random.default_rng(0)
    os.makedirs(home, exist_ok=True)
    kind = "" if FIXED else "GZIP"
    for shard in range(4):
        with tf.io.TFRecordWriter("%s/u-%d.rec" % (home, shard), tf.io.TFRecordOptions(compression_type=kind, compression_level=1)) as w:
            for _ in range(640):
                history = rng.integers(0, 60, 30000).astype(np.int32).tobytes()
                w.write(tf.train.Example(features=tf.train.Features(feature={
                    "history": tf.train.Feature(bytes_list=tf.train.BytesList(value=[history]))})).SerializeToString())

    def parse(record):
        raw = tf.io.parse_single_example(record, {"history": tf.io.FixedLenFeature((), tf.string)})["history"]
        tail = tf.io.decode_raw(tf.strings.substr(raw, 0, 4 * 64), tf.int32)
        return tail, tf.cast(tail[0] % 2, tf.float32)

    ds = (tf.data.Dataset.list_files(home + "/u-*.rec")
          .interleave(lambda p: tf.data.TFRecordDataset(p, compression_type=kind), cycle_length=1)  # here
          .map(parse).batch(16).prefetch(1))

    table = tf.Variable(tf.random.normal((60, 16), stddev=0.1))
    head = tf.Variable(tf.random.normal((16, 1), stddev=0.1))
    optimizer = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def fit_batch(ids, y):
        with tf.GradientTape() as tape:
            mean = tf.reduce_mean(tf.gather(table, ids), 1)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, tf.squeeze(mean @ head, 1)))
        grads = tape.gradient(loss, [table, head])
        optimizer.apply_gradients([(tf.convert_to_tensor(g), v) for g, v in zip(grads, [table, head])])
        return loss

    step = 0
    for ids, y in ds.repeat(2):  # here
        mark()
        fit_batch(ids, y)
        step += 1
    return step


@job(12, "host", ["host.compile"], 90, twin=True,
     note="the rate of a warm-up is passed to a tf.function as a number of Python's, so each is traced anew; fix: as a tensor")
def y_tf_warmup_trace():
    tf, _ = quiet_tensorflow()
    steps = 90
    x = np.random.default_rng(0).standard_normal((steps * 32, 20)).astype(np.float32)
    ds = tf.data.Dataset.from_tensor_slices((x, x[:, :1] > 0)).batch(32).prefetch(2)
    sizes = [20, 64, 64, 64, 1]
    weights = [tf.Variable(tf.random.normal((a, b), stddev=0.1)) for a, b in zip(sizes, sizes[1:])]
    velocity = [tf.Variable(tf.zeros_like(w)) for w in weights]

    @tf.function
    def train(x, y, lr):
        with tf.GradientTape() as tape:
            h = x
            for w in weights[:-1]:
                h = tf.nn.swish(h @ w)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(y, tf.float32), h @ weights[-1]))
        for w, v, g in zip(weights, velocity, tape.gradient(loss, weights)):
            v.assign(0.9 * v + g)
            w.assign_sub(lr * v)
        return loss

    for step, (xb, yb) in enumerate(ds):
        mark()
        lr = 0.1 * (step + 1) / steps
        train(xb, yb, tf.constant(lr) if FIXED else lr)  # here
    return steps


@job(12, "host", ["host.callback", "host.python"], 120, twin=True,
     note="Keras: a callback lets the model predict a few examples after every batch, for an animation; fix: once an epoch")
def y_tf_probe_predict():
    _, keras = quiet_tensorflow()
    rng = np.random.default_rng(0)
    x = rng.random((1920, 40), dtype=np.float32)
    y = (x.sum(1) > 20).astype(np.float32)

    class Animation(keras.callbacks.Callback):
        def __init__(self, probe):
            super().__init__()
            self.probe, self.frames = probe, []

        def on_train_batch_end(self, batch, logs=None):
            if not FIXED or batch % 60 == 59:
                self.frames.append(self.model.predict(self.probe, verbose=0))  # here

    model = keras.Sequential([keras.Input((40,)), keras.layers.Dense(96, activation="tanh"), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.SGD(0.1), "binary_crossentropy")
    model.fit(x, y, batch_size=32, epochs=2, verbose=0, callbacks=[marks(keras), Animation(x[:128])])
    return 120


@job(12, "compute", ["compute.*"], 120,
     note="no defect: a small residual net over spectra that are cached and prefetched")
def y_tf_spectra_conv():
    tf, keras = quiet_tensorflow()
    spectra = np.random.default_rng(0).standard_normal((1280, 256, 4)).astype(np.float32)
    ds = (tf.data.Dataset.from_tensor_slices((spectra, np.arange(1280) % 6)).cache().shuffle(1280)
          .batch(32, drop_remainder=True).prefetch(tf.data.AUTOTUNE))

    inputs = keras.Input((256, 4))
    h = keras.layers.Conv1D(32, 7, padding="same")(inputs)
    for width in (32, 32, 32):
        skip = h
        h = keras.layers.Conv1D(width, 5, padding="same", activation="relu")(h)
        h = keras.layers.Conv1D(width, 5, padding="same")(h)
        h = keras.layers.ReLU()(keras.layers.Add()([h, skip]))
    outputs = keras.layers.Dense(6)(keras.layers.GlobalAveragePooling1D()(h))
    model = keras.Model(inputs, outputs)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(ds, epochs=3, verbose=2, callbacks=[marks(keras)])
    return 3 * 40


# PyTorch.

@job(12, "input", ["input.map", "input.dataloader"], 320, TORCH, twin=True,
     note="an autoencoder learns from memory; then its encoder learns from pictures that are deformed one by one; fix: not deformed")
def y_odd_two_acts():
    torch = pytorch()
    from torch.utils.data import DataLoader, Dataset, TensorDataset
    torch.manual_seed(0)
    glyphs = torch.rand(800, 1, 28, 28)

    class Deformed(Dataset):
        def __init__(self):
            self.rng = np.random.default_rng(0)

        def __len__(self):
            return 800

        def __getitem__(self, i):
            img = glyphs[i, 0].numpy()
            if not FIXED:
                for _ in range(12):  # here
                    dy, dx = (np.cumsum(self.rng.normal(0, 0.05, (28, 28)), axis=a) for a in (0, 1))  # here
                    yy, xx = np.meshgrid(np.arange(28), np.arange(28), indexing="ij")  # here
                    img = img[np.clip(yy + dy, 0, 27).astype(int), np.clip(xx + dx, 0, 27).astype(int)]  # here
            return torch.from_numpy(img[None].copy()), i % 10

    encoder = torch.nn.Sequential(torch.nn.Conv2d(1, 12, 5, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(12 * 144, 64))
    decoder = torch.nn.Linear(64, 784)
    opt, steps = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-3), 0
    for epoch in range(3):
        for (x,) in DataLoader(TensorDataset(glyphs), batch_size=20, shuffle=True):
            loss = (decoder(encoder(x)) - x.flatten(1)).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
    print("reconstruction %.4f" % loss.item())
    head = torch.nn.Linear(64, 10)
    opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], 0.01)
    for epoch in range(5):
        for x, y in DataLoader(Deformed(), batch_size=20, shuffle=True):
            mark()
            loss = torch.nn.functional.cross_entropy(head(encoder(x)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
    return steps


@job(12, "compute", ["compute.*"], 200, TORCH,
     note="no defect: the batch doubles three times, instead of a lower learning rate")
def y_odd_growing_batch():
    torch = pytorch()
    torch.manual_seed(0)
    data, target = torch.randn(8000, 96), torch.randn(8000, 4)
    net = torch.nn.Sequential(torch.nn.Linear(96, 320), torch.nn.ReLU(), torch.nn.Linear(320, 320), torch.nn.ReLU(),
                              torch.nn.Linear(320, 4))
    opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    updates = 0
    for batch_size in (64, 128, 256, 512):
        sampler = torch.utils.data.RandomSampler(range(8000), num_samples=50 * batch_size)
        rows = torch.utils.data.BatchSampler(sampler, batch_size, drop_last=True)
        for idx in rows:
            mark()
            loss = torch.nn.functional.mse_loss(net(data[idx]), target[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            updates += 1
        print("batch %4d: loss %.3f" % (batch_size, loss.item()))
    return updates


@job(12, "input or host", ["input.batch", "host.wait", "host.sleep", "input.unknown"], 180, TORCH, twin=True,
     note="a server waits up to 25 ms for a batch of 16 requests, but has four clients; fix: batches of four")
def y_sv_window():
    torch = pytorch()
    max_batch, max_wait, batches = (4 if FIXED else 16), 0.025, 180
    inbox, serving = queue.Queue(), threading.Event()
    nn = torch.nn
    encoder = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 32)).eval()

    def client(number):
        answers = queue.Queue()
        vector = torch.randn(256)
        while serving.is_set():
            inbox.put((vector, answers))
            answers.get()
            time.sleep(0.001)

    def next_batch():
        batch = [inbox.get()]
        deadline = time.monotonic() + max_wait
        while len(batch) < max_batch:
            left = deadline - time.monotonic()
            try:
                batch.append(inbox.get(timeout=max(left, 0)))  # here
            except queue.Empty:
                break
        return batch

    serving.set()
    clients = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(4)]
    for thread in clients:
        thread.start()
    with torch.inference_mode():
        for served in range(batches):
            mark()
            batch = next_batch()  # here
            replies = encoder(torch.stack([v for v, _ in batch]))
            for (_, answers), reply in zip(batch, replies):
                answers.put(reply)
    serving.clear()  # what is still asked for has no answer that anybody reads
    while any(thread.is_alive() for thread in clients):
        try:
            inbox.get(timeout=0.01)[1].put(None)
        except queue.Empty:
            pass
    return batches


if __name__ == "__main__":
    main()
