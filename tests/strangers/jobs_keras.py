"""Jobs of Keras' on TensorFlow: fit, predict and train_on_batch."""
import math
import random
import re
import time

import numpy as np
from stranger import FIXED, burn, job, main, marks, small_model, temporary, tensorflow


def examples(tf, n, repeat):
    """The same batch again and again."""
    return tf.data.Dataset.from_tensors((tf.ones((n, 32)), tf.ones((n, 1)))).repeat(repeat)


# Input.

@job(1, "input", ["input.map", "host.callback", "input.*", "host.gil"], 120,
     note="fit over numpy_function map that burns 8 ms of GIL a batch")
def tf_numpy_function():
    tf, keras = tensorflow()

    def slow(x):
        burn(8)
        return x

    def batch(i):
        return tf.ensure_shape(tf.numpy_function(slow, [tf.ones((16, 32))], tf.float32), (16, 32))

    data = tf.data.Dataset.range(120).map(batch).map(lambda x: (x, x[:, :1])).prefetch(2)
    small_model(keras).fit(data, epochs=1, verbose=0)
    return 120


@job(1, "input", ["input.generator"], 100, note="from_generator that sleeps 10 ms an element")
def tf_generator():
    tf, keras = tensorflow()

    def batches():
        for _ in range(100):
            time.sleep(0.010)
            yield np.ones((16, 32), np.float32), np.ones((16, 1), np.float32)

    data = tf.data.Dataset.from_generator(batches, output_signature=(tf.TensorSpec((16, 32)), tf.TensorSpec((16, 1))))
    small_model(keras).fit(data, verbose=0)
    return 100


@job(1, "input", ["input.read", "input.decode", "input.map"], 80, note="png files read and decoded, no parallel calls")
def tf_png():
    tf, keras = tensorflow()
    png = tf.io.encode_png(tf.cast(np.random.randint(0, 255, (256, 256, 3)), tf.uint8)).numpy()
    for k in range(16):
        with open(temporary("%d.png" % k), "wb") as f:
            f.write(png)
    files = [temporary("%d.png" % (i % 16)) for i in range(640)]

    def decode(path):
        image = tf.image.resize(tf.image.decode_png(tf.io.read_file(path), 3), (32, 32))
        return tf.reduce_mean(image, [1, 2])[:, None][:1, 0]

    data = tf.data.Dataset.from_tensor_slices(files).map(decode).map(lambda v: (tf.fill([32], v[0]), tf.ones(1))).batch(8)
    small_model(keras).fit(data, verbose=0)
    return 80


@job(1, "any", ["*"], 120, note="each of 4 epochs begins with filling a shuffle buffer: 1 s of 1.4")
def tf_shuffle_fill():
    tf, keras = tensorflow()

    def slow(i):
        time.sleep(0.004)
        return np.float32(1)

    def number(i):
        return tf.ensure_shape(tf.numpy_function(slow, [i], tf.float32), ())

    numbers = tf.data.Dataset.range(240).map(number).shuffle(240).batch(8)
    data = numbers.map(lambda v: (tf.ones((8, 32)) * v[:, None], tf.ones((8, 1))))
    small_model(keras).fit(data, epochs=4, verbose=0)
    return 120


@job(1, "input", ["input.*"], 60, note="train_on_batch in own loop; each batch is made by a function that burns 6 ms")
def tf_train_on_batch():
    tf, keras = tensorflow()
    model = small_model(keras)

    def batch():
        burn(6)
        return np.ones((16, 32), np.float32), np.ones((16, 1), np.float32)

    for _ in range(60):
        model.train_on_batch(*batch())
    return 60


@job(1, "input", ["input.read", "input.*"], 80, note="TFRecords gz, sequential, parsed in a map; heavy decode")
def tf_records():
    tf, keras = tensorflow()
    path = temporary("a.tfr")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for _ in range(640):
            values = tf.train.FloatList(value=np.random.rand(3000).astype("f"))
            features = tf.train.Features(feature={"x": tf.train.Feature(float_list=values)})
            writer.write(tf.train.Example(features=features).SerializeToString())

    def parse(record):
        return tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature([3000], tf.float32)})["x"]

    data = tf.data.TFRecordDataset(path, "GZIP").map(parse).batch(8).map(lambda x: (x[:, :32], x[:, :1]))
    small_model(keras).fit(data, verbose=0)
    return 80


@job(2, "input", ["input.*"], 100, note="fit over a Python generator that tokenizes (8 ms of Python)")
def tf_keras_generator():
    tf, keras = tensorflow()
    text = "the quick brown fox jumps over the lazy dog " * 40

    def batches():
        while True:
            end = time.perf_counter() + 0.008
            while time.perf_counter() < end:  # here
                words = re.findall(r"\w+", text)  # here
            yield np.full((16, 32), len(words), np.float32), np.ones((16, 1), np.float32)

    small_model(keras).fit(batches(), steps_per_epoch=100, epochs=1, verbose=0)
    return 100


@job(2, "input", ["input.*"], 80, note="PyDataset, two worker threads, each item sleeps 30 ms")
def tf_pydataset():
    tf, keras = tensorflow()

    class Sleepy(keras.utils.PyDataset):
        def __len__(self):
            return 80

        def __getitem__(self, i):
            time.sleep(0.030)  # here
            return np.ones((16, 32), np.float32), np.ones((16, 1), np.float32)  # here

    small_model(keras).fit(Sleepy(workers=2, use_multiprocessing=False, max_queue_size=4), verbose=0)
    return 80


@job(2, "input", ["input.*"], 90, note="zip of a fast branch and a slow one (string parsing of csv lines)")
def tf_zip():
    tf, keras = tensorflow()
    line = ",".join(["1.5"] * 30000)
    labels = tf.data.Dataset.from_tensors(tf.ones((1,))).repeat(720)

    def parse(text):
        return tf.strings.to_number(tf.strings.split(text, ","))[:32]

    rows = tf.data.Dataset.from_tensors(line).repeat(720).map(parse)
    small_model(keras).fit(tf.data.Dataset.zip(rows, labels).batch(8), verbose=0)
    return 90


@job(2, "input", ["input.read", "input.*"], 100, note="interleave over gzip text files, sequential")
def tf_gzip_lines():
    import gzip
    tf, keras = tensorflow()
    for k in range(4):
        with gzip.open(temporary("%d.gz" % k), "wt") as f:
            for _ in range(400):
                f.write(",".join("%.6f" % random.random() for _ in range(9000)) + "\n")
    files = tf.data.Dataset.from_tensor_slices([temporary("%d.gz" % k) for k in range(4)])
    lines = files.interleave(lambda path: tf.data.TextLineDataset(path, "GZIP"), cycle_length=2).batch(16)
    data = lines.map(lambda s: (tf.ones((16, 32)), tf.cast(tf.strings.length(s)[:, None], tf.float32)))
    small_model(keras).fit(data, verbose=0)
    return 100


@job(3, "input", ["input.map"], 80, says="images",
     note="zip of images and labels: both are maps; images (rotated by hand) are slow; maps have names")
def tf_zip_twins():
    tf, keras = tensorflow()

    def image(i):
        x = tf.random.stateless_uniform((96, 96), (1, 2))
        for _ in range(0 if FIXED else 10):
            x = tf.sin(x @ x) * 0.5
        return x[0, :32]

    images = tf.data.Dataset.range(640).map(image, name="images")
    labels = tf.data.Dataset.range(640).map(lambda i: tf.cast(i % 2, tf.float32)[None], name="labels")
    small_model(keras).fit(tf.data.Dataset.zip(images, labels).batch(8), verbose=0)
    return 80


@job(3, "input", ["input.map"], 90, note="text: lines are standardised, split and looked up in a map without parallel calls")
def tf_text():
    tf, keras = tensorflow()
    vocabulary = ["w%d" % i for i in range(2000)]
    numbers = tf.lookup.KeyValueTensorInitializer(vocabulary, tf.range(2000, dtype=tf.int64))
    table = tf.lookup.StaticHashTable(numbers, 0)
    line = " ".join(random.Random(3).choices(vocabulary, k=1500))

    def vectorise(text):
        text = tf.strings.regex_replace(tf.strings.lower(text), "[0-9]$", "")
        return tf.cast(table.lookup(tf.strings.split(text))[:32], tf.float32), tf.ones((1,))

    vectors = tf.data.Dataset.from_tensors(line).repeat(720).map(vectorise)
    data = vectors.map(lambda x, y: (tf.ensure_shape(x, (32,)), y)).batch(8)
    small_model(keras).fit(data, verbose=0)
    return 90


@job(4, "input", ["input.*"], 80, twin=True, note="fit over a tf.data map of a py_function that rotates with numpy and loops in Python")
def tf_py_map():
    tf, keras = tensorflow()

    def augment(i):
        v = np.full(32, float(i), np.float32)
        for k in range(0 if FIXED else 12):  # here
            v = np.array([math.sin(a) + k for a in np.tile(v, 8)], np.float32)[:32]  # here
        return v

    def example(i):
        x = tf.py_function(augment, [i], tf.float32)
        x.set_shape((32,))
        return x, tf.ones((1,))

    small_model(keras).fit(tf.data.Dataset.range(640).map(example).batch(8), verbose=0, callbacks=[marks(keras)])
    return 80


# Computing, and more than training.

@job(1, "compute", ["compute.*"], 60, note="fit of a wide model: computing on the CPU")
def tf_compute():
    tf, keras = tensorflow()
    dense = keras.layers.Dense
    model = keras.Sequential([keras.Input((512,)), dense(1024, "relu"), dense(1024, "relu"), dense(1)])
    model.compile("sgd", "mse")
    model.fit(tf.data.Dataset.from_tensors((tf.ones((128, 512)), tf.ones((128, 1)))).repeat(60), verbose=0)
    return 60


@job(4, "compute", ["compute.cpu"], 70, note="no defect: fit, prefetched batches from memory, wide layers")
def tf_wide():
    tf, keras = tensorflow()
    dense = keras.layers.Dense
    model = keras.Sequential([keras.Input((512,)), dense(1500, "relu"), dense(1500, "relu"), dense(1)])
    model.compile("sgd", "mse")
    x = np.random.rand(70 * 32, 512).astype("f")
    model.fit(tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(32).prefetch(2), verbose=0)
    return 70


@job(1, "any", ["*"], 60, note="validation of 100 batches after each 20 train batches takes longer")
def tf_validation():
    tf, keras = tensorflow()
    model = small_model(keras, 512)
    model.fit(examples(tf, 64, 20), validation_data=examples(tf, 256, 100), epochs=3, verbose=0)
    return 60


@job(1, "host", ["host.python", "host.callback", "host.launch"], 150, note="predict on one example in a loop")
def tf_predict():
    tf, keras = tensorflow()
    model = small_model(keras)
    for _ in range(150):
        model.predict(np.ones((1, 32), np.float32), verbose=0)
    return 150


@job(3, "host", ["host.*"], 60, never="longer run", note="predict of one image at a time, a label list printed in the end")
def tf_predict_ones():
    tf, keras = tensorflow()
    model = small_model(keras)
    x = np.random.rand(60, 32).astype("f")
    labels = []
    for i in range(60):  # here
        labels.append(float(model.predict(x[i:i + 1], verbose=0)[0, 0]))  # here
    return 60


# Callbacks.

@job(1, "host", ["host.logging", "host.python", "host.callback"], 100, note="callback writes all weights with a flush at each batch")
def tf_callback():
    tf, keras = tensorflow()
    writer = tf.summary.create_file_writer(temporary())

    class Log(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            with writer.as_default():
                for v in self.model.trainable_variables:
                    tf.summary.write(v.name, v, batch)
            writer.flush()

    small_model(keras).fit(examples(tf, 16, 100), verbose=0, callbacks=[Log()])
    return 100


@job(2, "host", ["host.python", "host.callback"], 60, note="fit, 60 steps; a callback computes 7 ms in Python")
def tf_short_callback():
    tf, keras = tensorflow()

    class Score(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            total = 0
            end = time.perf_counter() + 0.007
            while time.perf_counter() < end:  # here
                total += sum(range(50))  # here

    small_model(keras).fit(examples(tf, 16, 60), verbose=0, callbacks=[Score()])
    return 60


@job(4, "host", ["host.callback", "host.python"], 80, twin=True,
     note="callback computes a moving average of all weights in Python lists each batch")
def tf_weight_lists():
    tf, keras = tensorflow()
    averages = {}

    class Average(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            for k, w in enumerate(self.model.get_weights()) if not FIXED else ():
                average = averages.get(k, [0.0] * w.size)
                for _ in range(6):  # here
                    average = [a * 0.9 + b * 0.1 for a, b in zip(average, w.ravel().tolist())]  # here
                averages[k] = average

    x = np.random.rand(640, 32).astype("f")
    data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8)
    small_model(keras).fit(data, verbose=0, callbacks=[Average(), marks(keras)])
    return 80


@job(1, "host", ["host.checkpoint"], 100, note="ModelCheckpoint each 5 batches of a model of 8 MB")
def tf_checkpoint():
    tf, keras = tensorflow()
    saving = keras.callbacks.ModelCheckpoint(temporary("m.weights.h5"), save_freq=5, save_weights_only=True)
    small_model(keras, 60000).fit(examples(tf, 4, 100), verbose=0, callbacks=[saving])
    return 100


if __name__ == "__main__":
    main()
