#!/usr/bin/env python3
"""`tfhook prune` drops the segments of runs whose digest has all of them, or the digests of whose hosts have, by age and size, the oldest first, and a report still says
the same. It drops nothing unless told to, and keeps what is being recorded, what may be, what has a journal to repair, a run whose
digest is older than its segments or damaged, another user's run, and what is no run directory; it follows no link. A prune that was
cut short can be finished. Wrong flags: 2, nothing there: 5, unreadable: 3."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, tmp, src = os.environ["TFH_BUILD"], os.environ["TFH_TMP"], os.environ["TFH_SRC"]
if os.environ.get("TFH_SAN") in ("address", "thread"):
    sys.exit(77)  # such a recorder cannot be preloaded into ordinary programs
env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"}
job = [sys.executable, f"{src}/tests/evidence/jobs.py", "queue_of_sleeper", "--steps"]


def tfhook(*args, status=0):
    r = subprocess.run([f"{build}/bin/tfhook", *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    check(r.returncode == status, args, "ended with", r.returncode, "not", status, r.stdout, r.stderr)
    return r.stdout + r.stderr


def segments(name):
    return sorted(n for n in os.listdir(f"{runs}/{name}") if n.endswith(".tft") and not n.endswith("digest.tft"))


def copy(name, age_s=0, of="one"):
    shutil.copytree(f"{tmp}/{of}", f"{runs}/{name}")
    aged(name, age_s)


def aged(name, age_s):
    for file in os.listdir(f"{runs}/{name}"):
        when = time.time() - age_s
        os.utime(f"{runs}/{name}/{file}", (when, when), follow_symlinks=False)


runs = f"{tmp}/runs"
os.mkdir(runs)
tfhook("run", "-q", "-o", f"{tmp}/one", *job, "30")
shutil.copytree(f"{tmp}/one", f"{tmp}/bare")
tfhook("digest", f"{tmp}/one")
says = json.loads(tfhook("report", "--json", f"{tmp}/one"))

for name, age in (("old", 9 * 86400), ("older", 20 * 86400), ("new", 0)):
    copy(name, age)
copy("undigested", 9 * 86400, "bare")
copy("grown", 9 * 86400)
with open(f"{runs}/grown/{segments('grown')[0]}", "ab") as f:
    f.write(b"more")
copy("torn", 9 * 86400)
os.truncate(f"{runs}/torn/digest.tft", os.path.getsize(f"{runs}/torn/digest.tft") // 2)
# Two hosts, each with a digest of its own; and one whose second host has none.
for name in ("hosts", "host"):
    copy(name, 9 * 86400, "bare")
    shutil.copy(f"{runs}/{name}/{segments(name)[0]}", f"{runs}/{name}/r9.second.1.0.tft")
    tfhook("digest", f"{runs}/{name}")
os.remove(f"{runs}/host/second.digest.tft")
copy("endless", 3600)
os.remove(f"{runs}/endless/end.json")
copy("crashed", 9 * 86400)
os.remove(f"{runs}/crashed/end.json")
copy("half", 9 * 86400)
shutil.copy(f"{runs}/half/{segments('half')[0]}", f"{runs}/half/r9.gone.1.0.tft")
tfhook("digest", f"{runs}/half")
os.remove(f"{runs}/half/r9.gone.1.0.tft")
os.mkdir(f"{runs}/other")
shutil.copy(f"{tmp}/one/{segments('old')[0]}", f"{runs}/other/x.tft")
shutil.copytree(f"{tmp}/one", f"{tmp}/elsewhere")
os.symlink(f"{tmp}/elsewhere", f"{runs}/link")
copy("inner", 9 * 86400)
os.symlink(f"{tmp}/elsewhere/{segments('old')[0]}", f"{runs}/inner/r1.link.1.0.tft")
copy("fake", 9 * 86400)
os.remove(f"{runs}/fake/run.json")
os.symlink(f"{tmp}/one/run.json", f"{runs}/fake/run.json")
for name in ("grown", "torn", "half", "inner", "fake", "hosts", "host"):
    aged(name, 9 * 86400)
all_there = {name: segments(name) for name in os.listdir(runs)}

said = tfhook("prune", "--older", "7d", runs)
check("old: would drop 1 segment," in said and "--delete" in said, "dry run", said)
check(all_there == {name: segments(name) for name in os.listdir(runs)}, "a dry run dropped something")
said = tfhook("prune", "--older", "7d", "--delete", runs)
gone = {name for name, before in all_there.items() if segments(name) != before}
check(gone == {"old", "older", "crashed", "half", "hosts"}, "dropped", sorted(gone), said)
for name, why in (("undigested", "no digest"), ("grown", "no digest"), ("torn", "no digest"), ("inner", "no digest"), ("host", "no digest"), ("endless", "may still be recorded")):
    check((f"{name}: kept: " in said and why in said.split(f"{name}: kept: ")[1].split("\n")[0]) == (name != "endless"), name, said)
check(os.path.exists(f"{tmp}/elsewhere/{segments('new')[0]}") and os.path.islink(f"{runs}/inner/r1.link.1.0.tft"), "a link was followed")
check(sum(n.endswith(".digest.tft") for n in os.listdir(f"{runs}/hosts")) == 2, "digests of hosts", os.listdir(f"{runs}/hosts"))
check({"run.json", "end.json", "digest.tft"} <= set(os.listdir(f"{runs}/old")), "kept", os.listdir(f"{runs}/old"))
after = json.loads(subprocess.run([f"{build}/bin/tfhook", "report", "--json", f"{runs}/old"], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=True).stdout)
for part in ("verdict", "steps", "breakdown", "whatif", "end", "run"):
    check(after[part] == says[part], "report", part)
check("endless: kept: it may still be recorded" in tfhook("prune", "--older", "1m", runs), "endless")

# By size: the oldest first, and no more than needed.
shutil.rmtree(runs)
os.mkdir(runs)
for n in range(4):
    copy(f"run{n}", 86400 * (10 - n))
size = os.path.getsize(f"{runs}/run0/{segments('run0')[0]}")
tfhook("prune", "--size", str(2 * size), "--delete", runs)
check([len(segments(f"run{n}")) for n in range(4)] == [0, 0, 1, 1], "by size", [len(segments(f"run{n}")) for n in range(4)])
tfhook("prune", "--size", "0", "--older", "9d", "--delete", runs)
check(len(segments("run3")) == 1, "both")
tfhook("prune", "--older", "0s", "--delete", f"{runs}/run3")
check(not segments("run3"), "the folder is a run")
tfhook("prune", "--older", "0s", f"{runs}/run3", status=5)

# While it is recorded, and with a journal that a killed job left.
live = subprocess.Popen([f"{build}/bin/tfhook", "run", "-q", "-o", f"{runs}/live", *job, "100000"], env=env, stdout=subprocess.DEVNULL,
                        start_new_session=True)
until = time.time() + 60
while time.time() < until and not (os.path.isdir(f"{runs}/live") and segments("live")):
    time.sleep(0.1)
tfhook("digest", f"{runs}/live")
said = tfhook("prune", "--older", "0s", "--delete", runs)
check("live: kept: it is being recorded" in said and segments("live"), "live", said)
os.killpg(live.pid, signal.SIGKILL)
live.wait()
said = tfhook("prune", "--older", "0s", "--delete", runs)
check("live: kept: " in said and segments("live"), "killed", said)
tfhook("repair", "--left")

if os.geteuid() == 0:
    copy("foreign", 9 * 86400)
    os.chown(f"{runs}/foreign", 65534, 65534)
    said = tfhook("prune", "--older", "1d", "--delete", runs)
    check(segments("foreign") and "of other users are left alone" in said, "another user's", said)

for flags in ([], ["--older", "x"], ["--older", "-1d"], ["--size", "many"], ["--older", "7d", "--size"]):
    tfhook("prune", *flags, *([] if flags[-1:] == ["--size"] else [runs]), status=2)
tfhook("prune", "--older", "7d", f"{tmp}/nosuch", status=3)
os.mkdir(f"{tmp}/empty")
tfhook("prune", "--older", "7d", f"{tmp}/empty", status=5)
sys.exit(failed())
