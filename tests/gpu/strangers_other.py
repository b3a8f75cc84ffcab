"""Jobs of JAX, CuPy, Numba and CUDA's own Python bindings, of tests/gpu/strangers.py."""
import os
import random

from jobs import Turn, python_work
from stranger import CPU, job, size


def start():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    assert CPU or jax.devices()[0].platform == "gpu", "JAX sees no GPU"
    return jax


def wide_step(jax):
    """Four square layers in bfloat16, about 3 ms a step: (step of rate, weights and rows; weights; rows)."""
    import jax.numpy as jnp
    width = size(4096, 32)
    w = [jnp.zeros((width, width), jnp.bfloat16) + 0.001 for _ in range(4)]

    def forward(w, x):
        for each in w:
            x = jax.nn.relu(x @ each)
        return x.astype(jnp.float32).mean()

    def step(rate, w, x):
        loss, grads = jax.value_and_grad(forward)(w, x)
        return [a - (rate * g).astype(a.dtype) for a, g in zip(w, grads)], loss

    return step, w, jnp.ones((width, width), jnp.bfloat16)


@job(80, None, "input.generator", "host.python", needs="flax,optax", twin=True)
def flax_generator(steps, fixed):
    # 512 lines of 128 numbers parsed in Python for each batch by a generator, some 7 ms, in the loop's own thread, which is
    # input.generator to its author and host.python to a profiler; the twin parses before the loop.
    jax = start()
    import flax.linen as nn
    import jax.numpy as jnp
    import numpy as np
    import optax
    rng = random.Random(0)
    rows = size(512, 8)
    lines = [",".join(f"{rng.random():.4f}" for _ in range(128)) for _ in range(rows)]

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(4):
                x = nn.relu(nn.Dense(size(2048, 32))(x))
            return nn.Dense(10)(x)

    def parse():
        return np.array([[float(v) for v in line.split(",")] for line in lines], np.float32), np.arange(rows) % 10

    def batches(count):
        for _ in range(count):
            yield parse()

    net, opt = Net(), optax.adam(1e-3)
    params = net.init(jax.random.PRNGKey(0), jnp.zeros((rows, 128)))
    state = opt.init(params)

    @jax.jit
    def step(params, state, x, y):
        def loss_of(params):
            return optax.softmax_cross_entropy_with_integer_labels(net.apply(params, x), y).mean()

        loss, grads = jax.value_and_grad(loss_of)(params)
        updates, state = opt.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    for x, y in batches(2):
        params, state, loss = step(params, state, x, y)
    ready = [parse()] * steps
    loss.block_until_ready()
    with Turn() as turn:
        for x, y in ready if fixed else batches(steps):
            params, state, loss = step(params, state, x, y)
        total = float(loss)
    return turn.seconds, total


@job(20, "compute-bound", needs="jax")
def jax_scan(steps, fixed):
    # Twenty steps of training in each execution: 20 steps by who counts executions.
    jax = start()
    from jax import lax
    step, w, x = wide_step(jax)

    @jax.jit
    def epoch(w):
        return lax.scan(lambda w, _: step(0.001, w, x), w, None, length=20)

    w, losses = epoch(w)
    losses.block_until_ready()
    with Turn() as turn:
        for _ in range(steps):
            w, losses = epoch(w)
        total = float(losses[-1])
    return turn.seconds, total


@job(120, "host-bound", "host.callback", "host.python", needs="jax", twin=True)
def jax_callback(steps, fixed):
    # A score computed by 10 ms of Python that the device calls in the middle of each step; the twin does it on the device.
    jax = start()
    import jax.numpy as jnp
    import numpy as np
    step, w, x = wide_step(jax)

    def score(value):
        python_work(10)
        return np.float32(0.001) * np.float32(value > 0)

    @jax.jit
    def scored(w, x):
        value = (x @ w[0])[0].astype(jnp.float32).mean()
        if fixed:
            rate = 0.001 * (value > 0)
        else:
            rate = jax.pure_callback(score, jax.ShapeDtypeStruct((), jnp.float32), value)
        return step(rate, w, x)

    for _ in range(2):
        w, loss = scored(w, x)
    loss.block_until_ready()
    with Turn() as turn:
        for _ in range(steps):
            w, loss = scored(w, x)
        total = float(loss)
    return turn.seconds, total


@job(200, "compute-bound", needs="equinox,optax")
def equinox_loop(steps, fixed):
    jax = start()
    import equinox as eqx
    import jax.numpy as jnp
    import optax
    width = size(4096, 32)
    net = eqx.nn.MLP(width, 16, width, 3, key=jax.random.PRNGKey(0))
    net = jax.tree_util.tree_map(lambda a: a.astype(jnp.bfloat16) if eqx.is_array(a) else a, net)
    opt = optax.sgd(1e-3)
    state = opt.init(eqx.filter(net, eqx.is_array))
    x = jax.random.normal(jax.random.PRNGKey(1), (width, width), jnp.bfloat16)
    y = jnp.arange(width) % 16

    @eqx.filter_value_and_grad
    def loss_of(net, x, y):
        return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(net)(x).astype(jnp.float32), y).mean()

    @eqx.filter_jit
    def step(net, state, x, y):
        loss, grads = loss_of(net, x, y)
        updates, state = opt.update(grads, state)
        return eqx.apply_updates(net, updates), state, loss

    for _ in range(3):
        net, state, loss = step(net, state, x, y)
    loss.block_until_ready()
    with Turn() as turn:
        for _ in range(steps):
            net, state, loss = step(net, state, x, y)
        total = float(loss)
    return turn.seconds, total


@job(6, "host-bound", "host.compile", needs="jax", twin=True)
def jax_recompile(steps, fixed):
    # The learning rate is a static argument, and each of the schedule's rates compiles the step anew; the twin passes an array.
    jax = start()
    step, w, x = wide_step(jax)
    compiled = jax.jit(step) if fixed else jax.jit(step, static_argnums=0)
    for i in range(2):
        w, loss = compiled(0.01 / (i + 1), w, x)
    loss.block_until_ready()
    with Turn() as turn:
        for i in range(steps):
            w, loss = compiled(0.001 / (i + 1), w, x)
        total = float(loss)
    return turn.seconds, total


@job(200, "compute-bound", needs="jax", twin=True)
def jax_block(steps, fixed):
    # Each step is waited for, which costs a launch's delay beside 3 ms of matrix multiplications.
    jax = start()
    step, w, x = wide_step(jax)
    compiled = jax.jit(step)
    for _ in range(3):
        w, loss = compiled(0.001, w, x)
    loss.block_until_ready()
    with Turn() as turn:
        for _ in range(steps):
            w, loss = compiled(0.001, w, x)
            if not fixed:
                jax.block_until_ready(loss)
        total = float(loss)
    return turn.seconds, total


@job(150, "compute-bound", needs="cupy")
def cupy_loop(steps, fixed):
    # A linear model by matrix multiplications in single precision, 3 ms each.
    import cupy
    n = 4096
    x, w, y = (cupy.arange(n * n, dtype=cupy.float32).reshape(n, n) % k / k for k in (97, 89, 83))

    def step():
        nonlocal w
        error = x @ w - y
        w -= 1e-9 * (x.T @ error)

    for _ in range(3):
        step()
    cupy.cuda.Device().synchronize()
    with Turn() as turn:
        for _ in range(steps):
            step()
        total = float(w.mean())
    return turn.seconds, total


@job(30, "transfer-bound", "transfer.d2h", needs="cupy", twin=True)
def cupy_back(steps, fixed):
    # 256 MB of results fetched each step; the twin fetches their mean.
    import cupy
    x = cupy.arange(1 << 26, dtype=cupy.float32) % 97
    total = 0.0
    cupy.asnumpy(x * 1.01)
    float((x * 1.01).mean())
    with Turn() as turn:
        for _ in range(steps):
            x = x * 0.99 + 0.001
            total += float(x.mean()) if fixed else float(cupy.asnumpy(x)[0])
    return turn.seconds, total


@job(40, "transfer-bound", "transfer.h2d-pageable", needs="numba.cuda", twin=True)
def numba_pageable(steps, fixed):
    # 256 MB of pageable memory to the device each step for a kernel of 0.1 ms; the twin's are there.
    import numpy as np
    from numba import cuda

    @cuda.jit
    def scale(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * 0.5 + 1.0

    n = 1 << 26
    host = np.ones(n, np.float32)
    out = cuda.device_array(n, np.float32)
    there = cuda.to_device(host)
    scale[(n + 255) // 256, 256](there, out)
    cuda.synchronize()
    with Turn() as turn:
        for _ in range(steps):
            x = there if fixed else cuda.to_device(host)
            scale[(n + 255) // 256, 256](x, out)
        total = float(out[:1].copy_to_host()[0])
    return turn.seconds, total


@job(100, "compute-bound", needs="cuda.bindings.driver,cuda.bindings.nvrtc,numpy")
def cuda_bindings(steps, fixed):
    # NVRTC and the driver's interface as in CUDA Python's examples: three kernels of a few ms a step.
    import numpy as np
    from cuda.bindings import driver, nvrtc
    source = b"""extern "C" __global__ void work(float *x, int rounds) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        float value = x[i];
        for (int k = 0; k < rounds; k++) value = value * 0.999f + 0.001f * __sinf(value);
        x[i] = value;
    }"""

    def done(result):
        assert int(result[0]) == 0, result[0]
        return result[1] if len(result) == 2 else None

    done(driver.cuInit(0))
    device = done(driver.cuDeviceGet(0))
    done(driver.cuCtxSetCurrent(done(driver.cuDevicePrimaryCtxRetain(device))))
    kind = driver.CUdevice_attribute
    major = done(driver.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = done(driver.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    program = done(nvrtc.nvrtcCreateProgram(source, b"work.cu", 0, [], []))
    done(nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=compute_{major}{minor}".encode()]))
    ptx = b" " * done(nvrtc.nvrtcGetPTXSize(program))
    done(nvrtc.nvrtcGetPTX(program, ptx))
    image = np.frombuffer(ptx, np.uint8)
    work = done(driver.cuModuleGetFunction(done(driver.cuModuleLoadData(image.ctypes.data)), b"work"))
    n = 1 << 24
    host = np.ones(n, np.float32)
    memory = done(driver.cuMemAlloc(host.nbytes))
    done(driver.cuMemcpyHtoD(memory, host.ctypes.data, host.nbytes))
    stream = done(driver.cuStreamCreate(0))
    values = [np.array([int(memory)], np.uint64), np.array([1500], np.int32)]
    pointers = np.array([v.ctypes.data for v in values], np.uint64)

    def step():
        for _ in range(3):
            done(driver.cuLaunchKernel(work, n // 256, 1, 1, 256, 1, 1, 0, stream, pointers.ctypes.data, 0))

    step()
    done(driver.cuStreamSynchronize(stream))
    with Turn() as turn:
        for _ in range(steps):
            step()
        done(driver.cuStreamSynchronize(stream))
    done(driver.cuMemcpyDtoH(host.ctypes.data, memory, host.nbytes))
    return turn.seconds, float(host[0])
