"""Jobs of TensorFlow's with a training loop of their own."""
import csv
import os
import random
import time

import numpy as np
from stranger import FIXED, job, main, mark, small_model, temporary, tensorflow, thread


def square_step(tf, weights):
    """A compiled step of one product."""
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weights))
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss
    return step


# Input.

@job(2, "input", ["input.*"], 100, note="custom loop; py_function with 4 parallel calls, all of Python (GIL), prefetch")
def tf_pyfunc_parallel():
    tf, keras = tensorflow()

    def slow(x):
        total = 0
        end = time.perf_counter() + 0.008
        while time.perf_counter() < end:  # here
            total += sum(range(50))  # here
        return x

    def batch(i):
        return tf.ensure_shape(tf.py_function(slow, [tf.ones((16, 32))], tf.float32), (16, 32))

    batches = iter(tf.data.Dataset.range(100).map(batch, num_parallel_calls=4).prefetch(4))
    step = square_step(tf, tf.Variable(tf.ones((32, 32))))
    for _ in range(100):
        x = next(batches)  # here
        step(x)
    return 100


# Compiling and launching.

@job(1, "host", ["host.compile"], 30, note="tf.function retraced each step: a python number as argument")
def tf_retrace():
    tf, keras = tensorflow()
    weights = tf.Variable(tf.ones((64, 64)))

    @tf.function
    def step(x, k):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, weights)) * k
            for _ in range(8):
                loss = loss + tf.reduce_mean(tf.tanh(tf.matmul(x, weights)))
        weights.assign_sub(0.001 * tape.gradient(loss, weights))
        return loss

    i = 0
    for x in tf.data.Dataset.from_tensors(tf.ones((16, 64))).repeat(30):
        step(x, i)
        i += 1
    return 30


@job(2, "host", ["host.compile"], 48, note="tf.function over batches of ever other lengths: retraced each time")
def tf_lengths():
    tf, keras = tensorflow()
    weights = tf.Variable(tf.ones((32, 32)))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            h = x
            for _ in range(6):
                h = tf.tanh(h @ weights)
            loss = tf.reduce_mean(h)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss

    def batches():
        for i in range(48):
            yield np.ones((8 + i, 32), np.float32)

    for x in tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((None, 32))):  # here
        step(x)  # here
    return 48


@job(4, "host", ["host.compile"], 60, note="a custom loop passes the step as a Python int to its tf.function: traced anew each step")
def tf_int_argument():
    tf, keras = tensorflow()
    weights = tf.Variable(tf.random.normal((64, 64)))

    @tf.function
    def train(x, step):
        with tf.GradientTape() as tape:
            h = x
            for _ in range(6):
                h = tf.tanh(h @ weights)
            loss = tf.reduce_mean(h * h) + 0.0 * step
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    data = tf.data.Dataset.from_tensor_slices(np.random.rand(60 * 16, 64).astype("f")).batch(16)
    for i, x in enumerate(data):  # here
        train(x, i)  # here
    return 60


@job(1, "host", ["host.launch", "host.python"], 60, note="eager GradientTape loop: dispatch of small ops")
def tf_eager():
    tf, keras = tensorflow()
    hidden = [keras.layers.Dense(32, "relu") for _ in range(8)]
    model = keras.Sequential([keras.Input((32,))] + hidden + [keras.layers.Dense(1)])
    optimizer = keras.optimizers.Adam()
    for x, y in tf.data.Dataset.from_tensors((tf.ones((8, 32)), tf.ones((8, 1)))).repeat(60):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return 60


@job(3, "host", ["host.launch", "host.python"], 100,
     note="'writing a training loop from scratch': eager GradientTape, metrics updated, 2 epochs of 50, validation of 10")
def tf_from_scratch():
    tf, keras = tensorflow()
    inputs = keras.Input((784,))
    h = keras.layers.Dense(64, "relu")(inputs)
    h = keras.layers.Dense(64, "relu")(h)
    model = keras.Model(inputs, keras.layers.Dense(10)(h))
    optimizer = keras.optimizers.SGD(1e-3)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    accuracy = keras.metrics.SparseCategoricalAccuracy()
    validated = keras.metrics.SparseCategoricalAccuracy()

    def data_of(n):
        return tf.data.Dataset.from_tensor_slices((np.random.rand(n, 784).astype("f"), np.zeros(n, np.int32)))

    training, validation = data_of(3200).shuffle(1024).batch(64), data_of(640).batch(64)
    for _ in range(2):
        for x, y in training:
            with tf.GradientTape() as tape:
                logits = model(x, training=True)
                loss = loss_of(y, logits)
            gradients = tape.gradient(loss, model.trainable_weights)
            optimizer.apply(gradients, model.trainable_weights)
            accuracy.update_state(y, logits)
        accuracy.reset_state()
        for x, y in validation:
            validated.update_state(y, model(x, training=False))
        validated.reset_state()
    return 100


# Between the steps.

@job(1, "host", ["host.sync", "host.python", "compute.*", "host.launch"], 100,
     note="tf.function loop, .numpy() of the loss each step, small model")
def tf_loss_home():
    tf, keras = tensorflow()
    step = square_step(tf, tf.Variable(tf.random.normal((256, 256))))
    total = 0
    for x in tf.data.Dataset.from_tensors(tf.ones((64, 256))).repeat(100):
        total += step(x).numpy()
    return 100


@job(2, "host", ["host.checkpoint"], 80, note="CheckpointManager.save each 4 steps of a 20 MB model in a custom loop")
def tf_manager():
    tf, keras = tensorflow()
    big = tf.Variable(tf.ones((32, 160000)))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(w=big), temporary(), 2)
    step = square_step(tf, tf.Variable(tf.ones((32, 32))))
    i = 0
    for x in tf.data.Dataset.from_tensors(tf.ones((16, 32))).repeat(80):
        step(x)
        i += 1
        if i % 4 == 0:
            manager.save()  # here
    return 80


@job(2, "host", ["host.logging", "host.callback"], 120, note="tf.summary of 40,000 numbers each step, flushed")
def tf_summaries():
    tf, keras = tensorflow()
    writer = tf.summary.create_file_writer(temporary())
    step = square_step(tf, tf.Variable(tf.ones((32, 32))))
    i = 0
    for x in tf.data.Dataset.from_tensors(tf.ones((16, 32))).repeat(120):
        step(x)
        i += 1
        with writer.as_default():
            tf.summary.write("loss", tf.random.normal((40000,)), i)  # here
            writer.flush()  # here
    return 120


@job(4, "host", ["host.logging", "host.callback"], 100, twin=True,
     note="custom training loop writes each gradient norm to a CSV file with flush and fsync")
def tf_csv_sync():
    tf, keras = tensorflow()
    model = small_model(keras)
    optimizer = keras.optimizers.SGD(0.01)
    f = open(temporary("norms.csv"), "w")
    out = csv.writer(f)

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x, training=True) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return [tf.norm(g) for g in gradients]

    data = tf.data.Dataset.from_tensor_slices(np.random.rand(100 * 16, 32).astype("f")).batch(16)
    for i, x in enumerate(data):
        mark()
        norms = train(x)
        for k in range(0 if FIXED else 40):
            out.writerow([i, k] + [float(a) for a in norms])  # here
            f.flush()  # here
            os.fsync(f.fileno())  # here
    return 100


# Serving.

@job(3, "any", ["*"], 50, says="request", note="http.server answers POSTs with a tf.function; clients come each 30 ms")
def tf_http_server():
    import urllib.request
    from http.server import BaseHTTPRequestHandler, HTTPServer
    tf, keras = tensorflow()
    weights = tf.Variable(tf.random.normal((256, 256)))

    @tf.function
    def infer(x):
        for _ in range(4):
            x = tf.tanh(x @ weights)
        return x

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            result = infer(tf.ones((8, 256))).numpy()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"%f" % result[0, 0])

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)

    def clients():
        rng = random.Random(6)
        for _ in range(50):
            time.sleep(rng.expovariate(1 / 0.03))
            urllib.request.urlopen("http://127.0.0.1:%d" % server.server_port, data=b"1" * 100).read()
        server.shutdown()

    thread(clients)
    server.serve_forever()
    return 50


if __name__ == "__main__":
    main()
