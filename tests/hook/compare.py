"""Runs programs under the preload on the simulated driver and compares the trace with the driver's own log."""
import collections
import glob
import json
import os
import re
import struct
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, src, tmp = (os.environ[k] for k in ("TFH_BUILD", "TFH_SRC", "TFH_TMP"))
if os.environ.get("TFH_SAN"):
    sys.exit(77)
hooked = set(re.findall(r"^CUDA_FN(?:_HOST|_LAUNCH)?\((\w+)", open(f"{src}/lib/base/cuda_api.def").read(), re.M))
CALL, MARK, NAME, ALLOC, GRAPH = 1, 5, 8, 9, 10
CAPTURED, PTDS, FAILED = 2, 8, 32
STREAM, CONTEXT, FUNCTION, GRAPH_NAME = 1, 2, 3, 8
LEGACY = 1  # stream of the driver's log
OF_STREAMS = ("cuStreamCreate", "cuStreamDestroy")
EPSILON = 2000  # ns between the two programs' ideas of the same clock
LATE = 0.01  # share of calls that may miss even that: both clocks are read with interrupts


def run(name, *command, **settings):
    """The records and the truth of one run, both as lists of dictionaries."""
    place = os.path.join(tmp, name)
    os.mkdir(place)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", LD_PRELOAD=f"{build}/lib/libtfhook.so",
               SIM_TRUTH=f"{place}/truth", TFHOOK_DIR=place, **settings)
    done = subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, name, "exit", done.returncode, done.stdout, done.stderr)
    check(not done.stderr, name, "said", done.stderr)
    return records_of(place), truth_of(place), place


def records_of(place):
    files = sorted(glob.glob(f"{place}/tfhook-*/*.tft"))
    shown = subprocess.run([f"{build}/tests/hook/show", *files], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in shown.stdout.splitlines()]


def truth_of(place, kind="call"):
    return [t for t in map(json.loads, open(f"{place}/truth")) if t["ev"] == kind]


def calls_of(records):
    return [r for r in records if r["kind"] in (CALL, ALLOC)]


def compare(name, records, truth, place, after_exit=()):
    """Call by call. `after_exit`: the last calls of a thread, which it may make when the recording is closed already. Returns
    what was compared: calls, bytes copied, of them pageable."""
    by_thread = {}
    for call in truth:
        if call["fn"] in hooked:
            by_thread.setdefault(call["tid"], []).append(call)
    ours = {}
    begin = min(call["t0"] for call in truth)  # the log is opened by cuInit
    for record in calls_of(records):
        # Not in the log: what the simulator does not implement, and calls after the driver's own exit.
        if record["fn"] in hooked and record["t1"] > begin and record["result"] not in (801, 4):
            ours.setdefault(record["tid"], []).append(record)
    check(set(ours) == set(by_thread), name, "threads", set(ours), set(by_thread))
    pair = Pair(name, records, place)
    for tid, expected in by_thread.items():
        got = sorted(ours.get(tid, []), key=lambda r: r["t0"])
        expected.sort(key=lambda c: c["t0"])
        late = len(after_exit)
        if late and len(got) == len(expected) - late and [c["fn"] for c in expected[-late:]] == list(after_exit):
            del expected[-late:]
        check([r["fn"] for r in got] == [c["fn"] for c in expected], name, "sequence of thread", tid,
              [(a["fn"], b["fn"]) for a, b in zip(got, expected) if a["fn"] != b["fn"]][:3], len(got), len(expected))
        pair.both += zip(got, expected)
    # Streams come and go: what a handle means depends on when.
    for r, c in sorted(pair.both, key=lambda both: both[1]["t1"]):
        pair.same(r, c)
    pair.late()
    check(not unhooked(place), name, "unhooked names", unhooked(place))
    return pair.counts


def unhooked(place):
    files = glob.glob(f"{place}/tfhook-*/*.tft")
    notes = subprocess.run([f"{build}/tests/hook/show", "--notes", *files], capture_output=True, text=True).stdout
    return re.findall(".*unhooked.*", notes)


class Pair:
    """A recording and the driver's log of the same run."""

    def __init__(self, name, records, place):
        self.name, self.both, self.counts, self.missed = name, [], collections.Counter(), []
        names = [r for r in records if r["kind"] == NAME]
        self.kernels = {r["stream"]: r.get("ext", "") for r in names if r["number"] == FUNCTION}
        self.graphs = {r["w"][0]: r["stream"] for r in names if r["number"] == GRAPH_NAME}
        self.totals = {(r["stream"], r["ctx"]): r for r in records if r["kind"] == GRAPH}
        self.streams, self.theirs = {}, {}  # of the driver's log -> ours, and back
        self.stream_ids = {r["w"][0]: r["stream"] for r in names if r["number"] == STREAM}
        self.ops = collections.defaultdict(list)
        for op in truth_of(place, "op"):
            self.ops[op["n"]].append(op)
        done = subprocess.run([f"{build}/tests/hook/moves", *glob.glob(f"{place}/tfhook-*")], capture_output=True,
                              text=True)
        check(done.returncode == 0, name, "copies", done.stderr)
        self.moves = {(m["tid"], m["seq"]): m for m in map(json.loads, done.stdout.splitlines())}

    def same(self, r, c):
        where = f"{self.name}: {c['fn']} call {c['n']}"
        self.counts["calls"] += 1
        check(r["result"] == c["rc"], where, "result", r["result"], c["rc"])
        check(bool(r["flags"] & FAILED) == (c["rc"] != 0), where, "failed flag")
        if r["t0"] > c["t0"] + EPSILON or r["t1"] < c["t1"] - EPSILON:
            self.missed.append((where, r["t0"] - c["t0"], c["t1"] - r["t1"]))
        if c["rc"] != 0:
            return
        check(bool(r["flags"] & CAPTURED) == bool(c.get("captured")) or "Capture" in c["fn"], where, "captured")
        if "bytes" in c and ("cpy" in c["fn"] or "emset" in c["fn"] or "Alloc" in c["fn"]):
            check(r["w"][0] == c["bytes"], where, "bytes", r["w"][0], c["bytes"])
        if c["fn"].startswith("cuMemcpy"):
            self.same_copy(where, r, c)
        if c["fn"].startswith("cuLaunchKernel"):
            self.same_launch(where, r, c)
        if c["fn"].startswith("cuGraphLaunch"):
            self.same_graph(where, r, c)
        self.same_stream(where, r, c)

    def same_copy(self, where, r, c):
        self.counts["bytes"] += c.get("bytes", 0)
        move = self.moves.get((r["tid"], r["seq"]))
        check(move, where, "is no copy to the analysis")
        if not move or "dir" not in c:
            return
        device = ("D2D", "P2P")  # which device an address is on is not recorded
        check(move["dir"] == c["dir"] or (move["dir"] in device and c["dir"] in device), where, "direction",
              move["dir"], c["dir"])
        if "host" in c:
            check(move["pageable"] == (c["host"] == "pageable"), where, "host memory", move, c["host"])

    def same_launch(self, where, r, c):
        kernel = self.kernels.get(r["w"][0] & 0xffffffff)
        if c.get("kernel"):
            check(kernel == c["kernel"], where, "kernel", kernel, c["kernel"])
        for op in self.ops[c["n"]]:
            w1, w2 = r["w"][1:]
            check([w1 & 0xffffffff, w1 >> 32 & 0xffff, w1 >> 48] == op.get("grid"), where, "grid", op)
            check([w2 & 0x7ff, w2 >> 11 & 0x7ff, w2 >> 22 & 0x7f] == op.get("block"), where, "block", op)

    def same_graph(self, where, r, c):
        total = self.totals.get((self.graphs.get(r["w"][0]), r["w"][1]))
        check(total, where, "no totals of the graph", r["w"])
        if not total:
            return
        counts = struct.unpack("<9I", bytes.fromhex(total["ext"]))
        if any(counts[4:]):
            return  # child graphs, conditions: the totals say that they are not all
        ops = self.ops[c["n"]]
        kinds = [sum(op["kind"] == kind for op in ops) for kind in ("kernel", "copy", "memset", "host")]
        check(list(counts[:4]) == kinds and counts[0] == r["w"][2], where, "graph nodes", counts, kinds)
        moved = collections.Counter()
        for op in ops:
            if op["kind"] == "copy":
                moved["D2D" if op["dir"] == "P2P" else op["dir"]] += op["bytes"]
        check(total["w"] == [moved[d] for d in ("H2D", "D2H", "D2D")], where, "graph bytes", total["w"], dict(moved))

    def same_stream(self, where, r, c):
        if not c.get("stream"):
            return
        # What makes or ends a stream has its handle, not its number.
        number = r["stream"] or self.stream_ids.get(r["w"][0], 0) if c["fn"].startswith(OF_STREAMS) else r["stream"]
        if number:
            known = self.streams.setdefault(c["stream"], number), self.theirs.setdefault(number, c["stream"])
            check(known == (number, c["stream"]), where, "stream", number, c["stream"], known)
            if "Destroy" in c["fn"]:
                del self.theirs[number]
        else:
            check((c["stream"] == LEGACY) == (not r["flags"] & PTDS), where, "default stream", c["stream"], r["flags"])

    def late(self):
        check(len(self.missed) <= LATE * self.counts["calls"], self.name, "times", len(self.missed), "of",
              self.counts["calls"], "calls are not within ours, by ns:", self.missed[:5])
