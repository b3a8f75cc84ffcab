"""Jobs as they are written: libraries' loaders, checkpoints, compilers and trackers around a training step.

Rows as in jobs.py, which runs them: `job(*causes, env=NAME)` says which Python environment has the libraries.
"""
import concurrent.futures
import csv
import gzip
import json
import logging
import math
import multiprocessing
import os
import pickle
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from jobs import DEVICE_MS, LOADED, MS, busy, job, main, server, step, worker


def here():
    return tempfile.TemporaryDirectory(dir=os.environ.get("TFH_TMP"))


# ---- data ----

@job("input.*")
def npz_loader(d, steps, spent):
    import numpy as np
    with here() as folder:
        for i in range(8):
            np.savez_compressed(os.path.join(folder, "%d.npz" % i), x=np.random.default_rng(i).integers(0, 9, 600000))
        for i in range(steps):
            with spent:
                with np.load(os.path.join(folder, "%d.npz" % (i % 8))) as z:
                    x = z["x"]  # here
            step(d)


@job(*LOADED)
def csv_loader(d, steps, spent):
    with here() as folder:
        path = os.path.join(folder, "train.csv")
        with open(path, "w") as f:
            w = csv.writer(f)
            for _ in range(4000):
                w.writerow([random.random() for _ in range(10)])

        def load_batch():
            with open(path) as f:
                return [[float(v) for v in row] for row in csv.reader(f)]  # here
        for _ in range(steps):
            with spent:
                load_batch()
            step(d)


@job("input.*")
def h5_loader(d, steps, spent):
    import h5py
    import numpy as np
    with here() as folder:
        with h5py.File(os.path.join(folder, "x.h5"), "w") as f:
            f.create_dataset("x", data=np.random.default_rng(1).integers(0, 50, (64, 40000)), compression="gzip", chunks=(8, 40000))
        with h5py.File(os.path.join(folder, "x.h5"), "r") as f:
            for i in range(steps):
                with spent:
                    f["x"][i % 8 * 8:i % 8 * 8 + 8]  # here
                step(d)


@job("input.*")
def json_lines(d, steps, spent):
    with here() as folder:
        path = os.path.join(folder, "part.jsonl.gz")
        with gzip.open(path, "wt") as f:
            for i in range(600):
                print(json.dumps({"id": i, "tokens": [random.randrange(50000) for _ in range(60)]}), file=f)

        class Dataset:
            def __iter__(self):
                while True:
                    with gzip.open(path, "rt") as f:
                        batch = [json.loads(line) for line in f]  # here
                    yield batch
        data = iter(Dataset())
        for _ in range(steps):
            with spent:
                next(data)
            step(d)


@job("input.*", "host.python")
def collate(d, steps, spent):
    import numpy as np
    samples = [[random.random() for _ in range(300)] for _ in range(256)]

    def collate_fn(rows):
        width = max(len(r) for r in rows)
        out = np.zeros((len(rows), width), np.float32)
        for i, r in enumerate(rows):
            out[i, :len(r)] = r  # here
        return out
    for _ in range(steps):
        with spent:
            for _ in range(3):
                collate_fn(samples)  # here
        step(d)


def torch_items(n, ms):
    import torch

    class Items(torch.utils.data.Dataset):
        def __len__(self):
            return n

        def __getitem__(self, i):
            busy(ms)
            return torch.zeros(1000)
    return Items()


@job("input.*", env="torch")
def dataloader_same_thread(d, steps, spent):
    import torch
    data = iter(torch.utils.data.DataLoader(torch_items(steps * 4, MS / 4), batch_size=4))
    for _ in range(steps):
        with spent:
            next(data)
        step(d)


@job("input.*", env="torch")
def dataloader_workers(d, steps, spent):
    import torch
    data = iter(torch.utils.data.DataLoader(torch_items(steps * 4, MS / 3), batch_size=4, num_workers=1))
    for _ in range(steps):
        with spent:
            next(data)
        step(d)


@job("input.*")
def thread_pool_map(d, steps, spent):
    def fetch(i):
        time.sleep(0.004)
        return i
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for i in range(steps):
            with spent:
                list(pool.map(fetch, range(8)))  # here
            step(d)


@job("input.*")
def pool_map(d, steps, spent):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for i in range(steps):
            with spent:
                pool.map(math.factorial, [2200] * 16)  # here
            step(d)


@job("input.*", "host.wait", "host.sleep")
def rate_limited_store(d, steps, spent):
    """Reads through a client that sleeps when it has asked too often."""
    class Client:
        def get(self, i):
            time.sleep(MS / 1e3)  # here
            return b"x" * 1000
    client = Client()
    for i in range(steps):
        with spent:
            client.get(i)
        step(d)


@job(*LOADED)
def refill_of_shuffle(d, steps, spent):
    """Half of the time goes at the beginnings of epochs."""
    samples = [str(i) for i in range(60000)]

    def refill():
        random.shuffle(samples)  # here
        return [float(s) for s in samples]  # here
    for i in range(steps):
        if i % 10 == 0:
            with spent:
                refill()
        step(d)


@job("input.*", "host.wait", "host.lock")
def requests_served(d, steps, spent):
    """A server that waits for its clients."""
    asked = queue.Queue()

    def client():
        for i in range(steps):
            time.sleep(MS / 1e3)
            asked.put(i)
    worker(client)
    for _ in range(steps):
        with spent:
            asked.get()  # here
        step(d)


# ---- saving and logging ----

@job("host.checkpoint")
def savez_each_fifth(d, steps, spent):
    import numpy as np
    w = {"w%d" % i: np.random.default_rng(i).random((256, 256)) for i in range(8)}
    with here() as folder:
        for i in range(steps):
            step(d)
            if i % 5 == 0:
                with spent:
                    np.savez_compressed(os.path.join(folder, "ckpt.npz"), **w)  # here


@job("host.checkpoint")
def pickle_to_file(d, steps, spent):
    import numpy as np
    w = {"w%d" % i: np.random.default_rng(i).random((256, 256)) for i in range(30)}

    def save_checkpoint(path, i):
        with open(path + ".tmp", "wb") as f:
            pickle.dump({"step": i, "state": w}, f)  # here
            f.flush()
            os.fsync(f.fileno())  # here
        os.replace(path + ".tmp", path)  # here
    with here() as folder:
        for i in range(steps):
            step(d)
            with spent:
                save_checkpoint(os.path.join(folder, "last.pkl"), i)


@job("host.checkpoint", env="torch")
def torch_save(d, steps, spent):
    import torch
    state = {"w%d" % i: torch.randn(300, 1000) for i in range(6)}
    with here() as folder:
        for i in range(steps):
            step(d)
            if i % 2 == 0:
                with spent:
                    torch.save(state, os.path.join(folder, "model.pt"))  # here


@job("host.checkpoint")
def copy_of_checkpoint(d, steps, spent):
    with here() as folder:
        with open(os.path.join(folder, "a"), "wb") as f:
            f.write(os.urandom(1 << 20) * 20)
        for i in range(steps):
            step(d)
            with spent:
                shutil.copyfile(os.path.join(folder, "a"), os.path.join(folder, "b"))  # here


@job("host.logging")
def logging_module(d, steps, spent):
    with here() as folder:
        log = logging.getLogger("train")
        handler = logging.FileHandler(os.path.join(folder, "train.log"))
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        for i in range(steps):
            step(d)
            with spent:
                for k in range(600):
                    log.info("step %d layer %d norm %f", i, k, k * 0.5)  # here


@job("host.logging")
def slow_pipe(d, steps, spent):
    """What it prints goes through a pipe that is read slowly."""
    child = subprocess.Popen([sys.executable, "-c", "import os, time\nwhile os.read(0, 8192): time.sleep(%f)" % (MS / 1e3)],
                             stdin=subprocess.PIPE)
    kept = os.dup(2)
    os.dup2(child.stdin.fileno(), 2)
    for i in range(steps):
        step(d)
        with spent:
            for k in range(4):
                print("x" * 2000, file=sys.stderr, flush=True)  # here
    os.dup2(kept, 2)
    child.kill()
    child.wait()


@job("host.logging", "host.wait")
def tracker_by_requests(d, steps, spent):
    import requests
    with server() as port:
        session = requests.Session()
        for i in range(steps):
            step(d)
            with spent:
                session.post("http://127.0.0.1:%d/log" % port, json={"step": i, "loss": 0.5})  # here


@job("host.logging", "host.python")
def json_history(d, steps, spent):
    """Writes its whole history anew after each step."""
    history = [{"step": i, "loss": random.random()} for i in range(4000)]
    with here() as folder:
        for i in range(steps):
            step(d)
            with spent:
                with open(os.path.join(folder, "history.json"), "w") as f:
                    json.dump(history, f)  # here


# ---- compilers ----

@job("host.compile")
def tf_retrace(d, steps, spent):
    import tensorflow as tf
    w = tf.Variable(tf.random.normal((64, 64)))

    @tf.function
    def train_step(x, i):
        for _ in range(6):
            x = tf.tanh(tf.matmul(x, w)) + i
        return tf.reduce_sum(x)
    x = tf.random.normal((64, 64))
    for i in range(steps):
        with spent:
            train_step(x, i)  # here
        step(d)


@job("host.compile")
def tf_retrace_cpu(d, steps, spent):
    import tensorflow as tf
    w = tf.Variable(tf.random.normal((256, 256)))

    @tf.function
    def train_step(x, i):
        for _ in range(6):
            x = tf.tanh(tf.matmul(x, w)) + i
        return tf.reduce_sum(x)
    for i, x in enumerate(tf.data.Dataset.from_tensors(tf.random.normal((64, 256))).repeat(steps)):
        with spent:
            train_step(x, i)  # here


@job("host.compile")
def xla_shapes(d, steps, spent):
    import tensorflow as tf
    w = tf.Variable(tf.random.normal((64, 64)))

    @tf.function(jit_compile=True, reduce_retracing=False)
    def train_step(x):
        for _ in range(4):
            x = tf.tanh(tf.matmul(x, w))
        return tf.reduce_sum(x)
    data = [tf.random.normal((i + 1, 64)) for i in range(min(steps, 40))]
    for x in tf.data.Dataset.from_generator(lambda: iter(data), output_signature=tf.TensorSpec((None, 64))):
        with spent:
            train_step(tf.ensure_shape(x, x.shape))  # here


@job("host.compile", env="client-numba")
def numba_each_step(d, steps, spent):
    from numba import njit
    for i in range(min(steps, 30)):
        with spent:
            @njit
            def f(x):
                return x * i + 1
            f(1.0)  # here
        step(d)


@job("host.compile", env="client-numba-cuda")
def nvrtc_each_step(d, steps, spent):
    from cuda.bindings import nvrtc
    from device import PTX
    for i in range(min(steps, 60)):
        with spent:
            src = b"extern \"C\" __global__ void f%d(float *x) { x[threadIdx.x] = x[threadIdx.x] * %d + sinf(x[0]); }" % (i, i)
            _, prog = nvrtc.nvrtcCreateProgram(src, b"f.cu", 0, [], [])
            nvrtc.nvrtcCompileProgram(prog, 0, [])  # here
            _, size = nvrtc.nvrtcGetPTXSize(prog)
        d.new("cuModuleLoadData", PTX)
        step(d)


@job("host.compile", "host.launch", "host.python")
def tinygrad_without_jit(d, steps, spent):
    os.environ["DEV"] = "CUDA:PTX"
    from tinygrad import Tensor, nn
    from tinygrad.helpers import Context
    with Context(TRAINING=1):
        net = [nn.Linear(64, 64) for _ in range(4)]
        opt = nn.optim.SGD(sum([nn.state.get_parameters(x) for x in net], []), lr=0.01)
        for _ in range(min(steps, 25)):
            with spent:
                x = Tensor.rand(32, 64)
                for layer in net:
                    x = layer(x).relu()
                opt.zero_grad()
                loss = x.sum().backward()
                loss.realize(*opt.schedule_step()).item()  # here


# ---- the interpreter ----

@job("host.gil")
def gil_of_loader_thread(d, steps, spent):
    """A loader's thread that computes in Python takes the lock from the loop, which launches much itself."""
    q = queue.Queue(4)

    def load():
        while True:
            q.put([math.sin(k) for k in range(20000)])
    worker(load)
    for i in range(steps):
        q.get()
        with spent:
            d.up()
            for _ in range(20):
                d.run(0.02, "forward")
                sum(range(500))
            d.down()


# ---- the device's calls ----

@job("transfer.h2d-*")
def constants_each_step(d, steps, spent):
    import ctypes
    for i in range(steps):
        with spent:
            d.call("cuMemcpyHtoD_v2", d.memory, d.host, ctypes.c_size_t(d.bytes))
        step(d)


@job("host.python", "host.callback")
def evaluation_each_epoch(d, steps, spent):
    """Each epoch ends with an evaluation whose score is made in Python."""
    words = [random.random() for _ in range(60000)]
    for i in range(steps):
        step(d)
        if i % 10 == 9:
            for _ in range(5):
                d.up()
                d.run(DEVICE_MS / 3, "eval")
                d.down()
            with spent:
                for _ in range(4):
                    sorted(words)  # here


if __name__ == "__main__":
    main()
