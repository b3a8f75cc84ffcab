"""Programs that use the driver's interface, unmodified, in the versions that tests/requirements pins; for check-clients and
the tests beside this file. docs/clients.md tells what each is good for."""
from typing import NamedTuple

PTX = {"DEV": "CUDA:PTX", "SIM_INTERP": "1"}  # kernels are interpreted, so that the network learns


class Client(NamedTuple):
    name: str
    package: str  # whose version is shown
    route: str  # how it gets at the driver
    command: tuple  # a file of programs/ and arguments, or a command
    env: str = ""  # virtual environment; else the command is no python program
    settings: dict = {}  # PACKAGES is the environment's folder of packages, HOME the program's own home
    links: dict = {}  # made before it starts
    flags: tuple = ()  # of `tfhook run`
    debian: str = ""  # group of scripts/bootstrap that it needs
    source: tuple = ()  # compiler with its options, if the file is to be compiled
    same_as: tuple = ()  # a command with the same output, without a GPU
    calls: int = 40  # at least so many are compared
    expects: tuple = ()  # functions that are seen
    after_exit: tuple = ()  # called by a destructor, when the recording has been closed by an exit handler


CLIENTS = [
    Client("tinygrad", "tinygrad", "dlsym (ctypes), graphs", ("tinygrad_train.py", "1"), "quick", PTX,
           expects=("cuGraphLaunch",)),
    Client("tinygrad-kernels", "tinygrad", "dlsym (ctypes)", ("tinygrad_train.py", "1"), "quick",
           {**PTX, "JIT": "2"}, expects=("cuLaunchKernel",)),
    Client("tinygrad-2-devices", "tinygrad", "dlsym (ctypes)", ("tinygrad_train.py", "2"), "quick",
           {**PTX, "JIT": "2", "SIM_DEVICES": "2"}, debian="clang", expects=("cuMemcpyDtoDAsync_v2", "cuStreamWaitEvent")),
    # Not interpreted: tinygrad's graph does not wait for what the other device has just been told to compute for it.
    Client("tinygrad-2-devices-graph", "tinygrad", "dlsym (ctypes), graphs", ("tinygrad_train.py", "2"), "quick",
           {"DEV": "CUDA:PTX", "SIM_DEVICES": "2"}, debian="clang", expects=("cuGraphLaunch", "cuMemcpyDtoDAsync_v2")),
    Client("drjit", "drjit", "dlsym of all at once", ("drjit_loop.py",), "clients", expects=("cuMemAllocAsync",)),
    Client("cuda-bindings", "cuda-bindings", "cuGetProcAddress_v2", ("bindings_loop.py",), "clients",
           expects=("cuMemcpy",)),
    Client("cuda-bindings-per-thread", "cuda-bindings", "cuGetProcAddress_v2, per-thread", ("bindings_loop.py",),
           "clients", {"CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}, expects=("cuLaunchKernel_ptsz",)),
    Client("cuda-bindings-12", "cuda-bindings", "cuGetProcAddress_v2", ("bindings_loop.py",), "client-cuda12"),
    Client("cuda-core", "cuda-core", "cuGetProcAddress_v2", ("core_loop.py",), "clients",
           expects=("cuLaunchKernelEx",)),
    Client("pycuda", "pycuda", "linked", ("pycuda_loop.py",), "client-pycuda",
           expects=("cuLaunchKernel",)),
    Client("numba-cuda", "numba-cuda", "cuGetProcAddress_v2", ("numba_loop.py", "numba"), "client-numba-cuda",
           expects=("cuLaunchKernelEx",)),
    Client("numba", "numba", "dlsym (ctypes)", ("numba_loop.py", "numba"), "client-numba",
           {"CUDA_HOME": "PACKAGES/nvidia/cu13"}, expects=("cuLaunchKernel",)),
    Client("numba-cuda-mlir", "numba-cuda-mlir", "cuGetProcAddress_v2", ("numba_loop.py", "numba_cuda_mlir"),
           "client-numba-cuda-mlir", expects=("cuLaunchKernel",)),
    Client("triton", "triton", "linked, and dlsym", ("triton_loop.py",), "client-triton",
           expects=("cuLaunchKernelEx",)),
    Client("taichi", "taichi", "dlsym, RTLD_DEEPBIND", ("taichi_loop.py",), "client-taichi", flags=("--audit",),
           expects=("cuLaunchKernel",)),
    Client("halide", "halide", "dlsym from compiled code", ("halide_loop.py",), "client-halide"),
    Client("slangpy", "slangpy", "dlsym into variables of the same names", ("slangpy_loop.py",), "client-slangpy",
           {"TFHOOK_EXPORTS": "0", "CUDA_PATH": "HOME/cuda",
            "LD_LIBRARY_PATH": "HOME/cuda/lib64:PACKAGES/nvidia/cu13/lib"},
           {"HOME/cuda/include": "PACKAGES/nvidia/cu13/include",
            "HOME/cuda/lib64/libnvrtc.so": "PACKAGES/nvidia/cu13/lib/libnvrtc.so.13"}, expects=("cuLaunchKernel",)),
    Client("ffmpeg", "ffmpeg", "dlsym", (
        "ffmpeg", "-v", "error", "-init_hw_device", "cuda=cu:0", "-filter_hw_device", "cu", "-f", "lavfi", "-i",
        "testsrc=size=320x240:duration=1", "-filter_complex", "[0:v]format=nv12,hwupload,split[a][b];"
        "[a]hwdownload,format=nv12[c];[b]scale_cuda=160:120,hwdownload,format=nv12[d]",
        "-map", "[c]", "-f", "md5", "-", "-map", "[d]", "-f", "null", "/dev/null"), debian="ffmpeg",
           same_as=("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x240:duration=1", "-vf",
                    "format=nv12", "-f", "md5", "-"), expects=("cuMemcpy2DAsync_v2", "cuLaunchKernel")),
    Client("gcc-offload", "gcc-12-offload-nvptx", "dlsym", ("offload.c",), settings={"OMP_TARGET_OFFLOAD": "MANDATORY"},
           debian="offload", source=("gcc-12", "-O1", "-fopenmp", "-foffload=nvptx-none",
                                     "-foffload-options=-misa=sm_75", "-no-pie", "-fno-pie"),
           expects=("cuLaunchKernel",), after_exit=("cuMemFree_v2", "cuCtxDestroy_v2")),
]
