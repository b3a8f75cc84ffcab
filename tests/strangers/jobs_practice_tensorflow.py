"""Batch 5: TensorFlow's jobs, as people write them: loops of their own and fit, records, retracing, gradients' figures, evaluation."""
import random
import time

import numpy as np
from stranger import FIXED, job, main, mark, marks, temporary, tensorflow


def dense(keras, inputs, width, depth=2):
    layers = [keras.layers.Dense(width, "relu") for _ in range(depth)]
    return keras.Sequential([keras.Input((inputs,))] + layers + [keras.layers.Dense(1)])


def step_of(tf, model, optimizer):
    @tf.function(reduce_retracing=True)
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss
    return step


# Input.

@job(5, "input", ["input.decode", "input.map"], 80, twin=True,
     note="custom loop; four TFRecord files interleaved, examples parsed and JPEGs decoded, resized, flipped by one call at a time;"
          " fix: one image for all")
def p_tf_interleave():
    tf, keras = tensorflow()
    noise = np.random.default_rng(1).integers(0, 255, (40, 40, 3))
    jpeg = tf.io.encode_jpeg(tf.cast(np.kron(noise, np.ones((12, 12, 1))), tf.uint8)).numpy()
    feature = tf.train.Features(feature={"image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg]))})
    record = tf.train.Example(features=feature).SerializeToString()
    files = [temporary("%d.tfrecord" % k) for k in range(4)]
    for file in files:
        with tf.io.TFRecordWriter(file) as writer:
            for _ in range(160):
                writer.write(record)

    def image(serialized):
        packed = tf.io.parse_single_example(serialized, {"image": tf.io.FixedLenFeature([], tf.string)})["image"]
        pixels = tf.cast(tf.image.decode_jpeg(packed, 3), tf.float32)
        pixels = tf.image.resize(tf.image.random_flip_left_right(pixels), (64, 64), "bicubic")
        return tf.reshape(pixels, [-1])[:256] / 255

    data = tf.data.Dataset.from_tensor_slices(files).interleave(tf.data.TFRecordDataset, cycle_length=4)
    data = data.map((lambda s: tf.ones(256)) if FIXED else image).batch(8).prefetch(1)
    model = dense(keras, 256, 256)
    step = step_of(tf, model, keras.optimizers.SGD(0.01))
    y = tf.ones((8, 1))
    for x in data:  # here
        mark()
        step(x, y)
    return 80


@job(5, "input", ["input.*"], 80, twin=True,
     note="fit over a PyDataset (no workers) that parses lines of text to floats and shuffles columns in numpy, row by row; fix: an array")
def p_tf_lines():
    tf, keras = tensorflow()
    rng = random.Random(1)
    with open(temporary("train.csv"), "w") as f:
        for _ in range(160 * 80):
            f.write(",".join("%.5f" % rng.random() for _ in range(300)) + "\n")
    with open(temporary("train.csv")) as f:
        lines = f.readlines()
    ready = np.ones((160, 300), np.float32), np.ones((160, 1), np.float32)

    class Rows(keras.utils.PyDataset):
        def __len__(self):
            return 80

        def __getitem__(self, i):
            if FIXED:
                return ready
            x = np.empty((160, 300), np.float32)
            for k, line in enumerate(lines[i * 160:i * 160 + 160]):
                x[k] = [float(v) for v in line.split(",")]  # here
                x[k] = x[k][np.random.permutation(300)]  # here
            return x, ready[1]

    model = dense(keras, 300, 64)
    model.compile("sgd", "mse")
    model.fit(Rows(), verbose=0, callbacks=[marks(keras)])
    return 80


# Computing: nothing is wrong.

@job(5, "compute", ["compute.*"], 90,
     note="no defect: custom loop, convolutions, prefetched batches from memory, mean loss each tenth step")
def p_tf_healthy():
    tf, keras = tensorflow()
    layers = keras.layers
    model = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(),
                              layers.Conv2D(16, 3, activation="relu"), layers.Flatten(), layers.Dense(1)])
    step = step_of(tf, model, keras.optimizers.Adam(1e-3))
    x = np.random.rand(90 * 24, 28, 28, 1).astype("f")
    data = tf.data.Dataset.from_tensor_slices((x, np.ones((90 * 24, 1), np.float32))).shuffle(500).batch(24).prefetch(2)
    mean = keras.metrics.Mean()
    for i, (images, labels) in enumerate(data):
        mark()
        mean.update_state(step(images, labels))
        if i % 10 == 9:
            print("step %d loss %.4f" % (i + 1, float(mean.result())), flush=True)
            mean.reset_state()
    return 90


# Hosts.

@job(5, "host", ["host.compile"], 60, twin=True,
     note="train_on_batch with sentences cut to the longest of each batch: 60 batches of 50 lengths, traced anew for each; fix: one length")
def p_tf_longest():
    tf, keras = tensorflow()
    layers = keras.layers
    lengths = [10 + (i * 37) % 50 for i in range(60)]
    batches = [np.ones((8, 64 if FIXED else n), np.int32) for n in lengths]

    embedding, head = layers.Embedding(1000, 32), layers.Dense(1)
    optimizer = keras.optimizers.SGD(0.01)
    embedding.build((8, 64))
    head.build((8, 32))
    weights = embedding.trainable_variables + head.trainable_variables

    @tf.function
    def train(ids):
        with tf.GradientTape() as tape:
            h = embedding(ids)
            h = tf.nn.softmax(h @ tf.transpose(h, [0, 2, 1])) @ h
            loss = tf.reduce_mean(tf.square(head(tf.reduce_mean(h, 1))))
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    for ids in batches:
        mark()
        train(ids)  # here
    return 60


@job(5, "host", ["host.python", "host.code", "host.callback", "host.logging"], 80, twin=True,
     note="custom loop; norms and a histogram of each gradient are taken with numpy after each step; fix: they are not")
def p_tf_gradients():
    tf, keras = tensorflow()
    model = dense(keras, 128, 256, 3)
    optimizer = keras.optimizers.SGD(0.01)
    model(tf.ones((16, 128)))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss, gradients

    x = tf.random.normal((16, 128))
    for _ in range(80):
        mark()
        loss, gradients = step(x)
        if not FIXED:
            for g in gradients:
                values = g.numpy()
                np.linalg.norm(values)  # here
                np.histogram(values, bins=64)  # here
    return 80


@job(5, "any", ["*"], 60, says="evaluat",
     note="custom loop; after each 15 steps 60 batches are evaluated by another tf.function: longer than training")
def p_tf_evaluate():
    tf, keras = tensorflow()
    model = dense(keras, 256, 384)
    step = step_of(tf, model, keras.optimizers.SGD(0.01))

    @tf.function
    def evaluate(x, y):
        return tf.reduce_mean(tf.square(model(x, training=False) - y))

    train = tf.data.Dataset.from_tensors((tf.ones((32, 256)), tf.ones((32, 1)))).repeat(15)
    held_out = tf.data.Dataset.from_tensors((tf.ones((128, 256)), tf.ones((128, 1)))).repeat(60)
    for _ in range(4):
        for x, y in train:
            step(x, y)
        print("validation %.4f" % np.mean([float(evaluate(x, y)) for x, y in held_out]), flush=True)
    return 60


@job(5, "host", ["host.logging"], 100, twin=True,
     note="custom loop; each example's loss is printed with a flush, 1,500 lines a step; fix: none")
def p_tf_print():
    tf, keras = tensorflow()
    model = dense(keras, 64, 64)
    step = step_of(tf, model, keras.optimizers.SGD(0.01))
    x, y = tf.random.normal((1500, 64)), tf.ones((1500, 1))
    with open(temporary("train.log"), "w") as log:
        for i in range(100):
            mark()
            loss = float(step(x, y))
            if not FIXED:
                for k in range(1500):
                    print(time.strftime("%H:%M:%S"), "step", i, "example", k, "loss", loss, file=log, flush=True)  # here
    return 100


if __name__ == "__main__":
    main()
