#!/usr/bin/env python3
"""A digest says of each step what the report says of it, to 1/8192 of a median step, and of each loop where the time of its steps went, read by a
second reader written from FORMAT.md alone;
it takes at most 20 bytes a step; it is up to date until the recording changes, stands for a recording that is gone, is no part of the
run directory that it lies in, and a damaged or unfinished one is refused with the documented exit code."""
import ctypes
import ctypes.util
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

build, tmp, src = os.environ["TFH_BUILD"], os.environ["TFH_TMP"], os.environ["TFH_SRC"]
sys.path.insert(0, os.path.join(src, "tests/record"))
import tft_reader  # noqa: E402
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed, tool  # noqa: E402

env = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "TFHOOK_CUPTI_LIB": f"{build}/sim/libcupti.so.13"}
with open(os.path.join(src, "lib/base/vocabulary.def")) as f:
    CAUSES = re.findall(r'^CAUSE\(\w+, *"([^"]+)"', f.read(), re.M)
STEP = {1: 8, 2: 8, 3: 8, 4: 4, 5: 1, 6: 1, 7: 1, 8: 1, 9: 4, **{32 + c: 4 for c in range(len(CAUSES))}}
ANCHOR = {1: 8, 2: 8, 3: 8, 4: 4, 5: 4}
NODE = {1: 1, 2: 4, 3: 4, 4: 8, 5: 8, 6: 8, 7: 8, 8: 8, 9: 8, 10: 8, **{32 + c: 8 for c in range(len(CAUSES))}}
RANK = {1: 4, 2: 4, 3: 4, 4: 4, 5: 1, 6: 1, 7: 1, 8: 1, 9: 8, 10: 8, 11: 8, 12: 8, 13: 8}
HOST = [c for c, name in enumerate(CAUSES) if name.startswith("host.")]


def tfhook(*args, status=0):
    return tool(*args, status=status, env=env)


def record(name, *job):
    tfhook("run", "-q", "-o", f"{tmp}/{name}", *job)
    return f"{tmp}/{name}"


def read(path):
    tables, sizes = {}, {}
    with open(path, "rb") as f:
        data = f.read()
    for kind, *_, payload in tft_reader.chunks(data):
        sizes[kind] = sizes.get(kind, 0) + len(payload)
        widths, texts = {"DSTP": (STEP, ()), "DCOL": (ANCHOR, ()), "DRNK": (RANK, (4,)), "DNOD": (NODE, (3,)), "DKEY": ({1: 4, 2: 4}, (1, 2)),
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

# Of each loop where the time of its steps went: all steps are in the tree once, and what only one loop does is only in that one.
LOOPS = """
import sys, time
sys.path.insert(0, %r)
from device import Device
d = Device()
for epoch in range(4):
    for i in range(30):
        d.up()
        d.train(6)
        d.sync()
    for i in range(20):
        d.up()
        d.run(2)
        d.sync()
        time.sleep(0.005)
""" % os.path.join(src, "tests/jobs")
loops = record("loops", sys.executable, "-c", LOOPS)
tfhook("digest", loops)
tables = read(f"{loops}/digest.tft")
nodes, rows = tables["DNOD"][0], sum(tables["DSTP"], [])
unit = tables["DRNK"][0][0][9] * 1e-9


def real(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def near(a, b, off):
    return abs(a - b) <= off


check(nodes[0][7] == len(rows), "steps in the tree", nodes[0][7], "of", len(rows))
for at in [8, *range(10, 10 + len(CAUSES))]:
    in_steps = sum(row[at if at == 8 else at - 1] for row in rows) * unit
    check(near(real(nodes[0][at]), in_steps, unit * len(rows)), "column", at, real(nodes[0][at]), "in steps", in_steps)
for i, node in enumerate(nodes):
    inside = [n for k, n in enumerate(nodes) if k and n[1] == i]
    check(not inside or sum(n[7] for n in inside) <= node[7], "parts have more steps than", node)
names = "before startup epoch loop train evaluate predict step".split()
kinds = {name: [n for n in nodes if n[0] == 2 + k] for k, name in enumerate(names)}
train, evaluate = kinds["train"], kinds["evaluate"]
check(len(train) == len(evaluate) == 1 and len(kinds["epoch"]) == 1, "tree", [(n[0], n[3]) for n in nodes])
check(near(train[0][7], 120, 6) and near(evaluate[0][7], 80, 6), "steps", train[0][7], evaluate[0][7])
slept = [sum(real(node[10 + c]) for c in HOST) / node[7] for node in (train[0], evaluate[0])]
check(slept[1] > 4e-3 and slept[1] > slept[0], "what the host does in a step of training, of evaluation", slept)
check(all(near(a, b, 1e-6) for a, b in zip(map(real, kinds["epoch"][0][8:]), [real(x) + real(y) for x, y in zip(train[0][8:], evaluate[0][8:])])),
      "an epoch is its loops")

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
# A report from it needs memory for its steps, not for their number squared: 4 GB of addresses are plenty.
done = subprocess.run(["bash", "-c", 'ulimit -v 4000000; exec "$@"', "bash", f"{build}/bin/tfhook", "report", f"{many}/digest.tft"], env=env,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
check(done.returncode == 0 and b"2000 steps" in done.stdout.replace(b",", b""), "many steps", done.returncode, done.stdout[:80], done.stderr)

# It is no part of the recording.
check(json.loads(tfhook("report", "--json", run))["quality"] == report["quality"], "a digest beside the recording changed the report")
check("whole" in tfhook("verify", run) and "verdict.class=" in tfhook("info", f"{run}/digest.tft"), "verify, info")

# Every output is printed from it, in the same words, also when the recording is gone; the timeline and `why` of a step then say
# that they need it.
FORMS = [[], ["--all"], ["--wide"], ["--json"], ["--folded"], [f"--{n}" for n in "kernels transfers input where ranks memory machine".split()]]


def printed(path):
    return [tfhook("report", *form, path) for form in FORMS] + [tfhook("why", topic, path) for topic in ("gain", "verdict", "tier")]


def judged_and_kept(path):
    os.unlink(f"{path}/digest.tft")
    judged = printed(path)
    tfhook("digest", path)
    for kept in (path, f"{path}/digest.tft"):
        for form, a, b in zip([*FORMS, "gain", "verdict", "tier"], judged, printed(kept)):
            check(a == b, form, "differs when printed from the digest", kept)
    return judged


judged_and_kept(loops)
judged_and_kept(ranks)
judged = judged_and_kept(run)
gone = f"{tmp}/gone"
shutil.copytree(run, gone)
for name in os.listdir(gone):
    if name.endswith(".tft") and name != "digest.tft":
        os.unlink(f"{gone}/{name}")
check(printed(gone) == judged, "without the recording the report differs")
rows = [json.loads(line) for line in tfhook("report", "--steps", "--json", gone).splitlines()]
check(len(rows) == len(steps) and all(abs(a["dur_s"] - b["dur_s"]) <= 2 * unit for a, b in zip(rows, steps)), "steps of a digest")
tfhook("why", gone, status=5)
tfhook("report", "--html", f"{tmp}/gone.html", gone)
with open(f"{tmp}/gone.html") as f:
    check("but only its digest was available" in f.read(), "the page does not say why it has no timeline")

# The recording changes: the digest is made again.
with open(f"{run}/end.json", "a") as f:
    f.write("\n")
check("up to date" not in tfhook("digest", run), "an old digest was taken for a fresh one")
# Or the judge: one made by another is of no use. It has another number in place of this one's, in a chunk of
# the same length: what it is shorter is a frame that readers of zstd skip.
with open(f"{run}/digest.tft", "rb") as f:
    fresh = f.read()
at = next(i for i in range(len(fresh)) if fresh[i:i + 4] == b"DKEY" and fresh[i - 12:i - 8] == b"TFTC") - 20
length = struct.unpack_from("<I", fresh, at + 4)[0] + 8
packed, raw = struct.unpack_from("<QQ", fresh, at + 32)
payload = tft_reader.unpack_frame(fresh[at + length:at + length + packed], raw)
judge = dict(read(f"{run}/digest.tft")["DKEY"][0])["judge"]
zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
zstd.ZSTD_compress.restype = ctypes.c_size_t
for number in range(1000):
    room = ctypes.create_string_buffer(2 * raw + 1000)
    changed = payload.replace(judge.encode(), ("%s%03d" % (judge[:-3], number)).encode())
    n = zstd.ZSTD_compress(room, ctypes.c_size_t(len(room)), changed, ctypes.c_size_t(raw), 1 + number % 19)
    frame = room.raw[:n] + (struct.pack("<II", 0x184D2A50, packed - n - 8) + bytes(packed - n - 8) if n <= packed - 8 else b"")
    if len(frame) == packed and changed != payload:
        break
check(len(frame) == packed, "no other number fits", n, packed)
header = bytearray(fresh[at:at + length])
header[12:20] = bytes(4) + struct.pack("<I", tft_reader.crc(frame))
header[12:16] = struct.pack("<I", tft_reader.crc(bytes(header)))
with open(f"{run}/digest.tft", "wb") as f:
    f.write(fresh[:at] + header + frame + fresh[at + length + packed:])
check("whole" in tfhook("verify", f"{run}/digest.tft"), "the test wrote no digest")
check("up to date" not in tfhook("digest", run), "a digest of another judge was taken for a fresh one")
check("up to date" in tfhook("digest", run), "and is made anew")
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
sys.exit(failed())
