"""A training-like loop through cuda-bindings; works on a real GPU as well as on the simulated one (put its
directory into LD_LIBRARY_PATH). One step is: sleep on the host, copy a batch to the device, launch kernels that
take a set time, copy a result back, wait. client_loop.c does the same without Python, with the same options.
"""
import argparse
import ctypes
import sys
import time

import numpy as np
from cuda.bindings import driver as cu

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


def ok(result):
    """The values of a call; stops the program on an error."""
    if result[0] != cu.CUresult.CUDA_SUCCESS:
        sys.exit(f"client_cb: {result[0].name}")
    return result[1] if len(result) == 2 else result[1:]


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--h2d", type=float, default=1 << 20, help="bytes copied to the device in a step")
    p.add_argument("--d2h", type=float, default=0, help="bytes copied back in a step")
    p.add_argument("--mem", choices=("pageable", "pinned"), default="pageable")
    p.add_argument("--spin", type=float, default=1000, help="microseconds of each kernel")
    p.add_argument("--launches", type=int, default=1)
    p.add_argument("--sync", choices=("ctx", "stream", "event", "dtoh", "none"), default="ctx")
    p.add_argument("--sleep", type=float, default=0, help="milliseconds on the host in a step")
    p.add_argument("--stream", choices=("legacy", "own", "nonblocking"), default="legacy")
    p.add_argument("--copy", choices=("async", "sync"), default="async")
    p.add_argument("--mark", type=int, default=0, help="1: bracket steps with tfhook marks where there are any")
    return p.parse_args()


def host_array(o, n):
    if o.mem == "pageable":
        return np.zeros(n, np.uint8)
    address = ok(cu.cuMemHostAlloc(n, 0))
    return np.frombuffer((ctypes.c_uint8 * n).from_address(int(address)), np.uint8)


class Job:
    def __init__(self, o):
        self.o = o
        ok(cu.cuInit(0))
        ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(0))))))
        self.kernel = ok(cu.cuModuleGetFunction(ok(cu.cuModuleLoadData(PTX)), b"spin"))
        n = int(max(o.h2d, o.d2h)) + 64
        self.dev = ok(cu.cuMemAlloc(n))
        self.host, self.back = host_array(o, n), host_array(o, n)
        self.host[:], self.back[:] = 1, 2
        self.event = ok(cu.cuEventCreate(cu.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        self.stream = cu.CUstream(0) if o.stream == "legacy" else ok(cu.cuStreamCreate(int(o.stream == "nonblocking")))
        self.args = ((int(o.spin * 1e3),), (ctypes.c_uint64,))

    def step(self):
        o = self.o
        if o.sleep:
            time.sleep(o.sleep / 1e3)
        if o.h2d and o.copy == "sync":
            ok(cu.cuMemcpyHtoD(self.dev, self.host.ctypes.data, int(o.h2d)))
        elif o.h2d:
            ok(cu.cuMemcpyHtoDAsync(self.dev, self.host.ctypes.data, int(o.h2d), self.stream))
        for _ in range(o.launches):
            ok(cu.cuLaunchKernel(self.kernel, 1, 1, 1, 1, 1, 1, 0, self.stream, self.args, 0))
        if o.d2h and o.copy == "sync":
            ok(cu.cuMemcpyDtoH(self.back.ctypes.data, self.dev, int(o.d2h)))
        elif o.d2h:
            ok(cu.cuMemcpyDtoHAsync(self.back.ctypes.data, self.dev, int(o.d2h), self.stream))
        self.wait()

    def wait(self):
        sync = self.o.sync
        if sync == "ctx":
            ok(cu.cuCtxSynchronize())
        elif sync == "stream":
            ok(cu.cuStreamSynchronize(self.stream))
        elif sync == "event":
            ok(cu.cuEventRecord(self.event, self.stream))
            ok(cu.cuEventSynchronize(self.event))
        elif sync == "dtoh":
            ok(cu.cuMemcpyDtoH(self.back.ctypes.data, self.dev, 4))


def main():
    o = options()
    marks = None
    if o.mark:
        try:
            import tfhook as marks
        except ImportError:
            pass
    job = Job(o)
    begin = time.perf_counter()
    for _ in range(o.steps):
        if marks:
            marks.step_begin("step")
        job.step()
        if marks:
            marks.step_end()
    ok(cu.cuCtxSynchronize())
    if o.h2d and o.d2h and job.back[0] != 1:
        sys.exit("client_cb: the bytes did not come back")
    print(f"steps {o.steps} s/step {(time.perf_counter() - begin) / max(o.steps, 1):.6f}")


main()
