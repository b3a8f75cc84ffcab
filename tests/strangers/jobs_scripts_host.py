"""Batch 7: TensorFlow's and PyTorch's jobs on the processor, in the manner of their tutorials."""
import csv
import multiprocessing
import os
import time

import numpy as np
from stranger import FIXED, TORCH, job, main, mark, marks, pytorch, temporary, tensorflow, wide_net


# TensorFlow.

@job(7, "compute", ["compute.*"], 160,
     note="no defect: style transfer: four epochs of 40 steps change one image until its features' products fit")
def q_tf_style():
    tf, keras = tensorflow()
    features = keras.Sequential([keras.Input((96, 96, 3))] + [keras.layers.Conv2D(24, 3, activation="relu") for _ in range(4)])
    optimizer = keras.optimizers.Adam(0.02)

    def gram(x):
        return tf.einsum("bijc,bijd->bcd", x, x) / (92.0 * 92.0)

    wanted = gram(features(tf.random.uniform((3, 96, 96, 3))))
    image = tf.Variable(tf.random.uniform((3, 96, 96, 3)))

    @tf.function
    def train_step():
        with tf.GradientTape() as tape:
            style = tf.reduce_mean(tf.square(gram(features(image)) - wanted))
            loss = style + 1e-4 * tf.reduce_sum(tf.image.total_variation(image))
        optimizer.apply_gradients([(tape.gradient(loss, image), image)])
        image.assign(tf.clip_by_value(image, 0.0, 1.0))

    start = time.time()
    for epoch in range(4):
        for _ in range(40):
            mark()
            train_step()
            print(".", end="", flush=True)
        print(" epoch", epoch)
    print("total time: %.1f s" % (time.time() - start))
    return 160


@job(7, "input", ["input.map"], 200, twin=True,
     note="fit over images that a map crops, resizes, turns and colours one by one; fix: over images changed beforehand")
def q_tf_colours():
    tf, keras = tensorflow()
    model = keras.Sequential([keras.Input((48, 48, 3)), keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
                              keras.layers.Flatten(), keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    images = np.random.default_rng(1).integers(0, 255, (800, 96, 96, 3), np.uint8)
    labels = np.zeros(800, np.int32)

    def augment(image, label):
        image = tf.image.convert_image_dtype(image, tf.float32)  # here
        image = tf.image.random_flip_left_right(tf.image.random_crop(image, (80, 80, 3)))  # here
        image = tf.image.random_hue(tf.image.random_saturation(image, 0.7, 1.3), 0.1)  # here
        image = tf.image.random_contrast(tf.image.random_brightness(image, 0.2), 0.8, 1.2)  # here
        return tf.image.resize(image, (48, 48), method="lanczos3", antialias=True), label  # here

    data = tf.data.Dataset.from_tensor_slices((images, labels))
    if FIXED:
        ready = list(data.map(augment).batch(800))[0]
        data = tf.data.Dataset.from_tensor_slices(ready).batch(32)
    else:
        data = data.shuffle(800).map(augment).batch(32)  # here
    model.fit(data.prefetch(2), epochs=8, verbose=0, callbacks=[marks(keras)])
    return 200


@job(7, "any", ["input.*", "host.python"], 120,
     note="a time series: the windows of each of six epochs are cut and scaled by a Python loop before its fit")
def q_tf_windows():
    tf, keras = tensorflow()
    model = keras.Sequential([keras.Input((16, 4), batch_size=32), keras.layers.LSTM(24, stateful=True), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    series = np.cumsum(np.random.default_rng(1).normal(size=(700, 4)), axis=0)
    clock = marks(keras)

    def windows(offset):
        rows, targets = [], []
        for i in range(640):
            part = series[i + offset:i + offset + 17]  # here
            low, high = min(min(r) for r in part.tolist()), max(max(r) for r in part.tolist())  # here
            scaled = [[(v - low) / (high - low + 1e-6) for v in r] for r in part.tolist()]  # here
            for _ in range(0 if FIXED else 50):
                scaled = [[min(max(v, 0.0), 1.0) for v in r] for r in scaled]  # here
            rows.append(scaled[:-1])
            targets.append(scaled[-1][:1])
        return np.array(rows, np.float32), np.array(targets, np.float32)

    for epoch in range(6):
        x, y = windows(epoch)  # here
        model.fit(x, y, batch_size=32, epochs=1, shuffle=False, verbose=0, callbacks=[clock])
        model.layers[0].reset_state()
    return 120


@job(7, "host", ["host.compile"], 48,
     note="four folds: each makes, compiles and traces a model of its own for 12 steps; fix: one model gets its first weights again")
def q_tf_folds():
    tf, keras = tensorflow()
    x, y = np.random.default_rng(1).random((256, 32)).astype("f"), np.zeros((256, 1), np.float32)

    def build():
        inputs = out = keras.Input((32,))
        for _ in range(6):
            out = keras.layers.BatchNormalization()(keras.layers.Dense(32, "relu")(out))
        model = keras.Model(inputs, keras.layers.Dense(1)(out))
        model.compile("adam", "mse")
        return model

    model, first = None, None
    scores = []
    for k in range(4):
        if model is None or not FIXED:
            model = build()  # here
            first = model.get_weights()
        model.set_weights(first)
        out = np.zeros(len(x), bool)
        out[k * 64:(k + 1) * 64] = True
        model.fit(x[~out], y[~out], batch_size=16, epochs=1, verbose=0, callbacks=[marks(keras)])  # here
        scores.append(model.evaluate(x[out], y[out], batch_size=16, verbose=0))  # here
    print("mean loss %.3f" % np.mean(scores))
    return 48


@job(7, "input", ["input.read", "input.generator", "input.decode"], 240, twin=True,
     note="32 rows drawn at random from a compressed HDF5 file, each of which inflates the chunk it lies in; fix: from memory")
def q_tf_hdf5():
    import h5py
    tf, keras = tensorflow()
    path, rows = temporary("rows.h5"), np.random.default_rng(1).integers(0, 12, (8192, 256)).astype(np.float32)
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=rows, chunks=(128, 256), compression="gzip", compression_opts=6)
    model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    def batches():
        with h5py.File(path, "r") as f:
            x = rows if FIXED else f["x"]
            order = np.random.default_rng(2).permutation(8192)
            for i in range(240):
                batch = np.stack([x[int(k)] for k in order[i * 32:(i + 1) * 32]])  # here
                yield batch, batch[:, :1]

    kind = (tf.TensorSpec((32, 256), tf.float32), tf.TensorSpec((32, 1), tf.float32))
    data = tf.data.Dataset.from_generator(batches, output_signature=kind).prefetch(1)  # here
    model.fit(data, epochs=1, verbose=0, callbacks=[marks(keras)])  # here
    return 240


# PyTorch.

def prepare(seed):
    """The next data set, made for as long as training runs."""
    x = seed
    while True:
        x = (x * 1103515245 + 12345) % (1 << 31)


@job(7, "host", ["host.cpu-contention"], 120, TORCH, twin=True,
     note="three processes for each processor prepare the next data set while the model trains; fix: none do")
def q_pt_crowd():
    torch = pytorch()
    model, optimizer = wide_net(torch, 128, 512)
    x, y = torch.randn(64, 128), torch.randn(64, 1)
    context = multiprocessing.get_context("fork")
    crowd = [context.Process(target=prepare, args=(k,), daemon=True) for k in range(0 if FIXED else 3 * os.cpu_count())]
    for process in crowd:
        process.start()
    for i in range(120):
        mark()
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if i % 40 == 39:
            print("%d: %.4f" % (i + 1, loss.item()), flush=True)
    for process in crowd:
        process.kill()
    return 120


@job(7, "input", ["input.map", "input.dataloader"], 288, TORCH, twin=True,
     note="contrastive learning: two views of each image are cropped, flipped, coloured and blurred as it is taken; fix: made before")
def q_pt_views():
    torch = pytorch()
    nn = torch.nn
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(3 * 24 * 24, 64), nn.ReLU(), nn.Linear(64, 32))
    optimizer = torch.optim.Adam(encoder.parameters(), 1e-3)
    pictures = np.random.default_rng(1).random((384, 3, 48, 48)).astype("f")
    rng = np.random.default_rng(2)

    class Views(torch.utils.data.Dataset):
        def __init__(self):
            self.ready = [(self.view(i), self.view(i)) for i in range(384)] if FIXED else None

        def __len__(self):
            return len(pictures)

        def view(self, i):
            top, left = rng.integers(0, 24, 2)
            out = pictures[i, :, top:top + 24, left:left + 24]  # here
            if rng.random() < 0.5:
                out = out[:, :, ::-1]
            out = np.clip((out - 0.5) * rng.uniform(0.6, 1.4) + rng.uniform(0.4, 0.6), 0, 1)  # here
            for _ in range(4):
                padded = np.pad(out, ((0, 0), (1, 1), (1, 1)), mode="reflect")  # here
                out = sum(padded[:, a:a + 24, b:b + 24] for a in range(3) for b in range(3)) / 9  # here
            return torch.from_numpy(np.ascontiguousarray(out, np.float32))

        def __getitem__(self, i):
            return self.ready[i] if FIXED else (self.view(i), self.view(i))  # here

    loader = torch.utils.data.DataLoader(Views(), batch_size=16, shuffle=True)
    for epoch in range(12):
        for one, other in loader:
            mark()
            a = nn.functional.normalize(encoder(torch.cat([one, other])), dim=1)
            alike = a @ a.T / 0.5 - 1e9 * torch.eye(32)
            loss = nn.functional.cross_entropy(alike, (torch.arange(32) + 16) % 32)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, float(loss), flush=True)
    return 288


@job(7, "any", ["input.*", "host.python"], 120, TORCH,
     note="a sweep over four learning rates: each trial reads the whole table from CSV again before its 30 steps")
def q_pt_sweep():
    torch = pytorch()
    path = temporary("table.csv")
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows(np.random.default_rng(1).random((60000, 16)).round(6).tolist())

    def table():
        rows = []
        with open(path, newline="") as f:
            for row in csv.reader(f):  # here
                rows.append([float(v) for v in row])  # here
        return torch.tensor(rows)  # here

    kept = table() if FIXED else None
    results = {}
    for lr in (0.1, 0.03, 0.01, 0.003):
        data = kept if FIXED else table()  # here
        model, _ = wide_net(torch, 15, 128)
        optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
        for i in range(30):
            mark()
            batch = data[i * 256:(i + 1) * 256]
            optimizer.zero_grad()
            loss = (model(batch[:, :15]) - batch[:, 15:]).square().mean()
            loss.backward()
            optimizer.step()
        results[lr] = loss.item()
        print("lr %g: %.4f" % (lr, results[lr]), flush=True)
    print("best:", min(results, key=results.get))
    return 120


if __name__ == "__main__":
    main()
