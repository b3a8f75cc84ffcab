"""Batch 7: jobs on the simulated GPU, in the manner of the frameworks' own example scripts."""
import math
import random
from collections import deque

import numpy as np
from stranger import (CLIENTS, FIXED, NUMBA, PYCUDA, PyCuda, driver, every_kernel, job, main, mark, tinygrad_kernels)


# tinygrad.

@job(7, "compute", ["compute.*"], 160, sim=tinygrad_kernels("900us"),
     note="no defect: a GAN of two nets with an optimizer each, one jitted function for the discriminator and one for the generator")
def q_tg_gan():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context

    class Generator:
        def __init__(self):
            self.layers = [nn.Linear(32, 128), nn.Linear(128, 784)]

        def __call__(self, x):
            return self.layers[1](self.layers[0](x).leaky_relu(0.2)).tanh()

    class Discriminator:
        def __init__(self):
            self.layers = [nn.Linear(784, 128), nn.Linear(128, 2)]

        def __call__(self, x):
            return self.layers[1](self.layers[0](x).leaky_relu(0.2)).log_softmax()

    generator, discriminator = Generator(), Discriminator()
    g_optimizer = nn.optim.SGD(nn.state.get_parameters(generator), lr=0.002)
    d_optimizer = nn.optim.SGD(nn.state.get_parameters(discriminator), lr=0.002)
    images = Tensor.rand(64, 784).realize()
    real, fake = Tensor([[-2.0, 0.0]] * 64).realize(), Tensor([[0.0, -2.0]] * 64).realize()

    @TinyJit
    def train_discriminator():
        with Context(TRAINING=1):
            d_optimizer.zero_grad()
            made = generator(Tensor.rand(64, 32)).detach()
            loss = ((discriminator(images) * real).mean() + (discriminator(made) * fake).mean()).backward()
            return loss.realize(*d_optimizer.schedule_step())

    @TinyJit
    def train_generator():
        with Context(TRAINING=1):
            g_optimizer.zero_grad()
            loss = (discriminator(generator(Tensor.rand(64, 32))) * real).mean().backward()
            return loss.realize(*g_optimizer.schedule_step())

    for epoch in range(8):
        d_sum = g_sum = 0.0
        for _ in range(20):
            mark()
            d_loss = train_discriminator()
            g_loss = train_generator()
            d_sum, g_sum = d_sum + d_loss.item(), g_sum + g_loss.item()
        print("epoch %d: discriminator %.3f generator %.3f" % (epoch, d_sum / 20, g_sum / 20), flush=True)
    return 160


@job(7, "host", ["host.launch", "host.python"], 240, sim=tinygrad_kernels("40us"), twin=True,
     note="the training step is jitted, but the average of the weights that follows it is not; fix: both are")
def q_tg_ema():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    layers = [nn.Linear(64, 64) for _ in range(6)]
    params = nn.state.get_parameters(layers)
    averages = [p.detach().clone().realize() for p in params]
    optimizer = nn.optim.SGD(params, lr=0.01, momentum=0.9)
    batch = Tensor.rand(32, 64).realize()

    @TinyJit
    def step(x):
        with Context(TRAINING=1):
            optimizer.zero_grad()
            y = x
            for layer in layers:
                y = layer(y).relu()
            loss = (y - x).square().mean().backward()
            return loss.realize(*optimizer.schedule_step())

    def update():
        for average, p in zip(averages, params):
            average.assign(average * 0.999 + p.detach() * 0.001).realize()  # here

    jitted = TinyJit(update)
    for _ in range(240):
        mark()
        loss = step(batch)
        if FIXED:
            jitted()
        else:
            update()  # here
        loss.item()
    return 240


@job(7, "host", ["host.compile"], 30, sim=tinygrad_kernels("60us"), twin=True,
     note="recordings are classified one by one, each at its own length: kernels are made for each length; fix: padded to 64")
def q_tg_recordings():
    from tinygrad import Tensor, nn
    first, last = nn.Linear(32, 64), nn.Linear(64, 5)
    rng = np.random.default_rng(5)
    counts = [0] * 5
    for n in rng.permutation(np.arange(30, 60)).tolist():
        mark()
        sound = rng.random((4, n, 32), dtype=np.float32)
        if FIXED:
            sound = np.pad(sound, ((0, 0), (0, 64 - n), (0, 0)))
        scores = last(first(Tensor(sound)).relu().mean(axis=1)).sum(axis=0)
        counts[int(scores.argmax().item())] += 1  # here
    print(counts)
    return 30


@job(7, "any", ["input.*", "host.python"], 120, sim=tinygrad_kernels("20us"), twin=True,
     note="Q-learning: 2,048 transitions, kept as lists in a deque, are turned into arrays for each update; fix: they lie in arrays")
def q_tg_replay():
    from tinygrad import Tensor, TinyJit, nn
    from tinygrad.helpers import Context
    net = [nn.Linear(96, 64), nn.Linear(64, 4)]
    optimizer = nn.optim.SGD(nn.state.get_parameters(net), lr=0.001)
    rng = random.Random(3)

    def q(x):
        return net[1](net[0](x).relu())

    @TinyJit
    def update(states, rewards, following):
        with Context(TRAINING=1):
            optimizer.zero_grad()
            wanted = rewards + 0.99 * q(following).max(axis=1).detach()
            loss = (q(states).max(axis=1) - wanted).square().mean().backward()
            return loss.realize(*optimizer.schedule_step())

    class Replay:
        def __init__(self):
            self.entries = deque(maxlen=4000)
            state = [rng.random() for _ in range(96)]
            for i in range(3000):
                following = state[1:] + [rng.random()]
                self.entries.append((state, rng.random(), following))
                state = following
            self.arrays = [np.array(column, np.float32) for column in zip(*self.entries)]

        def sample(self, n):
            chosen = random.sample(self.entries, n)  # here
            states = np.array([e[0] for e in chosen], np.float32)  # here
            rewards = np.array([e[1] for e in chosen], np.float32)  # here
            following = np.array([e[2] for e in chosen], np.float32)  # here
            return states, rewards, following

        def sample_arrays(self, n):
            chosen = np.random.randint(0, 3000, n)
            return [column[chosen] for column in self.arrays]

    replay = Replay()
    sample = replay.sample_arrays if FIXED else replay.sample
    for _ in range(120):
        mark()
        arrays = sample(2048)  # here
        update(*(Tensor(a).realize() for a in arrays)).item()
    return 120


# numba.

@job(7, "compute", ["compute.*"], 200, NUMBA, every_kernel("300us", SIM_KERNEL="*forces* 5ms"),
     note="no defect: bodies that attract each other; the energy is fetched and printed each 25th step, a frame is kept each 50th")
def q_nb_bodies():
    from numba import cuda

    @cuda.jit
    def forces(positions, masses, out):
        i = cuda.grid(1)
        if i < masses.size:
            for j in range(masses.size):
                dx, dy = positions[j, 0] - positions[i, 0], positions[j, 1] - positions[i, 1]
                d = dx * dx + dy * dy + 0.01
                out[i, 0] += masses[j] * dx / (d * math.sqrt(d))
                out[i, 1] += masses[j] * dy / (d * math.sqrt(d))

    @cuda.jit
    def move(positions, velocities, force, dt):
        i = cuda.grid(1)
        if i < positions.shape[0]:
            for k in range(2):
                velocities[i, k] += dt * force[i, k]
                positions[i, k] += dt * velocities[i, k]
                force[i, k] = 0

    n, frames = 2048, []
    positions = cuda.to_device(np.random.default_rng(1).random((n, 2)))
    velocities, force = cuda.to_device(np.zeros((n, 2))), cuda.to_device(np.zeros((n, 2)))
    masses = cuda.to_device(np.ones(n))
    for i in range(200):
        mark()
        forces[n // 128, 128](positions, masses, force)
        move[n // 128, 128](positions, velocities, force, 0.001)
        cuda.synchronize()
        if i % 25 == 24:
            v = velocities.copy_to_host()
            print("step %d energy %.4g" % (i + 1, 0.5 * float((v * v).sum())), flush=True)
        if i % 50 == 49:
            frames.append(positions.copy_to_host())
    return 200


@job(7, "host", ["host.python", "host.code"], 150, NUMBA, every_kernel("1ms"), twin=True,
     note="Monte Carlo: the states of the random generators are made anew, on the host, in each round; fix: made once")
def q_nb_random_states():
    from numba import cuda
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    @cuda.jit
    def inside(states, rounds, out):
        i = cuda.grid(1)
        n = 0
        for _ in range(rounds):
            x = xoroshiro128p_uniform_float32(states, i)
            y = xoroshiro128p_uniform_float32(states, i)
            n += x * x + y * y <= 1
        out[i] = n

    n, sums = 256 * 256, []
    out = cuda.device_array(n, np.int32)
    states = create_xoroshiro128p_states(n, seed=0)
    for i in range(150):
        mark()
        if not FIXED:
            states = create_xoroshiro128p_states(n, seed=i)  # here
        inside[256, 256](states, 1000, out)
        sums.append(int(out.copy_to_host().sum()))
    print("pi is about", 4 * sum(sums) / (150 * 1000 * n))
    return 150


@job(7, "transfer", ["transfer.d2h*", "transfer.h2d*", "transfer.fallback"], 150, NUMBA, every_kernel("500us"), twin=True,
     note="the kernel is called with arrays of the host, so numba copies all three there and back; fix: arrays of the device")
def q_nb_host_arrays():
    from numba import cuda

    @cuda.jit
    def blend(a, b, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = 0.5 * (a[i] + b[i])

    n = 1 << 20
    arrays = [np.random.default_rng(k).random(n, dtype=np.float32) for k in range(3)]
    if FIXED:
        arrays = [cuda.to_device(a) for a in arrays]
    for _ in range(150):
        mark()
        blend[n // 256, 256](*arrays)  # here
        cuda.synchronize()
    return 150


# pycuda.

@job(7, "compute", ["compute.*"], 3000, PYCUDA, every_kernel("400us"),
     note="no defect: heat in a plate: a launch is a step, from one buffer into the other; a wait and a look at a corner each 500 steps")
def q_pc_heat():
    pc = PyCuda()
    now, then = pc.cuda.mem_alloc(1 << 20), pc.cuda.mem_alloc(1 << 20)
    corner = np.zeros(64, np.float32)
    for i in range(3000):
        mark()
        pc.axpy(now, np.float32(0.25), np.uint32(1 << 18), block=(256, 1, 1), grid=(1024, 1))
        now, then = then, now
        if i % 500 == 499:
            pc.cuda.memcpy_dtoh(corner, now)
            print("step %d: %.3f" % (i + 1, corner.mean()), flush=True)
    return 3000


@job(7, "host", ["host.alloc"], 240, PYCUDA, every_kernel("800us", SIM_ALLOC_COST="6ms"), twin=True,
     note="page-locked memory for each batch is allocated anew; fix: once")
def q_pc_pagelocked():
    pc = PyCuda()
    stream = pc.cuda.Stream()
    x = pc.cuda.mem_alloc(1 << 18)
    kept = pc.cuda.pagelocked_empty(1 << 16, np.float32)
    source = np.random.default_rng(1).random((8, 1 << 16), dtype=np.float32)

    def stage(batch):
        buffer = kept if FIXED else pc.cuda.pagelocked_empty(1 << 16, np.float32)  # here
        buffer[:] = batch
        return buffer

    for i in range(240):
        mark()
        buffer = stage(source[i % 8])  # here
        pc.cuda.memcpy_htod_async(x, buffer, stream)
        for _ in range(3):
            pc.axpy(x, np.float32(2), np.uint32(1 << 16), block=(256, 1, 1), grid=(256, 1), stream=stream)
        stream.synchronize()
    return 240


# drjit.

@job(7, "transfer", ["transfer.h2d*"], 120, CLIENTS, every_kernel("700us"), twin=True,
     note="a renderer turns its sky, 48 MB of numpy, into an array of the device for each frame; fix: once")
def q_dj_sky():
    import drjit as dr
    from drjit.cuda import Float, UInt32
    sky = np.random.default_rng(1).random(12 << 20, dtype=np.float32)
    on_device = Float(sky)
    dr.eval(on_device)
    film = dr.zeros(Float, 4096)
    for i in range(120):
        mark()
        light = on_device if FIXED else Float(sky)  # here
        seen = dr.gather(Float, light, dr.arange(UInt32, 4096) + i)
        film = film * 0.9 + 0.1 * seen
        dr.eval(film)  # here
        dr.sync_thread()
    print("centre %.3f" % film[2048])
    return 120


# The driver alone.

@job(7, "host", ["host.python"], 480,
     note="text is generated for eight requests: for each token logits come home, and the next one is drawn from 24,000 of them in Python")
def q_dv_tokens():
    d = driver()
    rng = random.Random(2)

    def draw(raw, temperature=0.8):
        scaled = [(v - 128) / 64 / temperature for v in raw]  # here
        top = max(scaled)  # here
        weights = [math.exp(s - top) for s in scaled]  # here
        left = rng.random() * sum(weights)  # here
        for token, w in enumerate(weights):  # here
            left -= w  # here
            if left <= 0:
                return token
        return 0

    for request in range(8):
        d.up(4096)
        d.run(3.0, "forward")
        d.down(32000)
        answer = []
        for _ in range(60):
            mark()
            for _ in range(12):
                d.run(0.06, "forward")
            d.run(0.1, "other")
            d.down(32000)
            answer.append(0 if FIXED else draw(d.host[:24000]))  # here
        print("request %d: %d tokens" % (request, len(answer)), flush=True)
    return 480


@job(7, "compute", ["compute.*"], 360,
     note="no defect: images grow during training, so steps take 2, then 5, then 12 ms; each 60 steps a short evaluation")
def q_dv_growing():
    d = driver()
    i = 0
    for ms, batch in ((2.0, 20000), (5.0, 40000), (12.0, 60000)):
        for _ in range(120):
            mark()
            d.up(batch)
            d.train(ms)
            d.sync()
            i += 1
            if i % 60 == 0:
                for _ in range(3):
                    d.up(batch)
                    d.run(ms / 4, "eval")
                d.down(64)
    return 360


if __name__ == "__main__":
    main()
