"""Loops of Keras and tf.data: keras_shapes_job.py NAME TRUTH runs one and writes how many rounds of what it made."""
import json
import os
import sys
import time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


def model():
    m = tf.keras.Sequential([tf.keras.layers.Input((32,)), tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
    m.compile("adam", "mse")
    return m


def data(n, slow=0.0):
    d = tf.data.Dataset.from_tensor_slices((np.random.rand(n, 32).astype("f"), np.random.rand(n, 1).astype("f")))
    if slow:
        d = d.map(lambda a, b: (tf.numpy_function(lambda v: (time.sleep(slow), v)[1], [a], tf.float32), b))
        d = d.map(lambda a, b: (tf.ensure_shape(a, (32,)), b)).cache()
    return d.batch(16).prefetch(2)


def fit_with_validation():  # Keras gives the function that trains and the one that tests the same name
    model().fit(data(640), validation_data=data(320), epochs=3, verbose=0)
    return dict(train=120, evaluate=60, epoch=3)


def fit_with_long_validation():  # which has more batches than training
    model().fit(data(320), validation_data=data(1600), epochs=3, verbose=0)
    return dict(train=60, evaluate=300, epoch=3)


def fit_cached():  # the first epoch has another pipeline than the others
    model().fit(data(480, 0.001), epochs=4, verbose=0)
    return dict(step=120, epoch=4)


def own_loop():
    m, optimizer = model(), tf.keras.optimizers.SGD()

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((m(x) - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, m.trainable_variables), m.trainable_variables))

    @tf.function
    def test_step(x, y):
        return tf.reduce_mean((m(x) - y) ** 2)
    for _ in range(3):
        for x, y in data(800):
            train_step(x, y)
        for x, y in data(160):
            test_step(x, y)
        m.save_weights(sys.argv[2] + ".weights.h5")
    return dict(train=150, evaluate=30, epoch=3)


json.dump(globals()[sys.argv[1]](), open(sys.argv[2], "w"))
