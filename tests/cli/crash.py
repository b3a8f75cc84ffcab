#!/usr/bin/env python3
"""The first screen of ranks of which one crashed: it fits, names that rank, how long the others waited and for which exchange, and has a
table in which the ranks that are alike share a row.
timeout: 60
"""
import json
import os
import re
import subprocess
import sys

build, src, tmp = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
tool, job = os.path.join(build, "bin", "tfhook"), os.path.join(src, "tests", "cli", "crash_job.py")
os.chdir(tmp)
if os.environ.get("TFH_SAN") in ("address", "thread"):
    print("the recorder with that sanitizer cannot be preloaded into ordinary programs")
    sys.exit(77)

env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"))
run = subprocess.run([tool, "run", "-q", "-o", "rec", "--", sys.executable, job, "4", "2", "150"], env=env, timeout=50)
assert run.returncode == 1, run.returncode
screen = subprocess.run([tool, "report", "rec"], env={**os.environ, "LINES": "24"}, capture_output=True, text=True, check=True).stdout
lines = screen.splitlines()
assert len(lines) <= 23 and max(map(len, lines)) <= 80, screen
ends = [(r["end"], r["end_code"]) for r in json.loads(subprocess.run([tool, "report", "--json", "rec"], capture_output=True, text=True, check=True).stdout)["ranks"]]
known = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) >= (6, 15)  # this kernel tells how a process ended
assert ends == ([("signal", 15), ("signal", 15), ("signal", 11), ("signal", 15)] if known else [(None, None)] * 4), ends
if known:
    assert re.search(r"^  rank     rank 2 died of SIGSEGV, \S+ s before the last rank stopped$", screen, re.M), screen
else:
    assert "rank 2 stopped first" in screen, screen
assert re.search(r"^  waits    3 ranks wait in exchange 151; rank 2 has begun 150$", screen, re.M), screen
table = [line for line in lines[next(i for i, line in enumerate(lines) if line.startswith("   RANK")) + 1:] if line][:2]
assert re.match(r" ! 2  +1\d\d +150 ", table[0]) and table[0].endswith("SIGSEGV" if known else "s before"), screen
assert re.match(r"   0-1, 3  +1\d\d +151  cuMemcp\S+ +\S+ s +%s$" % ("SIGTERM" if known else "last of all"), table[1]), screen
assert "SURE" in screen, screen
ranks = json.loads(subprocess.run([tool, "report", "--json", "rec"], capture_output=True, text=True, check=True).stdout)["ranks"]
assert [r["exchanges"] for r in ranks] == [151, 151, 150, 151], ranks
