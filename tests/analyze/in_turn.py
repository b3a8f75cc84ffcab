#!/usr/bin/env python3
"""Processes that follow one another in one run: one is judged, and what the run did before it began or after it ended is no part of
its tree; a note says that there are more, and does not take them for ranks."""
import json
import os
import subprocess
import sys

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
TOOL, LOOP = BUILD + "/bin/tfhook", BUILD + "/tests/jobs/client_loop --h2d 1000 --spin 1000 --steps"
if os.environ.get("TFH_SAN") or not os.path.exists(BUILD + "/tests/jobs/client_loop"):
    print("needs client_loop, and a recorder that can be preloaded into ordinary programs")
    sys.exit(77)
PAUSE = 3

env = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim")
subprocess.run([TOOL, "run", "-q", "-o", TMP + "/run", "sh", "-c", f"{LOOP} 80; sleep {PAUSE}; {LOOP} 60"], env=env, stdout=subprocess.DEVNULL, check=True)
report = json.loads(subprocess.check_output([TOOL, "report", "--json", TMP + "/run"]))
tree, wall = report["tree"], report["run"]["wall_s"]
assert report["steps"]["total"] == 80, report["steps"]["total"]
assert abs(tree["wall_s"] - sum(part["wall_s"] for part in tree["parts"])) < 1e-3, tree
assert tree["wall_s"] < wall - PAUSE, (tree["wall_s"], wall)
text = " ".join(subprocess.check_output([TOOL, "report", TMP + "/run"], text=True).split())
assert "1 more made about as many calls before or after" in text and "ranks" not in text, text

# the same program again, for as much work: what one process saves, all do
subprocess.run([TOOL, "run", "-q", "-o", TMP + "/same", "sh", "-c", f"{LOOP} 80; {LOOP} 80; {LOOP} 80"], env=env, stdout=subprocess.DEVNULL, check=True)
text = " ".join(subprocess.check_output([TOOL, "report", TMP + "/same"], text=True).split())
assert "2 more did the same before or after" in text, text
