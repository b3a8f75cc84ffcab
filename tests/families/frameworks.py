"""How each framework says what a training job does: lines of code by name.

send: a small batch to the device; micro: forward and backward; update; wait; loss: a number fetched; score: a batch of an evaluation.
`lines` of a defect that needs the device stand here, too. `kernels` says how long kernels take on the simulated GPU, from the drawn ms of
computing in a step; a framework without them computes on the processor.
"""
import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Framework:
    env: str
    setup: str
    send: str
    micro: str
    update: str
    wait: str
    loss: str
    score: str
    on_device: bool = True
    defects: dict = dataclasses.field(default_factory=dict)


NUMBA = Framework("client-numba", """
import warnings
import numpy as np
from numba import cuda
warnings.filterwarnings("ignore")


@cuda.jit
def {fwd}_fwd(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += x[i]


@cuda.jit
def {fwd}_bwd(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] -= x[i]


@cuda.jit
def {fwd}_opt(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] *= x[i]


X = cuda.to_device(np.ones(1 << 14, np.float32))
Y = cuda.to_device(np.ones(1 << 14, np.float32))
BATCH = np.ones(1 << 14, np.float32)
""", """
BATCH[0] = {batch}
X.copy_to_device(BATCH)
""", """
{fwd}_fwd[64, 256](X, Y)
{fwd}_bwd[64, 256](X, Y)
""", """
{fwd}_opt[64, 256](X, Y)
""", "cuda.synchronize()", "loss = float(Y[:1].copy_to_host()[0])", """
X.copy_to_device(BATCH)
{fwd}_fwd[64, 256](X, Y)
Y.copy_to_host(OUT)
""", defects={
    "copy-pageable": ("TABLE = np.ones({megabytes} << 18, np.float32)\nON_DEVICE = cuda.to_device(TABLE)", "ON_DEVICE.copy_to_device(TABLE)  # here"),
    "fetch-large": ("TABLE = np.ones({megabytes} << 18, np.float32)\nON_DEVICE = cuda.to_device(TABLE)", "ON_DEVICE.copy_to_host(TABLE)  # here"),
    "copies-small": ("", "for k in range({copies} // 4):  # here\n    X[k:k + 16].copy_to_device(BATCH[:16])  # here"),
    "launches": ("""
@cuda.jit
def tiny(y):
    y[0] += 1
""", "for k in range({launches}):  # here\n    tiny[1, 32](Y)  # here"),
})

PTX = '''PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry {fwd}_fwd(.param .u64 x, .param .f32 a, .param .u32 n) { ret; }
.visible .entry {fwd}_bwd(.param .u64 x, .param .f32 a, .param .u32 n) { ret; }
.visible .entry {fwd}_opt(.param .u64 x, .param .f32 a, .param .u32 n) { ret; }
.visible .entry tiny(.param .u64 x, .param .f32 a, .param .u32 n) { ret; }
\\0"""'''

PYCUDA = Framework("client-pycuda", """
import atexit
import numpy as np
import pycuda.driver as drv
""" + PTX + """
drv.init()
CONTEXT = drv.Device(0).make_context()
atexit.register(CONTEXT.pop)
MODULE = drv.module_from_buffer(PTX)
FWD, BWD, OPT, TINY = [MODULE.get_function(name) for name in ("{fwd}_fwd", "{fwd}_bwd", "{fwd}_opt", "tiny")]
X = drv.mem_alloc(1 << 16)
BATCH = np.ones(1 << 14, np.float32)
SHAPE = dict(block=(256, 1, 1), grid=(64, 1))
""", """
BATCH[0] = {batch}
drv.memcpy_htod(X, BATCH)
""", """
FWD(X, np.float32(2), np.uint32(1 << 14), **SHAPE)
BWD(X, np.float32(2), np.uint32(1 << 14), **SHAPE)
""", """
OPT(X, np.float32(2), np.uint32(1 << 14), **SHAPE)
""", "drv.Context.synchronize()", "drv.memcpy_dtoh(BATCH[:1], X)", """
drv.memcpy_htod(X, BATCH)
FWD(X, np.float32(2), np.uint32(1 << 14), **SHAPE)
drv.memcpy_dtoh(OUT, X)
""", defects={
    "copy-pageable": ("TABLE = np.ones({megabytes} << 18, np.float32)\nON_DEVICE = drv.mem_alloc(TABLE.nbytes)", "drv.memcpy_htod(ON_DEVICE, TABLE)  # here"),
    "fetch-large": ("TABLE = np.ones({megabytes} << 18, np.float32)\nON_DEVICE = drv.mem_alloc(TABLE.nbytes)", "drv.memcpy_dtoh(TABLE, ON_DEVICE)  # here"),
    "copies-small": ("", "for k in range({copies}):  # here\n    drv.memcpy_htod(int(X) + 64 * k % 4096, BATCH[:16])  # here"),
    "launches": ("", "for k in range({launches}):  # here\n    TINY(X, np.float32(k), np.uint32(1), block=(32, 1, 1), grid=(1, 1))  # here"),
})

# Its calls all pass through device.py, so no line of the job itself is asked for where the defect is a call.
DRIVER = Framework("main", """
sys.path.insert(0, JOBS)
from device import Device
D = Device(64)
""", "D.up(65536)", """
D.run({fwd_ms}, "forward")
D.run({bwd_ms}, "backward")
""", 'D.run({opt_ms}, "update")', "D.sync()", "D.down()", """
D.up(65536)
D.run({fwd_ms}, "forward")
D.down()
""", defects={
    "copy-pageable": ("", "D.up({megabytes} << 20)"),
    "fetch-large": ("", "D.down({megabytes} << 20)"),
})

TORCH = Framework("torch", """
import torch
torch.set_num_threads(1)
NET = torch.nn.Sequential(torch.nn.Linear(64, {width}), torch.nn.ReLU(), torch.nn.Linear({width}, {width}), torch.nn.ReLU(), torch.nn.Linear({width}, 1))
OPT = torch.optim.SGD(NET.parameters(), 0.001)
DATA = torch.randn(32, 64)
""", "x = DATA + 0.01 * ({batch})", """
loss = NET(x).square().mean()
loss.backward()
""", """
OPT.step()
OPT.zero_grad()
""", "", "value = loss.item()", """
with torch.no_grad():
    NET(DATA).sum().item()
""", on_device=False)

TENSORFLOW = Framework("main", """
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
import tensorflow as tf
NET = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense({width}, "relu"), tf.keras.layers.Dense({width}, "relu"), tf.keras.layers.Dense(1)])
SGD = tf.keras.optimizers.SGD(0.001)
DATA = tf.random.normal((32, 64))


@tf.function
def learn(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(NET(x, training=True) ** 2)
    SGD.apply_gradients(zip(tape.gradient(loss, NET.trainable_variables), NET.trainable_variables))
    return loss


@tf.function
def infer(x):
    return tf.reduce_sum(NET(x, training=False))
""", "x = DATA + 0.01 * float({batch})", "loss = learn(x)", "", "", "value = float(loss)", "infer(DATA).numpy()", on_device=False)

FRAMEWORKS = {"numba": NUMBA, "pycuda": PYCUDA, "driver": DRIVER, "torch": TORCH, "tensorflow": TENSORFLOW}


def width(ms):
    """Of a layer, so that a step computes some ms on one processor."""
    return int(128 * math.sqrt(max(1.0, ms * 3)))
