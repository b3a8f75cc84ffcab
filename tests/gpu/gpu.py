"""For the tests that need a real GPU: is there one, which frameworks are there, programs that are built on the spot.

TFH_GPU_PY      the Python that has torch, jax, cupy or triton (python3)
TFH_GPU_REPORT  a file to which each test adds what it found, one JSON object a line
TFH_GPU_DRIVER  folder of a driver to take for a real one: the simulated driver tries the tests' own logic
"""
import glob
import json
import os
import re
import subprocess
import sys
import traceback
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, src, tmp = (os.environ[k] for k in ("TFH_BUILD", "TFH_SRC", "TFH_TMP"))
PY = os.environ.get("TFH_GPU_PY", "python3")
DRIVER = os.environ.get("TFH_GPU_DRIVER", "")
HOOK = f"{build}/lib/libtfhook.so"
HERE = f"{src}/tests/gpu"


def part(name, work, *args, **settings):
    """One of several parts: what goes wrong in it is reported and counted, and the next one runs all the same."""
    try:
        return work(*args, **settings)
    except subprocess.TimeoutExpired as late:
        check(False, name, "took more than", late.timeout, "s")
    except Exception:
        check(False, name, traceback.format_exc(limit=-3))
    sys.stdout.flush()
    return None


def need_gpu(proves):
    """Ends the test where there is no GPU, saying what it would have proven."""
    if os.environ.get("TFH_SAN"):
        sys.exit(77)
    if DRIVER:
        os.environ["LD_LIBRARY_PATH"] = f"{DRIVER}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        return
    probe = "import ctypes; c = ctypes.CDLL('libcuda.so.1'); exit(c.cuInit(0))"
    if not os.path.exists("/proc/driver/nvidia/version") and not os.path.exists("/dev/nvidiactl") or \
            subprocess.run([sys.executable, "-c", probe], stderr=subprocess.DEVNULL).returncode:
        print("no NVIDIA GPU and driver here; would prove:", proves)
        sys.exit(77)


def compile(name, *flags, source=None):
    out = f"{tmp}/{name}"
    source = source or f"{HERE}/{re.sub(r'[.]so$', '', name)}.c"
    done = subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", "-O1", f"-I{src}/lib", "-o", out,
                           source, *flags, "-ldl", "-lpthread"], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr)
        sys.exit(1)
    return out


def run(name, command, preload="", timeout=600, **settings):
    """Runs in a folder of its own: (status, output, errors), the run directories, the folder."""
    place = f"{tmp}/{name}"
    os.mkdir(place)
    # JAX takes three quarters of the device at once otherwise, of which others may have a part.
    env = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ, "TFHOOK_DIR": place, **settings}
    if preload:
        env["LD_PRELOAD"] = preload
    done = subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, timeout=timeout)
    return (done.returncode, done.stdout, done.stderr), glob.glob(f"{place}/tfhook-*"), place


def has(module):
    """Whether it is there. It is not imported: from a slow disk that takes minutes."""
    ask = f"import sys, importlib.util; sys.exit(not importlib.util.find_spec('{module}'))"
    try:
        return not subprocess.run([PY, "-c", ask], stderr=subprocess.DEVNULL, timeout=60).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


def version_of(module):
    done = subprocess.run([PY, "-c", f"import {module}; print({module}.__version__)"], capture_output=True, text=True)
    return done.stdout.strip()


def cupti():
    """The libcupti that the frameworks would find themselves."""
    asked = subprocess.run([PY, "-c", "import sys; print(chr(10).join(sys.path))"], capture_output=True, text=True)
    places = [line.strip() + "/nvidia/*/lib" for line in asked.stdout.splitlines() if line.strip()]
    places += ["/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu"]
    # That of the frameworks before the machine's: a process can bear one, and it must suit the driver.
    for place in places:
        for generation in ("13", "12"):
            for path in sorted(glob.glob(f"{place}/libcupti.so.{generation}")):
                return path
    return None


def records(runs):
    files = [f for place in runs for f in sorted(glob.glob(f"{place}/*.tft"))]
    done = subprocess.run([f"{build}/tests/hook/show", *files], capture_output=True, text=True)
    check(done.returncode == 0, "not readable", files, done.stderr[-300:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def unhooked(runs):
    files = [f for place in runs for f in sorted(glob.glob(f"{place}/*.tft"))]
    done = subprocess.run([f"{build}/tests/hook/show", "--notes", *files], capture_output=True, text=True)
    return re.findall(r"unhooked=(\w+)", done.stdout)


def machine():
    if DRIVER:
        return f"driver in {DRIVER}"
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return "nvidia-smi does not answer"
    return done.stdout.strip() if done.returncode == 0 else "nvidia-smi: " + done.stderr.strip()[-100:]


def report(**found):
    line = json.dumps(dict(machine=machine(), **found))
    print(line)
    if os.environ.get("TFH_GPU_REPORT"):
        with open(os.environ["TFH_GPU_REPORT"], "a") as out:
            out.write(line + "\n")
