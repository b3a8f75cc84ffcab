"""Batch 34: clients of the simulated GPU: tinygrad, numba, pycuda and the driver's Python bindings."""
import collections
import random
import zlib

import numpy as np
from stranger import CLIENTS, FIXED, NUMBA, PYCUDA, Numba, job, main, mark, temporary, tinygrad_kernels

DEVICE = ["compute.dense", "compute.dominant-op", "compute.underfilled"]


@job(34, "host", ["host.python"], 250, sim=tinygrad_kernels("40us"), twin=True,
     note="a learner's replay by priority keeps its sums in a tree that it walks in Python, for each of 512 samples; fix: level by "
          "level by NumPy. Four moves of the game for each update, which is the step")
def s_tg_priorities():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    Tensor.manual_seed(0)
    SEEN, MOVES, BATCH, CAPACITY, STEPS, WARM = 12, 4, 512, 8192, 250, 1000
    rng = np.random.default_rng(0)

    class SumTree:
        """Sums of priorities: a node's children are 2n + 1 and 2n + 2, the leaves come last."""

        def __init__(self):
            self.sums, self.depth = np.zeros(2 * CAPACITY - 1), CAPACITY.bit_length() - 1

        def put(self, leaf, priority):
            node = leaf + CAPACITY - 1
            change = priority - self.sums[node]  # here
            self.sums[node] = priority
            while node:  # here
                node = (node - 1) // 2  # here
                self.sums[node] += change  # here

        def find(self, value):
            node = 0
            while node < CAPACITY - 1:  # here
                left = 2 * node + 1  # here
                if value <= self.sums[left]:  # here
                    node = left  # here
                else:
                    value -= self.sums[left]  # here
                    node = left + 1  # here
            return node - CAPACITY + 1

        def put_all(self, leaves, priorities):
            if not FIXED:
                for leaf, priority in zip(leaves, priorities):  # here
                    self.put(leaf, priority)  # here
                return
            nodes = leaves + CAPACITY - 1
            self.sums[nodes] = priorities
            for _ in range(self.depth):
                nodes = np.unique((nodes - 1) // 2)
                self.sums[nodes] = self.sums[2 * nodes + 1] + self.sums[2 * nodes + 2]

        def find_all(self, values):
            if not FIXED:
                return np.array([self.find(v) for v in values])  # here
            nodes, values = np.zeros(len(values), np.int64), values.copy()
            for _ in range(self.depth):
                left = 2 * nodes + 1
                right = values > self.sums[left]
                values -= np.where(right, self.sums[left], 0)
                nodes = left + right
            return nodes - CAPACITY + 1

    class Replay:
        def __init__(self):
            self.rows = np.zeros((CAPACITY, 2 * SEEN + 2), np.float32)
            self.tree, self.next, self.filled, self.most = SumTree(), 0, 0, 1.0

        def add(self, seen, action, reward, after):
            self.rows[self.next] = np.concatenate([seen, after, [action, reward]])
            self.tree.put(self.next, self.most ** 0.6)
            self.next, self.filled = (self.next + 1) % CAPACITY, min(self.filled + 1, CAPACITY)

        def sample(self, beta):
            total = self.tree.sums[0]
            picks = (np.arange(BATCH) + rng.random(BATCH)) * total / BATCH
            leaves = self.tree.find_all(picks).clip(0, self.filled - 1)  # here
            weight = (self.filled * self.tree.sums[leaves + CAPACITY - 1] / total + 1e-9) ** -beta
            return leaves, np.concatenate([self.rows[leaves], (weight / weight.max())[:, None]], 1).astype(np.float32)

        def update(self, leaves, wrong):
            wrong = np.abs(wrong) + 1e-3
            self.most = max(self.most, float(wrong.max()))
            self.tree.put_all(leaves, wrong ** 0.6)  # here

    class Net:
        def __init__(self):
            self.a, self.b, self.c = nn.Linear(SEEN, 128), nn.Linear(128, 128), nn.Linear(128, 4)

        def __call__(self, x):
            return self.c(self.b(self.a(x).relu()).relu())

    net, target = Net(), Net()
    optimizer = nn.optim.Adam(nn.state.get_parameters(net), lr=5e-4)

    @TinyJit
    def learn(batch):
        with Context(TRAINING=1):
            seen, after = batch[:, :SEEN], batch[:, SEEN:2 * SEEN]
            chosen = (batch[:, 2 * SEEN:2 * SEEN + 1] == Tensor.arange(4).reshape(1, 4)).float()
            goal = batch[:, 2 * SEEN + 1] + 0.99 * target(after).max(1).detach()
            wrong = (net(seen) * chosen).sum(1) - goal
            optimizer.zero_grad()
            (wrong.square() * batch[:, -1]).mean().backward()
            return wrong.realize(*optimizer.schedule_step())

    def weights_now():
        return [p.numpy() for p in nn.state.get_parameters(net)]

    def act(seen, far):
        if rng.random() < far:
            return int(rng.integers(4))
        a, ab, b, bb, c, cb = weights
        h = np.maximum(seen @ a.T + ab, 0)
        return int((np.maximum(h @ b.T + bb, 0) @ c.T + cb).argmax())

    replay, seen, weights = Replay(), rng.standard_normal(SEEN), weights_now()
    recent = collections.deque(maxlen=200)

    def move(far):
        nonlocal seen
        action = act(seen, far)
        after = 0.9 * seen + 0.3 * rng.standard_normal(SEEN)
        after[action] -= 0.2 * np.sign(after[action])
        reward = -float(np.abs(after).mean())
        replay.add(seen, action, reward, after)
        recent.append(reward)
        seen = after

    for _ in range(WARM):
        move(1.0)
    for step in range(STEPS):
        mark()
        for _ in range(MOVES):
            move(max(0.05, 1 - step / 200))
        leaves, batch = replay.sample(min(1.0, 0.4 + step / STEPS))  # here
        wrong = learn(Tensor(batch).realize()).numpy()
        replay.update(leaves, wrong)  # here
        if step % 50 == 49:
            for mine, theirs in zip(nn.state.get_parameters(target), nn.state.get_parameters(net)):
                mine.assign(theirs).realize()
            weights = weights_now()
            print("update %d: reward %.3f, largest priority %.2f" % (step + 1, np.mean(recent), replay.most))
    return STEPS


def clusters(launched_first):
    n = Numba()
    cuda = n.cuda
    POINTS, DIM, CENTRES, PART, PASSES, PARTS = 65_536, 16, 32, 8192, 3, 300
    rng = np.random.default_rng(0)
    points = (rng.standard_normal((POINTS, DIM)) + rng.integers(0, CENTRES, (POINTS, 1))).astype(np.float32)

    @cuda.jit
    def distance_seed(x, centre, best):
        i = cuda.grid(1)
        if i < best.size:
            apart = (x[i, 0] - centre[0]) ** 2
            if apart < best[i]:
                best[i] = apart

    @cuda.jit
    def assign(x, centres, label, inertia):
        i = cuda.grid(1)
        if i < label.size:
            label[i] = i % centres.shape[0]

    @cuda.jit
    def gather_sums(x, label, sums, counts):
        i = cuda.grid(1)
        if i < label.size:
            sums[label[i], 0] += x[i, 0]

    @cuda.jit
    def move_centres(centres, sums, counts):
        i = cuda.grid(1)
        if i < centres.shape[0]:
            centres[i, 0] += 0.01 * sums[i, 0]

    everything, best = cuda.to_device(points), cuda.to_device(np.full(POINTS, 1e9, np.float32))
    chosen = [points[0]]
    for _ in range(CENTRES - 1):
        distance_seed[256, 256](everything, cuda.to_device(chosen[-1]), best)
        apart = best.copy_to_host().astype(np.float64).clip(0, 1e3) + 1e-3
        chosen.append(points[rng.choice(POINTS, p=apart / apart.sum())])
    centres = cuda.to_device(np.stack(chosen))
    sums, counts = cuda.device_array((CENTRES, DIM), np.float32), cuda.device_array(CENTRES, np.float32)
    label, inertia = cuda.device_array(PART, np.int32), cuda.to_device(np.zeros(1, np.float32))

    copying, working = cuda.stream(), cuda.stream()
    slots = [(cuda.pinned_array((PART, DIM), np.float32), cuda.device_array((PART, DIM), np.float32), cuda.event(), cuda.event())
             for _ in range(3)]
    for slot in slots:
        slot[3].record(working)

    def send(k, order):
        host, device, ready, free = slots[k % 3]
        free.synchronize()  # here
        at = k % (POINTS // PART) * PART
        np.take(points, order[at:at + PART], axis=0, out=host)  # here
        device.copy_to_device(host, stream=copying)  # here
        ready.record(copying)

    curve = []
    for turn in range(PASSES):
        order = rng.permutation(POINTS)
        for k in range(2):
            send(k, order)
        for k in range(PARTS):
            mark()
            if k + 2 < PARTS and not launched_first:
                send(k + 2, order)  # here
            _, device, ready, free = slots[k % 3]
            ready.wait(working)
            assign[32, 256, working](device, centres, label, inertia)
            gather_sums[32, 256, working](device, label, sums, counts)
            move_centres[1, 64, working](centres, sums, counts)
            free.record(working)
            if k + 2 < PARTS and launched_first:
                send(k + 2, order)
            if k % 50 == 49:
                curve.append(float(inertia.copy_to_host(stream=working)[0]))
                working.synchronize()
        working.synchronize()
        print("pass %d, inertia %.1f" % (turn, curve[-1]))
    return PASSES * PARTS


KMEANS = {"SIM_KERNEL": "*distance_seed* 400us; *assign* 2600us; *gather_sums* 900us; *move_centres* 60us"}


@job(34, "host or compute", ["host.launch", "host.python", "host.code", "host.sync"], 900, NUMBA, KMEANS, twin=True, at=(clusters,),
     note="clusters by parts of the data: the part after the next one is sent before this one's kernels are launched, but its buffer is "
          "free only when the last part is done, so that the device has nothing to do meanwhile; fix: sent after the launches. Its "
          "author took it for a job without a defect")
def s_nb_clusters():
    return clusters(FIXED)


@job(34, "compute", DEVICE, 900, NUMBA, KMEANS,
     note="no defect: clusters by parts of the data, after a seeding that fetches its distances for each centre; points go up two parts "
          "ahead from pinned memory, the inertia comes home after each 50th part")
def s_nb_clusters_ahead():
    return clusters(True)


@job(34, "host", ["host.python", "host.code"], 200, NUMBA,
     {"SIM_KERNEL": "*backbone* 1100us; *decoder* 700us; *pair_cost* 150us; *match_all* 250us; *set_loss* 200us; *backward* 1900us; "
                    "*adamw* 200us"}, twin=True,
     note="a detector's predictions are matched to the boxes of each image by augmenting paths in Python; fix: a kernel matches")
def s_nb_matching():
    n = Numba()
    cuda = n.cuda
    IMAGES, QUERIES, BOXES, STEPS = 12, 100, 16, 200
    rng = np.random.default_rng(0)

    def kernel(name):
        scope = {}
        exec("def %s(a, b):\n    i = cuda.grid(1)\n    if i < b.size:\n        b[i] += a[i]" % name, {"cuda": cuda}, scope)
        return cuda.jit(scope[name])

    backbone, decoder, pair_cost, match_all, set_loss, backward, adamw = map(
        kernel, ("backbone", "decoder", "pair_cost", "match_all", "set_loss", "backward", "adamw"))

    def matched(cost):
        """The cheapest query for each box: shortest augmenting paths."""
        rows, columns = len(cost), len(cost[0])
        u, v, of, way = [0.0] * (rows + 1), [0.0] * (columns + 1), [0] * (columns + 1), [0] * (columns + 1)
        for i in range(1, rows + 1):
            of[0], j0 = i, 0
            least, used = [float("inf")] * (columns + 1), [False] * (columns + 1)
            while True:
                used[j0] = True
                i0, delta, j1 = of[j0], float("inf"), 0
                for j in range(1, columns + 1):  # here
                    if not used[j]:  # here
                        now = cost[i0 - 1][j - 1] - u[i0] - v[j]  # here
                        if now < least[j]:  # here
                            least[j], way[j] = now, j0  # here
                        if least[j] < delta:  # here
                            delta, j1 = least[j], j  # here
                for j in range(columns + 1):  # here
                    if used[j]:  # here
                        u[of[j]] += delta  # here
                        v[j] -= delta  # here
                    else:
                        least[j] -= delta  # here
                j0 = j1
                if not of[j0]:
                    break
            while j0:
                of[j0] = of[way[j0]]
                j0 = way[j0]
        return [(j - 1, of[j] - 1) for j in range(1, columns + 1) if of[j]]

    class Matcher:
        def __call__(self, costs, counts):
            found = np.full((IMAGES, BOXES), -1, np.int32)
            for image in range(IMAGES):
                cost = costs[image, :counts[image]]
                for query, box in matched(cost.tolist()):  # here
                    found[image, box] = query
            return found

    images = [rng.random(IMAGES * 3 * 64 * 64).astype(np.float32) for _ in range(4)]
    size = IMAGES * 3 * 64 * 64
    pinned, x, h = cuda.pinned_array(size, np.float32), cuda.device_array(size, np.float32), cuda.device_array(size, np.float32)
    noise = [rng.random((IMAGES, BOXES, QUERIES)).astype(np.float32) for _ in range(8)]
    cost, found = cuda.to_device(noise[0]), cuda.to_device(np.zeros((IMAGES, BOXES), np.int32))
    flat, loss = cuda.to_device(noise[0].ravel()), cuda.to_device(np.zeros(64, np.float32))
    stream, matcher, losses = cuda.stream(), Matcher(), []
    for step in range(STEPS):
        mark()
        pinned[:] = images[step % 4]
        x.copy_to_device(pinned, stream=stream)
        backbone[96, 256, stream](x, h)
        decoder[32, 256, stream](h, flat)
        pair_cost[12, 256, stream](h, flat)
        if FIXED:
            match_all[8, 64, stream](h, flat)
        else:
            costs = cost.copy_to_host(stream=stream)
            stream.synchronize()
            found.copy_to_device(matcher(costs + noise[step % 8], rng.integers(5, BOXES + 1, IMAGES)), stream=stream)  # here
        set_loss[1, 64, stream](h, loss)
        backward[96, 256, stream](x, h)
        adamw[96, 256, stream](x, h)
        if step % 20 == 19:
            losses.append(loss.copy_to_host(stream=stream)[0])
            stream.synchronize()
            print("step %d: %.3f" % (step + 1, losses[-1]))
        elif FIXED:
            stream.synchronize()
    stream.synchronize()
    return STEPS


@job(34, "host or transfer", ["host.code", "host.python", "transfer.d2h", "transfer.d2h-pageable"], 160, PYCUDA,
     {"SIM_KERNEL": "encode 2500us; decode_up 3500us; best_class 120us"}, twin=True,
     note="a map is made of tiles: 12 probabilities of each pixel come home, where NumPy finds the largest; fix: a kernel finds it, and "
          "bytes come home. A tile is a step")
def s_pc_land_tiles():
    import atexit

    import pycuda.driver as cuda
    cuda.init()
    context = cuda.Device(0).make_context()
    atexit.register(context.pop)
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n" + "".join(
        ".visible .entry %s(.param .u64 x, .param .u64 y) { ret; }\n" % k for k in ("encode", "decode_up", "best_class"))
    module = cuda.module_from_buffer(ptx.encode() + b"\0")
    encode, decode_up, best_class = (module.get_function(k) for k in ("encode", "decode_up", "best_class"))
    SIDE, CLASSES, STRIDE, ROWS, COLUMNS, BANDS = 320, 12, 256, 10, 16, 4
    rng = np.random.default_rng(0)
    scene = rng.integers(0, 4096, (BANDS, ROWS * STRIDE + 64, COLUMNS * STRIDE + 64), dtype=np.uint16)
    answer = np.zeros(scene.shape[1:], np.uint8)
    area = np.zeros(CLASSES, np.int64)
    x = cuda.mem_alloc(BANDS * SIDE * SIDE * 4)
    hidden, scores, best = cuda.mem_alloc(4 << 20), cuda.mem_alloc(CLASSES * SIDE * SIDE * 4), cuda.mem_alloc(SIDE * SIDE)
    staging = cuda.pagelocked_empty((BANDS, SIDE, SIDE), np.float32)
    home = cuda.pagelocked_empty((CLASSES, SIDE, SIDE), np.float32)
    small = cuda.pagelocked_empty((SIDE, SIDE), np.uint8)
    stream = cuda.Stream()

    def predict(tile):
        np.divide(tile, np.float32(4096), out=staging)
        cuda.memcpy_htod_async(x, staging, stream)
        encode(x, hidden, block=(256, 1, 1), grid=(400, 1), stream=stream)
        decode_up(hidden, scores, block=(256, 1, 1), grid=(400, 1), stream=stream)
        if FIXED:
            best_class(scores, best, block=(256, 1, 1), grid=(400, 1), stream=stream)
            cuda.memcpy_dtoh_async(small, best, stream)
            stream.synchronize()
            return small % CLASSES
        cuda.memcpy_dtoh_async(home, scores, stream)  # here
        stream.synchronize()  # here
        return home.argmax(axis=0).astype(np.uint8)  # here

    for row in range(ROWS):
        for column in range(COLUMNS):
            mark()
            top, left = row * STRIDE, column * STRIDE
            classes = predict(scene[:, top:top + SIDE, left:left + SIDE])  # here
            answer[top + 32:top + SIDE - 32, left + 32:left + SIDE - 32] = classes[32:-32, 32:-32]
            area += np.bincount(classes[32:-32, 32:-32].ravel(), minlength=CLASSES)
        print("row %d: %s" % (row, (area / area.sum()).round(3)[:3].tolist()))
    with open(temporary("map.z"), "wb") as f:
        f.write(zlib.compress(answer.tobytes(), 1))
    return ROWS * COLUMNS


@job(34, "compute or host", [*DEVICE, "host.python", "host.code"], 480, CLIENTS,
     {"SIM_KERNEL": "*embed* 150us; *attend* 1100us; *mlp* 1500us; *grads* 3600us; *update* 300us"},
     says=r"(?i)between|outside|epoch|before|jobs_recent_device.py:\d+",
     note="each epoch begins with texts that are cut and packed into rows anew in Python, more than half of the run; its steps only "
          "compute. Fix: packed once, rows are shuffled")
def s_cb_packing():
    from cuda.bindings import driver as cu

    def ok(result):
        error, *rest = result
        if error != cu.CUresult.CUDA_SUCCESS:
            raise RuntimeError(str(error))
        return rest[0] if rest else None

    ROW, BATCH, STEPS, EPOCHS, TEXTS = 512, 8, 80, 6, 9000
    names = ("embed", "attend", "mlp", "grads", "update")
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n" + "".join(
        ".visible .entry lm_%s(.param .u64 x, .param .u64 y) { ret; }\n" % k for k in names)
    ok(cu.cuInit(0))
    context = ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(0))))
    ok(cu.cuCtxSetCurrent(context))
    module = ok(cu.cuModuleLoadData(ptx.encode() + b"\0"))
    kernels = {k: ok(cu.cuModuleGetFunction(module, b"lm_" + k.encode())) for k in names}
    stream = ok(cu.cuStreamCreate(1))
    ids, work = ok(cu.cuMemAlloc(BATCH * ROW * 4)), ok(cu.cuMemAlloc(1 << 20))
    import ctypes
    pinned = ok(cu.cuMemHostAlloc(BATCH * ROW * 4, 0))
    staging = np.frombuffer((ctypes.c_char * (BATCH * ROW * 4)).from_address(int(pinned)), np.int32).reshape(BATCH, ROW)
    loss = np.zeros(1, np.float32)

    rng = random.Random(0)
    texts = [[rng.randrange(32_000) for _ in range(int(rng.lognormvariate(3.9, 0.6)) + 4)] for _ in range(TEXTS)]

    def packed(texts):
        """First fit, longest first: each text goes to the first row that has room."""
        rows, room = [], []
        for text in sorted(texts, key=len, reverse=True):
            text = text[:ROW - 1] + [1]
            for k, left in enumerate(room):  # here
                if left >= len(text):  # here
                    rows[k].extend(text)  # here
                    room[k] -= len(text)
                    break
            else:
                rows.append(list(text))
                room.append(ROW - len(text))
        return np.array([row + [0] * (ROW - len(row)) for row in rows], np.int32)  # here

    class Epochs:
        def __init__(self):
            self.once = packed(texts) if FIXED else None

        def __iter__(self):
            order = texts[:]
            rng.shuffle(order)
            rows = self.once if FIXED else packed(order)  # here
            shuffled = rows[np.random.default_rng(len(rows)).permutation(len(rows))]
            for k in range(STEPS):
                yield np.take(shuffled, np.arange(k * BATCH, (k + 1) * BATCH), axis=0, mode="wrap")

    def launch(name, blocks=256):
        ok(cu.cuLaunchKernel(kernels[name], blocks, 1, 1, 128, 1, 1, 0, stream,
                             ((int(ids), int(work)), (ctypes.c_uint64, ctypes.c_uint64)), 0))

    data, steps = Epochs(), 0
    for epoch in range(EPOCHS):
        for rows in data:  # here
            mark()
            staging[:] = rows
            ok(cu.cuMemcpyHtoDAsync(ids, pinned, staging.nbytes, stream))
            for name in names:
                launch(name)
            ok(cu.cuStreamSynchronize(stream))
            steps += 1
            if steps % 20 == 0:
                ok(cu.cuMemcpyDtoH(loss.ctypes.data, work, 4))
        print("epoch %d: %d steps, loss %.3f" % (epoch, steps, loss[0]))
    return steps


if __name__ == "__main__":
    main()
