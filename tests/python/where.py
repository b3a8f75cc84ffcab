#!/usr/bin/env python3
"""The report names lines of Python: of copies, by the innermost line of the program's own and the library's function that it
called, also where that one runs code that it made; of pauses, where they end; of calls that are short but many, too; the JSON
has the whole stacks, as its schema says. Without them (TFHOOK_PYTHON=0), or where the interpreter may not be read, the rest of the
report is the same. The doctor says what will be seen."""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
import interpreters  # noqa: E402
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of, tool  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, src, tmp = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
tfhook, train = f"{build}/bin/tfhook", f"{here}/jobs/train.py"
packages = f"{tmp}/lib/site-packages"
FETCHING = "import ctypes\n\n\ndef item(cuda, memory, host):\n    exec('cuda.cuMemcpyDtoH_v2(host, memory, ctypes.c_size_t(8 << 20))')\n"


def line_of(text):
    with open(train) as f:
        return next(i for i, line in enumerate(f, 1) if line.rstrip().endswith(text))


def report(name, python, **env):
    directory = f"{tmp}/{name}"
    env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "SIM_H2D_GBPS": "2", "SIM_D2H_GBPS": "2", **env}
    done = subprocess.run([tfhook, "run", "-q", "-o", directory, "--", python, train, packages], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    check(done.returncode == 0, name, done.stdout)
    text = tool("report", "--all", "--color", "never", directory)
    return report_of(directory), text


os.makedirs(packages)
os.makedirs(f"{packages}/fetching")
with open(f"{packages}/fetching/__init__.py", "w") as f:
    f.write(FETCHING)
UP = f"train.py:{line_of('# upload')} upload"
DOWN = f"train.py:{line_of('# fetch')} step > fetching/__init__.py:5 item"
found = interpreters.every()
for version, python in dict.fromkeys([found[0], found[-1]]):
    js, text = report(version, python)
    where = {t["fn"]: t["where"] for t in js["transfers"]}
    check(where == {"cuMemcpyHtoD_v2": UP, "cuMemcpyDtoH_v2": DOWN}, version, where)
    check(UP in text and DOWN in text, text)
    fetch = next(t for t in js["transfers"] if t["fn"] == "cuMemcpyDtoH_v2")
    frames = [(os.path.basename(f["file"]), f["line"], f["function"], f["library"]) for f in fetch["python"]]
    check(frames[:3] == [("<string>", 1, "<module>", True), ("__init__.py", 5, "item", True), ("train.py", line_of("# fetch"), "step", False)], frames)
    check(frames[-1][2] == "<module>" and fetch["native"], frames)
    pause = [p for p in js["places"] if p["of"] == "pause"]
    check(pause and pause[0]["where"] == UP, js["places"])
    print(version, where)
directory, job = f"{tmp}/allocates", f"{here}/jobs/allocates.py"
subprocess.run([tfhook, "run", "-q", "-o", directory, "--", sys.executable, job, f"{src}/tests/jobs"], check=True,
               env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "SIM_ALLOC_COST": "200us"})
js = report_of(directory)
with open(job) as f:
    line = next(i for i, text in enumerate(f, 1) if text.rstrip().endswith("# allocate"))
check(any(p["of"] == "allocation" and p["where"] in (f"allocates.py:{line} scratch", f"allocates.py:{line + 1} scratch") for p in js["places"]), js["places"])
off, _ = report("off", sys.executable, TFHOOK_PYTHON="0")
check(all("train.py" not in (t["where"] or "") and t["python"] == [] for t in off["transfers"]), off["transfers"])
check(not [p for p in off["places"] if p["of"] == "pause"], off["places"])
other = f"{build}/tests/python/libpython3other.so"
directory = f"{tmp}/other"
done = subprocess.run([tfhook, "run", "-q", "-o", directory, "--", f"{build}/tests/hook/stacks"], stdout=subprocess.PIPE,
                      stderr=subprocess.STDOUT, text=True, env={**os.environ, "LD_PRELOAD": other, "SIM_H2D_GBPS": "2",
                                                                "LD_LIBRARY_PATH": f"{build}/sim"})
text = tool("report", "--all", "--color", "never", directory)
check(done.returncode == 0 and "upload_batch" in text, done.stdout, text)
check("no lines of Python: this version of Python is not known (3.8 to 3.15 are)" in " ".join(text.split()), text)
doctor = subprocess.run([tfhook, "doctor", found[-1][1]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
check(f"lines of Python {found[-1][0]} will be seen" in doctor, doctor)
sys.exit(failed())
