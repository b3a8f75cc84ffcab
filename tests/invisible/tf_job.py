"""Trains with Keras on the processor and prints every loss to the last bit and a checksum of the weights:
tf_job.py [fit|mirrored|workers]; `workers` runs two processes that exchange gradients over loopback."""
import hashlib
import json
import os
import socket
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def dataset(tf):
    data = tf.data.Dataset.range(256).map(lambda i: tf.linspace(0.0, 1.0, 32) * (tf.cast(i, tf.float32) + 1) / 256)
    return data.map(lambda x: (x, tf.reduce_sum(x * x))).batch(32).prefetch(2)


def train(tf, strategy):
    with strategy.scope():
        net = tf.keras.Sequential([tf.keras.Input((32,)), tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(1)])
        net.compile("adam", "mse")
    losses = []
    tell = tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: losses.append(float(logs["loss"]).hex()))
    net.fit(dataset(tf), epochs=2, verbose=0, callbacks=[tell])
    weights = repr([w.tolist() for w in net.get_weights()])
    print("\n".join(losses), hashlib.sha256(weights.encode()).hexdigest(), sep="\n")


def train_by_hand(tf, strategy):
    """Keras 3 does not fit over several processes: a loop of its own does."""
    with strategy.scope():
        w = tf.Variable(tf.random.stateless_normal((32, 1), (7, 7)) * 0.1)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.squeeze(x @ w, 1) - y))
        gradient = tape.gradient(loss, w)
        everyone = tf.distribute.get_replica_context().all_reduce("sum", gradient)
        w.assign_sub(0.01 * everyone)
        return loss

    run = tf.function(lambda x, y: strategy.run(step, (x, y)))
    for _ in range(2):
        for x, y in dataset(tf):
            loss = run(x, y)
            print(float(strategy.reduce("sum", loss, axis=None)).hex())
    print(hashlib.sha256(repr(w.numpy().tolist()).encode()).hexdigest())


def ports(n):
    taken = [socket.socket() for _ in range(n)]
    for s in taken:
        s.bind(("127.0.0.1", 0))
    found = [s.getsockname()[1] for s in taken]
    for s in taken:
        s.close()
    return ["127.0.0.1:%d" % port for port in found]


def workers():
    addresses = ports(2)
    started = []
    for index in range(2):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        started.append(subprocess.Popen([sys.executable, __file__, "worker"], stdout=subprocess.PIPE,
                                        env=dict(os.environ, TF_CONFIG=json.dumps(config))))
    told = [p.communicate()[0] for p in started]
    sys.stdout.write("".join(out.decode() for out in told))
    sys.exit(max(p.returncode for p in started))


def main(how):
    if how == "workers":
        workers()
    import tensorflow as tf
    tf.keras.utils.set_random_seed(7)
    tf.config.experimental.enable_op_determinism()
    tf.config.threading.set_inter_op_parallelism_threads(2)
    if how == "mirrored":
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    elif how == "worker":
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        train_by_hand(tf, strategy)
        return
    else:
        strategy = tf.distribute.get_strategy()
    train(tf, strategy)


main(sys.argv[1] if len(sys.argv) > 1 else "fit")
