#!/usr/bin/env python3
"""The library leaves no trace where there is nothing to record: no file, no thread, no output, no other exit status.
What a program does before its first copy or launch is kept until then. Children record for themselves or not at all.
Names that the driver answered and no table has are reported."""
import glob
import os
import re
import shutil
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
if os.environ.get("TFH_SAN"):
    sys.exit(77)
CLIENT = """
import ctypes, os, sys
cu = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
def start():
    assert cu.cuInit(0) == 0
    assert cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cu.cuCtxSetCurrent(context) == 0
    assert cu.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)) == 0
def copy(n):
    for i in range(n):
        assert cu.cuMemcpyHtoD_v2(memory, b"x" * 64, ctypes.c_size_t(64)) == 0
def threads():
    return len(os.listdir("/proc/self/task"))
"""


def run(name, *command, driver=f"{build}/sim", preload=True, **env):
    place = os.path.join(tmp, name)
    os.makedirs(place)
    full = dict(os.environ, TFHOOK_DIR=place, LD_LIBRARY_PATH=driver, **env)
    if preload:
        full["LD_PRELOAD"] = f"{build}/lib/libtfhook.so"
    done = subprocess.run(command, env=full, cwd=place, capture_output=True, text=True, timeout=60)
    return done, glob.glob(f"{place}/**/*.tft", recursive=True), os.listdir(place)


def python(name, text, **env):
    return run(name, sys.executable, "-c", CLIENT + text, **env)


def shown(files):
    return subprocess.run([f"{build}/tests/hook/show", *files], capture_output=True, text=True, check=True).stdout


def nothing_to_record():
    for name, command in (("true", ["/bin/true"]), ("pass", [sys.executable, "-c", "pass"]),
                          ("shell", ["/bin/sh", "-c", "echo a; ls / >/dev/null; exit 5"]),
                          ("ldd", ["ldd", "/bin/ls"]), ("missing", ["/bin/sh", "-c", "no_such_command"])):
        plain = run(name + "-plain", *command, preload=False)[0]
        done, files, left = run(name, *command)
        check((done.returncode, done.stderr) == (plain.returncode, plain.stderr), name, done, plain)
        check(name == "ldd" or done.stdout == plain.stdout, name, "output", done.stdout)
        check(not left, name, "left", left)
    done, files, left = run("thread", sys.executable, "-c", "import os; print(len(os.listdir('/proc/self/task')))")
    check(done.stdout == "1\n", "threads", done.stdout, done.stderr)


def before_the_first_copy():
    # Numbers of threads, because the driver has its own.
    plain = python("init-plain", "start(); print(threads())", preload=False)[0]
    done, files, left = python("init", "start(); print(threads())")
    check(done.stdout == plain.stdout and done.returncode == 0, "init", done, plain)
    check(not left, "init left", left)
    done, files, left = python("copies", "start(); copy(3)")
    check(done.returncode == 0 and len(files) == 1, "copies", done, left)
    text = shown(files)
    check([text.count(f'"fn":"{n}"') for n in ("cuInit", "cuMemAlloc_v2", "cuMemcpyHtoD_v2")] == [1, 1, 3], "copies",
          text)
    done, files, left = python("switched-off", "start(); copy(3)", TFHOOK="0")
    check(done.returncode == 0 and not left, "switched off", done, left)


def children():
    done, files, left = python("fork", "start(); copy(5)\nif os.fork() == 0: os._exit(7)\n"
                               "print(os.waitstatus_to_exitcode(os.wait()[1])); copy(5)")
    check(done.stdout == "7\n" and len(files) == 1, "fork", done, files)
    check(shown(files).count('"fn":"cuMemcpyHtoD_v2"') == 10, "fork: copies")
    done, files, left = python("fork-first", "\nif os.fork() == 0:\n start(); copy(4); os._exit(0)\n"
                               "os.wait(); start(); copy(6)")
    check(done.returncode == 0 and len(files) == 2, "fork first", done, files)
    check(shown(files).count('"fn":"cuMemcpyHtoD_v2"') == 10, "fork first: copies")
    done, files, left = python("exec", "start(); copy(5); os.execv('/bin/echo', ['echo', 'hello'])")
    check(done.stdout == "hello\n" and shown(files).count('"fn":"cuMemcpyHtoD_v2"') == 5, "exec", done, files)
    done, files, left = python("_exit", "start(); copy(5); os._exit(3)")
    check(done.returncode == 3 and shown(files).count('"fn":"cuMemcpyHtoD_v2"') == 5, "_exit", done, files)
    done, files, left = python("subprocess", "import subprocess\nstart(); copy(5)\n"
                               "try: subprocess.run(['/no/such/program'])\nexcept FileNotFoundError: copy(5)\n"
                               "print(subprocess.run(['/bin/true']).returncode)")
    check(done.stdout == "0\n" and shown(files).count('"fn":"cuMemcpyHtoD_v2"') == 10, "subprocess", done, files)


def unknown_names():
    driver = os.path.join(tmp, "fake")
    os.mkdir(driver)
    shutil.copy(f"{build}/tests/hook/libfakecuda.so", f"{driver}/libcuda.so.1")
    done, files, left = run("unknown", f"{build}/tests/hook/routes", "hooked", driver=driver)
    check(done.returncode == 0, "routes", done)
    notes = b"".join(open(f, "rb").read() for f in glob.glob(f"{tmp}/unknown/*/run.json"))
    notes += subprocess.run([f"{build}/tests/hook/show", "--notes", *files], capture_output=True).stdout
    check(b"cuFrobnicate" in notes and b"cuMemcpyHtoD_v9" in notes, "unknown names are reported", notes)
    place = os.path.dirname(files[0])
    told = subprocess.run([f"{build}/bin/tfhook", "info", place], capture_output=True, text=True)
    check("does not record" in told.stdout.lower() and "cuFrobnicate" in told.stdout, "info", told)
    told = subprocess.run([f"{build}/bin/tfhook", "report", "--json", place], capture_output=True, text=True)
    check('"unhooked":3' in re.sub(r"\s", "", told.stdout), "report", told)


nothing_to_record()
before_the_first_copy()
children()
unknown_names()
sys.exit(failed())
