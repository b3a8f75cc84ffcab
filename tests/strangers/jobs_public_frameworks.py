"""Batch 32: Lightning, JAX, Keras and ranks of PyTorch as public repositories use them, on the processor."""
import multiprocessing
import os
import socket

import numpy as np
from stranger import FIXED, JAX, LIBRARIES, MAIN, TORCH, job, main, mark, marks, pytorch, quiet_tensorflow, temporary

HEALTHY = ["compute.cpu", "compute.dense", "compute.dominant-op"]


@job(32, "host or compute", ["host.checkpoint", *HEALTHY], 90, LIBRARIES, says=r"(?i)checkpoint|save",
     note="each short epoch ends with two checkpoints of everything, most of it a table that does not learn; its steps only "
          "compute. Fix: once at the end")
def s_li_checkpoint_all():
    import logging

    import lightning
    from lightning.pytorch.callbacks import Callback, ModelCheckpoint
    torch = pytorch()
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    WORDS, EPOCHS = 300_000, 6

    class Ranker(lightning.LightningModule):
        def __init__(self, dim=64):
            super().__init__()
            self.table = nn.Embedding(WORDS, dim)
            self.table.weight.requires_grad_(False)
            layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, batch_first=True, norm_first=True)
            self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(dim, 2)

        def forward(self, x):
            return self.head(self.body(self.table(x)).mean(1))

        def training_step(self, batch, index):
            loss = F.cross_entropy(self(batch[0]), batch[1])
            self.log("train_loss", loss)
            return loss

        def validation_step(self, batch, index):
            self.log("val_loss", F.cross_entropy(self(batch[0]), batch[1]))

        def configure_optimizers(self):
            opt = torch.optim.AdamW([p for p in self.parameters() if p.requires_grad], lr=5e-4)
            return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.StepLR(opt, 2)}

    class Marks(Callback):
        def on_train_batch_start(self, *args):
            mark()

    def loader(n):
        data = torch.utils.data.TensorDataset(torch.randint(WORDS, (n, 48)), torch.randint(2, (n,)))
        return torch.utils.data.DataLoader(data, 24, shuffle=n > 100)

    best = ModelCheckpoint(temporary("best"), monitor="val_loss", save_top_k=-1)
    last = ModelCheckpoint(temporary("last"), save_last=True, filename="{epoch}-all", save_top_k=-1, every_n_epochs=EPOCHS if FIXED else 1)
    trainer = lightning.Trainer(max_epochs=EPOCHS, accelerator="cpu", logger=False, enable_progress_bar=False,
                                enable_model_summary=False, callbacks=[Marks(), last, *([] if FIXED else [best])])
    trainer.fit(Ranker(), loader(360), loader(72))
    return trainer.global_step


@job(32, "host", ["host.launch", "host.python", "host.code", "host.compile"], 40, JAX, twin=True,
     note="the advantages are made backwards in time by a Python loop of single operations; fix: lax.scan in a jitted function. "
          "An update with all of its minibatches is a step")
def s_jx_ppo_gae():
    import jax
    import jax.numpy as jnp
    ENVS, LENGTH, OBS, ACTIONS, UPDATES = 16, 64, 24, 6, 40
    key = jax.random.PRNGKey(0)

    def dense(key, a, b):
        return {"w": jax.random.normal(key, (a, b)) / a ** 0.5, "b": jnp.zeros(b)}

    k = jax.random.split(key, 4)
    params = {"trunk": [dense(k[0], OBS, 128), dense(k[1], 128, 128)], "pi": dense(k[2], 128, ACTIONS), "v": dense(k[3], 128, 1)}
    world = jax.random.normal(jax.random.PRNGKey(1), (OBS + ACTIONS, OBS)) / 5

    def apply(params, x):
        for layer in params["trunk"]:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return x @ params["pi"]["w"] + params["pi"]["b"], (x @ params["v"]["w"] + params["v"]["b"])[..., 0]

    @jax.jit
    def rollout(params, obs, key):
        def one(carry, key):
            obs = carry
            logits, value = apply(params, obs)
            action = jax.random.categorical(key, logits)
            after = jnp.tanh(jnp.concatenate([obs, jax.nn.one_hot(action, ACTIONS)], -1) @ world)
            logp = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
            done = (after[:, 0] > 0.8).astype(jnp.float32)
            return after, (obs, action, logp, value, after[:, 1], done)
        return jax.lax.scan(one, obs, jax.random.split(key, LENGTH))

    def gae(rewards, values, dones, last, gamma=0.99, lam=0.95):
        advantages, running = jnp.zeros_like(rewards), jnp.zeros(ENVS)
        for t in reversed(range(LENGTH)):  # here
            after = last if t == LENGTH - 1 else values[t + 1]  # here
            alive = 1.0 - dones[t]  # here
            delta = rewards[t] + gamma * after * alive - values[t]  # here
            running = delta + gamma * lam * alive * running  # here
            advantages = advantages.at[t].set(running)  # here
        return advantages, advantages + values

    @jax.jit
    def gae_fast(rewards, values, dones, last, gamma=0.99, lam=0.95):
        def one(carry, x):
            running, after = carry
            reward, value, done = x
            running = reward + gamma * after * (1 - done) - value + gamma * lam * (1 - done) * running
            return (running, value), running
        _, advantages = jax.lax.scan(one, (jnp.zeros(ENVS), last), (rewards, values, dones), reverse=True)
        return advantages, advantages + values

    @jax.jit
    def update(params, moments, batch):
        def loss(params):
            obs, action, logp, advantage, goal = batch
            logits, value = apply(params, obs)
            logs = jax.nn.log_softmax(logits)
            ratio = jnp.exp(jnp.take_along_axis(logs, action[:, None], 1)[:, 0] - logp)
            a = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            clipped = jnp.minimum(ratio * a, jnp.clip(ratio, 0.8, 1.2) * a).mean()
            return -clipped + 0.5 * ((value - goal) ** 2).mean() + 0.01 * (jnp.exp(logs) * logs).sum(-1).mean()
        value, grads = jax.value_and_grad(loss)(params)
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)
        return jax.tree.map(lambda p, m: p - 1e-3 * m, params, moments), moments, value

    moments = jax.tree.map(jnp.zeros_like, params)
    obs = jax.random.normal(key, (ENVS, OBS))
    g = np.random.default_rng(0)
    for n in range(UPDATES):
        mark()
        key, sub = jax.random.split(key)
        obs, (o, action, logp, value, reward, done) = rollout(params, obs, sub)
        _, last = apply(params, obs)
        advantage, goal = (gae_fast if FIXED else gae)(reward, value, done, last)  # here
        flat = [x.reshape(-1, *x.shape[2:]) for x in (o, action, logp, advantage, goal)]
        for _ in range(4):
            order = g.permutation(ENVS * LENGTH)
            for part in order.reshape(4, -1):
                params, moments, loss = update(params, moments, [x[part] for x in flat])  # here
        if n % 10 == 9:
            print("update %d loss %.4f reward %.3f" % (n, loss, reward.mean()))
    return UPDATES


@job(32, "compute", HEALTHY, 80, MAIN,
     note="healthy: Keras segments pictures, which are prepared ahead of it; an epoch is 40 steps, with a validation")
def s_kr_unet():
    tf, keras = quiet_tensorflow()
    L = keras.layers
    SIZE = 48

    def conv(x, width):
        for _ in range(2):
            x = L.Activation("relu")(L.BatchNormalization()(L.Conv2D(width, 3, padding="same", use_bias=False)(x)))
        return x

    inputs = keras.Input((SIZE, SIZE, 3))
    a = conv(inputs, 16)
    b = conv(L.MaxPooling2D()(a), 32)
    c = conv(L.MaxPooling2D()(b), 64)
    b = conv(L.Concatenate()([L.UpSampling2D()(c), b]), 32)
    a = conv(L.Concatenate()([L.UpSampling2D()(b), a]), 16)
    model = keras.Model(inputs, L.Conv2D(4, 1)(a))
    model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(1e-3, 100)),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    g = np.random.default_rng(0)
    x = g.normal(size=(320, SIZE, SIZE, 3)).astype("float32")
    y = (x[..., 0] > 0).astype("int32") + 2 * (x[..., 1] > 0)

    def flip(x, y):
        both = tf.concat([x, tf.cast(y, tf.float32)[..., None]], -1)
        both = tf.image.random_flip_left_right(both)
        return both[..., :3], tf.cast(both[..., 3], tf.int32)

    train = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(320).map(flip, num_parallel_calls=2).batch(8).prefetch(2)
    valid = tf.data.Dataset.from_tensor_slices((x[:32], y[:32])).batch(8)
    model.fit(train, epochs=2, verbose=0, validation_data=valid, callbacks=[marks(keras), keras.callbacks.EarlyStopping(patience=3)])
    return 80


def rank(number, port, folder, steps):
    """One of two ranks; the first also looks at its samples and writes them, for the other to wait."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch = pytorch()
    nn, F, dist = torch.nn, torch.nn.functional, torch.distributed
    dist.init_process_group("gloo", rank=number, world_size=2)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 256))
    model = nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(number)
    shown = open(os.path.join(folder, "shown.txt"), "w") if number == 0 else None

    def show(step, x, out):
        """A picture of the first samples, as text."""
        shades = " .:-=+*#%@"
        for picture in torch.cat([x[:6], out[:6]]).view(-1, 16, 16).tolist():
            low, high = min(map(min, picture)), max(map(max, picture))
            for row in picture:
                shown.write("".join(shades[int(9 * (v - low) / (high - low + 1e-6))] for v in row) + "\n")  # here
        shown.write("step %d: mean %.4f deviation %.4f\n" % (step, float(out.mean()), float(out.std())))
        shown.flush()

    for step in range(steps):
        if number == 0:
            mark()
        x = torch.randn(96, 256, generator=generator)
        out = model(x + 0.3 * torch.randn(x.shape, generator=generator))
        loss = F.mse_loss(out, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if number == 0 and (not FIXED or step % 50 == 0):
            with torch.no_grad():
                for _ in range(6):  # here
                    show(step, x, out.detach())  # here
    dist.barrier()
    dist.destroy_process_group()


@job(32, "host or communication", ["host.python", "host.logging", "communication.jitter", "host.code"], 120, TORCH, twin=True, at=(rank,),
     note="two ranks; the first writes its samples as text after each step, and the other waits for it; fix: after each 50th")
def s_pt_ddp_samples():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    other = multiprocessing.get_context("spawn").Process(target=rank, args=(1, port, temporary(), 120))
    other.start()
    rank(0, port, temporary(), 120)
    other.join()
    return 120


if __name__ == "__main__":
    main()
