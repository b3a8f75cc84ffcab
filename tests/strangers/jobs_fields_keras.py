"""Batch 15: TensorFlow and Keras, Flax, and a server, on the processor."""
import asyncio
import json
import math
import multiprocessing
import os
import time

import numpy as np
from stranger import FIXED, FRAMEWORKS, LIBRARIES, MAIN, job, main, mark, pytorch, temporary, tensorflow


@job(15, "host", ["host.callback", "host.python"], 400, MAIN, twin=True,
     note="a callback predicts after every fifth batch; fix: at the end of each epoch")
def t_tickets_keras():
    tf, keras = tensorflow()
    layers = keras.layers
    keras.utils.set_random_seed(1)
    VOCAB, LENGTH, QUEUES = 4000, 64, 8

    def tickets(n, seed):
        g = np.random.default_rng(seed)
        y = g.integers(0, QUEUES, n)
        words, signs = g.zipf(1.3, (n, LENGTH)) % VOCAB, 100 + 37 * y[:, None] + g.integers(0, 20, (n, LENGTH))
        x = np.where(g.random((n, LENGTH)) < 0.15, signs, words)
        return x.astype("int32"), y.astype("int32")

    def macro_f1(y, p):
        return float(np.mean([2 * np.sum((p == c) & (y == c)) / max(1, np.sum(p == c) + np.sum(y == c)) for c in range(QUEUES)]))

    class F1Tracker(keras.callbacks.Callback):
        def __init__(self, x, y):
            super().__init__()
            self.x, self.y, self.curve, self.count = x, y, [], 0

        def track(self):
            p = self.model.predict(self.x, batch_size=64, verbose=0).argmax(1)  # here
            self.curve.append(macro_f1(self.y, p))

        def on_train_batch_begin(self, batch, logs=None):
            mark()

        def on_train_batch_end(self, batch, logs=None):
            self.count += 1
            if not FIXED and self.count % 5 == 0:
                self.track()  # here

        def on_epoch_end(self, epoch, logs=None):
            self.track()

    model = keras.Sequential([keras.Input((LENGTH,), dtype="int32"), layers.Embedding(VOCAB, 64),
                              layers.Conv1D(96, 5, activation="relu"), layers.GlobalMaxPooling1D(), layers.Dropout(0.3),
                              layers.Dense(QUEUES, activation="softmax")])
    model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    x, y = tickets(6400, 1)
    xv, yv = tickets(1024, 2)
    model.fit(x, y, batch_size=32, epochs=2, verbose=0, callbacks=[F1Tracker(xv[:256], yv[:256])], validation_data=(xv, yv))
    return 400


@job(15, "input", ["input.map", "input.decode"], 300, MAIN, twin=True,
     note="tf.data parses CSV line by line, before it makes batches; fix: batch by batch")
def t_fares_csv():
    tf, _ = tensorflow()
    tf.config.threading.set_inter_op_parallelism_threads(2)
    COLUMNS, BATCH = 24, 512
    path = temporary("fares.csv")
    g = np.random.default_rng(0)
    np.savetxt(path, g.normal(size=(20_000, COLUMNS)).round(4), delimiter=",", fmt="%g")

    def parse(line):  # here
        fields = tf.io.decode_csv(line, [0.0] * COLUMNS)
        return (tf.stack(fields[:-1], axis=-1) - 0.1) / 1.2, fields[-1]

    lines = tf.data.TextLineDataset(path, buffer_size=1 << 20).repeat().shuffle(4096, seed=1)
    if FIXED:
        data = lines.batch(BATCH, drop_remainder=True).map(parse).prefetch(2)
    else:
        data = lines.map(parse).batch(BATCH, drop_remainder=True).prefetch(2)  # here
    sizes = (COLUMNS - 1, 128, 128, 1)
    weights = [tf.Variable(tf.random.normal(s) * (2 / s[0]) ** 0.5) for s in zip(sizes, sizes[1:])]
    opt = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            for w in weights[:-1]:
                x = tf.nn.elu(x @ w)
            loss = tf.reduce_mean(tf.keras.losses.huber(y, tf.squeeze(x @ weights[-1], -1), delta=2.0))
        grads, _ = tf.clip_by_global_norm(tape.gradient(loss, weights), 5.0)
        opt.apply_gradients(zip(grads, weights))
        return loss

    for x, y in data.take(300):
        mark()
        loss = train_step(x, y)
    print(float(loss))
    return 300


@job(15, "host", ["host.compile"], 240, LIBRARIES, twin=True,
     note="the learning rate is a static argument of a jitted step and changes five times; fix: an argument like others. JAX shows no "
          "steps on the processor")
def t_flax_schedule():
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import optax
    from flax.training import train_state
    VOCAB, LENGTH, BATCH, WIDTH = 64, 48, 8, 64

    class CharLM(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(VOCAB, WIDTH)(tokens) + nn.Embed(LENGTH, WIDTH)(jnp.arange(LENGTH))
            x = x + nn.SelfAttention(num_heads=4)(nn.LayerNorm()(x), mask=nn.make_causal_mask(x[..., 0]))
            x = x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))))
            return nn.Dense(VOCAB)(nn.LayerNorm()(x))

    def update(state, tokens, lr):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=jax.tree.map(lambda g: g * lr, grads)), loss

    train_step = jax.jit(update) if FIXED else jax.jit(update, static_argnames="lr")
    g = np.random.default_rng(1)
    text = g.integers(0, VOCAB, 60_000).astype(np.int32)
    model = CharLM()
    params = model.init(jax.random.key(0), jnp.zeros((BATCH, LENGTH), jnp.int32))["params"]
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(3e-4))
    for step in range(240):
        mark()
        at = g.integers(0, len(text) - LENGTH - 1, BATCH)
        tokens = jnp.asarray(text[at[:, None] + np.arange(LENGTH + 1)])
        rate = round(0.5 * (1 + math.cos(math.pi * (step // 40 * 40) / 240)), 4)
        state, loss = train_step(state, tokens, lr=rate)  # here
        loss = float(loss)
    return 240


USERS, ROUNDS = 8, 150


def send_requests(path):
    words = "the order arrived late and the parcel was open please send a new one or refund my card today".split()

    async def one(k):
        reader, writer = await asyncio.open_unix_connection(path, limit=1 << 20)
        for i in range(ROUNDS):
            text = " ".join(words[(k + i * 7 + j) % len(words)] for j in range(12 + (i + k) % 20))
            writer.write((json.dumps({"text": text}) + "\n").encode())
            await reader.readline()
        writer.close()

    async def everyone():
        await asyncio.gather(*map(one, range(USERS)))

    while not os.path.exists(path):
        time.sleep(0.05)
    asyncio.run(everyone())


@job(15, "host", ["host.sleep", "host.wait"], ROUNDS, FRAMEWORKS, twin=True,
     note="a server's batches never fill, so each waits 25 ms for more; fix: as many as there are users. Inference of "
          "PyTorch's shows no steps")
def t_embed_server():
    torch = pytorch()
    from transformers import BertConfig, BertModel
    conf = BertConfig(vocab_size=1000, hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512)
    model = BertModel(conf).eval()

    async def collect(queue):
        items = [await queue.get()]
        clock = asyncio.get_running_loop().time
        deadline = clock() + 0.025
        while len(items) < (USERS if FIXED else 32):
            try:
                items.append(await asyncio.wait_for(queue.get(), deadline - clock()))  # here
            except asyncio.TimeoutError:
                break
        return items

    @torch.inference_mode()
    def embed(texts):
        ids = [[2 + sum(map(ord, w)) % 997 for w in t.split()][:48] for t in texts]
        n = max(map(len, ids))
        x = torch.tensor([i + [0] * (n - len(i)) for i in ids])
        mask = (x != 0).long()
        h = model(input_ids=x, attention_mask=mask).last_hidden_state
        return ((h * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)).tolist()

    async def answer(queue, count):
        while True:
            mark()
            items = await collect(queue)
            for (_, future), v in zip(items, embed([text for text, _ in items])):
                future.set_result(v)
            count.append(len(items))

    async def serve():
        queue, count = asyncio.Queue(), []

        async def handle(reader, writer):
            while line := await reader.readline():
                future = asyncio.get_running_loop().create_future()
                await queue.put((json.loads(line)["text"], future))
                writer.write((json.dumps({"v": await future}) + "\n").encode())
            writer.close()

        task = asyncio.create_task(answer(queue, count))
        load = multiprocessing.get_context("spawn").Process(target=send_requests, args=(temporary("socket"),))
        load.start()
        server = await asyncio.start_unix_server(handle, temporary("socket"))
        while load.is_alive():
            await asyncio.sleep(0.1)
        server.close()
        task.cancel()
        return len(count)

    return asyncio.run(serve())


if __name__ == "__main__":
    main()
