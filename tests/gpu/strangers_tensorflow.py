"""Jobs of TensorFlow and Keras, of tests/gpu/strangers.py."""
import time

from jobs import Turn, python_work
from stranger import CPU, job, size


def start():
    import tensorflow as tf
    devices = tf.config.list_physical_devices("GPU")
    assert CPU or devices, "TensorFlow sees no GPU"
    for device in devices:
        # Otherwise the first of several jobs takes the whole device.
        tf.config.experimental.set_memory_growth(device, True)
    tf.random.set_seed(0)
    return tf


def wide_step(tf, depth=4, jit=False):
    """(step of rows and labels, rows, labels): square layers in bfloat16, some 6 ms a step on an H200."""
    width, rows = size(4096, 32), size(8192, 16)
    weights = [tf.Variable(tf.random.normal((width, width), stddev=0.01, dtype=tf.bfloat16)) for _ in range(depth)]
    last = tf.Variable(tf.random.normal((width, 16), stddev=0.01, dtype=tf.bfloat16))

    @tf.function(jit_compile=jit)
    def step(x, y):
        with tf.GradientTape() as tape:
            for w in weights:
                x = tf.nn.relu(x @ w)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, tf.cast(x @ last, tf.float32)))
        for w, grad in zip(weights + [last], tape.gradient(loss, weights + [last])):
            w.assign_sub(tf.constant(0.001, tf.bfloat16) * grad)
        return loss

    return step, tf.random.normal((rows, width), dtype=tf.bfloat16), tf.range(rows) % 16


def loop(batches, step, steps, after=lambda i: None):
    """The measured loop: its seconds and the sum of its losses, which is fetched once."""
    total = 0.0
    batches = iter(batches)
    for _ in range(3):
        step(*next(batches)).numpy()
    with Turn() as turn:
        for i in range(steps):
            total += step(*next(batches))
            after(i)
        total = float(total)
    return turn.seconds, total


def always(*batch):
    while True:
        yield batch


def keras_net(tf, width, outputs=10):
    import keras
    net = keras.Sequential([keras.layers.Dense(width, activation="relu") for _ in range(4)] + [keras.layers.Dense(outputs)])
    net.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return net


def fitted(net, data, steps, **settings):
    net.fit(data.take(3), verbose=0)
    with Turn() as turn:
        history = net.fit(data.take(steps), epochs=1, verbose=0, **settings)
    return turn.seconds, history.history["loss"][-1]


@job(80, "compute-bound", needs="tensorflow")
def tf_dense(steps, fixed):
    tf = start()
    step, x, y = wide_step(tf)
    return loop(always(x, y), step, steps)


@job(80, "compute-bound", needs="tensorflow")
def tf_xla(steps, fixed):
    tf = start()
    step, x, y = wide_step(tf, jit=True)
    return loop(always(x, y), step, steps)


@job(60, None, "transfer.h2d-pageable", "compute.dense", needs="tensorflow,keras")
def keras_conv(steps, fixed):
    # A small residual net by fit(), its pictures (bytes) in memory and batched ahead: mostly computing, and 25 MB to copy.
    tf = start()
    import keras
    side, rows = size(128, 16), size(512, 4)
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    inputs = keras.Input((side, side, 3), dtype="uint8")
    x = keras.layers.Rescaling(1 / 255)(inputs)
    x = keras.layers.Conv2D(64, 3, strides=2, padding="same")(x)
    for _ in range(4):
        y = keras.layers.Conv2D(64, 3, padding="same", activation="relu")(x)
        y = keras.layers.Conv2D(64, 3, padding="same")(y)
        x = keras.layers.ReLU()(keras.layers.BatchNormalization()(y) + x)
    outputs = keras.layers.Dense(10, dtype="float32")(keras.layers.GlobalAveragePooling2D()(x))
    net = keras.Model(inputs, outputs)
    net.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = tf.data.Dataset.from_tensors((tf.zeros((rows, side, side, 3), tf.uint8), tf.range(rows) % 10))
    return fitted(net, data.cache().repeat().prefetch(2), steps)


@job(60, "input-bound", "input.map", "input.decode", needs="tensorflow", twin=True)
def tf_map_single(steps, fixed):
    # Pictures distorted one after another by one thread; the twin's by all.
    tf = start()
    side, rows = size(256, 16), size(64, 4)
    picture = tf.random.uniform((side, side, 3))

    def distort(i):
        x = tf.image.resize(tf.image.random_hue(picture, 0.1), (side, side), method="bicubic")
        return tf.reshape(x, [-1])[:size(4096, 32)], tf.cast(i % 16, tf.int32)

    with tf.device("/CPU:0"):
        data = tf.data.Dataset.range(10**6).map(distort, num_parallel_calls=tf.data.AUTOTUNE if fixed else None)
        data = data.batch(rows).prefetch(2)
    step, _, _ = wide_step(tf)
    return loop(data, lambda x, y: step(tf.cast(x, tf.bfloat16), y), steps)


@job(60, "input-bound", "input.map", "host.gil", needs="tensorflow", twin=True)
def tf_numpy_function(steps, fixed):
    # Each batch is changed by 15 ms of Python within the pipeline; the twin's Python is none.
    tf = start()
    import numpy as np
    rows, width = size(8192, 16), size(4096, 32)
    ready = np.zeros((rows, width), np.float32)

    def augment(i):
        if not fixed:
            python_work(15)
        return ready

    def call(i):
        x = tf.numpy_function(augment, [i], tf.float32, stateful=False)
        return tf.ensure_shape(x, (rows, width)), tf.range(rows) % 16

    step, _, _ = wide_step(tf)
    data = tf.data.Dataset.range(10**6).map(call).map(lambda x, y: (x[:, :1], y)).prefetch(1)
    return loop(data, lambda x, y: step(tf.cast(tf.tile(x, [1, width]), tf.bfloat16), y), steps)


@job(60, "input-bound", "input.generator", "input.map", "host.gil", needs="tensorflow,keras", twin=True)
def keras_generator(steps, fixed):
    # fit() from a Python generator that parses for 12 ms a batch; the twin yields what was parsed before.
    tf = start()
    import numpy as np
    rows, width = size(1024, 8), size(1024, 16)
    ready = np.zeros((rows, width), np.float32), np.arange(rows) % 10

    def batches():
        while True:
            if not fixed:
                python_work(12)
            yield ready

    spec = tf.TensorSpec((rows, width)), tf.TensorSpec((rows,), tf.int64)
    return fitted(keras_net(tf, width), tf.data.Dataset.from_generator(batches, output_signature=spec), steps)


@job(60, "input-bound", "input.map", "input.remote", "input.read", needs="tensorflow", twin=True)
def tf_slow_shards(steps, fixed):
    # Each batch comes after 15 ms of a storage that answers late, four at a time in the twin.
    tf = start()
    step, _, y = wide_step(tf)
    rows, width = size(8192, 16), size(4096, 32)

    def fetch(i):
        time.sleep(0.015)
        return i

    def read(i):
        i = tf.numpy_function(fetch, [i], tf.int64)
        return tf.zeros((rows, 1)), tf.range(rows) % 16

    data = tf.data.Dataset.range(10**6).map(read, num_parallel_calls=4 if fixed else None).prefetch(1)
    return loop(data, lambda x, y: step(tf.cast(tf.tile(x, [1, width]), tf.bfloat16), y), steps)


@job(40, "transfer-bound", "transfer.h2d-pageable", needs="tensorflow", twin=True)
def tf_feed_numpy(steps, fixed):
    # 256 MiB of numbers given to the step from NumPy each time; the twin's are on the device.
    tf = start()
    import numpy as np
    step, x, y = wide_step(tf, depth=2)
    host = np.zeros((size(1 << 14, 64), size(4096, 32)), np.float32)
    rows = x.shape[0]

    @tf.function
    def first(x):
        return tf.cast(x[:rows], tf.bfloat16)

    with tf.device(tf.config.list_logical_devices()[-1].name):
        there = tf.identity(host)  # a constant would stay in the host's memory
    return loop(always(there if fixed else host, y), lambda x, y: step(first(tf.constant(x) if x is host else x), y), steps)


@job(40, "transfer-bound", "transfer.d2h", needs="tensorflow", twin=True)
def tf_fetch_outputs(steps, fixed):
    # All of a layer's outputs, 256 MiB, come back in each step for a mean; the twin's mean is made on the device.
    tf = start()
    step, x, y = wide_step(tf, depth=2)
    w = tf.random.normal((x.shape[1], size(16384, 32)), dtype=tf.bfloat16)

    @tf.function
    def outputs(x):
        return tf.cast(x @ w, tf.float32)[:size(4096, 16)]

    mean = tf.function(lambda x: tf.reduce_mean(x))
    seen = []

    def after(i):
        out = outputs(x)
        seen.append(float(mean(out)) if fixed else float(out.numpy()[0, 0]))

    return loop(always(x, y), step, steps, after)


@job(40, "host-bound", "host.launch", "host.python", needs="tensorflow", twin=True)
def tf_eager(steps, fixed):
    # Thirty small layers without tf.function, whose twin has it.
    tf = start()
    weights = [tf.Variable(tf.random.normal((256, 256), stddev=0.05)) for _ in range(size(30, 4))]
    x, y = tf.random.normal((64, 256)), tf.range(64) % 16

    def step(x, y):
        with tf.GradientTape() as tape:
            for w in weights:
                x = tf.nn.relu(x @ w)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x))
        for w, grad in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(0.001 * grad)
        return loss

    return loop(always(x, y), tf.function(step) if fixed else step, steps)


@job(100, "host-bound", "host.sync", "host.launch", needs="tensorflow", twin=True)
def tf_items(steps, fixed):
    # A look at the mean of each of twenty layers; the twin looks at none.
    tf = start()
    weights = [tf.random.normal((512, 512), stddev=0.05) for _ in range(20)]
    layer = tf.function(lambda x, w: tf.nn.relu(x @ w))
    mean = tf.function(lambda x: tf.reduce_mean(x))
    seen = []

    def step(x, y):
        for w in weights:
            x = layer(x, w)
            if not fixed:
                seen.append(float(mean(x)))
        return mean(x)

    return loop(always(tf.random.normal((64, 512)), None), step, steps)


@job(12, "host-bound", "host.compile", needs="tensorflow", twin=True)
def tf_retrace(steps, fixed):
    # The rate is a Python number that is another one each time, so that the step is traced again; the twin's is a tensor.
    tf = start()
    weights = [tf.Variable(tf.random.normal((256, 256), stddev=0.05)) for _ in range(size(30, 4))]

    @tf.function
    def step(x, rate):
        with tf.GradientTape() as tape:
            for w in weights:
                x = tf.nn.relu(x @ w)
            loss = tf.reduce_mean(x)
        for w, grad in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(rate * grad)
        return loss

    x = tf.random.normal((64, 256))

    def batches():
        i = 0
        while True:
            i += 1
            yield x, tf.constant(0.001 / i) if fixed else 0.001 / i

    return loop(batches(), step, steps)


@job(60, "host-bound", "host.callback", "host.python", needs="tensorflow,keras", twin=True)
def keras_callback(steps, fixed):
    # A callback looks at each batch's log for 10 ms.
    tf = start()
    import keras
    rows, width = size(1024, 8), size(1024, 16)
    data = tf.data.Dataset.from_tensors((tf.zeros((rows, width)), tf.range(rows) % 10)).repeat().prefetch(2)

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if not fixed:
                python_work(10)

    return fitted(keras_net(tf, width), data, steps, callbacks=[Watch()])


@job(60, "host-bound", "host.checkpoint", needs="tensorflow", twin=True)
def tf_checkpoint(steps, fixed):
    # All weights are written after every fifth step, after every thirtieth in the twin.
    tf = start()
    step, x, y = wide_step(tf)
    kept = [tf.Variable(tf.random.normal((size(4096, 32), size(4096, 32)))) for _ in range(4)]
    saved = tf.train.Checkpoint(**{f"w{i}": w for i, w in enumerate(kept)})
    every = 30 if fixed else 5
    return loop(always(x, y), step, steps, lambda i: saved.write("checkpoint") if i % every == every - 1 else None)


@job(60, "host-bound", "host.logging", "host.python", needs="tensorflow", twin=True)
def tf_summary_images(steps, fixed):
    # Sixteen pictures a step are made PNGs for TensorBoard; the twin's one in thirty steps.
    tf = start()
    step, x, y = wide_step(tf, depth=2)
    writer = tf.summary.create_file_writer("summaries")
    pictures = tf.random.uniform((16, size(128, 16), size(128, 16), 3))

    def after(i):
        if not fixed or i % 30 == 29:
            with writer.as_default(step=i):
                tf.summary.image("pictures", pictures, max_outputs=16)

    return loop(always(x, y), step, steps, after)


@job(80, "compute-bound", needs="tensorflow")
def tf_prefetch_device(steps, fixed):
    # Batches made by one thread in some ms, and copied ahead to the device.
    tf = start()
    step, x, _ = wide_step(tf)
    rows, width = x.shape
    data = tf.data.Dataset.range(10**6).map(lambda i: (tf.cast(tf.fill((rows, 256), i % 7), tf.bfloat16), tf.range(rows) % 16))
    data = data.prefetch(2).apply(tf.data.experimental.prefetch_to_device(tf.config.list_logical_devices()[-1].name))
    return loop(data, lambda x, y: step(tf.tile(x, [1, width // 256 or 1])[:, :width], y), steps)


@job(60, "input-bound", "input.map", "input.decode", needs="tensorflow,keras", twin=True)
def keras_mirrored_map(steps, fixed):
    # fit() in a strategy of one replica; pictures are distorted one after another.
    tf = start()
    side, rows, width = size(192, 16), size(64, 4), size(1024, 16)
    picture = tf.random.uniform((side, side, 3))
    with tf.distribute.MirroredStrategy().scope():
        net = keras_net(tf, width)

    def distort(i):
        x = tf.image.resize(tf.image.random_hue(picture, 0.1), (side, side), method="bicubic")
        return tf.reshape(x, [-1])[:width], tf.cast(i % 10, tf.int32)

    data = tf.data.Dataset.range(10**6).map(distort, num_parallel_calls=tf.data.AUTOTUNE if fixed else None)
    return fitted(net, data.batch(rows).prefetch(2), steps)


@job(80, "compute-bound", needs="tensorflow")
def tf_session(steps, fixed):
    # A session of TensorFlow 1, as older code has it, fed by a placeholder.
    tf = start()
    import numpy as np
    v1 = tf.compat.v1
    rows, width = size(8192, 16), size(4096, 32)
    with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto(gpu_options=v1.GPUOptions(allow_growth=True))) as session:
        scale = v1.placeholder(tf.float32, [])
        weights = [v1.get_variable(f"w{i}", (width, width), use_resource=True) for i in range(4)]
        y = tf.cast(tf.ones((rows, width)) * scale, tf.bfloat16)
        for w in weights:
            y = tf.nn.relu(y @ tf.cast(w, tf.bfloat16))
        loss = tf.reduce_mean(tf.cast(y, tf.float32))
        train = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run([train, loss], {scale: 1.0})
        total = 0.0
        with Turn() as turn:
            for i in range(steps):
                total += float(session.run([train, loss], {scale: np.float32(i % 3)})[1])
    return turn.seconds, total


@job(30, "host-bound", "host.launch", "host.python", needs="tensorflow,keras", twin=True)
def keras_eager(steps, fixed):
    # fit() with run_eagerly, left in after debugging.
    tf = start()
    import keras
    rows, width = size(256, 8), size(256, 16)
    net = keras_net(tf, width)
    net.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=not fixed)
    data = tf.data.Dataset.from_tensors((tf.zeros((rows, width)), tf.range(rows) % 10)).repeat().prefetch(2)
    return fitted(net, data, steps)
