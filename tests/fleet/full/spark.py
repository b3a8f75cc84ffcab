#!/usr/bin/env python3
"""Spark gives the same answers as DuckDB to the same queries, word by word, and finds what was planted: on a million ranks, or on as
many as TFH_FLEET_RUNS runs have (80 a run). Prints how long each took and how much memory."""
# timeout: 3600
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import fleet_env
from fleet_env import alike, build, check, continue_in, src, tmp

if subprocess.run([src + "/scripts/bootstrap", "spark"]).returncode:
    print("no Java")
    sys.exit(77)
continue_in("spark")
import synthetic

lake, runs = tmp + "/lake", int(os.environ.get("TFH_FLEET_RUNS") or 12800)
began = time.monotonic()
ranks = synthetic.write(lake, runs, 16)
size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(lake) for name in names)
print(f"{ranks} ranks of {runs} runs, {size / 1e6:.0f} MB, written in {time.monotonic() - began:.0f} s", flush=True)
check(ranks >= 77 * runs, "ranks", ranks)


def ask(*flags):
    """The answers, with GNU time's seconds and most memory."""
    done = subprocess.run(["/usr/bin/time", "-f", "%e %M", build + "/bin/tfhook", "fleet", "--json", *flags, lake], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("FAILED: %s\n%s" % (flags, done.stderr[-3000:]))
    seconds, most = re.findall(r"^([0-9.]+) (\d+)$", done.stderr, re.M)[-1]
    print(f"{flags or 'duckdb'}: {seconds} s, {int(most) / 1024:.0f} MB", flush=True)
    return json.loads(done.stdout)


duck, spark = ask(), ask("--engine", "spark", "--master", "local[2]")
check(spark.pop("engine") == "spark" and duck.pop("engine") == "duckdb", "engines")
for name in duck:
    check(alike(duck[name], spark[name]), name, duck[name][:3], spark[name][:3])
for rows in (duck, spark):
    for line in synthetic.wrong(rows):
        check(False, line)
sys.exit(fleet_env.bad)
