"""Batch 14: TensorFlow's and Keras' jobs."""
import os
import sys
import threading
import time

import numpy as np
from stranger import FIXED, FRAMEWORKS, MAIN, finish, job, main, mark, marks, quiet_tensorflow, temporary


@job(14, "host", ["host.checkpoint"], 400, FRAMEWORKS, twin=True,
     note="Keras on JAX saves the model in every tenth batch; fix: never")
def u_keras_jax_save():
    os.environ["KERAS_BACKEND"] = "jax"
    import keras
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(6400, 100)).astype("float32"))
    Y = torch.from_numpy(rng.integers(0, 5, 6400))

    def build():
        i = keras.Input((100,))
        h = keras.layers.Dense(768, activation="gelu")(i)
        h = keras.layers.Dense(768, activation="gelu")(h)
        o = keras.layers.Dense(5)(h)
        m = keras.Model(i, o)
        m.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return m

    class SaveOften(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch % 10 == 9:
                self.model.save(temporary(f"b{batch:05d}.keras"))  # here

    times = marks(keras)
    calls = [times] if FIXED else [SaveOften(), times]
    model = build()
    model.fit(DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True), epochs=2, verbose=0, callbacks=calls)
    return 400


@job(14, "input", ["input.read", "input.generator", "input.map"], 240, MAIN, twin=True,
     note="a PyDataset loads a compressed file per batch; fix: not compressed")
def u_keras_pydataset():
    keras = quiet_tensorflow()[1]
    from keras import layers

    root = temporary("parts")
    os.makedirs(root)
    rng = np.random.default_rng(5)
    N_FILES, BATCH = 20, 32
    save = np.savez if FIXED else np.savez_compressed  # here
    for i in range(N_FILES):
        x = (rng.normal(size=(BATCH, 96, 96, 3)) * 20 + 128).astype(np.uint8)
        save(os.path.join(root, f"part{i:03d}.npz"), x=x.astype(np.int32), y=rng.integers(0, 10, BATCH))

    class Parts(keras.utils.PyDataset):
        def __init__(self, folder, **kw):
            super().__init__(**kw)
            self.files = sorted(os.path.join(folder, f) for f in os.listdir(folder))

        def __len__(self):
            return len(self.files)

        def __getitem__(self, k):
            with np.load(self.files[k]) as z:  # here
                return z["x"].astype("float32") / 255.0, z["y"]  # here

        def on_epoch_end(self):
            np.random.shuffle(self.files)

    model = keras.Sequential([
        keras.Input((96, 96, 3)),
        layers.Conv2D(8, 5, strides=4, activation="relu"),
        layers.Conv2D(16, 3, strides=2, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(10, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])

    model.fit(Parts(root, workers=1, use_multiprocessing=False), epochs=12, verbose=2, callbacks=[marks(keras)])
    return 12 * N_FILES


@job(14, "input", ["input.read"], 600, MAIN, twin=True,
     note="records are inflated in an interleave with one call at a time; fix: not compressed")
def u_tf_gz_zip():
    tf = quiet_tensorflow()[0]

    GZ = "" if FIXED else "GZIP"
    SHARDS, PER = 4, 160

    def write(kind, shape, scale):
        rng = np.random.default_rng(len(kind))
        paths = []
        for s in range(SHARDS):
            p = temporary(f"{kind}-{s}.tfrecord")
            options = tf.io.TFRecordOptions(compression_type=GZ, compression_level=4 if GZ else None)
            with tf.io.TFRecordWriter(p, options) as w:
                for _ in range(PER):
                    w.write((rng.normal(size=shape) * scale).astype(np.float32).round(2).tobytes())
            paths.append(p)
        return paths

    pics = write("pics", (64, 64, 3), 1.0)
    feats = write("feats", (256,), 2.0)

    def records(paths, shape):
        ds = tf.data.Dataset.from_tensor_slices(paths)
        ds = ds.interleave(lambda p: tf.data.TFRecordDataset(p, compression_type=GZ, buffer_size=1 << 20),  # here
                           cycle_length=2, num_parallel_calls=1)
        return ds.map(lambda r: tf.reshape(tf.io.decode_raw(r, tf.float32), shape))

    ds = tf.data.Dataset.zip((records(pics, (64, 64, 3)), records(feats, (256,))))
    ds = ds.shuffle(64).repeat(30).batch(32, drop_remainder=True).prefetch(2)

    student = tf.keras.Sequential([
        tf.keras.layers.Conv2D(8, 5, 8, activation="relu"),
        tf.keras.layers.Conv2D(16, 3, 2, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(256)])
    student.build((None, 64, 64, 3))
    opt = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def train(x, t):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(student(x, training=True) - t))
        g = tape.gradient(loss, student.trainable_variables)
        opt.apply_gradients(zip(g, student.trainable_variables))
        return loss

    steps = 0
    for x, t in ds:
        mark()
        loss = train(x, t)
        steps += 1
        if steps % 50 == 0:
            print("loss", float(loss), file=sys.stderr)
    return steps


@job(14, "input", ["input.map"], 396, MAIN, twin=True,
     note="a function of Python splits texts into words, and those of the second half of each epoch have markup; fix: once")
def u_tf_bucket():
    import re
    tf = quiet_tensorflow()[0]

    rng = np.random.default_rng(2)
    words = ["".join(rng.choice(list("abcdefghijklmnop"), rng.integers(2, 9))) for _ in range(3000)]
    vocab = {w: i + 2 for i, w in enumerate(words)}

    def doc(i, n):
        # the crawl of the second half has markup, which must be cut out
        w = rng.choice(words, rng.integers(20, 60))
        if i < n // 2:
            return " ".join(w)
        return " ".join(f"<span class='w{k}'><b>{a}</b></span> <!-- {'x' * 40} -->" for k, a in enumerate(w))

    N = 6400
    docs = [doc(i, N) for i in range(N)]
    labels = rng.integers(0, 2, N).astype(np.int32)
    tag = re.compile(r"<!--.*?-->|<[^<>]*>")

    def strip(text):
        for _ in range(6):  # nested comments
            text = "".join(c for c in tag.sub(" ", text) if c.isprintable())  # here
        return text

    def encode(text):
        return np.array([vocab.get(w, 1) for w in strip(text).split()], np.int32)

    if FIXED:
        cached = [encode(d) for d in docs]
        ds = tf.data.Dataset.from_tensor_slices((tf.ragged.constant(cached), labels))
        ds = ds.map(lambda r, y: (tf.ensure_shape(r, [None]), y))
    else:
        def tok(t, y):
            ids = tf.py_function(lambda s: encode(s.numpy().decode()), [t], tf.int32)
            ids.set_shape([None])
            return ids, y

        ds = tf.data.Dataset.from_tensor_slices((docs, labels)).map(tok, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.bucket_by_sequence_length(lambda x, y: tf.shape(x)[0], [30, 40, 50], [32] * 4, drop_remainder=True)
    ds = ds.prefetch(tf.data.AUTOTUNE)

    model = tf.keras.Sequential([tf.keras.layers.Embedding(3002, 32, mask_zero=False),
                                 tf.keras.layers.Conv1D(32, 3, activation="relu"),
                                 tf.keras.layers.GlobalMaxPooling1D(), tf.keras.layers.Dense(2)])
    opt = tf.keras.optimizers.SGD(0.1)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    signature = [tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32)]

    @tf.function(reduce_retracing=True, input_signature=signature)
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        vs = model.trainable_variables
        opt.apply_gradients(zip(tape.gradient(loss, vs), vs))
        return loss

    model.build((None, None))
    opt.build(model.trainable_variables)
    steps = 0
    for epoch in range(2):
        for x, y in ds:
            mark()
            steps += 1
            loss = step(x, y)
        print("epoch", epoch, float(loss))
    return steps


@job(14, "host", ["host.python", "host.callback", "host.code", "host.compile"], 200, MAIN, twin=True,
     note="Keras' predict of single rows makes a pipeline each time; fix: the model is called")
def u_predict_loop():
    import sqlite3
    tf, keras = quiet_tensorflow()

    db = sqlite3.connect(":memory:")
    db.execute("create table rows (id integer primary key, v blob, score real)")
    rng = np.random.default_rng(0)
    db.executemany("insert into rows (v) values (?)", [(rng.random(64).astype(np.float32).tobytes(),) for _ in range(200)])
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(128, activation="relu"),
                              keras.layers.Dense(128, activation="relu"), keras.layers.Dense(1, activation="sigmoid")])
    fast = tf.function(model, reduce_retracing=True)
    todo = db.execute("select id, v from rows").fetchall()
    for rid, blob in todo:
        mark()
        x = np.frombuffer(blob, np.float32)[None]
        if FIXED:
            y = fast(tf.constant(x)).numpy()[0, 0]
        else:
            y = model.predict(x, verbose=0)[0, 0]  # here
        db.execute("update rows set score = ? where id = ?", (float(y), rid))
    db.commit()
    print(db.execute("select avg(score) from rows").fetchone())
    return len(todo)


@job(14, "host", ["host.sleep", "host.wait"], 250, MAIN, twin=True,
     note="a server's batcher looks for requests every 30 ms; fix: it waits for one")
def u_serve_http():
    import http.client
    import queue
    from concurrent.futures import Future
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    tf = quiet_tensorflow()[0]

    WANT = 250
    requests: "queue.Queue" = queue.Queue()

    w1 = tf.Variable(tf.random.normal((128, 512)) * 0.1)
    w2 = tf.Variable(tf.random.normal((512, 512)) * 0.1)
    w3 = tf.Variable(tf.random.normal((512, 4)) * 0.1)

    @tf.function(input_signature=[tf.TensorSpec((None, 128), tf.float32)])
    def score(x):
        h = tf.nn.relu(x @ w1)
        for _ in range(4):
            h = tf.nn.relu(h @ w2)
        return tf.nn.softmax(h @ w3)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            f = Future()
            requests.put((np.frombuffer(body, np.float32), f))
            out = f.result().tobytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        def log_message(self, *a):
            pass

    def collect():
        """A batch of what has arrived."""
        if FIXED:
            batch = [requests.get()]
        else:
            batch = []
            while not batch:
                time.sleep(0.03)  # here
                if not requests.empty():
                    batch.append(requests.get())
        while len(batch) < 64:
            try:
                batch.append(requests.get_nowait())
            except queue.Empty:
                break
        return batch

    def client(port, stop):
        c = http.client.HTTPConnection("127.0.0.1", port)
        x = np.random.rand(128).astype(np.float32).tobytes()
        while not stop.is_set():
            c.request("POST", "/score", x)
            c.getresponse().read()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stop = threading.Event()
    score(np.zeros((1, 128), np.float32))
    for _ in range(6):
        threading.Thread(target=client, args=(server.server_port, stop), daemon=True).start()
    served = 0
    for _ in range(WANT):
        mark()
        batch = collect()
        p = score(np.stack([b[0] for b in batch])).numpy()
        for (_, f), row in zip(batch, p):
            f.set_result(row)
        served += len(batch)
    stop.set()
    print("served", served)
    finish(WANT)
    os._exit(0)  # threads of the server are still in TensorFlow


if __name__ == "__main__":
    main()
