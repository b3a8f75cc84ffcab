"""A small training job as many are written: tinygrad on the GPU, fed by a tf.data pipeline.

Photos of ten patterns arrive as JPEGs of 2.6 megapixels; the pipeline decodes and shrinks them to 8x8, and a
two-layer network learns which pattern it sees. Nothing here knows of tfhook.

usage: train_images.py [--steps N] [--parallel N] [--cache]
"""
import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")

import numpy as np
import tensorflow as tf
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context

CLASSES, BATCH, SIDE, PIXELS = 10, 16, 1600, 8


def photos(rng, count):
    """JPEGs of noisy patterns, and which pattern each shows."""
    patterns = rng.uniform(40, 215, (CLASSES, PIXELS, PIXELS))
    labels = rng.integers(0, CLASSES, count).astype(np.int32)
    grain = rng.normal(0, 6, (SIDE, SIDE))
    out = []
    for i, label in enumerate(labels):
        small = np.clip(patterns[label] + rng.normal(0, 12, (PIXELS, PIXELS)), 0, 255)
        large = np.kron(small, np.ones((SIDE // PIXELS, SIDE // PIXELS))) + np.roll(grain, 7 * i)
        gray = np.clip(large, 0, 255).astype(np.uint8)
        out.append(tf.io.encode_jpeg(np.repeat(gray[:, :, None], 3, 2), quality=85).numpy())
    return out, labels


def decode(jpeg, label):
    image = tf.io.decode_jpeg(jpeg, channels=1)
    image = tf.image.resize(tf.cast(image, tf.float32), (PIXELS, PIXELS), method="area")
    return tf.reshape(image, (PIXELS * PIXELS,)) / 128.0 - 1.0, label


def pipeline(args):
    jpegs, labels = photos(np.random.default_rng(1), 32)
    data = tf.data.Dataset.from_tensor_slices((jpegs, labels))
    if args.cache:
        data = data.map(decode).cache().shuffle(32, seed=2).repeat()
    else:
        data = data.shuffle(32, seed=2).repeat().map(decode, num_parallel_calls=args.parallel)
    return data.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE).take(args.steps)


class Network:
    def __init__(self):
        self.first, self.second = nn.Linear(PIXELS * PIXELS, 32), nn.Linear(32, CLASSES)

    def __call__(self, x):
        return self.second(self.first(x).relu())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--parallel", type=int, default=1, help="photos decoded at once")
    parser.add_argument("--cache", action="store_true", help="keep decoded photos in memory")
    args = parser.parse_args()

    Tensor.manual_seed(7)
    network = Network()
    optimizer = nn.optim.SGD(nn.state.get_parameters(network), lr=0.05, momentum=0.9)

    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    with Context(TRAINING=1):
        for i, (x, y) in enumerate(pipeline(args).as_numpy_iterator()):
            loss = step(Tensor(x.copy()).realize(), Tensor(y.copy()).realize()).item()
            if i % 10 == 0 or i == args.steps - 1:
                print(f"step {i:3d}   loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
