"""Batch 9: loops of JAX, Lightning, Accelerate and PyTorch, an agent, and a server, with what their users report to be slow."""
import copy
import os
import queue
import threading
import time

import numpy as np
from stranger import FIXED, LIBRARIES, NUMBA, every_kernel, job, main, mark, pytorch, temporary, wide_net


def jax_and_loader(batches, batch=32, width=64):
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    torch = pytorch()
    data = torch.utils.data.TensorDataset(torch.randn(batches * batch, width))
    loader = torch.utils.data.DataLoader(data, batch_size=batch)
    return jax, loader


@job(9, "host", ["host.compile"], 60, LIBRARIES, twin=True,
     note="JAX: sequences are cut to the longest of each batch, so that the jitted step is compiled for ever other lengths; fix: padded")
def r_jx_lengths():
    jax, loader = jax_and_loader(60)
    import jax.numpy as jnp
    lengths = np.random.default_rng(1).permutation(np.arange(4, 64))
    params = {"a": jnp.ones((64, 64)) * 0.01, "b": jnp.ones((64, 1)) * 0.01}

    def loss(p, x):
        h = jnp.tanh(x @ p["a"][:x.shape[1]])
        return jnp.mean((jax.nn.gelu(h @ p["a"]) @ p["b"]) ** 2)

    @jax.jit
    def step(p, x):
        value, grads = jax.value_and_grad(loss)(p, x)
        return jax.tree.map(lambda w, g: w - 0.01 * g, p, grads), value

    for i, (x,) in enumerate(loader):
        mark()
        x = x.numpy() if FIXED else x.numpy()[:, :lengths[i]]
        params, value = step(params, x)  # here
        float(value)  # here
    return 60


@job(9, "host", ["host.launch", "host.python"], 100, LIBRARIES, twin=True,
     note="optax: gradients are jitted, but the update is not, so that Adam runs op by op; fix: all of it is jitted")
def r_ox_eager():
    jax, loader = jax_and_loader(100)
    import jax.numpy as jnp
    import optax
    params = {"w%d" % i: jnp.eye(64) * 0.5 for i in range(10)}
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    state = optimizer.init(params)

    def loss(p, x):
        for name in sorted(p):
            x = jnp.tanh(x @ p[name])
        return jnp.mean(x ** 2)

    gradients = jax.jit(jax.grad(loss))

    def update(p, state, x):
        updates, state = optimizer.update(gradients(p, x), state, p)  # here
        return optax.apply_updates(p, updates), state  # here

    step = jax.jit(update) if FIXED else update
    for (x,) in loader:
        mark()
        params, state = step(params, state, x.numpy())  # here
        jax.block_until_ready(params)
    return 100


@job(9, "compute", ["compute.*"], 80, LIBRARIES,
     note="no defect: a net of flax, jitted with its optimizer, its batches from a DataLoader, the loss read each ten steps")
def r_fx_healthy():
    jax, loader = jax_and_loader(80, batch=256)
    import jax.numpy as jnp
    import optax
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(3):
                x = nn.LayerNorm()(nn.gelu(nn.Dense(384)(x)))
            return nn.Dense(1)(x)

    net, optimizer = Net(), optax.adam(1e-3)
    params = net.init(jax.random.key(0), jnp.ones((1, 64)))
    state = optimizer.init(params)

    @jax.jit
    def step(p, state, x):
        value, grads = jax.value_and_grad(lambda p: jnp.mean(net.apply(p, x) ** 2))(p)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(p, updates), state, value

    for i, (x,) in enumerate(loader):
        mark()
        params, state, value = step(params, state, x.numpy())
        jax.block_until_ready(value)
        if i % 10 == 9:
            print("step %d loss %.4f" % (i + 1, float(value)), flush=True)
    return 80


def lightning_trainer(module, loader, **more):
    import logging
    import warnings
    import lightning
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, **more)
    trainer.fit(module, *loader)  # here


@job(9, "host", ["host.callback", "host.python"], 120, LIBRARIES, twin=True, at=(lightning_trainer,),
     note="Lightning: the area under the curve of all predictions so far is computed after each batch; fix: at the end")
def r_li_metric():
    torch = pytorch()
    import lightning
    import torchmetrics
    data = torch.utils.data.TensorDataset(torch.randn(120 * 192, 32), torch.randint(0, 2, (120 * 192,)))

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = wide_net(torch, 32, 64)[0]
            self.area = torchmetrics.AUROC(task="binary")

        def training_step(self, batch, i):
            mark()
            x, y = batch
            out = self.net(x).squeeze(1)
            self.area.update(out.detach().sigmoid(), y)  # here
            if not FIXED:
                self.last = self.area.compute()  # here
                self.area._computed = None
            return torch.nn.functional.binary_cross_entropy_with_logits(out, y.float())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    lightning_trainer(Net(), [torch.utils.data.DataLoader(data, batch_size=192)])
    return 120


@job(9, "any", ["*"], 60, LIBRARIES, says="(?i)evaluation",
     note="Lightning: all of the validation set, 30 batches, is run after each five steps")
def r_li_validate():
    torch = pytorch()
    import lightning
    rows = torch.utils.data.TensorDataset(torch.randn(60 * 32, 256)), torch.utils.data.TensorDataset(torch.randn(30 * 32, 256))

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = wide_net(torch, 256, 256)[0]

        def training_step(self, batch, i):
            mark()
            return self.net(batch[0]).square().mean()

        def validation_step(self, batch, i):
            return self.net(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    lightning_trainer(Net(), [torch.utils.data.DataLoader(d, batch_size=32) for d in rows], val_check_interval=5, num_sanity_val_steps=0)
    return 60


@job(9, "compute", ["compute.*"], 40, LIBRARIES,
     note="no defect: accelerate accumulates the gradients of four batches for each of 40 steps")
def r_ac_accumulate():
    torch = pytorch()
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    model, optimizer = wide_net(torch, 256, 768)
    data = torch.utils.data.TensorDataset(torch.randn(160 * 64, 256))
    model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, batch_size=64))
    for i, (x,) in enumerate(loader):
        if i % 4 == 0:
            mark()
        with accelerator.accumulate(model):
            loss = model(x).square().mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return 40


@job(9, "host", ["host.compile"], 40, LIBRARIES, twin=True,
     note="torch.compile without dynamic shapes gets a batch of another size in each step, and traces anew; fix: one size")
def r_pt_sizes():
    torch = pytorch()
    import torch._dynamo as dynamo
    dynamo.config.recompile_limit = dynamo.config.accumulated_recompile_limit = 1000
    model, optimizer = wide_net(torch, 64, 64)
    model = torch.compile(torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(6))),
                          backend="aot_eager", dynamic=False)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for i in range(40):
        mark()
        x = torch.randn(32 if FIXED else 16 + i, 64)
        optimizer.zero_grad()
        loss = model(x).square().mean()  # here
        loss.backward()  # here
        optimizer.step()
    return 40


@job(9, "host", ["host.python"], 60, LIBRARIES, twin=True,
     note="an agent: 64 environments are stepped one by one in Python for 16 moves, then one update; fix: as arrays of numpy")
def r_rl_agents():
    torch = pytorch()
    policy, optimizer = wide_net(torch, 4, 64)
    states = np.zeros((64, 4))

    def move(state, force):
        x, v, angle, turn = state
        acceleration = (force + 0.05 * turn * turn * np.sin(angle)) / 1.1
        return np.array([x + 0.02 * v, v + 0.02 * acceleration, angle + 0.02 * turn, turn + 0.02 * (9.8 * np.sin(angle) - acceleration)])

    for update in range(60):
        mark()
        seen, rewards = [], []
        for _ in range(16):
            with torch.no_grad():
                forces = policy(torch.from_numpy(states).float()).squeeze(1).numpy()
            if FIXED:
                states = move(states.T, forces).T.clip(-2, 2)
            else:
                states = np.stack([move(s, f) for s, f in zip(states, forces)]).clip(-2, 2)  # here
            seen.append(states)
            rewards.append(1 - np.abs(states[:, 2]))
        x = torch.from_numpy(np.concatenate(seen)).float()
        optimizer.zero_grad()
        loss = (policy(x).squeeze(1) * torch.from_numpy(np.concatenate(rewards)).float()).mean()
        loss.backward()
        optimizer.step()
    return 60


@job(9, "host", ["host.python", "host.callback"], 140, LIBRARIES, twin=True,
     note="a GAN whose averaged generator is a deep copy of the state, made after each step, and compared by Python; fix: in place")
def r_pt_gan():
    torch = pytorch()
    (g, og), (d, od) = wide_net(torch, 64, 256), wide_net(torch, 1, 64)
    average = copy.deepcopy(g.state_dict())

    def follow():
        nonlocal average
        if FIXED:
            for name, value in g.state_dict().items():
                average[name].lerp_(value, 0.01)
            return
        fresh = copy.deepcopy(g.state_dict())  # here
        average = {k: torch.tensor([0.99 * a + 0.01 * b for a, b in zip(average[k].flatten().tolist()[:9000],  # here
                                                                        v.flatten().tolist()[:9000])]) for k, v in fresh.items()}  # here

    noise = torch.randn(32, 64)
    for i in range(140):
        mark()
        od.zero_grad()
        (d(g(noise).detach()).mean() - d(torch.ones(32, 1)).mean()).backward()
        od.step()
        og.zero_grad()
        (-d(g(noise)).mean()).backward()
        og.step()
        follow()  # here
    return 140


@job(9, "any", ["*"], 150, NUMBA, every_kernel("300us"), says="(?i)request", never_first=r"(?m)^  gain +step",
     note="no defect: a server's thread takes requests, which come at random, from a queue, and answers each")
def r_nb_answers():
    from numba import cuda

    @cuda.jit
    def layer(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * 0.5

    requests, rng = queue.Queue(), np.random.default_rng(1)

    def clients():
        for i in range(150):
            time.sleep(rng.exponential(0.012))
            requests.put((i, np.full(4096, i, np.float32)))
        requests.put(None)

    threading.Thread(target=clients, daemon=True).start()
    answers, y = {}, cuda.device_array(4096, np.float32)
    while (request := requests.get()) is not None:
        mark()
        number, x = request
        on_device = cuda.to_device(x)
        for _ in range(3):
            layer[16, 256](on_device, y)
        answers[number] = y.copy_to_host()[:8]
    with open(temporary("answers"), "w") as f:
        f.write(str(len(answers)))
    return 150


if __name__ == "__main__":
    main()
