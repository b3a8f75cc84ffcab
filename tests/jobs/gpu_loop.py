"""A training-like loop on the GPU, through cuda-bindings, whose batches come from real tf.data or from plain Python; truth
for the tests of the verdict. Works on a real GPU as well as on the simulated one.

usage: gpu_loop.py [options]

--input WHICH    tfdata: a pipeline with a map and a final prefetch; python: a function of plain Python (tfdata)
--slow MS        what the map, or the function, takes for a batch (0)
--copy BYTES     copied to the device in a step (64 KiB)
--pinned         from pinned memory
--launches N     kernels of a step (1)
--kernel US      what each kernel takes (2000)
--steps N        steps (60)
--out            also copy as many bytes back
--times          list begin and end of every step in the result

Each step prints a line when it is done. The last line of the output is a JSON object: "steps" done, "loss" (a sum over
bytes that went to the device and came back), "step_s" (median), with --times "begin" and "end" in seconds of
CLOCK_MONOTONIC.
"""
import argparse
import ctypes
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
from cuda.bindings import driver as cu

BATCH = 4096
PTX = b""".version 7.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 ns)
{
	.reg .u64 %t<4>;
	.reg .pred %p;
	ld.param.u64 %t0, [ns];
	mov.u64 %t1, %globaltimer;
AGAIN:
	mov.u64 %t2, %globaltimer;
	sub.u64 %t3, %t2, %t1;
	setp.lt.u64 %p, %t3, %t0;
	@%p bra AGAIN;
	ret;
}
\0"""


def arguments():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--input", default="tfdata", choices=["tfdata", "python"])
    p.add_argument("--slow", type=float, default=0)
    p.add_argument("--copy", type=float, default=1 << 16)
    p.add_argument("--pinned", action="store_true")
    p.add_argument("--launches", type=int, default=1)
    p.add_argument("--kernel", type=float, default=2000)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--out", action="store_true")
    p.add_argument("--times", action="store_true")
    return p.parse_args()


A = arguments()
BYTES = max(int(A.copy), BATCH)


def ok(result):
    """The values of a call; stops the program on an error."""
    if result[0] != cu.CUresult.CUDA_SUCCESS:
        sys.exit("gpu_loop: " + result[0].name)
    return result[1] if len(result) == 2 else result[1:]


def slowly(batch):
    if A.slow:
        time.sleep(A.slow / 1e3)
    return batch


def batches():
    numbers = np.arange(A.steps * BATCH).astype(np.uint8).reshape(A.steps, BATCH)
    if A.input == "python":
        for row in numbers:
            yield slowly(row)
        return
    import tensorflow as tf
    data = tf.data.Dataset.from_tensor_slices(numbers)
    data = data.map(lambda row: tf.numpy_function(slowly, [row], tf.uint8)).prefetch(tf.data.AUTOTUNE)
    for row in data:
        yield row.numpy()


class Device:
    def __init__(self):
        ok(cu.cuInit(0))
        ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(0))))))
        self.spin = ok(cu.cuModuleGetFunction(ok(cu.cuModuleLoadData(PTX)), b"spin"))
        self.memory = ok(cu.cuMemAlloc(BYTES))
        self.stream = ok(cu.cuStreamCreate(1))
        self.host, self.back = self.array(), self.array()
        self.arguments = ((int(A.kernel * 1e3),), (ctypes.c_uint64,))

    def array(self):
        if not A.pinned:
            return np.zeros(BYTES, np.uint8)
        address = int(ok(cu.cuMemHostAlloc(BYTES, 0)))
        return np.frombuffer((ctypes.c_uint8 * BYTES).from_address(address), np.uint8)

    def step(self, batch):
        self.host[:BATCH] = batch
        if A.copy:
            ok(cu.cuMemcpyHtoDAsync(self.memory, self.host.ctypes.data, int(A.copy), self.stream))
        for _ in range(A.launches):
            ok(cu.cuLaunchKernel(self.spin, 1, 1, 1, 1, 1, 1, 0, self.stream, self.arguments, 0))
        if A.out:
            ok(cu.cuMemcpyDtoHAsync(self.back.ctypes.data, self.memory, BYTES, self.stream))
        ok(cu.cuStreamSynchronize(self.stream))
        return int(self.back[:BATCH].sum()) if A.out else int(self.host[:BATCH].sum())


def main():
    device = Device()
    begin, end, loss = [], [], 0
    print("pid %d" % os.getpid(), flush=True)
    last = time.monotonic()
    for batch in batches():
        loss += device.step(batch)
        begin.append(last)
        last = time.monotonic()
        end.append(last)
        print("step %d" % len(end), flush=True)
    took = sorted(e - b for b, e in zip(begin, end))
    result = {"steps": len(took), "loss": loss, "step_s": took[len(took) // 2]}
    if A.times:
        result.update(begin=begin, end=end)
    print(json.dumps(result), flush=True)


main()
