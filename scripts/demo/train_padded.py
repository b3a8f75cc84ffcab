"""A small training job whose batches are ten times larger than they need to be: every record is padded to the length
of the longest one, and the padding travels to the GPU with each batch. Nothing here knows of tfhook.

usage: train_padded.py [--steps N] [--unpadded]
"""
import argparse

import numpy as np
from tinygrad import Device, Tensor, TinyJit, nn
from tinygrad.helpers import Context

CLASSES, BATCH, USED, LONGEST, POOL = 4, 32, 2048, 20480, 64


def records(rng):
    """Noisy waves of four frequencies, padded with zeros; and which one each is."""
    labels = rng.integers(0, CLASSES, 8 * BATCH).astype(np.int32)
    time = np.arange(USED) / USED
    waves = np.sin(2 * np.pi * (1 + labels[:, None]) * time[None, :]) + rng.normal(0, 2.0, (len(labels), USED))
    padded = np.zeros((len(labels), LONGEST), np.float32)
    padded[:, :USED] = waves
    return padded, labels


class Network:
    def __init__(self):
        self.first, self.second = nn.Linear(USED // POOL, 32), nn.Linear(32, CLASSES)

    def __call__(self, x):
        x = x[:, :USED].reshape(BATCH, USED // POOL, POOL).mean(2)
        return self.second(self.first(x).relu())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--unpadded", action="store_true", help="copy only what is used")
    args = parser.parse_args()

    Tensor.manual_seed(7)
    network = Network()
    optimizer = nn.optim.SGD(nn.state.get_parameters(network), lr=0.02, momentum=0.9)
    data, labels = records(np.random.default_rng(1))
    if args.unpadded:
        data = np.ascontiguousarray(data[:, :USED])

    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    with Context(TRAINING=1):
        for i in range(args.steps):
            at = i % 8 * BATCH
            x, y = Tensor(data[at:at + BATCH]).realize(), Tensor(labels[at:at + BATCH]).realize()
            Device[Device.DEFAULT].synchronize()  # the batch is there, its buffer may be filled again
            loss = step(x, y).item()
            if i % 20 == 0 or i == args.steps - 1:
                print(f"step {i:3d}   loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
