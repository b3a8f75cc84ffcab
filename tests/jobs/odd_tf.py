"""Keras and TensorFlow jobs as users write them, on the processor.

usage: odd_tf.py NAME [--ms MS]

sequence    model.fit with a keras Sequence (PyDataset) whose items take MS
interleave  model.fit over files read through interleave, map, shuffle, batch, prefetch
callbacks   model.fit with ModelCheckpoint, CSVLogger and EarlyStopping, evaluated in each epoch
custom      a loop of its own with tf.function, gradients of four batches gathered
numpy       model.fit over arrays in memory
predict     model.predict only
"""
import argparse
import os
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np
import tensorflow as tf

p = argparse.ArgumentParser(usage=__doc__)
p.add_argument("name")
p.add_argument("--ms", type=float, default=20)
A = p.parse_args()
keras = tf.keras
N, FEATURES, BATCH = 1600, 256, 32


def model(width=512):
    m = keras.Sequential([keras.layers.Dense(width, activation="relu"), keras.layers.Dense(width, activation="relu"),
                          keras.layers.Dense(10)])
    m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return m


def data():
    rng = np.random.default_rng(1)
    return rng.normal(size=(N, FEATURES)).astype("float32"), rng.integers(0, 10, N)


def sequence():
    base = getattr(keras.utils, "PyDataset", keras.utils.Sequence)
    x, y = data()

    class Slow(base):
        def __len__(self):
            return N // BATCH

        def __getitem__(self, i):
            time.sleep(A.ms / 1e3)
            return x[i * BATCH:(i + 1) * BATCH], y[i * BATCH:(i + 1) * BATCH]
    model().fit(Slow(), epochs=2, verbose=0)


def interleave():
    folder = tempfile.mkdtemp()
    x, y = data()
    for f in range(8):
        with tf.io.TFRecordWriter("%s/%d" % (folder, f)) as w:
            for i in range(f * 200, f * 200 + 200):
                w.write(x[i].tobytes() + bytes([y[i]]))

    def parse(s):
        if A.ms:
            s = tf.numpy_function(lambda v: (time.sleep(A.ms / 1e3 / BATCH), v)[1], [s], tf.string)
            s.set_shape([])
        v = tf.io.decode_raw(s, tf.uint8, fixed_length=None)
        return tf.reshape(tf.bitcast(tf.reshape(v[:-1], [FEATURES, 4]), tf.float32), [FEATURES]), tf.cast(v[-1], tf.int64)
    d = tf.data.Dataset.list_files(folder + "/*").interleave(tf.data.TFRecordDataset, cycle_length=4)
    d = d.map(parse).shuffle(200).batch(BATCH).prefetch(2)
    model().fit(d, epochs=2, verbose=0)


def callbacks():
    x, y = data()
    folder = tempfile.mkdtemp()
    d = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
    model(1024).fit(d, validation_data=d.take(20), epochs=4, verbose=0, callbacks=[
        keras.callbacks.ModelCheckpoint(folder + "/m.weights.h5", save_weights_only=True),
        keras.callbacks.CSVLogger(folder + "/log.csv"), keras.callbacks.EarlyStopping(patience=2)])


def custom():
    m, x = model(), data()
    opt, loss = keras.optimizers.Adam(), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    d = tf.data.Dataset.from_tensor_slices(x).map(lambda a, b: (a, b)).batch(BATCH).prefetch(2)
    m.build((BATCH, FEATURES))
    sums = [tf.Variable(tf.zeros_like(v)) for v in m.trainable_variables]

    @tf.function
    def step(a, b):
        with tf.GradientTape() as t:
            value = loss(b, m(a, training=True))
        for s, g in zip(sums, t.gradient(value, m.trainable_variables)):
            s.assign_add(g)
        return value

    @tf.function
    def update():
        opt.apply_gradients(zip(sums, m.trainable_variables))
        for s in sums:
            s.assign(tf.zeros_like(s))
    for epoch in range(3):
        for i, (a, b) in enumerate(d):
            value = step(a, b)
            if i % 4 == 3:
                update()
            if i % 10 == 0:
                float(value)


def numpy():
    x, y = data()
    model(1024).fit(x, y, batch_size=BATCH, epochs=2, verbose=0)


def predict():
    x, y = data()
    m = model(1024)
    for _ in range(3):
        m.predict(x, batch_size=BATCH, verbose=0)


globals()[A.name]()
print("done")
