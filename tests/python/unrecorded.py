#!/usr/bin/env python3
"""What must hold: of a job that records nothing, `tfhook run` keeps samples of its main thread, and the report has a verdict by them:
which lines of its program it was at, in about the shares that the job counts itself; what runs without Python's lock computes, what
holds it is Python code, and a sleep is one; what another thread did while it waited; if it only waits for processes that do the work,
these are judged, whichever thread started them, and threads of native code compute; under a launcher that only waits, too; and which loop could be marked. There are no steps. The digest gives the same report. With -q it says nothing; where
samples are switched off, and of a short job, nothing is left behind; what the job prints and its exit code are its own; a damaged
start.json is no harm. The page of `report --html` has the lines, too."""
import json
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
import interpreters  # noqa: E402
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
TOOL, TMP = os.path.join(os.environ["TFH_BUILD"], "bin", "tfhook"), os.environ["TFH_TMP"]
OFF, ENOUGH = 0.3, 100  # of a share: wide, as a busy machine is no evidence; samples, whose shares are then off by 10 % as a rule
JOB = """
import hashlib, json, sys, time
from jax._src import core
data = bytes(8 << 20)
def walk(n):
    return walk(n - 1) if n else sum(range(200))
def main():
    spent, end = {"walks": 0, "hashes": 0, "core": 0}, time.perf_counter() + 3
    while time.perf_counter() < end:
        t = time.perf_counter()
        for _ in range(400): walk(8)
        spent["walks"] += time.perf_counter() - t
        t = time.perf_counter()
        hashlib.sha256(data).digest()  # hashes
        spent["hashes"] += time.perf_counter() - t
        t = time.perf_counter()
        core.wait()  # core
        spent["core"] += time.perf_counter() - t
    print(json.dumps(spent))
main()
sys.exit(3)
"""
QUEUE = """
import queue, sys, threading, time
def make(n):
    return sum(i * i for i in range(n))
def fill(q, end):
    while time.perf_counter() < end: q.put(make(20000))
    q.put(None)
def main():
    q = queue.Queue(2)
    threading.Thread(target=fill, args=(q, time.perf_counter() + 5), daemon=True).start()
    while q.get() is not None:  # waits
        sum(range(20000))
main()
sys.exit(3)
"""
POOL = """
import multiprocessing, sys, time
def work(end):
    while time.perf_counter() < end: sum(range(1000))
def main():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(work, [time.perf_counter() + 3] * 2)  # waits
main()
sys.exit(3)
"""
# Threads that are not Python's work while it waits for their end.
NATIVE = """
import ctypes, sys
libc, text = ctypes.CDLL(None), ctypes.create_string_buffer(b"x" * (128 << 20))
def main():
    for i in range(500):
        thread = ctypes.c_void_p()
        libc.pthread_create(ctypes.byref(thread), None, libc.strlen, text)
        libc.pthread_join(thread, None)  # waits
main()
sys.exit(3)
"""
# Its processes are started by one of its threads.
FUTURES = """
import concurrent.futures, hashlib, multiprocessing, sys, threading, time
def work(end):
    while time.perf_counter() < end: hashlib.sha256(bytes(8 << 20)).digest()
def main():
    def start():
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
            list(pool.map(work, [time.perf_counter() + 5] * 2))
    t = threading.Thread(target=start)
    t.start()
    while t.is_alive(): time.sleep(0.01)  # waits
main()
sys.exit(3)
"""
# Each sample of a stack so deep is expensive, so that there are few.
DEEP = """
import sys, time
for i in range(200):
    name = "a_function_of_a_library_with_a_long_name_%d"
    text = f"def {name % i}():\\n return {name % (i + 1) if i < 199 else 'sum'}({'' if i < 199 else 'range(200000)'})"
    exec(compile(text, f"/nowhere/file_{i}.py", "exec"))
end = time.perf_counter() + 4
while time.perf_counter() < end: a_function_of_a_library_with_a_long_name_0()
sys.exit(3)
"""
LAUNCHER = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
os.makedirs(os.path.join(TMP, "site-packages", "jax", "_src"))
with open(os.path.join(TMP, "site-packages", "jax", "_src", "core.py"), "w") as f:
    f.write("import time\ndef wait():\n    time.sleep(0.02)\n")


def line_of(job, text):
    return 1 + next(i for i, line in enumerate(job.splitlines()) if text in line)


def told(directory, *flags):
    done = subprocess.run([TOOL, "report", *flags, directory], capture_output=True, text=True)
    check(done.returncode == 0, directory, flags, done)
    return done.stdout


def run(name, job, *before, flags=(), python=sys.executable, **env):
    """What the job printed, what `tfhook run` said, the report as JSON and as text."""
    directory, path = os.path.join(TMP, name), os.path.join(TMP, name + "_job.py")
    with open(path, "w") as f:
        f.write(job)
    done = subprocess.run([TOOL, "run", *flags, "-o", directory, "--", *before, python, path], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(TMP, "site-packages"), **env), timeout=200)
    check(done.returncode == 3, name, done)
    if not os.path.exists(directory):
        return done.stdout, done.stderr, None, None
    check(not any(x.endswith(".tft") for x in os.listdir(directory)), name, "recorded something")
    return done.stdout, done.stderr, json.loads(told(directory, "--json")), told(directory)


def enough(name, json):
    s = json and json["sampled"]
    if s and sum(x["samples"] for x in s["lines"]) >= ENOUGH:
        return True
    print(name, "too few samples on this machine", s and s["samples"])
    return False


def right(name, out, err, report, text):
    if not report or not enough(name, report):
        return
    s, spent = report["sampled"], json.loads(out)
    page = os.path.join(TMP, name + ".html")
    subprocess.run([TOOL, "report", "--html", page, os.path.join(TMP, name)], check=True, capture_output=True)
    with open(page) as f:
        rows = f.read().split("Where the main thread&#39;s time went")[-1].split("</table>")[0]
    check(rows.count("<tr>") > len([x for x in s["lines"] if x["samples"] >= 5]), name, "page", rows[:2000])
    print(name, s["samples"], {x["line"]: (round(x["share"], 2), x["cause"]) for x in s["lines"]}, spent)
    for part, line, cause in (("walks", line_of(JOB, "return walk"), "host.python"), ("hashes", line_of(JOB, "# hashes"), "compute.cpu"),
                              ("core", line_of(JOB, "# core"), "host.sleep")):
        share = sum(x["share"] for x in s["lines"] if x["line"] == line)
        check(abs(share - spent[part] / sum(spent.values())) < OFF, name, part, share, spent)
        check(all(x["cause"] == cause for x in s["lines"] if x["line"] == line and x["samples"] > 20), name, part, s["lines"])
    check(report["verdict"]["class"] in ("host-bound", "compute-bound") and report["steps"]["total"] == 0, name, report["verdict"])
    check(s["loop"] and s["loop"]["function"] in ("main", "walk"), name, s["loop"])
    check("no steps recorded" in text and "WHERE THE MAIN THREAD'S TIME WENT" in text and "mark" in text, name, text)
    check("JAX on the CPU does not show its steps" in text + err, name, text, err)
    check("no call was recorded" in err and "the report: tfhook report" in err and "exit code 3" in err, name, err)


found = interpreters.every()
for version, python in dict.fromkeys([found[0], found[len(found) // 2], found[-1]]):
    right(version, *run(version, JOB, python=python))
right("shell", *run("shell", JOB, "sh", "-c", '"$@"; exit 3', "sh"))
right("launcher", *run("launcher", JOB, sys.executable, "-c", LAUNCHER))

out, err, report, text = run("queue", QUEUE)
if report and enough("queue", report):
    check(report["verdict"]["class"] in ("input-bound", "host-bound"), "queue", report["verdict"])
    line = [x for x in report["sampled"]["lines"] if x["line"] == line_of(QUEUE, "# waits")]
    check(line and line[0]["share"] > 0.5 and line[0]["calls"], "queue", report["sampled"]["lines"])
    workers = report["verdict"]["workers"]
    if sys.version_info >= (3, 11):  # earlier ones do not show their threads
        check(workers and workers["threads"] == 1 and workers["place"]["function"].startswith(("make", "fill")), "queue", workers)

for name, job, cause in ("pool", POOL, "host.python"), ("futures", FUTURES, "compute.cpu"):
    out, err, report, text = run(name, job)
    if not report or not enough(name, report):
        continue
    print(name, report["verdict"]["workers"], report["sampled"]["pool"], report["sampled"]["lines"])
    check(report["verdict"]["cause"] == cause and report["verdict"]["place"]["function"] == "work", name, report["verdict"])
    check(report["sampled"]["pool"]["line"] == line_of(job, "# waits"), name, report["sampled"])
    workers = report["verdict"]["workers"]
    check(workers and workers["processes"] == 2 and workers["busy"] > 0.7, name, workers)
    where = told(os.path.join(TMP, name), "--where")
    check("work" in where and "WHERE THE WORKERS WERE" in where, name, where)
    check("WHERE THE WORKERS' TIME WENT" in text and "a worker process" in text, name, text)

out, err, report, text = run("native", NATIVE)
ran = sorted(json.load(open(os.path.join(TMP, "native", "start.json")))["processes"][0]["others_ran"]) if report else "0"
if report and enough("native", report) and ran[len(ran) // 4] > "5":  # else they had no CPU on a busy machine
    print("native", report["verdict"], report["sampled"]["lines"])
    check(report["verdict"]["cause"] == "compute.cpu" and report["verdict"]["place"]["line"] == line_of(NATIVE, "# waits"), "native", report)
    check(not report["steps"]["total"] or ("WHERE THE RUN WENT" in text and "  steps  " in text), "native", text)

report = os.path.exists(os.path.join(TMP, "pool"))
if report:
    before = told(os.path.join(TMP, "pool"), "--json"), told(os.path.join(TMP, "pool"), "--all")
    subprocess.run([TOOL, "digest", os.path.join(TMP, "pool")], check=True, capture_output=True)
    os.rename(os.path.join(TMP, "pool", "start.json"), os.path.join(TMP, "start.json"))
    after = told(os.path.join(TMP, "pool"), "--json"), told(os.path.join(TMP, "pool"), "--all")
    for a, b in zip(before, after):
        other = [(x, y) for x, y in zip(a.splitlines(), b.splitlines()) if x != y]
        check(a == b, "digest: another report", other[:4])
    os.remove(os.path.join(TMP, "pool", "digest.tft"))
    with open(os.path.join(TMP, "start.json")) as f:
        whole = f.read()
    # A line that cannot be, as of a frame that changed while it was read, is no line, and costs no other sample.
    with open(os.path.join(TMP, "pool", "start.json"), "w") as f:
        odd = json.loads(whole)
        odd["places"][0][2] = 4294267028
        json.dump(odd, f)
    check(json.loads(told(os.path.join(TMP, "pool"), "--json"))["sampled"]["samples"] == json.loads(before[0])["sampled"]["samples"], "odd line")
    for broken in "", "{", whole[:len(whole) // 2], whole.replace("[1,", "[9999,"), whole.replace('"looks"', '"x"'), whole.replace('"gil":"', '"gil":"9'):
        with open(os.path.join(TMP, "pool", "start.json"), "w") as f:
            f.write(broken)
        done = subprocess.run([TOOL, "report", os.path.join(TMP, "pool")], capture_output=True, text=True)
        check(done.returncode in (0, 5), "damaged", broken[:20], done)

out, err, report, text = run("deep", DEEP)
if "too short" in err:
    print("deep: too few samples on this machine")
else:
    check(report and report["verdict"]["cause"] in ("host.python", None), "deep", err, report and report["verdict"])
out, err, report, text = run("quiet", JOB, flags=["-q"])
check(not err and report, "quiet", err)
out, err, report, text = run("off", JOB, TFHOOK_SAMPLES="0")
check("samples" not in err and not report, "off", err)
out, err, report, text = run("short", "import time, sys\ntime.sleep(0.2)\nsys.exit(3)\n")
check(not report, "short: left behind", report)
path = os.path.join(TMP, "short_job.py")
with open(path, "w") as f:
    f.write("import time\nt = time.perf_counter()\nwhile time.perf_counter() - t < 0.2: sum(range(1000))\n")
err = subprocess.run([TOOL, "run", "-o", os.path.join(TMP, "short"), sys.executable, path], capture_output=True, text=True).stderr
check("too short to be judged by samples of its main thread" in err or "by samples of its main thread:" in err, "short", err)
sys.exit(failed())
