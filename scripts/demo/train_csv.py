"""A small training job with a loader as many are written first: plain Python that reads its text file again from the
start for every batch. Nothing here knows of tfhook.

usage: train_csv.py [--steps N] [--preload]
"""
import argparse
import csv
import os
import tempfile

import numpy as np
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context

CLASSES, BATCH, FEATURES, ROWS = 4, 32, 16, 4000


def write_table(path):
    rng = np.random.default_rng(1)
    truth = rng.standard_normal((FEATURES, CLASSES))
    x = rng.standard_normal((ROWS, FEATURES))
    with open(path, "w", newline="") as f:
        writer = csv.writer(f)
        for row, label in zip(x, (x @ truth).argmax(1)):
            writer.writerow([f"{v:.5f}" for v in row] + [label])


def load_batch(path, number):
    """Batch `number` of the table: everything before it is parsed, too, and thrown away."""
    x, y = [], []
    with open(path) as f:
        for i, row in enumerate(csv.reader(f)):
            values = [float(v) for v in row]
            if i // BATCH == number:
                x.append(values[:FEATURES])
                y.append(int(values[FEATURES]))
    return np.array(x, np.float32), np.array(y, np.int32)


class Network:
    def __init__(self):
        self.first, self.second = nn.Linear(FEATURES, 32), nn.Linear(32, CLASSES)

    def __call__(self, x):
        return self.second(self.first(x).relu())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--preload", action="store_true", help="parse the table once, before training")
    args = parser.parse_args()

    Tensor.manual_seed(7)
    network = Network()
    optimizer = nn.optim.SGD(nn.state.get_parameters(network), lr=0.1, momentum=0.9)

    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    with tempfile.TemporaryDirectory() as folder, Context(TRAINING=1):
        path = os.path.join(folder, "table.csv")
        write_table(path)
        ready = [load_batch(path, i) for i in range(8)] if args.preload else None
        for i in range(args.steps):
            x, y = ready[i % 8] if ready else load_batch(path, i % 8)
            loss = step(Tensor(x).realize(), Tensor(y).realize()).item()
            if i % 20 == 0 or i == args.steps - 1:
                print(f"step {i:3d}   loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
