"""Batch 13: TensorFlow's and Keras' jobs on the processor."""
import numpy as np
from stranger import FIXED, job, main, mark, marks, quiet_tensorflow, temporary


@job(13, "input", ["input.read", "input.decode", "input.generator"], 128, twin=True,
     note="Keras on a PyDataset: shuffled rows come one by one from chunks of 256 compressed rows; fix: read once")
def z_tf_h5_sequence():
    _, keras = quiet_tensorflow()
    import h5py
    ROWS, BATCH, EPOCHS = 1024, 16, 2

    def write(path):
        rng = np.random.default_rng(0)
        with h5py.File(path, "w") as f:
            spectra = (rng.random((ROWS, 600)) * 50).astype(np.int32)
            f.create_dataset("spectra", data=spectra, chunks=(256, 600), compression="gzip")
            f.create_dataset("peak", data=spectra.argmax(1) // 100)

    class Spectra(keras.utils.PyDataset):
        def __init__(self, path):
            super().__init__()
            self.file = h5py.File(path, "r", rdcc_nbytes=0)
            self.order = np.random.default_rng(1).permutation(ROWS)
            self.spectra = self.file["spectra"][:] if FIXED else self.file["spectra"]

        def __len__(self):
            return ROWS // BATCH

        def __getitem__(self, i):
            rows = np.sort(self.order[i * BATCH:(i + 1) * BATCH])
            x = np.stack([self.spectra[r] for r in rows])  # here
            return x.astype(np.float32) / 50, self.file["peak"][rows]

    path = temporary("spectra.h5")
    write(path)
    model = keras.Sequential([keras.Input((600,)), keras.layers.Reshape((600, 1)), keras.layers.Conv1D(8, 9, 4, activation="relu"),
                              keras.layers.GlobalMaxPooling1D(), keras.layers.Dense(6)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(Spectra(path), epochs=EPOCHS, verbose=0, shuffle=False, callbacks=[marks(keras)])
    return EPOCHS * ROWS // BATCH


@job(13, "host", ["host.compile"], 70, twin=True,
     note="a new tf.function is made, and traced, for each batch; fix: one")
def z_tf_function_inside():
    tf, keras = quiet_tensorflow()

    class Tuner:
        def __init__(self, units, rate):
            self.w1 = tf.Variable(tf.random.normal((20, units), stddev=0.1))
            self.w2 = tf.Variable(tf.random.normal((units, 1), stddev=0.1))
            self.b = tf.Variable(tf.zeros((units,)))
            self.rate, self.compiled = tf.Variable(rate), None

        def predict(self, x):
            return tf.nn.swish(x @ self.w1 + self.b) @ self.w2

        def one(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.predict(x) - y))
            for v, g in zip((self.w1, self.w2, self.b), tape.gradient(loss, (self.w1, self.w2, self.b))):
                v.assign_sub(self.rate * g)
            return loss

        def train_on(self, x, y, factor):
            self.rate.assign(self.rate * factor)
            if FIXED:
                self.compiled = self.compiled or tf.function(self.one)
                return self.compiled(x, y)
            return tf.function(self.one)(x, y)  # here

    tf.random.set_seed(0)
    x = tf.random.normal((64 * 70, 20))
    data = tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x[:, :4], 1, keepdims=True))).batch(64).prefetch(2)
    tuner = Tuner(128, 0.05)
    losses = []
    for x, y in data:
        mark()
        losses.append(tuner.train_on(x, y, 0.995))  # here
    print("loss %.3f -> %.3f" % (losses[0], losses[-1]))
    return 70


@job(13, "host", ["host.launch", "host.python"], 160, twin=True,
     note="a GAN without tf.function; fix: with it")
def z_tf_eager_gan():
    tf, keras = quiet_tensorflow()
    LATENT, BATCH, EPOCHS = 16, 32, 2

    def mlp(*sizes):
        return keras.Sequential([keras.Input((sizes[0],))] + [keras.layers.Dense(n, activation="leaky_relu") for n in sizes[1:-1]]
                                + [keras.layers.Dense(sizes[-1])])

    class GAN:
        def __init__(self):
            self.g, self.d = mlp(LATENT, 48, 48, 48, 40), mlp(40, 48, 48, 48, 1)
            self.g_opt, self.d_opt = keras.optimizers.Adam(2e-4, 0.5), keras.optimizers.Adam(2e-4, 0.5)
            self.bce = keras.losses.BinaryCrossentropy(from_logits=True)

        def step(self, real):
            noise = tf.random.normal((BATCH, LATENT))
            with tf.GradientTape() as tape:
                fake, true = self.d(self.g(noise)), self.d(real)
                d_loss = self.bce(tf.ones_like(true), true) + self.bce(tf.zeros_like(fake), fake)
            self.d_opt.apply_gradients(zip(tape.gradient(d_loss, self.d.trainable_variables), self.d.trainable_variables))  # here
            with tf.GradientTape() as tape:
                fake = self.d(self.g(noise))
                g_loss = self.bce(tf.ones_like(fake), fake)
            self.g_opt.apply_gradients(zip(tape.gradient(g_loss, self.g.trainable_variables), self.g.trainable_variables))  # here
            return d_loss, g_loss

    tf.keras.utils.set_random_seed(0)
    data = tf.data.Dataset.from_tensor_slices(tf.random.normal((2560, 40))).shuffle(2560).batch(BATCH, drop_remainder=True).prefetch(1)
    gan = GAN()
    step = tf.function(gan.step) if FIXED else gan.step
    for epoch in range(EPOCHS):
        for real in data:
            mark()
            d_loss, g_loss = step(real)  # here
        print("epoch %d: D %.3f G %.3f" % (epoch, d_loss, g_loss))
    return EPOCHS * 80


@job(13, "host", ["host.python"], 300, twin=True,
     note="the area under the curve of the last 16,000 predictions is counted in Python in every step; fix: in every 100th")
def z_tf_auc_on_host():
    tf, keras = quiet_tensorflow()

    class RunningAUC:
        """Mann-Whitney by counting, on lists."""

        def __init__(self, keep=16000):
            self.keep, self.scores, self.labels = keep, [], []

        def add(self, scores, labels):
            self.scores = (self.scores + scores.tolist())[-self.keep:]
            self.labels = (self.labels + labels.tolist())[-self.keep:]

        def value(self):
            ranked = sorted(zip(self.scores, self.labels))  # here
            negatives = won = 0
            for _, label in ranked:  # here
                if label:  # here
                    won += negatives  # here
                else:
                    negatives += 1  # here
            return won / max(1, negatives * (len(ranked) - negatives))

    rng = np.random.default_rng(0)
    clicks = rng.integers(0, 1000, (38400, 6))
    clicked = (clicks.sum(1) + rng.normal(0, 800, 38400) > 3000).astype(np.int64)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Embedding(1000, 8), keras.layers.Flatten(),
                              keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
    optimizer = keras.optimizers.Adagrad(0.05)
    loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            out = model(x, training=True)[:, 0]
            loss = loss_fn(y, out)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss, out

    auc, seen = RunningAUC(), []
    data = tf.data.Dataset.from_tensor_slices((clicks, clicked)).batch(128).prefetch(tf.data.AUTOTUNE)
    for step, (x, y) in enumerate(data):
        mark()
        loss, out = train_step(x, y)
        auc.add(out.numpy(), y.numpy())
        if not FIXED or step % 100 == 99:
            seen.append(auc.value())  # here
    print("AUC %.4f" % seen[-1])
    return 300


@job(13, "input", ["input.map", "input.shuffle"], 200, twin=True,
     note="each epoch begins with filling a shuffle buffer as large as the data set, behind a map; fix: a cache behind the map")
def z_tf_shuffle_refill():
    tf, keras = quiet_tensorflow()
    WINDOWS, BATCH, EPOCHS = 640, 32, 10

    def normalise(raw):
        """Wavelet-like features of one window."""
        x = tf.cast(raw, tf.float32)
        parts = []
        for k in (2, 4, 8, 16, 32):
            s = tf.nn.avg_pool1d(x[None], k, 1, "SAME")[0]
            parts.append(tf.abs(tf.signal.rfft(tf.transpose(s)))[:, :64])
        return tf.concat(parts, 0), tf.cast(raw[0, 0] > 0, tf.float32)

    class Clock(keras.callbacks.Callback):
        """A step ends where the next begins, so that the first of an epoch contains the filling."""

        def on_train_batch_end(self, batch, logs=None):
            mark()

    raw = tf.random.stateless_uniform((WINDOWS, 4096, 4), (0, 1), -2000, 2000, tf.int32)
    data = tf.data.Dataset.from_tensor_slices(raw).map(normalise)  # here
    if FIXED:
        data = data.cache()
    data = data.shuffle(WINDOWS).batch(BATCH).prefetch(1)  # here
    model = keras.Sequential([keras.Input((20, 64)), keras.layers.Flatten(), keras.layers.Dense(64, activation="gelu"),
                              keras.layers.Dropout(0.2), keras.layers.Dense(1)])
    model.compile(keras.optimizers.RMSprop(1e-3), keras.losses.BinaryCrossentropy(from_logits=True))
    history = model.fit(data, epochs=EPOCHS, verbose=0, callbacks=[Clock()])
    print("loss", round(history.history["loss"][-1], 3))
    return EPOCHS * WINDOWS // BATCH


@job(13, "host", ["host.checkpoint"], 160, twin=True,
     note="ModelCheckpoint saves after every fourth batch; fix: after each epoch")
def z_tf_checkpoint_batches():
    _, keras = quiet_tensorflow()
    SAMPLES, BATCH, EPOCHS = 3840, 48, 2

    def build():
        inputs = keras.Input((30, 12))
        x = keras.layers.Conv1D(32, 3, activation="relu")(inputs)
        x = keras.layers.LayerNormalization()(x)
        x = keras.layers.Conv1D(32, 3, activation="relu")(x)
        x = keras.layers.GlobalAveragePooling1D()(x)
        x = keras.layers.Dense(512, activation="relu")(x)
        return keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(x))

    rng = np.random.default_rng(5)
    x = rng.random((SAMPLES, 30, 12), dtype=np.float32)
    y = rng.integers(0, 3, SAMPLES)
    model = build()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    keep = keras.callbacks.ModelCheckpoint(temporary("last.keras"), save_freq="epoch" if FIXED else 4)
    stopper = keras.callbacks.EarlyStopping("loss", patience=5)
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=[marks(keras), keep, stopper])  # here
    return EPOCHS * SAMPLES // BATCH


@job(13, "input", ["input.map", "input.decode"], 80, twin=True,
     note="JPEGs are decoded again in every epoch, without parallel calls or prefetching of one's own; fix: a cache")
def z_tf_decode_serial():
    tf, keras = quiet_tensorflow()
    PHOTOS, BATCH, EPOCHS = 256, 16, 5

    def photos():
        for i in range(PHOTOS):
            image = tf.random.stateless_uniform((20, 26, 3), (i, 2), 0, 255, tf.int32)
            image = tf.image.resize(tf.cast(image, tf.float32), (240, 320))
            yield tf.io.encode_jpeg(tf.cast(image, tf.uint8), quality=90).numpy()

    def load(jpeg, label):
        image = tf.io.decode_jpeg(jpeg, channels=3)
        image = tf.image.resize(image, (40, 40), method="bicubic", antialias=True)
        return image / 127.5 - 1.0, label

    @tf.function
    def train_step(model, opt, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, model(x, training=True), from_logits=True))
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    keras.utils.set_random_seed(1)
    labels = tf.range(PHOTOS) % 4
    data = tf.data.Dataset.from_tensor_slices((list(photos()), labels)).map(load)  # here
    data = (data.cache() if FIXED else data).batch(BATCH)
    if FIXED:
        sum(1 for _ in data)
    model = keras.Sequential([keras.Input((40, 40, 3)), keras.layers.Conv2D(8, 5, 2, activation="relu"),
                              keras.layers.Conv2D(16, 3, 2, activation="relu"),
                              keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(4)])
    opt = keras.optimizers.SGD(0.02, momentum=0.9)
    mean = keras.metrics.Mean()
    for epoch in range(EPOCHS):
        mean.reset_state()
        for x, y in data:
            mark()
            mean.update_state(train_step(model, opt, x, y))
        print("epoch %d loss %.3f" % (epoch, mean.result()))
    return EPOCHS * PHOTOS // BATCH


if __name__ == "__main__":
    main()
