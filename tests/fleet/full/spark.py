#!/usr/bin/env python3
"""Spark gives the same answers as DuckDB to the same queries, word by word, and finds what was planted: on a million ranks, or on as
many as TFH_FLEET_RUNS runs of TFH_FLEET_HOSTS hosts at most have (from 6,000 runs on all that is planted is beyond chance). Prints how
long each took and how much memory."""
# timeout: 14400
import concurrent.futures
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from fleet_env import alike, build, check, continue_in, failed, src, tmp

if subprocess.run([src + "/scripts/bootstrap", "spark"]).returncode:
    print("no Java")
    sys.exit(77)
continue_in("spark")
import synthetic

lake, runs, hosts = tmp + "/lake", int(os.environ.get("TFH_FLEET_RUNS") or 12800), int(os.environ.get("TFH_FLEET_HOSTS") or 16)
began = time.monotonic()
ranks = synthetic.write(lake, runs, hosts)
size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(lake) for name in names)
print(f"{ranks} ranks of {runs} runs, {size / 1e6:.0f} MB, written in {time.monotonic() - began:.0f} s", flush=True)
check(ranks > 3.9 * hosts * runs, "ranks", ranks)


def most_memory(pid, until):
    """Of a process and its descendants together, in bytes, looked at four times a second."""
    most = 0
    while not until.wait(0.25):
        parent, resident = {}, {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as f:
                    fields = f.read().rpartition(")")[2].split()
            except OSError:
                continue
            parent[int(name)], resident[int(name)] = int(fields[1]), int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        family = {pid}
        while more := {child for child, of in parent.items() if of in family} - family:
            family |= more
        most = max(most, sum(resident.get(one, 0) for one in family))
    return most


def ask(*flags):
    """The answers. Prints what they took."""
    began, ended = time.monotonic(), threading.Event()
    process = subprocess.Popen([build + "/bin/tfhook", "fleet", "--json", *flags, lake], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        memory = pool.submit(most_memory, process.pid, ended)
        out, err = process.communicate()
        ended.set()
    if process.returncode:
        sys.exit("FAILED: %s\n%s" % (flags, err[-3000:]))
    print(f"{' '.join(flags) or 'duckdb'}: {time.monotonic() - began:.1f} s, {memory.result() / 1e9:.2f} GB", flush=True)
    return json.loads(out)


duck, spark = ask(), ask("--engine", "spark", "--master", "local[2]")
check(spark.pop("engine") == "spark" and duck.pop("engine") == "duckdb", "engines")
for name in duck:
    check(alike(duck[name], spark[name]), name, duck[name][:3], spark[name][:3])
for rows in (duck, spark):
    for line in synthetic.wrong(rows):
        check(False, line)
sys.exit(failed())
