#!/usr/bin/env python3
"""What must hold: for each thread with recorded calls the report has the page faults and context switches that the thread counts for
itself, each thread's own; and where the process might run and have memory is reported as the kernel lists it, with the policy that the
program set. A recording without them, as those of earlier versions, is read, and says that they are not known."""
import json
import os
import subprocess
import sys

BUILD, SRC, TMP = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
TOOL = os.path.join(BUILD, "bin", "tfhook")
PAGES, SLEEPS = 20000, 700
JOB = """import sys; sys.path.insert(0, sys.argv[1])
import ctypes, json, mmap, resource, threading, time
PAGES, SLEEPS, REST = (float(x) for x in sys.argv[2:5])
nodes = (ctypes.c_ulong * 16)(1)
bound = sys.argv[5] == "bind" and ctypes.CDLL(None).syscall(238, 2, nodes, 1024) == 0
import device
told = {}
def counts():
    u = resource.getrusage(resource.RUSAGE_THREAD)
    return {"minor_faults": u.ru_minflt, "major_faults": u.ru_majflt, "voluntary_switches": u.ru_nvcsw, "forced_switches": u.ru_nivcsw}
def faults():
    m = mmap.mmap(-1, int(PAGES) * mmap.PAGESIZE)
    m.madvise(mmap.MADV_NOHUGEPAGE)
    for i in range(int(PAGES)): m[i * mmap.PAGESIZE] = 1
def sleeps():
    for _ in range(int(SLEEPS)): time.sleep(0.0005)
def run(work, ready):
    d.call("cuCtxSetCurrent", d.context); d.run(0.1); d.sync()
    work()
    told[threading.get_native_id()] = dict(counts(), work=work.__name__)
    ready.release(); rest.wait()
d = device.Device(); d.up(); d.run(0.1); d.sync()
ready, rest = threading.Semaphore(0), threading.Event()
threads = [threading.Thread(target=run, args=(work, ready)) for work in (faults, sleeps)]
for t in threads: t.start()
for t in threads: ready.acquire()
time.sleep(REST)
rest.set()
for t in threads: t.join()
print(json.dumps({"threads": told, "bound": bound, "mems": [l.split()[1] for l in open("/proc/self/status") if l.startswith("Mems_allowed_list")][0]}))
"""


def record(name, rest, policy):
    out = os.path.join(TMP, name)
    done = subprocess.run([TOOL, "run", "-q", "-o", out, "--", sys.executable, "-c", JOB, os.path.join(SRC, "tests", "jobs"), str(PAGES), str(SLEEPS),
                           str(rest), policy], env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim")), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, check=True)
    report = subprocess.run([TOOL, "report", "--json", out], stdout=subprocess.PIPE, text=True).stdout
    return json.loads(done.stdout), json.loads(report)


if os.environ.get("TFH_SAN") or not os.path.exists(os.path.join(BUILD, "sim", "libcuda.so.1")):
    sys.exit(77)
for rest in (2.5, 10, 40):  # a crowded machine is read later
    told, report = record("bind%g" % rest, rest, "bind")
    found = {str(t["tid"]): t for t in report["threads"]}
    if all((found.get(tid) or {}).get("minor_faults") is not None and found[tid]["voluntary_switches"] >= told["threads"][tid]["voluntary_switches"] and
           found[tid]["minor_faults"] >= told["threads"][tid]["minor_faults"] for tid in told["threads"]):
        break
for tid, own in told["threads"].items():
    t = found[tid]
    print(own["work"], {k: (own[k], t[k]) for k in own if k != "work"})
    for key in ("minor_faults", "major_faults", "voluntary_switches", "forced_switches"):
        # It went on a little after it had counted, to wait for the end.
        assert own[key] <= t[key] <= own[key] + 50 + own[key] // 20, (own["work"], key, own[key], t[key])
    assert t["cpu_s"] > 0
faults, sleeps = (next(found[tid] for tid, own in told["threads"].items() if own["work"] == work) for work in ("faults", "sleeps"))
assert faults["minor_faults"] >= PAGES > 4 * sleeps["minor_faults"]
assert sleeps["voluntary_switches"] >= SLEEPS > 4 * faults["voluntary_switches"], (sleeps, faults)
binding = report["binding"]
cpus = sorted(os.sched_getaffinity(0))
assert binding["processors"].replace("-", ",").split(",")[0] == str(cpus[0]), (binding, cpus)
assert binding["memory_nodes"] == told["mems"], (binding, told)
print(binding, "bound:", told["bound"])
if told["bound"]:
    assert binding["memory_policy"] == "bind:0", binding
    assert record("default", 0.1, "default")[1]["binding"]["memory_policy"] == "default"
golden = json.loads(subprocess.run([TOOL, "report", "--json", os.path.join(SRC, "tests", "golden", "format-1.0.tft")], stdout=subprocess.PIPE, text=True).stdout)
assert set(golden["binding"].values()) == {None}, golden["binding"]
assert all(t["minor_faults"] is None and t["voluntary_switches"] is None for t in golden["threads"]), golden["threads"]
