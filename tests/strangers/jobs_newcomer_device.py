"""Batch 12: numba's, pycuda's, tinygrad's jobs and one of NVIDIA's own package, on the simulated GPU."""
import ctypes
import http.client
import http.server
import json
import threading
import time
import warnings

import numpy as np
from stranger import CLIENTS, FIXED, NUMBA, PYCUDA, job, main, mark, tinygrad_kernels


# numba.

@job(12, "transfer", ["transfer.h2d-pageable"], 180, NUMBA, {"SIM_KERNEL": "*pair_forces* 1500us; *kick* 300us"}, twin=True,
     note="four parts of a cloud of points take turns, and each is sent again, as float64, when its turn comes; fix: all stay there")
def y_nb_cloud_shards():
    from numba import cuda
    warnings.filterwarnings("ignore")

    @cuda.jit
    def pair_forces(xyz, acc):
        i = cuda.grid(1)
        if i < xyz.shape[0]:
            acc[i, 0] += xyz[i, 0] * 0.5

    @cuda.jit
    def kick(vel, acc):
        i = cuda.grid(1)
        if i < vel.shape[0]:
            vel[i, 0] += acc[i, 0]

    n = 400_000
    rng = np.random.default_rng(11)
    shards = [rng.random((n, 4)) for _ in range(4)]  # float64, as numpy makes it
    acc, vel = cuda.device_array((n, 4)), cuda.device_array((n, 4))
    resident = [cuda.to_device(s) for s in shards] if FIXED else None
    grid = (n + 255) // 256
    for sweep in range(180):
        mark()
        if FIXED:
            d_xyz = resident[sweep % 4]
        else:
            d_xyz = cuda.to_device(shards[sweep % 4])  # here
        pair_forces[grid, 256](d_xyz, acc)
        kick[grid, 256](vel, acc)
        cuda.synchronize()
    return 180


@job(12, "host", ["host.launch"], 250, NUMBA, {"SIM_KERNEL": "*model_fwd_bwd* 1ms; *moment* 1500ns; *descend* 1500ns"}, twin=True,
     note="an Adam of one's own launches three kernels for each of 80 small arrays; fix: for all of them at once")
def y_nb_adam_groups():
    from numba import cuda
    warnings.filterwarnings("ignore")

    @cuda.jit
    def model_fwd_bwd(w, g):
        i = cuda.grid(1)
        if i < w.size:
            g[i] = w[i] * np.float32(0.01)

    @cuda.jit
    def moment1(m, g):
        i = cuda.grid(1)
        if i < m.size:
            m[i] = np.float32(0.9) * m[i] + np.float32(0.1) * g[i]

    @cuda.jit
    def moment2(v, g):
        i = cuda.grid(1)
        if i < v.size:
            v[i] = np.float32(0.99) * v[i] + np.float32(0.01) * g[i] * g[i]

    @cuda.jit
    def descend(w, m, v):
        i = cuda.grid(1)
        if i < w.size:
            w[i] -= np.float32(1e-3) * m[i] / (v[i] + np.float32(1e-4))

    sizes = [256] * 80
    flat = {k: cuda.device_array(sum(sizes), np.float32) for k in "wgmv"}
    if FIXED:
        groups = [flat]
    else:
        groups = [{k: cuda.device_array(n, np.float32) for k in "wgmv"} for n in sizes]
    for it in range(250):
        mark()
        model_fwd_bwd[80, 256](flat["w"], flat["g"])
        for p in groups:
            blocks = (p["w"].size + 255) // 256
            moment1[blocks, 256](p["m"], p["g"])  # here
            moment2[blocks, 256](p["v"], p["g"])  # here
            descend[blocks, 256](p["w"], p["m"], p["v"])  # here
        cuda.synchronize()
    return 250


@job(12, "host or input", ["input.decode", "host.python", "host.code", "input.c", "input.unknown"], 150, NUMBA,
     {"SIM_KERNEL": "*embed_net* 900us"}, twin=True,
     note="pictures come by HTTP as lists of JSON; fix: as bytes")
def y_sv_http_json2():
    from numba import cuda
    warnings.filterwarnings("ignore")
    requests, pixels = 150, 96 * 96 * 3

    @cuda.jit
    def embed_net(x, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] += x[i]

    d_out, pinned = cuda.device_array(512, np.float32), cuda.pinned_array(pixels, np.float32)
    d_in, answer = cuda.device_array(pixels, np.float32), cuda.pinned_array(512, np.float32)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *args):
            pass

        def do_POST(self):
            mark()
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if FIXED:
                pinned[:] = np.frombuffer(body, np.uint8)
            else:
                pinned[:] = np.array(json.loads(body)["image"], np.float32)  # here
            d_in.copy_to_device(pinned)
            embed_net[16, 32](d_in, d_out)
            d_out.copy_to_host(answer)
            reply = b"%f" % answer[0]
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

    def customer(port):
        """Makes its request beforehand."""
        image = np.random.default_rng(0).integers(0, 255, pixels, dtype=np.uint8)
        body = image.tobytes() if FIXED else json.dumps({"image": image.tolist()}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for _ in range(requests):
            connection.request("POST", "/embed", body)
            connection.getresponse().read()
        connection.close()

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    sender = threading.Thread(target=customer, args=(server.server_port,))
    sender.start()
    server.handle_request()  # one connection, kept alive for all requests
    sender.join()
    return requests


# pycuda.

def kernels_of(drv, names, parameters):
    """Kernels that do nothing for as long as the simulated GPU is told."""
    mod = drv.module_from_buffer(b".version 8.0\n.target sm_80\n.address_size 64\n" + b"".join(
        b".visible .entry %s(%s) { ret; }\n" % (name, parameters) for name in names) + b"\0")
    return [mod.get_function(name.decode()) for name in names]


@job(12, "host", ["host.sync"], 500, PYCUDA, {"SIM_KERNEL": "dense* 30us; relu* 8us; sgd* 20us"}, twin=True,
     note="a table of the layers' times is printed at the end, for which the job waits after each layer; fix: once a step")
def y_pc_layer_times():
    import pycuda.autoinit  # noqa: F401
    import pycuda.driver as drv
    dense_fw, relu_fw, dense_bw, sgd = kernels_of(drv, (b"dense_fw", b"relu_fw", b"dense_bw", b"sgd"), b".param .u64 x, .param .u32 n")
    act = drv.mem_alloc(1 << 20)
    table = {}

    def timed(name, kernel):
        began = time.perf_counter()
        kernel(act, np.uint32(65536), block=(128, 1, 1), grid=(512, 1))
        if not FIXED:
            drv.Context.synchronize()  # here
        table[name] = table.get(name, 0.0) + time.perf_counter() - began

    for it in range(500):
        mark()
        for layer in range(12):
            timed("fc%d" % layer, dense_fw)
            timed("relu%d" % layer, relu_fw)
        for layer in reversed(range(12)):
            timed("fc%d'" % layer, dense_bw)
        timed("sgd", sgd)
        drv.Context.synchronize()
    for name, seconds in sorted(table.items(), key=lambda kv: -kv[1])[:5]:
        print("%-6s %.3f ms" % (name, seconds / 500 * 1e3))
    return 500


@job(12, "transfer", ["transfer.d2h"], 160, PYCUDA,
     {"SIM_KERNEL": "unet_down 900us; unet_up 900us; unet_grad 1500us; adamw 200us"}, twin=True,
     note="all results of a batch are fetched, to log the share of the foreground; fix: sums that the device computes")
def y_pc_masks_back():
    import pycuda.autoinit  # noqa: F401
    import pycuda.driver as drv
    kernels = kernels_of(drv, (b"unet_down", b"unet_up", b"unet_grad", b"adamw"), b".param .u64 x, .param .u64 y")
    logits = np.zeros((8, 3, 512, 512), np.float32)
    d_logits, d_tiles, d_sum = drv.mem_alloc(logits.nbytes), drv.mem_alloc(1 << 22), drv.mem_alloc(4096)
    tiles = drv.pagelocked_zeros((1 << 18,), np.float32)
    sums = np.zeros(1024, np.float32)
    log = []
    for step in range(160):
        mark()
        drv.memcpy_htod(d_tiles, tiles)
        for kernel in kernels:
            kernel(d_tiles, d_logits, block=(256, 1, 1), grid=(2048, 1))
        if FIXED:
            drv.memcpy_dtoh(sums, d_sum)
            log.append(float(sums.sum()))
        else:
            drv.memcpy_dtoh(logits, d_logits)  # here
            log.append(float((logits[:, 0, ::16, ::16] > 0).mean()))
    print("foreground %.3f" % np.mean(log))
    return 160


@job(12, "host", ["host.python", "host.code"], 320, PYCUDA, {"SIM_KERNEL": "decode_layer 60us; lm_head 150us; prefill 2ms"}, twin=True,
     note="after each word all scores come to the host, and sampling sorts 64,000 of them; fix: the best 40 are chosen without sorting")
def y_sv_sampler():
    import pycuda.autoinit  # noqa: F401
    import pycuda.driver as drv
    vocab, prompts, tokens = 64000, 8, 40
    prefill, decode_layer, lm_head = kernels_of(drv, (b"prefill", b"decode_layer", b"lm_head"), b".param .u64 x, .param .u64 y")
    kv, d_logits, d_token = drv.mem_alloc(1 << 24), drv.mem_alloc(vocab * 4), drv.mem_alloc(4)
    logits, token = drv.pagelocked_zeros((vocab,), np.float32), drv.pagelocked_zeros((1,), np.int32)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(vocab).astype(np.float32)

    def nucleus(scores, top_p=0.9):
        if FIXED:
            best = np.argpartition(scores, -40)[-40:]
            return best[rng.integers(40)]
        order = np.argsort(scores)[::-1]  # here
        p = np.exp(scores[order] - scores[order[0]])
        p /= p.sum()
        keep = np.searchsorted(np.cumsum(p), top_p) + 1
        return order[rng.choice(keep, p=p[:keep] / p[:keep].sum())]

    for prompt in range(prompts):
        prefill(kv, d_logits, block=(256, 1, 1), grid=(400, 1))
        for position in range(tokens):
            mark()
            for layer in range(12):
                decode_layer(kv, d_logits, block=(256, 1, 1), grid=(64, 1))
            lm_head(kv, d_logits, block=(256, 1, 1), grid=(250, 1))
            drv.memcpy_dtoh(logits, d_logits)
            token[0] = nucleus(logits + noise)  # here
            drv.memcpy_htod(d_token, token)
    return prompts * tokens


# cuda.bindings, tinygrad.

@job(12, "host", ["host.alloc"], 300, CLIENTS, {"SIM_KERNEL": "butterfly 60us; transpose 40us", "SIM_ALLOC_COST": "200us"}, twin=True,
     note="cuda.bindings: each of ten stages allocates its memory, and all is freed after the step; fix: kept")
def y_cb_scratch():
    from cuda.bindings import driver as cu

    def ok(result):
        if result[0] != cu.CUresult.CUDA_SUCCESS:
            raise RuntimeError(result[0])
        return result[1] if len(result) == 2 else result[1:]

    ptx = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry butterfly(.param .u64 a, .param .u64 b) { ret; }
.visible .entry transpose(.param .u64 a, .param .u64 b) { ret; }
\0"""
    ok(cu.cuInit(0))
    context = ok(cu.cuDevicePrimaryCtxRetain(0))
    ok(cu.cuCtxSetCurrent(context))
    module = ok(cu.cuModuleLoadData(ptx))
    butterfly, transpose = (ok(cu.cuModuleGetFunction(module, n)) for n in (b"butterfly", b"transpose"))
    stream = ok(cu.cuStreamCreate(1))
    field = ok(cu.cuMemAlloc(1 << 22))
    kept = [ok(cu.cuMemAlloc(1 << 22)) for _ in range(10)] if FIXED else None

    def launch(kernel, a, b):
        args = ((int(a), int(b)), (ctypes.c_void_p, ctypes.c_void_p))
        ok(cu.cuLaunchKernel(kernel, 256, 1, 1, 256, 1, 1, 0, stream, args, 0))

    residual = np.zeros(1, np.float32)
    for it in range(300):
        mark()
        scratch = []
        for stage in range(10):
            tmp = kept[stage] if FIXED else ok(cu.cuMemAlloc(1 << 22))  # here
            launch(butterfly, field, tmp)
            launch(transpose, tmp, field)
            scratch.append(tmp)
        ok(cu.cuMemcpyDtoHAsync(residual.ctypes.data, field, 4, stream))
        ok(cu.cuStreamSynchronize(stream))
        if not FIXED:
            for tmp in scratch:
                ok(cu.cuMemFree(tmp))  # here
    return 300


@job(12, "host or input", ["host.python", "host.code", "input.generator"], 300, sim=tinygrad_kernels("50us"), twin=True,
     note="lest an example is used twice, a list of all names is searched for each of 64 examples of a batch; fix: a set")
def y_odd_seen_list():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    rng = np.random.default_rng(0)

    class Scorer:
        def __init__(self):
            self.a, self.b = nn.Linear(48, 96), nn.Linear(96, 8)

        def __call__(self, x):
            return self.b(self.a(x).relu())

    scorer = Scorer()
    opt = nn.optim.SGD(nn.state.get_parameters(scorer), lr=0.01)

    @TinyJit
    def learn(x, y):
        with Context(TRAINING=1):
            opt.zero_grad()
            loss = scorer(x).sparse_categorical_crossentropy(y).backward()
            return loss.realize(*opt.schedule_step())

    seen = set() if FIXED else []
    remember = seen.add if FIXED else seen.append
    for step in range(300):
        mark()
        keys = ["sample-%08d" % (step * 64 + k) for k in range(64)]
        fresh = [k for k in keys if k not in seen]  # here
        for k in fresh:
            remember(k)
        x = Tensor(rng.random((64, 48), dtype=np.float32)).realize()
        y = Tensor(rng.integers(0, 8, 64).astype(np.int32)).realize()
        loss = learn(x, y)
        if step % 60 == 0:
            print("step %d loss %.3f" % (step, loss.item()))
    return 300


if __name__ == "__main__":
    main()
