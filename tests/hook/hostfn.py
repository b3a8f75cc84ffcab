#!/usr/bin/env python3
"""Host functions that the driver runs for streams and graphs: the program's own are called as without tfhook, and are what
the driver says when it is asked; each run is recorded on the thread and for the time that it had."""
import os
import subprocess
import sys

from compare import CALL, build, check, failed, records_of, tmp

client = f"{build}/tests/hook/hostfn"
MS = 1000000


def run(name, **settings):
    place = f"{tmp}/{name}"
    os.mkdir(place)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", SIM_TRUTH=f"{place}/truth", TFHOOK_DIR=place, **settings)
    done = subprocess.run([client], env=env, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


plain = run("plain")
check(plain[0] == 0 and "stranger" not in plain[1] and "wrong 0" in plain[1], "client", plain)
hook = f"{build}/lib/libtfhook.so"
check(run("off", LD_PRELOAD=hook, TFHOOK="0") == plain, "switched off")
check(run("on", LD_PRELOAD=hook) == plain, "with tfhook")
check(run("noexport", LD_PRELOAD=f"{build}/lib/libtfhook-noexport.so") == plain, "without exports")

records = sorted(records_of(f"{tmp}/on"), key=lambda r: r["t0"])
given = [r for r in records if r["kind"] == CALL and r["fn"].startswith(("cuLaunchHostFunc", "cuStreamAddCallback"))]
ran = [r for r in records if r["kind"] == CALL and r["fn"] == "host function"]
good = [r for r in given if r["result"] == 0 and not r["flags"] & 2]
check(len(good) == 94 and len(given) == 97, "registrations", len(good), len(given))
# In streams each runs once; of the graphs, see what the program printed.
graphs = sum(int(n) % 100 + int(n) // 100 for n in plain[1].splitlines()[-1].split()[3:7])
check(len(ran) == len(good) + graphs, "runs", len(ran), len(good), graphs)
check({r["tid"] for r in ran}.isdisjoint(r["tid"] for r in given), "threads")
check(all(r["t1"] - r["t0"] >= MS for r in ran), "a run is as long as its function")
check({r["w"][0] for r in ran if r["w"][1]} == {r["w"][0] for r in good if r["w"][1]}, "functions")
streams = {r["w"][1]: r["stream"] for r in ran}
check(len(streams) >= 2 and all(bool(s) == (handle > 2) for handle, s in streams.items()), "streams", streams)
sys.exit(failed())
