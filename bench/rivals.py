#!/usr/bin/env python3
"""A recorded call beside what one would use instead: LTTng-UST (a preloaded library with two tracepoints a launch) and uftrace
(library calls of an unmodified program). The driver does nothing, so what a call takes more than without a recorder is the recorder's.

usage: rivals.py [ROUNDS [SECONDS]]    11 rounds of 0.5 s for each recorder, rate and company: five minutes

Recorders take turns within a round. "over" is a call's median length over that without a recorder in the same round; the percentiles
include the call and a clock reading (20 ns here). "others" is the processor time of the recorder's own threads and processes per call,
"bytes" what lies on disk afterwards. The last rows have another process beside them that writes and syncs a file on the same disk all
the time. Recorders that are missing are named and left out (Debian: lttng-tools liblttng-ust-dev uftrace).
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lttng  # noqa: E402

src, build = os.environ["TFH_SRC"], os.environ["TFH_BUILD"]
ROUNDS, SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 11, sys.argv[2] if len(sys.argv) > 2 else "0.5"
CASES = [(10_000, False), (100_000, False), (1_000_000, False), (100_000, True)]
here = os.path.join(src, "bench", "rivals")


def compile_all(tmp):
    """The driver, the client, and LTTng's library; false if the last could not be compiled."""
    def cc(out, *args):
        return subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", f"{tmp}/{out}", *args], stderr=subprocess.DEVNULL).returncode == 0
    driver = f"{tmp}/libcuda.so.1"
    assert cc("libcuda.so.1", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", f"{src}/bench/libnoopcuda.c")
    assert cc("client", f"{here}/client.c", driver, f"-Wl,-rpath,{tmp}")
    return cc("liblttngcalls.so", "-shared", "-fPIC", f"-I{here}", f"{here}/lttng_calls.c", "-llttng-ust", "-ldl")


def size_of(path):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files)


def client(tmp, rate, env=None, before=(), seconds=None):
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("TFHOOK") and k != "LD_PRELOAD"}, **(env or {})}
    done = subprocess.run([*before, f"{tmp}/client", str(rate), seconds or SECONDS, "0"], env=env, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    return {**json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{"))), "bytes": 0, "said": done.stderr}


class Nothing:
    name = "no recorder"

    def run(self, tmp, rate):
        return client(tmp, rate)


class Tfhook:
    name = "tfhook"

    def run(self, tmp, rate):
        out = f"{tmp}/tfhook"
        os.makedirs(out)
        r = client(tmp, rate, {"LD_PRELOAD": f"{build}/lib/libtfhook.so", "TFHOOK_DIR": out, "TFHOOK_CUPTI": "off"})
        r["bytes"] = size_of(out)
        js = json.loads(subprocess.run([f"{build}/bin/tfhook", "report", "--json", f"{out}/{os.listdir(out)[0]}"], stdout=subprocess.PIPE, text=True).stdout)
        r["lost"] = js["quality"]["dropped"]
        shutil.rmtree(out)
        return r


class Lttng:
    name = "LTTng-UST"

    def __init__(self):
        self.daemon = lttng.Daemon()

    def run(self, tmp, rate):
        out = f"{tmp}/lttng"
        self.daemon.begin(out, "calls:*")
        before = lttng.consumed()
        r = client(tmp, rate, {"LD_PRELOAD": f"{tmp}/liblttngcalls.so", "LTTNG_HOME": self.daemon.home})
        r["lost"] = self.daemon.end()
        r["others_s"] = lttng.consumed() - before
        r["bytes"] = size_of(out)
        shutil.rmtree(out)
        return r


class Uftrace:
    name = "uftrace"

    def run(self, tmp, rate):
        out = f"{tmp}/uftrace"
        r = client(tmp, rate, before=("uftrace", "record", "--no-event", "--no-sched", "--force", "-d", out))
        r["lost"] = 1 if "LOST" in r["said"] else 0
        r["bytes"], r["others_s"] = size_of(out), float("nan")
        shutil.rmtree(out)
        return r


STORM = "import os, sys\nf = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)\nwhile True:\n    os.pwrite(f, b'x' * 65536, 0); os.fsync(f)"


def table(recorders, tmp, rate, storm):
    company = subprocess.Popen([sys.executable, "-c", STORM, f"{tmp}/storm"]) if storm else None
    rows = {r.name: [] for r in recorders}
    try:
        for _ in range(ROUNDS):
            for r in recorders:
                rows[r.name].append(r.run(tmp, rate))
    finally:
        if company:
            company.kill()
            company.wait()
    print(f"\n{rate:,} calls a second" + (", beside a process that syncs" if storm else ""))
    print(f"{'ns':12} {'over':>14} {'p50':>7} {'p99':>7} {'p99.9':>8} {'p99.99':>18} {'others':>7} {'bytes':>6}  lost in")
    for name, runs in rows.items():
        over = sorted(a["p50"] - b["p50"] for a, b in zip(runs, rows["no recorder"]))
        med = {k: statistics.median(r[k] for r in runs) for k in ("p50", "p99", "p99.9", "p99.99")}
        tail = sorted(r["p99.99"] for r in runs)
        others = statistics.median(r["others_s"] / r["calls"] for r in runs) * 1e9
        size = statistics.median(r["bytes"] / r["calls"] for r in runs)
        lost = sum(bool(r.get("lost")) for r in runs)
        print(f"{name:12} {statistics.median(over):5.0f} ({over[0]:3.0f} {over[-1]:4.0f}) {med['p50']:7.0f} {med['p99']:7.0f} {med['p99.9']:8.0f}"
              f" {med['p99.99']:8.0f} ({tail[0]:.0f}..{tail[-1]:.0f})".ljust(72) + f" {others:7.0f} {size:6.1f}  {lost} of {ROUNDS}")
    sys.stdout.flush()


def main():
    with tempfile.TemporaryDirectory() as tmp:
        recorders, theirs = [Nothing(), Tfhook()], None
        if compile_all(tmp) and lttng.available():
            theirs = Lttng()
            recorders.append(theirs)
        if shutil.which("uftrace"):
            recorders.append(Uftrace())
        for name in {"LTTng-UST", "uftrace"} - {r.name for r in recorders}:
            print(f"{name} is not installed: left out")
        try:
            for rate, storm in CASES:
                table(recorders, tmp, rate, storm)
        finally:
            if theirs:
                theirs.daemon.close()


if __name__ == "__main__":
    main()
