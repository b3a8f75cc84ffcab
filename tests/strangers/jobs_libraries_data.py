"""Batch 9: data that comes out of tables, stores and archives, as users of these libraries report it to be slow."""
import io
import json
import multiprocessing
import tarfile
import zlib
from multiprocessing import shared_memory

import numpy as np
from stranger import FIXED, LIBRARIES, job, main, mark, pytorch, temporary, tensorflow, wide_net


def train(torch, loader, model, optimizer):
    for x in loader:  # here
        mark()
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()


@job(9, "input", ["input.*"], 150, LIBRARIES, twin=True, at=(train,),
     note="a pandas frame: each example is a row by iloc, converted by itself; fix: the table is one array from the beginning")
def r_pd_iloc():
    import pandas as pd
    torch = pytorch()
    frame = pd.DataFrame(np.random.default_rng(1).random((2400, 40), dtype=np.float32), columns=["c%d" % i for i in range(40)])

    class Rows(torch.utils.data.Dataset):
        table = torch.from_numpy(frame.to_numpy().copy())

        def __len__(self):
            return 2400

        def __getitem__(self, i):
            if FIXED:
                return self.table[i]
            row = frame.iloc[i]  # here
            return torch.tensor([float(row[c]) for c in frame.columns])  # here

    train(torch, torch.utils.data.DataLoader(Rows(), batch_size=16, shuffle=True), *wide_net(torch, 40, 64))
    return 150


@job(9, "any", ["input.*", "host.python"], 200, LIBRARIES, twin=True,
     note="polars: the events of a user are filtered out of the whole frame for each step; fix: the frame is partitioned once")
def r_pl_filter():
    import polars as pl
    torch = pytorch()
    rng = np.random.default_rng(1)
    columns = {"c%d" % i: rng.random(100000, dtype=np.float32) for i in range(8)}
    frame = pl.DataFrame(dict(columns, user=rng.integers(0, 5000, 100000)))
    ready = frame.filter(pl.col("user") < 100).partition_by("user", as_dict=True) if FIXED else {}
    model, optimizer = wide_net(torch, 8, 64)

    def events_of(user):
        if FIXED:
            return ready[(user,)]
        return frame.sort("c0").filter(pl.col("user") == user)  # here

    for i in range(200):
        mark()
        rows = events_of(i % 100).select("^c.*$").to_numpy()  # here
        optimizer.zero_grad()
        model(torch.from_numpy(np.ascontiguousarray(rows))).square().mean().backward()
        optimizer.step()
    return 200


@job(9, "input", ["input.*"], 120, LIBRARIES, twin=True, at=(train,),
     note="datasets: data['x'][i] reads the whole column for one example; fix: data[i]['x']")
def r_hf_column():
    import datasets
    torch = pytorch()
    data = datasets.Dataset.from_dict({"x": np.random.default_rng(1).random((960, 32)).tolist(), "y": list(range(960))})
    data = data.with_format("numpy")

    class Examples(torch.utils.data.Dataset):
        def __len__(self):
            return 960

        def __getitem__(self, i):
            x = data[i]["x"] if FIXED else data[:]["x"][i]  # here
            return torch.from_numpy(np.asarray(x, np.float32))

    train(torch, torch.utils.data.DataLoader(Examples(), batch_size=8), *wide_net(torch, 32, 64))
    return 120


@job(9, "input", ["input.*"], 100, LIBRARIES, twin=True, at=(train,),
     note="zarr: the store is opened anew for each example; fix: once")
def r_zr_open():
    import zarr
    torch = pytorch()
    array = zarr.create_array(store=temporary("data.zarr"), shape=(800, 256), chunks=(8, 256), dtype="f4", compressors=None, overwrite=True)
    array[:] = np.random.default_rng(1).random((800, 256), dtype=np.float32)
    kept = zarr.open_array(temporary("data.zarr"), mode="r")
    first = kept[:]

    class Slices(torch.utils.data.Dataset):
        def __len__(self):
            return 800

        def __getitem__(self, i):
            if FIXED:
                return torch.from_numpy(first[i])
            return torch.from_numpy(zarr.open_array(temporary("data.zarr"), mode="r")[i])  # here

    train(torch, torch.utils.data.DataLoader(Slices(), batch_size=8), *wide_net(torch, 256, 64))
    return 100


@job(9, "input", ["input.*"], 160, LIBRARIES, twin=True, at=(train,),
     note="lmdb: the values are JSON, deflated, and two workers unpack them; fix: the values are the bytes of the arrays")
def r_lm_json():
    import lmdb
    torch = pytorch()
    rows = np.random.default_rng(1).random((1280, 2400)).astype("f")
    with lmdb.open(temporary("lmdb"), map_size=1 << 28) as db, db.begin(write=True) as put:
        for i, row in enumerate(rows):
            put.put(b"%d" % i, row.tobytes() if FIXED else zlib.compress(json.dumps(row.tolist()).encode()))

    class Values(torch.utils.data.Dataset):
        db = None

        def __len__(self):
            return 1280

        def __getitem__(self, i):
            self.db = self.db or lmdb.open(temporary("lmdb"), readonly=True, lock=False)
            with self.db.begin() as get:
                value = get.get(b"%d" % i)
            if FIXED:
                return torch.from_numpy(np.frombuffer(value, np.float32).copy())
            return torch.tensor(json.loads(zlib.decompress(value)))  # here

    train(torch, torch.utils.data.DataLoader(Values(), batch_size=8, num_workers=2), *wide_net(torch, 2400, 32))
    return 160


@job(9, "input", ["input.*"], 128, LIBRARIES, twin=True, at=(train,),
     note="webdataset: the examples are text in a tar, split and converted by Python; fix: the same as .npy")
def r_wd_text():
    import webdataset as wds
    torch = pytorch()
    rows = np.random.default_rng(1).random((1024, 400)).astype("f")
    with tarfile.open(temporary("train.tar"), "w") as tar:
        for i, row in enumerate(rows):
            out = io.BytesIO()
            if FIXED:
                out.write(row.tobytes())
            else:
                out.write(" ".join("%.4f" % v for v in row).encode())
            info = tarfile.TarInfo("%06d.row" % i)
            info.size = out.tell()
            out.seek(0)
            tar.addfile(info, out)

    def parse(sample):
        if FIXED:
            return torch.from_numpy(np.frombuffer(sample["row"], np.float32).copy())
        return torch.tensor([float(v) for v in sample["row"].decode().split()])  # here

    data = wds.WebDataset(temporary("train.tar"), shardshuffle=False).map(parse)
    train(torch, torch.utils.data.DataLoader(data, batch_size=8, num_workers=0), *wide_net(torch, 400, 64))
    return 128


@job(9, "input", ["input.*"], 100, LIBRARIES, twin=True, at=(train,),
     note="HDF5: rows are read at random from large compressed chunks, each of which is unpacked for one row; fix: one chunk a row")
def r_h5_chunks():
    import h5py
    torch = pytorch()
    rows = np.random.default_rng(1).random((6000, 128), dtype=np.float32)
    with h5py.File(temporary("data.h5"), "w") as f:
        f.create_dataset("x", data=rows, chunks=(1, 128) if FIXED else (500, 128), compression=None if FIXED else "gzip")
    order = np.random.default_rng(2).permutation(6000)

    class Table(torch.utils.data.Dataset):
        f = None

        def __len__(self):
            return 800

        def __getitem__(self, i):
            self.f = self.f or h5py.File(temporary("data.h5"), "r", rdcc_nbytes=0)
            return torch.from_numpy(self.f["x"][order[i]])  # here

    train(torch, torch.utils.data.DataLoader(Table(), batch_size=8), *wide_net(torch, 128, 64))
    return 100


@job(9, "compute", ["compute.*"], 90, LIBRARIES,
     note="no defect: a frame as tensors, two workers that keep up, mixed batches, a scheduler, gradients clipped")
def r_pt_tabular():
    import pandas as pd
    torch = pytorch()
    frame = pd.DataFrame(np.random.default_rng(1).random((5760, 96), dtype=np.float32))
    data = torch.utils.data.TensorDataset(torch.from_numpy(frame.to_numpy().copy()))
    loader = torch.utils.data.DataLoader(data, batch_size=192, shuffle=True, num_workers=2, persistent_workers=True)
    model, optimizer = wide_net(torch, 96, 1024)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=90)
    for epoch in range(3):
        total = 0.0
        for (x,) in loader:
            mark()
            optimizer.zero_grad(set_to_none=True)
            loss = model(x).square().mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.detach()
        print("epoch %d loss %.4f" % (epoch, total / 30), flush=True)
    return 90


def resize(block, free, full):
    """Makes batches in shared memory, one after the other."""
    memory = shared_memory.SharedMemory(name=block)
    out = np.ndarray((32, 1024), np.float32, memory.buf)
    image = np.random.default_rng(1).random((32, 256, 256), dtype=np.float32)
    for i in range(120):
        if not FIXED:
            pooled = image.reshape(32, 32, 8, 32, 8).mean(axis=(2, 4))  # here
            image = np.sqrt(image * 0.9 + 0.05)  # here
        free.acquire()
        out[:] = pooled.reshape(32, 1024) if not FIXED else i
        full.release()
    memory.close()


@job(9, "input", ["input.*"], 120, LIBRARIES, twin=True, at=(resize,),
     note="another process resizes images into one block of shared memory, and says by a semaphore that it is full; fix: it copies")
def r_mp_block():
    torch = pytorch()
    memory = shared_memory.SharedMemory(create=True, size=32 * 1024 * 4)
    batch = np.ndarray((32, 1024), np.float32, memory.buf)
    context = multiprocessing.get_context("fork")
    free, full = context.Semaphore(1), context.Semaphore(0)
    producer = context.Process(target=resize, args=(memory.name, free, full))
    producer.start()
    model, optimizer = wide_net(torch, 1024, 64)
    for i in range(120):
        mark()
        full.acquire()  # here
        x = torch.from_numpy(batch.copy())
        free.release()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    producer.join()
    del batch
    memory.close()
    memory.unlink()
    return 120


@job(9, "input", ["input.map"], 60, twin=True,
     note="images are rotated and zoomed by Keras' layers in a map without parallel calls; fix: they are not augmented")
def r_tf_augment():
    tf, keras = tensorflow()
    augment = keras.Sequential([keras.layers.RandomRotation(0.2), keras.layers.RandomZoom(0.2), keras.layers.RandomContrast(0.2)])
    images = np.random.default_rng(1).random((480, 64, 64, 3)).astype("f")
    data = tf.data.Dataset.from_tensor_slices(images).batch(8)
    if not FIXED:
        data = data.map(lambda x: augment(x, training=True))  # here
    data = data.map(lambda x: (x[:, ::8, ::8], tf.ones((8, 1)))).prefetch(1)
    model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Flatten(), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    from stranger import marks
    model.fit(data, verbose=0, callbacks=[marks(keras)])  # here
    return 60


if __name__ == "__main__":
    main()
