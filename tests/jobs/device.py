"""The minimum that drives a device from Python: ctypes and the driver API, kernels of given length."""
import ctypes

KERNELS = (b"forward", b"backward", b"update", b"other", b"eval")
PTX = b""".version 7.0
.target sm_50
.address_size 64
""" + b"".join(b""".visible .entry spin_%s(.param .u64 ns)
{
	.reg .u64 %%t<4>;
	.reg .pred %%p;
	ld.param.u64 %%t0, [ns];
	mov.u64 %%t1, %%globaltimer;
AGAIN:
	mov.u64 %%t2, %%globaltimer;
	sub.u64 %%t3, %%t2, %%t1;
	setp.lt.u64 %%p, %%t3, %%t0;
	@%%p bra AGAIN;
	ret;
}
""" % name for name in KERNELS) + b"\0"


class Device:
    """A context on a device, a stream, mb megabytes on the device and as many on the host."""

    def __init__(self, mb=8, ordinal=0):
        self.cu = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.context = self.new("cuDevicePrimaryCtxRetain", ctypes.c_int(ordinal))
        self.call("cuCtxSetCurrent", self.context)
        self.module = self.new("cuModuleLoadData", PTX)
        self.kernels = {}
        self.stream = self.new("cuStreamCreate", 1)
        self.bytes = mb << 20
        self.memory = self.new("cuMemAlloc_v2", ctypes.c_size_t(self.bytes))
        self.host = ctypes.create_string_buffer(self.bytes)

    def call(self, name, *args):
        rc = getattr(self.cu, name)(*args)
        if rc:
            raise RuntimeError("%s: error %d" % (name, rc))

    def new(self, name, *args):
        p = ctypes.c_void_p()
        self.call(name, ctypes.byref(p), *args)
        return p

    def up(self, n=100000):
        self.call("cuMemcpyHtoDAsync_v2", self.memory, self.host, ctypes.c_size_t(n), self.stream)

    def down(self, n=4):
        self.call("cuMemcpyDtoHAsync_v2", self.host, self.memory, ctypes.c_size_t(n), self.stream)
        self.sync()

    def run(self, ms, name="forward", n=1):
        if name not in self.kernels:
            self.kernels[name] = self.new("cuModuleGetFunction", self.module, b"spin_" + name.encode())
        ns = ctypes.c_uint64(int(ms * 1e6))
        args = (ctypes.c_void_p * 1)(ctypes.addressof(ns))
        for _ in range(n):
            self.call("cuLaunchKernel", self.kernels[name], 128, 1, 1, 128, 1, 1, 0, self.stream, args, None)

    def sync(self):
        self.call("cuStreamSynchronize", self.stream)

    def train(self, ms):
        self.run(ms / 3, "forward")
        self.run(ms * 2 / 3, "backward")
        self.run(0.05, "update")
