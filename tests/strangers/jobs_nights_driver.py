"""Batch 14: the driver's and drjit's jobs."""
import ctypes
import os
import sys
import threading

import numpy as np
from stranger import CLIENTS, FIXED, finish, job, main, mark, temporary


@job(14, "host", ["host.launch"], 3000, CLIENTS, {"SIM_KERNEL": "lm_head 120us; attn_* 4us; * 2us"}, twin=True,
     note="194 tiny kernels a token are launched one by one from Python; fix: a graph")
def u_decode_launch():
    from cuda.bindings import driver as cu

    NAMES = ["rms_in", "qkv", "rope", "attn_decode", "attn_out", "rms_post", "ffn_up", "ffn_down"]
    PTX = ".version 8.0\n.target sm_80\n.address_size 64\n" + "".join(
        f".visible .entry {n}(.param .u64 p, .param .u32 l) {{ ret; }}\n" for n in NAMES + ["embed", "lm_head"])

    def check(r):
        if r[0] != cu.CUresult.CUDA_SUCCESS:
            raise RuntimeError(r[0])
        return r[1] if len(r) == 2 else r[1:]

    class Decoder:
        LAYERS, VOCAB = 24, 32000

        def __init__(self, use_graph):
            check(cu.cuInit(0))
            self.ctx = check(cu.cuDevicePrimaryCtxRetain(check(cu.cuDeviceGet(0))))
            check(cu.cuCtxSetCurrent(self.ctx))
            module = check(cu.cuModuleLoadData(PTX.encode() + b"\0"))
            self.f = {n: check(cu.cuModuleGetFunction(module, n.encode())) for n in NAMES + ["embed", "lm_head"]}
            self.s = check(cu.cuStreamCreate(1))
            self.state = check(cu.cuMemAlloc(1 << 20))
            self.logits = check(cu.cuMemAlloc(4 * self.VOCAB))
            self.host = check(cu.cuMemAllocHost(4 * self.VOCAB))
            self.view = np.ctypeslib.as_array((ctypes.c_float * self.VOCAB).from_address(int(self.host)))
            self.tok = check(cu.cuMemAllocHost(64))
            self.exec = None
            if use_graph:
                check(cu.cuStreamBeginCapture(self.s, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
                self.forward()
                self.exec = check(cu.cuGraphInstantiate(check(cu.cuStreamEndCapture(self.s)), 0))

        def launch(self, name, i, grid):
            args = ((self.state, i), (None, ctypes.c_uint))
            check(cu.cuLaunchKernel(self.f[name], grid, 1, 1, 128, 1, 1, 0, self.s, args, 0))  # here

        def forward(self):
            self.launch("embed", 0, 8)
            for layer in range(self.LAYERS):
                for name in NAMES:
                    self.launch(name, layer, 16)  # here
            self.launch("lm_head", 0, 250)

        def next_token(self, token):
            ctypes.c_int.from_address(int(self.tok)).value = token
            check(cu.cuMemcpyHtoDAsync(self.state, self.tok, 4, self.s))
            if self.exec is not None:
                check(cu.cuGraphLaunch(self.exec, self.s))
            else:
                self.forward()
            check(cu.cuMemcpyDtoHAsync(self.host, self.logits, 4 * self.VOCAB, self.s))
            check(cu.cuStreamSynchronize(self.s))
            return int(self.view.argmax())

    steps = 3000
    model = Decoder(use_graph=FIXED)
    token, out = 1, []
    while len(out) < steps:
        mark()
        token = model.next_token(token)
        out.append(token)
    print(len(out), "tokens")
    return steps


@job(14, "host", ["host.gil"], 200, CLIENTS, {"SIM_KERNEL": "block_* 60us; adam 120us"}, twin=True,
     note="a thread computes statistics in Python without pause; fix: twice a second")
def u_gil_thread():
    import collections
    import statistics
    from cuda.bindings import driver as cu

    def must(out):
        if out[0]:
            raise RuntimeError(cu.cuGetErrorName(out[0]))
        return out[1] if len(out) > 1 else None

    class Dashboard(threading.Thread):
        """Recomputes medians and a histogram of the last losses, over and over."""

        def __init__(self):
            super().__init__(daemon=True)
            self.losses = collections.deque([0.5] * 3000, maxlen=3000)
            self.stop, self.page, self.refreshed = threading.Event(), {}, 0

        def run(self):
            pause = 0.5 if FIXED else 0.0
            while not self.stop.wait(pause):
                window = list(self.losses)
                bins = collections.Counter(round(v, 2) for v in window)  # here
                smooth, value = [], 0.0
                for v in window:  # here
                    value = 0.98 * value + 0.02 * v  # here
                    smooth.append(value)  # here
                self.page = {"median": statistics.median(window), "bins": dict(bins), "smooth": smooth[-50:]}
                self.refreshed += 1

    must(cu.cuInit(0))
    must(cu.cuCtxSetCurrent(must(cu.cuDevicePrimaryCtxRetain(must(cu.cuDeviceGet(0))))))
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n"
    for name in ("block_fwd", "block_bwd", "adam"):
        ptx += ".visible .entry %s(.param .u64 a) { ret; }\n" % name
    lib = must(cu.cuModuleLoadData(ptx.encode() + b"\0"))
    fwd, bwd, adam = (must(cu.cuModuleGetFunction(lib, n)) for n in (b"block_fwd", b"block_bwd", b"adam"))
    mem = must(cu.cuMemAlloc(1 << 22))
    pinned = must(cu.cuMemAllocHost(4096))
    loss = ctypes.c_float.from_address(int(pinned))
    stream = must(cu.cuStreamCreate(1))

    def run(function):
        must(cu.cuLaunchKernel(function, 128, 1, 1, 128, 1, 1, 0, stream, ((mem,), (None,)), 0))

    board = Dashboard()
    board.start()
    steps = 200
    for step in range(steps):
        mark()
        must(cu.cuMemcpyHtoDAsync(mem, pinned, 4096, stream))
        for _ in range(16):
            run(fwd)
        for _ in range(16):
            run(bwd)
        run(adam)
        must(cu.cuMemcpyDtoHAsync(pinned, mem, 4, stream))
        must(cu.cuStreamSynchronize(stream))
        board.losses.append(abs(loss.value) % 1)
    board.stop.set()
    board.join()
    print("dashboard refreshed", board.refreshed, "times")
    return steps


@job(14, "host", ["host.python"], 7040, CLIENTS, {"SIM_KERNEL": "policy* 90us; ppo_* 2500us; * 60us"}, twin=True,
     note="for each action eight environments of plain Python are stepped one after the other; fix: with numpy")
def u_ppo_envs():
    import random
    from cuda.bindings import driver as d

    ENVS, HORIZON, EPOCHS = 8, 64, 3

    class Maze:
        def reset(self):
            self.walls = {(random.randrange(31), random.randrange(31)) for _ in range(150)}
            self.pos, self.t = (15, 15), 0
            return self.observe(), {}

        def observe(self):
            grid = [[0.0] * 31 for _ in range(31)]
            for r in range(31):
                for c in range(31):  # here
                    if (r, c) in self.walls:  # here
                        grid[r][c] = 1.0  # here
                    else:
                        grid[r][c] = 0.1 / (1 + abs(r - self.pos[0]) + abs(c - self.pos[1]))  # here
            return np.array(grid, np.float32)

        def step(self, action):
            dr, dc = ((0, 1), (1, 0), (0, -1), (-1, 0))[action]
            new = (min(30, max(0, self.pos[0] + dr)), min(30, max(0, self.pos[1] + dc)))
            if new not in self.walls:
                self.pos = new
            self.t += 1
            return self.observe(), float(self.pos == (0, 0)), self.t >= 100, False, {}

    class FastMaze(Maze):
        rows, cols = np.mgrid[0:31, 0:31]

        def observe(self):
            grid = (0.1 / (1 + abs(self.rows - self.pos[0]) + abs(self.cols - self.pos[1]))).astype(np.float32)
            w = np.array(list(self.walls))
            grid[w[:, 0], w[:, 1]] = 1
            return grid

    def go(r):
        if int(r[0]):
            raise SystemExit(f"CUDA: {r[0]}")
        return r[1] if len(r) == 2 else None

    go(d.cuInit(0))
    go(d.cuCtxSetCurrent(go(d.cuDevicePrimaryCtxRetain(go(d.cuDeviceGet(0))))))
    names = "policy_conv", "policy_fc", "value_fc", "sample", "gae", "ppo_forward", "ppo_backward", "clip", "adam"
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n"
    ptx += "\n".join(".visible .entry %s(.param .u64 a) { ret; }" % n for n in names)
    mod = go(d.cuModuleLoadData(ptx.encode() + b"\0"))
    f = {n: go(d.cuModuleGetFunction(mod, n.encode())) for n in names}
    obs_dev, act_dev = go(d.cuMemAlloc(ENVS * 31 * 31 * 4)), go(d.cuMemAlloc(ENVS * 4))

    def launch(*which):
        for n in which:
            go(d.cuLaunchKernel(f[n], 32, 1, 1, 128, 1, 1, 0, 0, ((obs_dev,), (None,)), 0))

    envs = [(FastMaze if FIXED else Maze)() for _ in range(ENVS)]
    obs = np.stack([e.reset()[0] for e in envs])
    actions = np.zeros(ENVS, np.int32)
    for update in range(110):
        reward = 0.0
        for _ in range(HORIZON):
            mark()
            go(d.cuMemcpyHtoD(obs_dev, obs, obs.nbytes))
            launch("policy_conv", "policy_fc", "value_fc", "sample")
            go(d.cuMemcpyDtoH(actions, act_dev, actions.nbytes))
            for i, e in enumerate(envs):
                obs[i], r, done, _, _ = e.step((int(actions[i]) + update + i) % 4)
                reward += r
                if done:
                    obs[i], _ = e.reset()
        launch("gae")
        for _ in range(EPOCHS):
            launch("ppo_forward", "ppo_backward", "clip", "adam")
        go(d.cuCtxSynchronize())
        if update % 10 == 0:
            print("update", update, "reward", reward)
    return 110 * HORIZON


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def nccl_rank(rank, world, ident, steps):
    from cuda.bindings import driver as cu
    LAYERS, BYTES = 6, 1 << 20
    nccl = ctypes.CDLL("libnccl.so.2")

    def ok(r):
        assert int(r[0]) == 0, (rank, r[0])
        return r[1] if len(r) > 1 else None

    ok(cu.cuInit(0))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(rank))))))
    uid = UniqueId.from_buffer_copy(ident)
    comm = ctypes.c_void_p()
    nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]
    nccl.ncclAllReduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p,
                                   ctypes.c_void_p]
    assert nccl.ncclCommInitRank(ctypes.byref(comm), world, uid, rank) == 0
    text = ".version 8.0\n.target sm_80\n.address_size 64\n"
    for n in ("layer_fwd", "layer_bwd", "sgd"):
        text += f".visible .entry {n}(.param .u64 a) {{ ret; }}\n"
    mod = ok(cu.cuModuleLoadData(text.encode() + b"\0"))
    fwd, bwd, sgd = (ok(cu.cuModuleGetFunction(mod, n)) for n in (b"layer_fwd", b"layer_bwd", b"sgd"))
    compute, exchange = ok(cu.cuStreamCreate(1)), ok(cu.cuStreamCreate(1))
    grads = [ok(cu.cuMemAlloc(BYTES)) for _ in range(LAYERS)]
    ready, summed = [ok(cu.cuEventCreate(2)) for _ in range(LAYERS)], ok(cu.cuEventCreate(2))
    x, host = ok(cu.cuMemAlloc(1 << 20)), ok(cu.cuMemAllocHost(1 << 20))

    def launch(f, a):
        ok(cu.cuLaunchKernel(f, 108, 1, 1, 256, 1, 1, 0, compute, ((a,), (None,)), 0))

    def allreduce(i, stream):
        assert nccl.ncclAllReduce(int(grads[i]), int(grads[i]), BYTES // 4, 7, 0, comm, int(stream)) == 0

    for step in range(steps):
        mark()
        ok(cu.cuMemcpyHtoDAsync(x, host, 1 << 20, compute))
        for _ in range(LAYERS):
            launch(fwd, x)
        for i in reversed(range(LAYERS)):
            launch(bwd, grads[i])
            if FIXED:
                ok(cu.cuEventRecord(ready[i], compute))
                ok(cu.cuStreamWaitEvent(exchange, ready[i], 0))
                allreduce(i, exchange)
        if FIXED:
            ok(cu.cuEventRecord(summed, exchange))
            ok(cu.cuStreamWaitEvent(compute, summed, 0))
        else:
            for i in range(LAYERS):
                allreduce(i, compute)  # here
        launch(sgd, x)
        if step % 4 == 3:
            ok(cu.cuStreamSynchronize(compute))
    ok(cu.cuStreamSynchronize(compute))
    if rank == 0:
        finish(steps)


@job(14, "communication or compute", ["communication.transfer"], 500, CLIENTS,
     {"SIM_DEVICES": "2", "SIM_CONCURRENT_KERNELS": "4", "SIM_NCCL_GBPS": "1",
      "SIM_KERNEL": "layer_fwd 400us; layer_bwd 900us; sgd 300us"}, twin=True, at=(nccl_rank,),
     note="two processes sum the gradients after the backward pass, on the stream of the kernels; fix: layer by layer beside it")
def u_ddp_nccl():
    import multiprocessing
    uid = UniqueId()
    assert ctypes.CDLL("libnccl.so.2").ncclGetUniqueId(ctypes.byref(uid)) == 0
    spawn = multiprocessing.get_context("spawn")
    ranks = [spawn.Process(target=nccl_rank, args=(r, 2, bytes(uid), 500)) for r in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    sys.exit(0)


@job(14, "host", ["host.compile"], 800, CLIENTS, {"SIM_MODULE_LOAD": "9ms", "SIM_KERNEL_DEFAULT": "200us"}, twin=True,
     note="a number of Python that changes in each step is part of the kernel, which is made anew; fix: an opaque one")
def u_drjit_literal():
    os.environ["HOME"] = temporary()  # drjit keeps its kernels there
    import drjit as dr
    from drjit.cuda.ad import Float

    n = 1 << 18
    x = dr.linspace(Float, 0, 1, n)
    target = Float(np.exp(-3 * np.linspace(0, 1, n)).astype(np.float32))
    a, b = dr.opaque(Float, 0.5), dr.opaque(Float, 0.5)
    rate = 0.5
    for it in range(800):
        mark()
        dr.enable_grad(a, b)
        curve = a * dr.exp(-b * x * 3)
        loss = dr.mean(dr.square(curve - target))
        dr.backward(loss)
        step = dr.opaque(Float, rate) if FIXED else rate
        a = dr.detach(a) - step * dr.grad(a)  # here
        b = dr.detach(b) - step * dr.grad(b)  # here
        dr.eval(a, b)  # here
        rate *= 0.993
        if it % 50 == 0:
            print(it, loss.numpy())
    dr.sync_thread()
    return 800


if __name__ == "__main__":
    main()
