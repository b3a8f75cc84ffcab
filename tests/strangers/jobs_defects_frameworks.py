"""Batch 35: JAX and tf.data, on the processor and with a device's own calls."""
import numpy as np
from stranger import FIXED, JAX, driver, job, main, mark, temporary, tensorflow

HEALTHY = ["compute.cpu", "compute.dense", "compute.dominant-op"]


@job(35, "compute or host", [*HEALTHY, "host.compile"], 300, JAX, says=r"[Cc]ompil",
     note="a solver's 20 steps are a loop of Python's within the jitted function, whose compiling takes most of the run; its steps only "
          "compute. Fix: lax.scan")
def s_jx_unrolled_ode():
    import jax
    import jax.numpy as jnp
    WIDTH, POINTS, BATCH = 64, 20, 96

    def init(key):
        sizes = [2, WIDTH, WIDTH, 2]
        keys = jax.random.split(key, 3)
        return [(jax.random.normal(k, (a, b)) * (1 / a) ** 0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]

    def field(p, y):
        (w1, b1), (w2, b2), (w3, b3) = p
        return jnp.tanh(jnp.tanh(y ** 3 @ w1 + b1) @ w2 + b2) @ w3 + b3

    def rk4(p, y, h):
        k1 = field(p, y)
        k2 = field(p, y + h / 2 * k1)
        k3 = field(p, y + h / 2 * k2)
        k4 = field(p, y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def solve(p, y0, h):
        if FIXED:
            return jax.lax.scan(lambda y, _: (rk4(p, y, h),) * 2, y0, None, length=POINTS)[1]
        y, path = y0, []
        for _ in range(POINTS):  # here
            y = rk4(p, y, h)  # here
            path.append(y)
        return jnp.stack(path)  # here

    def loss_of(p, y0, path):
        return jnp.abs(solve(p, y0, 0.025) - path).mean()  # here

    @jax.jit
    def train_step(p, m, v, i, y0, path):
        loss, grad = jax.value_and_grad(loss_of)(p, y0, path)  # here
        m = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, m, grad)
        v = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, v, grad)
        p = jax.tree.map(lambda w, a, b: w - 1e-3 * (a / (1 - 0.9 ** i)) / (jnp.sqrt(b / (1 - 0.999 ** i)) + 1e-8), p, m, v)
        return p, m, v, loss

    # the truth: a cubic spiral, by small steps of NumPy's
    turn = np.array([[-0.1, 2.0], [-2.0, -0.1]])
    y, true = np.array([2.0, 0.0]), []
    for _ in range(1000):
        y = y + 0.025 * (y ** 3 @ turn)
        y = np.clip(y, -2, 2)
        true.append(y)
    true = np.array(true, np.float32)
    g = np.random.default_rng(0)
    p = init(jax.random.key(0))
    m = v = jax.tree.map(jnp.zeros_like, p)
    shown = []
    for i in range(1, 301):
        mark()
        first = g.integers(0, len(true) - POINTS - 1, BATCH)
        y0 = true[first]
        path = np.stack([true[first + k + 1] for k in range(POINTS)])
        p, m, v, loss = train_step(p, m, v, float(i), y0, path)  # here
        shown.append(loss)
        if i % 20 == 0:
            print("Iter %04d | Total Loss %.6f" % (i, float(jnp.mean(jnp.stack(shown)))), flush=True)
            shown.clear()
    return 300


@job(35, "input", ["input.map", "input.decode"], 120, twin=True,
     note="mosaics of four photographs, which are turned and made small in full size for each; fix: small ones are kept")
def s_tf_mosaic():
    tf, keras = tensorflow()
    SIZE, CLASSES, BATCH, STEPS = 96, 20, 8, 120
    g = np.random.default_rng(0)
    low = tf.constant(g.random((192, 12, 12, 3), np.float32))
    photographs = [tf.io.encode_jpeg(tf.cast(255 * tf.image.resize(p, (360, 360), "bicubic") % 255, tf.uint8)).numpy() for p in low]
    kinds = g.integers(0, CLASSES, 192)
    L = keras.layers

    def decode(photograph, kind):
        picture = tf.io.decode_jpeg(photograph, 3)
        return tf.image.resize(picture, (SIZE // 2,) * 2) if FIXED else tf.ensure_shape(picture, (360, 360, 3)), kind

    def mosaic(pictures, kinds):
        half = SIZE // 2
        tiles = tf.image.resize(tf.image.random_flip_left_right(pictures), (half, half)) / 255  # here
        picture = tf.concat([tf.concat([tiles[0], tiles[1]], 1), tf.concat([tiles[2], tiles[3]], 1)], 0)
        grid = tf.reshape(kinds, (2, 2))
        return picture, tf.repeat(tf.repeat(grid, SIZE // 8, 0), SIZE // 8, 1)

    data = tf.data.Dataset.from_tensor_slices((photographs, kinds)).map(decode)
    if FIXED:
        data = data.cache()
    data = (data.shuffle(96).repeat()
            .batch(4)
            .map(mosaic)  # here
            .batch(BATCH)
            .prefetch(tf.data.AUTOTUNE))

    def model_of():
        x = inputs = keras.Input((SIZE, SIZE, 3))
        skips = []
        for width in (8, 16, 32):
            x = L.Conv2D(width, 3, 2, "same", activation="relu")(x)
            skips.append(x)
        x = L.Concatenate()([L.Conv2DTranspose(16, 3, 2, "same", activation="relu")(x), skips[1]])
        return keras.Model(inputs, L.Conv2D(CLASSES, 1)(x))

    model, opt = model_of(), keras.optimizers.Adam(1e-3)
    mean = keras.metrics.Mean()

    @tf.function
    def train_step(picture, kind):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(kind, model(picture, training=True)))
        opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        mean.update_state(loss)

    for step, (picture, kind) in enumerate(data.take(STEPS)):  # here
        mark()
        train_step(picture, kind)
        if step % 24 == 23:
            print("step %d: %.4f" % (step + 1, float(mean.result())), flush=True)
            mean.reset_state()
    return STEPS


@job(35, "input", ["input.map", "input.decode"], 120, twin=True,
     note="half of each batch are rare cases, for which all records are parsed and nearly all thrown away; fix: the rare ones are kept")
def s_tf_rare_cases():
    tf, _ = tensorflow()
    gpu = driver(8)
    g = np.random.default_rng(0)
    FEATURES, BATCH, STEPS = 28, 64, 120
    files = []
    for k in range(4):
        files.append(temporary("transactions-%d.tfrecord" % k))
        with tf.io.TFRecordWriter(files[-1]) as out:
            for _ in range(4000):
                label = int(g.random() < 0.03)
                values = (g.normal(size=FEATURES) + 0.5 * label).astype(np.float32)
                out.write(tf.train.Example(features=tf.train.Features(feature={
                    "v": tf.train.Feature(float_list=tf.train.FloatList(value=values)),
                    "amount": tf.train.Feature(float_list=tf.train.FloatList(value=[float(g.gamma(2, 40))])),
                    "class": tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))})).SerializeToString())
    spec = {"v": tf.io.FixedLenFeature([FEATURES], tf.float32), "amount": tf.io.FixedLenFeature([], tf.float32),
            "class": tf.io.FixedLenFeature([], tf.int64)}

    def parse(record):
        e = tf.io.parse_single_example(record, spec)
        return tf.concat([e["v"], tf.math.log1p(e["amount"])[None]], 0), e["class"]

    def side(label):
        data = tf.data.TFRecordDataset(files).map(parse).filter(lambda x, y: y == label)  # here
        if FIXED and label:
            data = data.cache()
        return data.shuffle(400).repeat()

    balanced = tf.data.Dataset.sample_from_datasets([side(0), side(1)], [0.5, 0.5], seed=1)
    batches = balanced.batch(BATCH).prefetch(2)
    step = 0
    for x, y in batches:  # here
        mark()
        values = x.numpy()
        gpu.host[:values.nbytes] = values.tobytes()
        gpu.up(values.nbytes)
        gpu.train(7)
        if step % 10 == 9:
            gpu.down(4)
            print("step %d, share of rare cases %.2f" % (step, float(y.numpy().mean())))
        else:
            gpu.sync()
        step += 1
        if step == STEPS:
            break
    return step


if __name__ == "__main__":
    main()
