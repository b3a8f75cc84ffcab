"""Runs to export: recorded on the simulated GPU, and written as traces of PyTorch's profiler; and what tfhook says of them."""
import json
import os
import subprocess

BUILD, TMP, SRC = (os.environ.get(k, "") for k in ("TFH_BUILD", "TFH_TMP", "TFH_SRC"))
ENV = {**os.environ, "LD_LIBRARY_PATH": BUILD + "/sim", "TFHOOK_CUPTI_LIB": BUILD + "/sim/libcupti.so.13"}
BASE = 1700000000000000  # us of Unix time
HOSTILE = ['=cmd|"/c calc"!A1', "+1", "-1", "@SUM(1)", 'quote " comma , semicolon ;', "line\nbreak", "\x1b[31mred\x07", "'; DROP TABLE calls; --",
           "</script><script>", "\u202egnp", "\U0001f600 \u00e9\u4e2d", "a;b c", "x" * 5000, "NUL\u0000in", "tab\there", "\\", "%s%n"]


def tfhook(*args, status=0, **how):
    done = subprocess.run([BUILD + "/bin/tfhook", *args], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, **how)
    assert done.returncode == status, (args, done.returncode, done.stderr.decode(errors="replace")[-500:])
    return done


def export(form, path, out, *flags):
    tfhook("export", "--to", form, "-o", out, *flags, path)
    return out


def report(path, *flags):
    return json.loads(tfhook("report", "--json", *flags, path).stdout)


def steps(path):
    return [json.loads(line) for line in tfhook("report", "--json", "--steps", path).stdout.splitlines()]


def python(name):
    """The interpreter that has the packages of tests/requirements/NAME.txt."""
    return subprocess.run([SRC + "/scripts/python-env", name], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]


def within(script, name="export"):
    """Runs the test again in that interpreter, where it is not yet."""
    want = python(name)
    if os.environ.get("TFH_EXPORT_PYTHON") != want:
        os.environ["TFH_EXPORT_PYTHON"] = want
        os.execv(want, [want, script])


def record(name="run", *flags):
    """A job with kernels in a stream of its own, copies both ways and marks."""
    job = [BUILD + "/tests/jobs/client_loop", "--steps", "60", "--h2d", "1000000", "--d2h", "4096", "--spin", "700", "--launches", "5", "--sleep", "1",
           "--stream", "own", "--sync", "stream", *flags]
    tfhook("run", "-q", "-o", TMP + "/" + name, *job)
    return TMP + "/" + name


def trace(name, rank=0, world=1, names=("gemm",), pid=100, n=30, overlap=True):
    """Steps of 10 ms: a wait for the loader, ops inside ops that begin together, copies, kernels in two streams, a collective."""
    events = []

    def x(cat, what, tid, ts, dur, p=pid, **args):
        events.append(dict(ph="X", cat=cat, name=what, pid=p, tid=tid, ts=BASE + ts, dur=dur, args=args))

    for i in range(n):
        t, c = i * 10000, i * 100
        x("user_annotation", "ProfilerStep#%d" % i, pid, t, 10000)
        x("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", pid, t + 5, 3000)
        x("cpu_op", "aten::outer", pid, t + 3300, 900)
        x("cpu_op", names[i % len(names)] + " op", pid, t + 3300, 400)
        if overlap:
            x("user_annotation", "overlaps", pid, t + 4100, 1000)
        for k, (cat, what, call, start, dur, stream) in enumerate([
                ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "cudaMemcpyAsync", 3400, 100, 7),
                ("kernel", names[i % len(names)], "cudaLaunchKernel", 3600, 1500, 7),
                ("kernel", "second_%d" % (i % 3), "cudaLaunchKernel", 3700, 2000, 20),
                ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "cudaLaunchKernel", 6000, 1000, 20),
                ("gpu_memset", "Memset (Device)", "cudaMemsetAsync", 7100, 10, 7),
                ("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", "cudaMemcpyAsync", 7200, 50, 7)]):
            x("cuda_runtime", call, pid, t + 3320 + k * 20, 8, correlation=c + k + 1)
            more = dict(bytes=4096) if cat == "gpu_memcpy" else dict(grid=[16, 2, 1], block=[128, 1, 1])
            x(cat, what, stream, t + start, dur, p=0, device=0, context=1, stream=stream, correlation=c + k + 1, **more)
        x("cuda_runtime", "cudaStreamSynchronize", pid, t + 4000, 90, correlation=c + 50)
    with open(os.path.join(TMP, name), "w") as f:
        json.dump({"deviceProperties": [{"id": 0, "numSms": 108}], "distributedInfo": {"rank": rank, "world_size": world},
                   "traceEvents": events}, f)
    return os.path.join(TMP, name)
