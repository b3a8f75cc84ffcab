"""Keras 3 on PyTorch and on JAX, on the processor. FIX=1 runs a job's twin, without its defect."""
import json
import os
import sys
import time
import zlib

import numpy as np

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "strangers"))
from stranger import BATCHES, FIXED, MENDED_ON, job, main, marks, temporary  # noqa: E402

BATCHES["keras"] = "confirm"
MENDED_ON.add("torch_callback")
ENV = "frameworks"
STEPS, EPOCHS, SIZE = 30, 2, 16
PACKED = zlib.compress(bytes(range(256)) * 1024, 9)


def load(backend):
    os.environ["KERAS_BACKEND"] = backend
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    import keras
    import torch
    torch.set_num_threads(1)
    model = keras.Sequential([keras.Input((16, 256)), keras.layers.Dense(512, "relu"), keras.layers.Dense(512, "relu"),
                              keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return keras, model


def arrays():
    n = STEPS * SIZE
    return np.random.rand(n, 16, 256).astype("float32"), np.arange(n) % 10


def loader(slow):
    """PyTorch's DataLoader over samples in memory, each of them as slow as the job wants."""
    import torch
    x, y = (torch.tensor(a) for a in arrays())

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return len(x)

        def __getitem__(self, i):
            if not FIXED:
                slow()
            return x[i], y[i]
    return torch.utils.data.DataLoader(Data(), batch_size=SIZE)


def fit(keras, model, data, *callbacks):
    how = {"batch_size": SIZE} if isinstance(data, tuple) else {}
    model.fit(*(data if isinstance(data, tuple) else (data,)), epochs=EPOCHS, verbose=0, callbacks=[marks(keras), *callbacks], **how)
    return STEPS * EPOCHS


def nothing():
    pass


def inflate():
    for _ in range(10):
        zlib.decompress(PACKED)  # here


def draw():
    time.sleep(0.001)  # here


@job("keras", "host", ["host.python", "host.callback"], 60, ENV, twin=True, note="on PyTorch: a callback sums over a list behind each batch")
def torch_callback():
    keras, model = load("torch")

    class Sums(keras.callbacks.Callback):
        def on_train_batch_end(self, b, logs=None):
            total = 0
            for k in range(0 if FIXED else 150000):
                total += k * b  # here
    return fit(keras, model, arrays(), Sums())


@job("keras", "input", ["input.map", "input.decode"], 60, ENV, twin=True, at=(inflate,), note="on PyTorch: a DataLoader whose samples are inflated")
def torch_loader():
    keras, model = load("torch")
    return fit(keras, model, loader(inflate))


@job("keras", "host", ["host.logging", "host.callback"], 60, ENV, twin=True, note="on PyTorch: a callback appends 40 lines of JSON and syncs each")
def torch_log():
    keras, model = load("torch")
    log = open(temporary("log.jsonl"), "w")

    class Log(keras.callbacks.Callback):
        def on_train_batch_end(self, b, logs=None):
            for k in range(0 if FIXED else 40):
                log.write(json.dumps({"batch": b, "part": k}) + "\n")  # here
                log.flush()  # here
                os.fsync(log.fileno())  # here
    return fit(keras, model, arrays(), Log())


@job("keras", "input", ["input.*"], 60, ENV, twin=True, note="on PyTorch: a PyDataset that makes its batches in Python")
def torch_dataset():
    keras, model = load("torch")
    x, y = arrays()

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return STEPS

        def __getitem__(self, i):
            total = 0
            for k in range(0 if FIXED else 200000):
                total += k * i  # here
            return x[i * SIZE:(i + 1) * SIZE], y[i * SIZE:(i + 1) * SIZE]
    return fit(keras, model, Batches())


@job("keras", "input", ["input.map", "input.read"], 60, ENV, twin=True, at=(draw,), note="on JAX: a DataLoader whose samples come from a slow store")
def jax_loader():
    keras, model = load("jax")
    return fit(keras, model, loader(draw))


@job("keras", "host", ["host.*"], 60, ENV, twin=True, note="on JAX: a DataLoader of samples in memory, and a callback that sums over a list")
def jax_callback():
    keras, model = load("jax")

    class Sums(keras.callbacks.Callback):
        def on_train_batch_end(self, b, logs=None):
            total = 0
            for k in range(0 if FIXED else 300000):
                total += k * b  # here
    return fit(keras, model, loader(nothing), Sums())


if __name__ == "__main__":
    main()
