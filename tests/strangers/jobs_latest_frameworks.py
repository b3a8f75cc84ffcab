"""Batch 33: Keras' and JAX's jobs on the processor, and one of TensorFlow's with the driver's calls."""
import numpy as np
from stranger import FIXED, JAX, driver, job, main, mark, marks, tensorflow


@job(33, "host", ["host.python", "host.callback", "host.code"], 120, twin=True,
     note="Keras segments: the Hausdorff distance of masks is a metric in NumPy, made for each batch; fix: after each epoch")
def s_kr_hausdorff():
    tf, keras = tensorflow()
    layers = keras.layers
    rng = np.random.default_rng(0)
    size = 40

    def discs(n):
        yy, xx = np.mgrid[:size, :size]
        cx, cy, r = (rng.uniform(a, b, (n, 1, 1)) for a, b in ((14, 26), (14, 26), (9, 14)))
        masks = ((xx - cx) ** 2 + (yy - cy) ** 2 < r * r)[..., None].astype("float32")
        return masks * 0.6 + rng.normal(0, 0.3, masks.shape).astype("float32"), masks

    def hausdorff(truth, guess):
        values = []
        for a, b in zip(truth[..., 0] > 0.5, guess[..., 0] > 0.5):
            p, q = np.argwhere(a)[:600], np.argwhere(b)[:600]
            if not len(p) or not len(q):
                values.append(float(size))
                continue
            away = np.sqrt(((p[:, None, :] - q[None, :, :]) ** 2).sum(-1))  # here
            values.append(max(np.percentile(away.min(1), 95), np.percentile(away.min(0), 95)))  # here
        return np.float32(np.mean(values))

    def hausdorff95(y_true, y_pred):
        value = tf.numpy_function(hausdorff, [y_true, y_pred], tf.float32)  # here
        value.set_shape(())
        return value

    def block(x, filters):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        return layers.Activation("relu")(layers.BatchNormalization()(x))

    inputs = keras.Input((size, size, 1))
    a = block(inputs, 6)
    b = block(layers.MaxPooling2D()(a), 8)
    c = block(layers.MaxPooling2D()(b), 12)
    x = block(layers.Concatenate()([layers.UpSampling2D()(c), b]), 8)
    x = block(layers.Concatenate()([layers.UpSampling2D()(x), a]), 6)
    model = keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x))
    metrics = ["accuracy"] if FIXED else ["accuracy", hausdorff95]  # here
    model.compile(keras.optimizers.Adam(2e-3), "binary_crossentropy", metrics=metrics)
    train, held = discs(640), discs(32)

    class Distances(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            print("epoch %d distance %.2f" % (epoch, hausdorff(held[1][:4], self.model(held[0][:4]).numpy())))
    callbacks = [marks(keras), keras.callbacks.ReduceLROnPlateau(patience=2)] + [Distances()] * FIXED
    model.fit(*train, batch_size=16, epochs=3, validation_data=held, callbacks=callbacks, verbose=0)  # here
    return 120


@job(33, "input or host", ["input.*", "host.*"], 150, JAX, twin=True,
     note="each batch is drawn without replacement from 80,000 rows, for which all of them are shuffled; fix: drawn with")
def s_jx_draw():
    import jax
    import jax.numpy as jnp
    rows, features, batch = 80_000, 24, 512
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, features), np.float32)
    y = (np.sin(x[:, :4]).sum(1) + 0.1 * rng.standard_normal(rows)).astype(np.float32)

    def init(key, sizes):
        keys = jax.random.split(key, len(sizes) - 1)
        return [(jax.random.normal(k, (a, b)) * (2 / a) ** 0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]

    def predict(params, x):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = params[-1]
        return (x @ w + b)[:, 0]

    def loss_of(params, x, y):
        return jnp.mean((predict(params, x) - y) ** 2)

    @jax.jit
    def train_step(state, x, y):
        params, m, v, t = state
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        t = t + 1
        m = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
        v = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, v, grads)
        rate = 1e-3 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        params = jax.tree.map(lambda p, a, b: p - rate * a / (jnp.sqrt(b) + 1e-8), params, m, v)
        return (params, m, v, t), loss

    evaluate = jax.jit(loss_of)
    params = init(jax.random.key(0), (features, 384, 384, 1))
    zeros = jax.tree.map(jnp.zeros_like, params)
    state, key, seen = (params, zeros, zeros, jnp.zeros(())), jax.random.key(1), []
    for step in range(150):
        mark()
        key, draw = jax.random.split(key)
        if FIXED:
            chosen = jax.random.randint(draw, (batch,), 0, rows)
        else:
            chosen = jax.random.choice(draw, rows, (batch,), replace=False)  # here
        chosen = np.asarray(chosen)  # here
        state, loss = train_step(state, x[chosen], y[chosen])
        seen.append(loss)
        if step % 50 == 49:
            held_out = float(evaluate(state[0], x[:2048], y[:2048]))
            print("step %d train %.4f held out %.4f" % (step, float(np.mean(seen[-50:])), held_out))
    return 150


@job(33, "input", ["input.map"], 100, twin=True,
     note="clips: frames and sounds are zipped, and sounds become spectrograms with a step of 4 samples; fix: stored ones")
def s_tf_clips():
    tf, _ = tensorflow()
    rng = np.random.default_rng(0)
    clips = 260
    frames = [rng.integers(0, 255, 4 * 56 * 56 * 3, np.uint8).tobytes() for _ in range(clips)]
    sounds = rng.standard_normal((clips, 8000)).astype(np.float32)

    def decode(data):
        return tf.cast(tf.reshape(tf.io.decode_raw(data, tf.uint8), (4, 56, 56, 3)), tf.float32) / 127.5 - 1

    def spectrogram(wave):
        power = tf.abs(tf.signal.stft(wave, frame_length=320, frame_step=4, fft_length=512)) ** 2  # here
        picture = tf.image.resize(tf.math.log(power + 1e-6)[..., None], (96, 64))  # here
        return (picture - tf.reduce_mean(picture)) / (tf.math.reduce_std(picture) + 1e-6)

    video = tf.data.Dataset.from_tensor_slices(frames).map(decode, num_parallel_calls=2)
    audio = tf.data.Dataset.from_tensor_slices(sounds)
    if FIXED:
        audio = tf.data.Dataset.from_tensor_slices(np.stack([spectrogram(s).numpy() for s in sounds]))
    else:
        audio = audio.map(spectrogram)  # here
    data = tf.data.Dataset.zip((video, audio)).shuffle(64).repeat().batch(8, drop_remainder=True).prefetch(2)
    d = driver()
    losses = []
    for step, (v, a) in enumerate(data.take(100)):  # here
        mark()
        d.up(v.numpy().nbytes)
        d.up(a.numpy().nbytes)
        d.train(7)
        d.down()
        losses.append(d.host.raw[0])
        if step % 25 == 24:
            print("step %d %.3f" % (step + 1, sum(losses[-25:]) / 25))
    return 100


if __name__ == "__main__":
    main()
