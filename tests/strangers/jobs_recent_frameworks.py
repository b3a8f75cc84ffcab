"""Batch 34: Keras, JAX and tf.data."""
import ctypes
import glob
import zlib

import numpy as np
from stranger import FIXED, LIBRARIES, driver, job, main, mark, marks, quiet_tensorflow, temporary, tensorflow

HEALTHY = ["compute.cpu", "compute.dense", "compute.dominant-op"]


@job(34, "compute", [*HEALTHY, "compute.underfilled"], 240, says=r"(?i)start|before the first|jobs_recent_frameworks.py:\d+",
     note="layers that normalise and look up words adapt to the table row by row, before the training, most of the run; its "
          "steps only compute. Fix: they adapt to batches")
def s_kr_adapt():
    tf, keras = quiet_tensorflow()
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    ROWS, BATCH, EPOCHS = 10_240, 128, 3
    words = np.array(["colour%d" % i for i in range(40)])
    table = {"amount": rng.gamma(2, 30, ROWS).astype("f4"), "age": rng.integers(18, 90, ROWS).astype("f4"),
             "balance": rng.normal(0, 1000, ROWS).astype("f4"), "colour": rng.choice(words, ROWS)}
    target = (table["amount"] > 50).astype("f4")

    def column(name):
        data = tf.data.Dataset.from_tensor_slices(table).map(lambda row: row[name])
        return data.batch(2048) if FIXED else data.map(lambda value: tf.expand_dims(value, 0))

    inputs, encoded = {}, []
    for name in ("amount", "age", "balance"):
        layer = keras.layers.Normalization(axis=None)
        layer.adapt(column(name))  # here
        inputs[name] = keras.Input((1,), name=name)
        encoded.append(layer(inputs[name]))
    look_up = keras.layers.StringLookup(output_mode="int")
    look_up.adapt(column("colour"))  # here
    colours = look_up(tf.constant(table["colour"])).numpy()
    inputs["colour"] = keras.Input((1,), name="colour", dtype="int64")
    encoded.append(keras.layers.Flatten()(keras.layers.Embedding(64, 16)(inputs["colour"])))
    x = keras.layers.Concatenate()(encoded)
    for width in (512, 512, 256):
        x = keras.layers.Dropout(0.2)(keras.layers.Dense(width, "relu")(x))
    model = keras.Model(inputs, keras.layers.Dense(1, "sigmoid")(x))
    model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy", metrics=["accuracy"])
    columns = {name: table[name][:, None] for name in ("amount", "age", "balance")}
    columns["colour"] = colours[:, None]
    data = tf.data.Dataset.from_tensor_slices((columns, target)).cache().shuffle(ROWS).batch(BATCH).prefetch(2)
    model.fit(data, epochs=EPOCHS, verbose=2, callbacks=[marks(keras), keras.callbacks.ReduceLROnPlateau(monitor="loss")])
    return ROWS // BATCH * EPOCHS


@job(34, "compute", HEALTHY, 300, LIBRARIES,
     note="no defect: messages on a molecule's bonds with flax and optax; batches come from a numpy thread of their own size, "
          "the metrics are kept on the device and fetched each 25th step")
def s_jx_molecules():
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import optax
    rng = np.random.default_rng(0)
    MOLECULES, ATOMS, BATCH, DIM, STEPS = 4000, 16, 16, 48, 300
    atoms = rng.integers(0, 9, (MOLECULES, ATOMS)).astype("i4")
    place = rng.standard_normal((MOLECULES, ATOMS, 3)).astype("f4")
    energy = (atoms.sum(1) * 0.1 + place.std((1, 2))).astype("f4")

    class Message(nn.Module):
        @nn.compact
        def __call__(self, h, radial):
            gate = nn.Dense(DIM)(nn.silu(nn.Dense(DIM)(radial)))
            message = jnp.einsum("bijd,bjd->bid", gate, nn.Dense(DIM, use_bias=False)(h))
            return nn.LayerNorm()(h + nn.Dense(DIM)(nn.silu(message)))

    class Net(nn.Module):
        @nn.compact
        def __call__(self, kinds, place):
            apart = jnp.sqrt(((place[:, :, None] - place[:, None]) ** 2).sum(-1) + 1e-6)
            radial = jnp.exp(-(apart[..., None] - jnp.linspace(0, 5, 24)) ** 2 * 4)
            h = nn.Embed(9, DIM)(kinds)
            for _ in range(3):
                h = Message()(h, radial)
            return nn.Dense(1)(nn.silu(nn.Dense(DIM)(h))).sum((1, 2))

    net = Net()
    schedule = optax.warmup_cosine_decay_schedule(1e-5, 1e-3, 30, STEPS)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    weights = net.init(jax.random.key(0), atoms[:2], place[:2])
    state = optimizer.init(weights)

    def loss_of(weights, kinds, place, energy):
        wrong = net.apply(weights, kinds, place) - energy
        return optax.huber_loss(wrong).mean(), jnp.abs(wrong).mean()

    @jax.jit
    def train(weights, state, sums, kinds, place, energy):
        (loss, mae), grads = jax.value_and_grad(loss_of, has_aux=True)(weights, kinds, place, energy)
        updates, state = optimizer.update(grads, state, weights)
        return optax.apply_updates(weights, updates), state, sums + jnp.stack([loss, mae])

    @jax.jit
    def measure(weights, kinds, place, energy):
        return loss_of(weights, kinds, place, energy)[1]

    def epoch(n):
        order = np.random.default_rng(n).permutation(MOLECULES - 320)
        for at in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[at:at + BATCH] + 320
            yield atoms[rows], place[rows], energy[rows]

    sums, step, n = jnp.zeros(2), 0, 0
    while step < STEPS:
        for batch in epoch(n):
            mark()
            weights, state, sums = train(weights, state, sums, *batch)
            step += 1
            if step % 25 == 0:
                loss, mae = np.asarray(sums) / 25
                sums = jnp.zeros(2)
                print("step %d loss %.4f mae %.4f" % (step, loss, mae))
            if step % 100 == 0:
                held = np.mean([measure(weights, *(part[i:i + BATCH] for part in (atoms, place, energy))) for i in range(0, 320, BATCH)])
                print("held out: %.4f" % held)
            if step == STEPS:
                break
        n += 1
    return STEPS


@job(34, "input", ["input.batch", "input.shuffle", "input.map", "input.unbatch", "input.generator"], 150, twin=True,
     note="row groups of a column file are taken apart into rows, shuffled and put together again, 512 rows a batch; fix: groups "
          "are shuffled, and a batch is cut from them")
def s_tf_row_groups():
    tf, keras = tensorflow()
    d = driver()
    rng = np.random.default_rng(0)
    FILES, GROUPS, ROWS, BATCH, EPOCHS = 5, 10, 512, 512, 3
    NUMBERS, KINDS = ["i%d" % k for k in range(13)], ["c%d" % k for k in range(26)]

    for k in range(FILES):
        with tf.io.TFRecordWriter(temporary("part-%02d.col" % k)) as out:
            for _ in range(GROUPS):
                columns = np.concatenate([rng.integers(0, most, (n, ROWS)) for n, most in ((1, 2), (13, 999), (26, 9999))])
                out.write(zlib.compress(columns.astype("<i4").tobytes(), 1))

    def decode(record):
        columns = tf.unstack(tf.reshape(tf.io.decode_raw(tf.io.decode_compressed(record, "ZLIB"), tf.int32), (40, ROWS)))
        return dict(zip(["label", *NUMBERS, *KINDS], columns))

    def clean(columns):
        dense = tf.math.log1p(tf.cast(tf.stack([columns[name] for name in NUMBERS], 1), tf.float32))
        return dense, tf.stack([columns[name] % 5000 for name in KINDS], 1), columns["label"]

    def dataset():
        names = tf.data.Dataset.from_tensor_slices(sorted(glob.glob(temporary("part-*.col")))).shuffle(FILES)
        groups = names.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=2, deterministic=False)
        groups = groups.map(decode, num_parallel_calls=2)
        if FIXED:
            return groups.shuffle(8).map(clean, num_parallel_calls=1).prefetch(2)
        rows = groups.unbatch().shuffle(4096)  # here
        return rows.batch(BATCH, drop_remainder=True).map(clean, num_parallel_calls=1).prefetch(2)  # here

    steps = 0
    for epoch in range(EPOCHS):
        seen = 0.0
        for dense, kinds, label in dataset():  # here
            mark()
            for part in (dense, kinds):
                ctypes.memmove(d.host, part.numpy().ctypes.data, ROWS * part.shape[1] * 4)
                d.up(ROWS * part.shape[1] * 4)
            d.run(1.2, "forward")
            d.run(2.0, "backward")
            d.run(0.3, "update")
            d.down(4)
            seen += float(label.numpy().mean())
            steps += 1
        print("epoch %d: %.3f" % (epoch, seen))
    return steps


if __name__ == "__main__":
    main()
