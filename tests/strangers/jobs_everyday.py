"""Batch 6: loops as they stand in people's own scripts, in all frameworks: batches that are taken at odd places, files that are
written by the way, evaluation in the loop, and some jobs in which nothing is wrong."""
import copy
import csv
import json
import multiprocessing
import queue
import time

import numpy as np
from stranger import (CLIENTS, FIXED, NUMBA, PYCUDA, TORCH, Numba, PyCuda, TinyGrad, every_kernel, fit, job, kernels, main, mark,
                      marks, ones, pytorch, temporary, tensorflow, thread, tinygrad_kernels, wide_net)

USUAL = kernels("700us", "1200us", "200us")


# On a device.

@job(6, "compute", ["compute.*"], 140, NUMBA, kernels("1500us", "2500us", "300us"),
     note="no defect: batches go one ahead through two pinned buffers and a copying stream, with events between the streams")
def e_nb_two_buffers():
    nb = Numba()
    cuda = nb.cuda
    copying, computing = cuda.stream(), cuda.stream()
    host = [cuda.pinned_array(1 << 15, np.float32) for _ in range(2)]
    device = [cuda.device_array(1 << 15, np.float32) for _ in range(2)]
    y = cuda.to_device(ones(1 << 15))
    ready = [cuda.event() for _ in range(2)]
    done = [cuda.event() for _ in range(2)]

    def send(k):
        done[k].wait(copying)
        host[k][:] = k
        device[k].copy_to_device(host[k], stream=copying)
        ready[k].record(copying)

    send(0)
    for i in range(140):
        mark()
        k = i & 1
        send(1 - k)
        ready[k].wait(computing)
        nb.fwd[64, 256, computing](device[k], y)
        nb.bwd[64, 256, computing](device[k], y)
        nb.opt[64, 256, computing](device[k], y)
        done[k].record(computing)
        done[1 - k].synchronize()
    computing.synchronize()
    return 140


@job(6, "host", ["host.logging", "host.checkpoint", "host.python"], 100, NUMBA, USUAL, twin=True,
     note="all 2,000 predictions of each step are appended to a CSV, row by row, and the file opened and closed each time; fix: none written")
def e_nb_csv_rows():
    nb = Numba()
    x, y = nb.cuda.to_device(ones(2000)), nb.cuda.to_device(ones(2000))
    for i in range(100):
        mark()
        nb.three(x, y, 8)
        predictions = y.copy_to_host()
        if not FIXED:
            with open(temporary("predictions.csv"), "a") as f:  # here
                rows = csv.writer(f)
                for k, p in enumerate(predictions):  # here
                    rows.writerow([i, k, float(p), int(p > 0.5)])  # here
    return 100


@job(6, "host", ["host.compile"], 60, PYCUDA, every_kernel("300us"), twin=True,
     note="the module is made from its PTX in each step, as a helper function does it that nobody caches; fix: made once")
def e_pc_modules():
    pc = PyCuda()
    x = pc.cuda.mem_alloc(65536)
    ptx = pc.PTX

    def kernel():
        return pc.cuda.module_from_buffer(ptx).get_function("axpy")  # here

    once = kernel()
    for _ in range(60):
        mark()
        axpy = once if FIXED else kernel()  # here
        for _ in range(4):
            axpy(x, np.float32(2), np.uint32(256), block=(256, 1, 1), grid=(16, 1))
        pc.wait()
    return 60


@job(6, "transfer", ["transfer.small-copies"], 80, PYCUDA, USUAL, twin=True,
     note="240 rows of a table are sent one by one to their places in the batch; fix: one copy of all")
def e_pc_rows():
    pc = PyCuda()
    table = np.random.default_rng(1).random((4096, 64), dtype=np.float32)
    x = pc.cuda.mem_alloc(240 * 256)
    rng = np.random.default_rng(2)
    for _ in range(80):
        mark()
        rows = rng.integers(0, 4096, 240)
        if FIXED:
            pc.cuda.memcpy_htod(x, table[rows])
        else:
            for k, r in enumerate(rows):
                pc.cuda.memcpy_htod(int(x) + k * 256, table[r])  # here
        pc.launch(x, 240 * 64)
        pc.wait()
    return 80


@job(6, "any", ["host.python", "host.launch", "transfer.small-copies", "host.unknown"], 700, NUMBA, every_kernel("15us"),
     note="no planted defect: a small net of three tiny kernels, one small copy and a wait a step; the library around the calls takes the time")
def e_nb_tiny():
    nb = Numba()
    batch = ones(256)
    x, y = nb.cuda.to_device(batch), nb.cuda.to_device(batch)
    for i in range(700):
        mark()
        batch[0] = i
        x.copy_to_device(batch)  # here
        nb.fwd[1, 256](x, y)  # here
        nb.bwd[1, 256](x, y)  # here
        nb.opt[1, 256](x, y)  # here
        nb.cuda.synchronize()  # here
    return 700


@job(6, "transfer", ["transfer.d2h*"], 70, CLIENTS, every_kernel("400us"), twin=True,
     note="drjit: the whole field of 4 M values comes to numpy each step to print its maximum; fix: not fetched")
def e_dj_field():
    import drjit as dr
    from drjit.cuda import Float
    field = dr.arange(Float, 4 << 20)
    dr.eval(field)
    top = 0.0
    for i in range(70):
        mark()
        field = field * 0.999 + 1
        dr.eval(field)
        if not FIXED:
            top = max(top, float(np.array(field)[::4096].max()))  # here
        dr.sync_thread()
    print(top)
    return 70


@job(6, "compute", ["compute.*"], 90, sim=tinygrad_kernels("1500us"),
     note="no defect: jitted step on data that lies on the device, the loss read each fifteenth step")
def e_tg_resident():
    tg = TinyGrad()
    train = tg.jitted()
    x, y = tg.on_device(np.ones((48, 64), np.float32)), tg.on_device(np.zeros(48, np.int32))
    for i in range(90):
        mark()
        loss = train(x, y)
        if i % 15 == 14:
            print("step %d loss %.3f" % (i + 1, loss.item()), flush=True)
    return 90


# PyTorch on the processor.

def made(seed, n=32, width=128):
    """A batch that costs some milliseconds of numpy, call by call."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        wave = np.sin(np.cumsum(rng.normal(size=2048)))
        rows.append(np.abs(np.fft.rfft(wave))[:width] / 100)
    return np.stack(rows).astype(np.float32)


def send_batches(out, n):
    for i in range(n):
        out.put(made(i))


def send_by_pipe(conn, n):
    for i in range(n):
        conn.send(made(i))


@job(6, "input", ["input.*"], 100, TORCH, twin=True, at=(made,),
     note="one process puts costly batches into a SimpleQueue, and the loop takes them; fix: one batch for all")
def e_pt_simple_queue():
    torch = pytorch()
    model, optimizer = wide_net(torch, 128, 256)
    context = multiprocessing.get_context("fork")
    batches = context.SimpleQueue()
    ready = torch.from_numpy(made(0))
    worker = context.Process(target=send_batches, args=(batches, 0 if FIXED else 100), daemon=True)
    worker.start()
    for _ in range(100):
        mark()
        x = ready if FIXED else torch.from_numpy(batches.get())  # here
        fit(model, optimizer, x)
    return 100


@job(6, "input", ["input.*"], 100, TORCH, twin=True, at=(made,),
     note="the step is called with what a process sends by pipe: fit(model, optimizer, from_numpy(conn.recv())); fix: one batch for all")
def e_pt_recv_in_call():
    torch = pytorch()
    model, optimizer = wide_net(torch, 128, 256)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(False)
    ready = made(0)
    worker = context.Process(target=send_by_pipe, args=(there, 0 if FIXED else 100), daemon=True)
    worker.start()
    for _ in range(100):
        mark()
        fit(model, optimizer, torch.from_numpy(ready if FIXED else here.recv()))  # here
    return 100


@job(6, "input", ["input.*"], 100, TORCH, twin=True,
     note="a while loop takes the next batch at its end, from a queue that a thread fills after waiting 12 ms for its source; fix: no wait")
def e_pt_taken_last():
    torch = pytorch()
    model, optimizer = wide_net(torch, 128, 256)
    batches = queue.Queue(2)
    source = torch.randn(16, 32, 128)

    def fill():
        for i in range(101):
            if not FIXED:
                time.sleep(0.012)
            batches.put(source[i % 16])

    thread(fill)
    x, i = batches.get(), 0
    while i < 100:
        mark()
        fit(model, optimizer, x)
        i += 1
        x = batches.get()  # here
    return 100


@job(6, "host", ["host.python"], 120, TORCH, twin=True,
     note="after each step the model is deep-copied, as the best one so far; fix: not copied")
def e_pt_best():
    torch = pytorch()
    model, optimizer = wide_net(torch, 128, 192)
    blocks = torch.nn.ModuleList([torch.nn.Linear(16, 16) for _ in range(60)])  # never run, but part of what is copied
    whole = torch.nn.ModuleList([model, blocks])
    x = torch.randn(16, 128)
    best = None
    for _ in range(120):
        mark()
        fit(model, optimizer, x)
        if not FIXED:
            best = copy.deepcopy(whole)  # here
    assert FIXED or best is not None
    return 120


@job(6, "compute", ["compute.*"], 80, TORCH,
     note="no defect: a convolutional net on images from memory; after each twenty steps ten batches are evaluated")
def e_pt_validated():
    torch = pytorch()
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 28 * 28, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    images, labels = torch.randn(64, 3, 32, 32), torch.randint(10, (64,))
    for i in range(80):
        mark()
        k = i % 4 * 16
        model.train()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[k:k + 16]), labels[k:k + 16]).backward()
        optimizer.step()
        if i % 20 == 19:
            model.eval()
            right = 0
            with torch.no_grad():
                for j in range(10):
                    j = j % 4 * 16
                    right += (model(images[j:j + 16]).argmax(1) == labels[j:j + 16]).sum().item()
            print("step %d accuracy %.2f" % (i + 1, right / 160), flush=True)
    return 80


# TensorFlow on the processor.

@job(6, "input", ["input.generator", "input.map"], 80, twin=True,
     note="fit over from_generator, whose function parses a JSON line for each example; fix: an array")
def e_tf_json_lines():
    tf, keras = tensorflow()
    line = json.dumps({"values": [round(float(v), 6) for v in np.random.default_rng(1).random(64)], "text": "w " * 200})
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(128, "relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    def examples():
        for _ in range(80 * 64):
            if FIXED:
                yield ready, [0.0]
                continue
            row = json.loads(line)  # here
            words = [w.upper() for w in row["text"].split()]  # here
            yield np.asarray(row["values"], np.float32) / len(words), [0.0]  # here

    ready = np.ones(64, np.float32)
    spec = (tf.TensorSpec((64,), tf.float32), tf.TensorSpec((1,), tf.float32))
    data = tf.data.Dataset.from_generator(examples, output_signature=spec).batch(64)
    model.fit(data, epochs=1, verbose=0, callbacks=[marks(keras)])  # here
    return 80


@job(6, "host", ["host.callback", "host.logging", "host.checkpoint"], 100, twin=True,
     note="a callback writes all weights' mean and deviation to a JSON file behind each batch; fix: it returns")
def e_tf_figures():
    tf, keras = tensorflow()
    layers = [keras.layers.Dense(64, "relu") for _ in range(8)]
    model = keras.Sequential([keras.Input((32,))] + layers + [keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    class Figures(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if FIXED:
                return
            figures = {w.path: [float(np.mean(w.numpy())), float(np.std(w.numpy()))] for w in self.model.weights}  # here
            with open(temporary("figures.json"), "w") as f:  # here
                json.dump(figures, f)  # here

    x, y = np.ones((100 * 32, 32), np.float32), np.ones((100 * 32, 1), np.float32)
    model.fit(x, y, batch_size=32, epochs=1, verbose=0, shuffle=False, callbacks=[marks(keras), Figures()])
    return 100


@job(6, "compute", ["compute.*"], 60,
     note="no defect: a custom loop of three epochs with 20 steps each; a function of its own evaluates eight batches behind each epoch")
def e_tf_epochs():
    tf, keras = tensorflow()
    model = keras.Sequential([keras.Input((512,)), keras.layers.Dense(1024, "relu"), keras.layers.Dense(512, "relu"), keras.layers.Dense(1)])
    optimizer = keras.optimizers.Adam(1e-3)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def test_step(x, y):
        return tf.reduce_mean(tf.square(model(x, training=False) - y))

    data = tf.data.Dataset.from_tensor_slices((tf.random.normal((1280, 512)), tf.ones((1280, 1)))).batch(64).prefetch(2)
    held_out = data.take(8)
    for epoch in range(3):
        for x, y in data:
            mark()
            train_step(x, y)
        losses = [float(test_step(x, y)) for x, y in held_out]
        print("epoch", epoch, sum(losses) / len(losses), flush=True)
    return 60


if __name__ == "__main__":
    main()
