#!/usr/bin/env python3
"""A digest says of each step what the report says of it, to 1/8192 of a median step, read by a second reader written from FORMAT.md alone;
it takes at most 20 bytes a step; it is up to date until the recording changes, stands for a recording that is gone, is no part of the
run directory that it lies in, and a damaged or unfinished one is refused with the documented exit code."""
import json
import os
import random
import shutil
import struct
import subprocess
import sys

build, tmp, src = os.environ["TFH_BUILD"], os.environ["TFH_TMP"], os.environ["TFH_SRC"]
sys.path.insert(0, os.path.join(src, "tests/record"))
import tft_reader  # noqa: E402

env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"}
STEP = {1: 8, 2: 8, 3: 8, 4: 4, 5: 1, 6: 1, 7: 1, 8: 1, 9: 4, **{32 + c: 4 for c in range(39)}}
ANCHOR = {1: 8, 2: 8, 3: 8, 4: 4, 5: 4}
RANK = {1: 4, 2: 4, 3: 4, 4: 4, 5: 1, 6: 1, 7: 1, 8: 1, 9: 8, 10: 8, 11: 8, 12: 8, 13: 8}
bad = 0


def check(true, *words):
    global bad
    if not true:
        bad += 1
        print("WRONG", *words)


def tfhook(*args, status=0):
    r = subprocess.run([f"{build}/bin/tfhook", *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    check(r.returncode == status, args, "ended with", r.returncode, "not", status, r.stderr.decode()[-300:])
    return r.stdout.decode()


def record(name, *job):
    tfhook("run", "-q", "-o", f"{tmp}/{name}", *job)
    return f"{tmp}/{name}"


def read(path):
    tables, sizes = {}, {}
    with open(path, "rb") as f:
        data = f.read()
    for kind, *_, payload in tft_reader.chunks(data):
        sizes[kind] = sizes.get(kind, 0) + len(payload)
        widths, texts = {"DSTP": (STEP, ()), "DCOL": (ANCHOR, ()), "DRNK": (RANK, (4,)), "DKEY": ({1: 4, 2: 4}, (1, 2)),
                         "DINP": ({1: 4, 2: 8, 3: 4}, (1,))}.get(kind, (None, None))
        if widths:
            tables.setdefault(kind, []).append(list(tft_reader.table_rows(payload, widths, texts)))
    return tables


loop = os.path.join(src, "tests/analyze/recurs_jobs.py")
run = record("slower", sys.executable, loop, "slower")
check("digest.tft: " in tfhook("digest", run), "made")
check("up to date" in tfhook("digest", run), "made again though nothing changed")
report = json.loads(tfhook("report", "--json", run))
steps = [json.loads(line) for line in tfhook("report", "--steps", "--json", run).splitlines()]
tables = read(f"{run}/digest.tft")
facts = dict(tables["DKEY"][0])
check(facts["digest"] == "tfhook.digest/1" and facts["verdict.class"] == report["verdict"]["class"], "facts", facts)
check(facts["verdict.cause"] == report["verdict"]["cause"] and facts["command.1"] == loop, "facts", facts)
names = {row[0] for row in tables["DINP"][0]}
check(names == {n for n in os.listdir(run) if n != "digest.tft"}, "inputs", names)
unit = tables["DRNK"][0][0][9] * 1e-9
rows = sum(tables["DSTP"], [])
check(unit <= report["steps"]["median_s"] / 8192 + 1e-9 and len(rows) == len(steps), "unit or number of steps", unit, len(rows), len(steps))
end = 0
for row, step in zip(rows, steps):
    begin = end + tft_reader.unzigzag(row[0])
    end = begin + tft_reader.unzigzag(row[1]) + row[8] + sum(row[9:])
    parts = step["breakdown"]
    check(abs(begin * unit - step["start_s"]) <= unit and abs((end - begin) * unit - step["dur_s"]) <= 2 * unit, "times", step)
    check(abs(row[8] * unit - parts["compute"]) <= 2 * unit and row[2] == step["index"], "compute", step)
    check(abs(sum(row[9:]) * unit - sum(v for k, v in parts.items() if k not in ("compute", "unattributed"))) <= 2 * unit, "causes", step, row)

# Every rank has its steps, and anchors of its collectives, by which ranks are matched: the same key and numbers in all.
meeting = f"{tmp}/meeting"
script = "".join(f"RANK={r} WORLD_SIZE=2 {build}/tests/hook/nccl {meeting} 2 {r} bound {3 if r else 0} & " for r in range(2)) + "wait"
ranks = record("ranks", "bash", "-c", script)
tfhook("digest", ranks)
tables = read(f"{ranks}/digest.tft")
check([row[1] for row in tables["DRNK"][0]] == [1, 2], "ranks", tables["DRNK"])
anchors = [[row for row in sum(tables["DCOL"], []) if row[4] == r] for r in range(2)]
shown = [{(row[2], row[3]) for row in mine} for mine in anchors]
check(len(shown[0] & shown[1]) == 8, "anchors of the ranks", shown)  # a communicator that was split has keys of its own
check(all(row[0] <= row[1] for row in anchors[0] + anchors[1]), "an anchor ends before it begins", anchors)

# A thousand steps say how large they are; small tables are left out of the count.
many = record("many", f"{build}/tests/jobs/client_loop", "--steps", "2000", "--sleep", "0", "--spin", "200")
tfhook("digest", many)
packed = 0
with open(f"{many}/digest.tft", "rb") as f:
    data = f.read()
at = 0
while data[at:at + 4] == struct.pack("<I", 0x184D2A54) and data[at + 8:at + 12] == b"TFTC":
    header, size = struct.unpack_from("<I", data, at + 4)[0] + 8, struct.unpack_from("<Q", data, at + 32)[0]
    packed += header + size if data[at + 20:at + 24] == b"DSTP" else 0
    at += header + size
check(packed <= 20 * 2000, "bytes a step:", packed / 2000)
print("bytes a step: %.1f" % (packed / 2000))

# It is no part of the recording.
check(json.loads(tfhook("report", "--json", run))["quality"] == report["quality"], "a digest beside the recording changed the report")
check("whole" in tfhook("verify", run) and "verdict.class=" in tfhook("info", f"{run}/digest.tft"), "verify, info")
tfhook("report", f"{run}/digest.tft", status=3)

# The recording changes: the digest is made again.
with open(f"{run}/end.json", "a") as f:
    f.write("\n")
check("up to date" not in tfhook("digest", run), "an old digest was taken for a fresh one")
other = f"{tmp}/no.tft"
with open(other, "w") as f:
    f.write("something else")
tfhook("digest", run, "-o", other, status=3)
with open(other) as f:
    check(f.read() == "something else", "a file that is no digest was overwritten")

# Cut and changed ones are refused, not believed.
with open(f"{run}/digest.tft", "rb") as f:
    whole = f.read()
draw = random.Random(1)
for i in range(60):
    data = bytearray(whole)
    if i % 2:
        del data[draw.randrange(1, len(data)):]
    else:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    with open(f"{tmp}/broken.tft", "wb") as f:
        f.write(data)
    for command in ("verify", "info"):
        r = subprocess.run([f"{build}/bin/tfhook", command, f"{tmp}/broken.tft"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        check(r.returncode in (0, 3, 4, 5), command, "ended with", r.returncode, r.stderr.decode()[-300:])
shutil.rmtree(run)
sys.exit(bad != 0)
