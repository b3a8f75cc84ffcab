#!/usr/bin/env python3
"""What must hold: where a program without Python waits for a mutex, the report names the line that asks for it, the function with which the
thread began that holds it, and how long that one runs meanwhile: of plain and robust mutexes, and those that pass on priorities. The
threads end as without the recorder."""
import os
import platform
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, report_of  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, src, tmp = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
with open(src + "/tests/hook/holder.c") as f:
    LINE = 1 + next(i for i, text in enumerate(f) if "/* the line */" in text)
ENOUGH = 40

for kind in ("plain", "robust", "inherit", "sleeps"):
    directory = f"{tmp}/{kind}"
    done = subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", directory, "--", f"{build}/tests/hook/holder", kind], timeout=100,
                          env={**os.environ, "LD_LIBRARY_PATH": f"{build}/sim"}, stderr=subprocess.PIPE, text=True)
    check(done.returncode == 0, kind, done)
    report = report_of(directory)
    verdict, workers = report["verdict"], report["verdict"].get("workers") or {}
    if (workers.get("samples") or 0) < ENOUGH:
        print(kind, "too few samples on this machine", workers)
        continue
    began = workers["place"] or {}
    check(verdict["cause"] == "host.lock" and workers["holds"] and workers["threads"] == 1, kind, verdict, workers)
    check(began.get("function") == "summarize" and began["share"] > 0.9, kind, began)
    check(workers["busy"] == 1, kind, workers)
    if platform.machine() == "x86_64":
        place = verdict["place"] or {}
        check(place.get("function") == "note_step" and place["line"] == LINE, kind, place)
    text = subprocess.run([f"{build}/bin/tfhook", "report", directory], stdout=subprocess.PIPE, text=True).stdout
    share = [int(word) for word in " ".join(text.split()).split("holds the lock and runs ")[-1].split()[:1] if word.isdigit()]
    print(kind, workers, share)
    check(share and (share[0] < 50) == (kind == "sleeps"), kind, text)
sys.exit(failed())
