#!/usr/bin/env python3
"""What a recording says of where a call was made is what Python itself said at the call: file, line and function of every
frame, in all kinds of code, in seven threads, with and without the GIL; the first call after a pause tells where that pause
was; a Python that may not be read is none of it (TFHOOK_PYTHON=0). On every interpreter of this machine."""
import json
import os
import struct
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/record")
import interpreters  # noqa: E402
import tft_reader  # noqa: E402
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

if os.environ.get("TFH_SAN"):
    sys.exit(77)
build, src, tmp = os.environ["TFH_BUILD"], os.environ["TFH_SRC"], os.environ["TFH_TMP"]
KEPT = 256  # frames
CALL, CPUTIME = 1, 7  # kinds of records


def record(path, name, *job, **env):
    directory = f"{tmp}/{name}"
    env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_STACKS": "copy", **env}
    done = subprocess.run([f"{build}/bin/tfhook", "run", "-q", "-o", directory, "--", path, *job], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
    check(done.returncode == 0, name, done.stdout[-2000:])
    return directory


class Recording:
    """Places, copies and pauses of a run directory's one process."""

    def __init__(self, directory):
        self.codes, self.frames, self.places, self.copies, self.pauses = {}, {}, {}, {}, []
        for file in sorted(f for f in os.listdir(directory) if f.endswith(".tft")):
            with open(f"{directory}/{file}", "rb") as f:
                for kind, _, _, _, _, runs, payload in tft_reader.chunks(f.read()):
                    self.take(kind, payload, runs)

    def take(self, kind, payload, runs):
        if kind == "EVNT":
            for _, _, _, record in tft_reader.events(payload, runs):
                self.event(record)
        elif kind in ("PYFR", "BTRC", "PYCO"):
            for row in tft_reader.table_rows(payload, *tft_reader.TABLES[kind]):
                if kind == "PYFR":
                    self.frames[row[0]] = row[1:]
                elif kind == "PYCO":
                    self.codes[row[0]] = row[1:3]
                elif row[1] == 0:
                    self.places[row[0]] = row[3]

    def event(self, record):
        kind, stack, size = record[18], *struct.unpack_from("<I", record, 36), *struct.unpack_from("<Q", record, 40)
        if kind == CALL and stack:
            self.copies.setdefault(size, stack)
        elif kind == CPUTIME and stack:
            self.pauses.append(stack)

    def stack(self, number):
        place, out = self.places.get(number, 0), []
        while place:
            place, code, line = self.frames[place]
            out.append([self.codes[code][0], line, self.codes[code][1]])
        return out


for version, path in interpreters.every():
    name = version + "." + str(len(os.listdir(tmp)))
    log = f"{tmp}/{name}.json"
    run = Recording(record(path, name, f"{here}/jobs/everything.py", "driver", log))
    with open(log, encoding="utf8", errors="surrogateescape") as f:
        own = {int(k): v for k, v in json.load(f).items()}
    wrong = [k for k, v in own.items() if k not in run.copies or run.stack(run.copies[k]) != v[:KEPT]]
    print(version, path, len(own), "calls,", len(wrong), "wrong,", len(run.frames), "places")
    check(run.pauses and all(run.stack(p) for p in run.pauses), "pauses without a place", run.pauses)
    check(len(own) > 500 and not wrong, wrong[:3], [(own[k][:3], run.stack(run.copies.get(k, 0))[:3]) for k in wrong[:3]])
off = Recording(record(sys.executable, "off", f"{here}/jobs/everything.py", "driver", f"{tmp}/off.json", TFHOOK_PYTHON="0"))
check(off.places and not off.frames and not off.codes and not off.pauses, "TFHOOK_PYTHON=0", off.frames)
sys.exit(failed())
