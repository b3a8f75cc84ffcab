#!/usr/bin/env python3
"""The simulated CUPTI delivers a record of everything that the truth log has, once, with the same times, in every
version's layout and under every fault that can be set."""
import collections
import ctypes
import json
import os
import shutil
import subprocess
import sys
sys.path.insert(0, os.environ["TFH_SRC"] + "/tests/common")
from common import check, failed  # noqa: E402

build, tmp = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
KERNEL, COPY, MEMSET, DRIVER, PEER, SYNC, EXTERNAL, GRAPH = 10, 1, 2, 4, 22, 38, 39, 51
LAYOUTS = {  # version of the interface -> bytes of a record of each kind (headers of CUDA 10 to 13)
    12: {KERNEL: 144, COPY: 64, MEMSET: 64, PEER: 72},
    13: {KERNEL: 160, COPY: 72, MEMSET: 72, PEER: 80},
    14: {KERNEL: 160, COPY: 80, MEMSET: 80, PEER: 88},
    15: {KERNEL: 168, COPY: 80, MEMSET: 80, PEER: 88},
    17: {KERNEL: 176, COPY: 88, MEMSET: 88, PEER: 96},
    18: {KERNEL: 200, COPY: 88, MEMSET: 88, PEER: 96},
    22: {KERNEL: 208, COPY: 88, MEMSET: 88, PEER: 96, SYNC: 40, GRAPH: 48},
    28: {KERNEL: 208, COPY: 96, MEMSET: 88, PEER: 96, SYNC: 56, GRAPH: 56, DRIVER: 40, EXTERNAL: 24},
    130001: {KERNEL: 216, COPY: 96, MEMSET: 88, PEER: 96, SYNC: 56, GRAPH: 56},
}


class Run:
    def __init__(self, name, *args, **settings):
        print(name)
        log = os.path.join(tmp, "truth")
        if os.path.exists(log):
            os.unlink(log)
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "sim"), SIM_TRUTH=log, SIM_DEVICES="2",
                   ASAN_OPTIONS="detect_leaks=0")
        env.update(("SIM_" + k, str(v)) for k, v in settings.items())
        done = subprocess.run([os.path.join(build, "tests/sim/cupti"), *args], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, text=True)
        check(done.returncode == 0 and not done.stderr, "the client: %d %s" % (done.returncode, done.stderr))
        self.lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.records = [r for r in self.lines if "record" in r]
        self.ops_seen = [r for r in self.records if r["record"] in ("kernel", "copy", "peer", "memset")]
        self.results = {r["result"]: r["code"] for r in self.lines if "result" in r}
        events = [json.loads(line) for line in open(log)]
        self.calls = {e["n"]: e for e in events if e["ev"] == "call"}
        self.ops = [e for e in events if e["ev"] == "op" and e["kind"] in ("kernel", "copy", "memset")]
        self.pid = events[0]["pid"]

    def of(self, what):
        return [r for r in self.records if r["record"] == what]

    def clocks(self):
        return [r for r in self.lines if "clock" in r]


def key_of_op(o):
    """What identifies an operation, whoever tells of it."""
    kind = "copy" if o.get("record", o.get("kind")) == "peer" else o.get("record", o.get("kind"))
    return (kind, o["n"], o.get("node", 0), o.get("bytes", 0), o["stream"], o["dev"], tuple(o.get("grid", ())),
            tuple(o.get("block", ())), o.get("graph", 0))


def complete(run, ops=None):
    """Every operation has one record."""
    want = collections.Counter(key_of_op(o) for o in (run.ops if ops is None else ops))
    got = collections.Counter(key_of_op(o) for o in run.ops_seen)
    check(len(want) > 1 and want == got, "records %s, operations %s" % (list((got - want).items())[:3],
                                                                       list((want - got).items())[:3]))


def times(run, expected):
    """Every record's times are what expected() makes of the truth's, both ends within 2 ns (rounding)."""
    truth = {key_of_op(o): o for o in run.ops}
    wrong = 0
    for r in run.ops_seen:
        o = truth[key_of_op(r)]
        wrong += any(abs(r[end] - expected(o[end])) > 2 for end in ("start", "end"))
    check(run.ops_seen and not wrong, "%d of %d records have wrong times" % (wrong, len(run.ops_seen)))


def distance(run):
    """CUPTI's time less the truth's: exact from a record; the client's own readings enclose it."""
    r = run.ops_seen[0]
    truth = {key_of_op(o): o for o in run.ops}
    d = r["start"] - truth[key_of_op(r)]["start"]
    for c in run.clocks():
        check(c["before"] <= c["clock"] - d <= c["after"], "the clock lies beside the records")
    return d


ALL = "10,1,2,22,4,38,39,17"


def everything(library):
    run = Run("everything, " + library, "-l", library, "-k", ALL)
    check(run.results["version"] == (28 if library.endswith("12") else 130001), "version")
    check(run.results["dropped"] == 0 and run.results["pool"] == 250, "nothing is dropped")
    complete(run)
    d = distance(run)
    times(run, lambda t: t + d)
    exec_id = next(r["exec"] for r in run.lines if "exec" in r)
    in_graph = [r for r in run.ops_seen if r["graph"]]
    check(len(in_graph) == 15 and {r["graph"] for r in in_graph} == {exec_id}, "nodes name their graph")
    check(len({r["node"] for r in in_graph}) == 5, "nodes keep their ids")
    kinds = {"H2D": 1, "D2H": 2, "D2D": 8, "P2P": 10}
    for r in run.of("copy"):
        c = run.calls[r["n"]]
        if not r["graph"]:
            check(r["copy"] == kinds[c["dir"]], "direction of %s" % c["fn"])
            check(r["async"] == ("Async" in c["fn"]), "asynchronous or not: %s" % c["fn"])
        if r["copy"] < 3:
            host = r["src"] if r["copy"] == 1 else r["dst"]
            check(host == (1 if c.get("host") == "pageable" else 2), "host memory of %s: %d" % (c["fn"], host))
    check([(r["from"], r["to"]) for r in run.of("peer")] == [(0, 1)], "devices of the copy between them")
    check({r["value"] for r in run.of("memset")} == {9, 0x12345678}, "values of sets")

    first = min(r["n"] for r in run.of("call"))
    recorded = {r["n"]: r for r in run.of("call")}
    expected = {n for n, c in run.calls.items() if n >= first}
    check(len(recorded) == len(run.of("call")) and set(recorded) == expected, "one record for each call")
    for n, r in recorded.items():
        c = run.calls[n]
        check((r["fn"], r["tid"], r["rc"], r["pid"]) == (c["fn"], c["tid"], c["rc"], run.pid), "call %s" % c["fn"])
        check(c["t0"] <= r["start"] - d <= r["end"] - d <= c["t1"], "the record lies inside the call")
    waits = {"cuEventSynchronize": 1, "cuStreamWaitEvent": 2, "cuStreamSynchronize": 3, "cuCtxSynchronize": 4}
    want = sorted((n, waits[c["fn"]]) for n, c in run.calls.items() if c["fn"] in waits)
    check(sorted((r["n"], r["type"]) for r in run.of("sync")) == want, "synchronisations")
    tags = {r["n"]: r["id"] for r in run.of("external")}
    check(len(tags) == 100 and all(recorded[n]["fn"] == "cuLaunchKernel" for n in tags), "external ids")
    check(collections.Counter(tags.values()) == {1000 + i: 2 for i in range(50)}, "external ids, values")
    check({r["what"] >> 16 for r in run.of("overhead")} <= {1, 7} and run.of("overhead"), "overheads")


def layouts():
    for version, sizes in LAYOUTS.items():
        run = Run("layout %d" % version, "-k", ALL, CUPTI_VERSION=version)
        check(run.results["version"] == version, "version")
        seen = {(r["bytes_of"], r["size"]) for r in run.lines if "bytes_of" in r}
        check(all((k, s) in seen for k, s in sizes.items() if k != GRAPH), "sizes %s" % sorted(seen))
        check(len(seen) == len({k for k, _ in seen}), "one size a kind")
        if version >= 14:  # before, records had no graph
            complete(run)


def graph_trace():
    run = Run("graph trace", "-k", "10,1,2,22,51")
    complete(run, [o for o in run.ops if not o.get("graph")])
    d = distance(run)
    launches = collections.defaultdict(list)
    for o in run.ops:
        if o.get("graph"):
            launches[o["n"], o["graph"]].append(o)
    want = sorted((n, g, min(o["start"] for o in ops) + d, max(o["end"] for o in ops) + d)
                  for (n, g), ops in launches.items())
    check(len(want) == 3 and sorted((r["n"], r["graph"], r["start"], r["end"]) for r in run.of("graph")) == want,
          "one record for each launch")
    check({r["size"] for r in run.lines if r.get("bytes_of") == GRAPH} == {56}, "size")


def some_calls():
    run = Run("chosen calls", "-k", "10,1,2,22", "-m", "some")
    want = sorted(n for n, c in run.calls.items() if c["fn"] in ("cuLaunchKernel", "cuGraphLaunch"))
    check(sorted(r["n"] for r in run.of("call")) == want, "records of the chosen calls only")


def lost():
    """What is not delivered is counted."""
    kinds = "10,1,2,22"
    for name, args, settings in (
            ("limit", (), {"CUPTI_DROP_AFTER": 20}),
            ("no buffer each second time", ("-b", "2048", "-n", "2"), {}),
            ("never a buffer", ("-n", "1"), {}),
            ("buffers too small for a record", ("-b", "60"), {}),
            ("buffers too small for a kernel", ("-b", "100"), {})):
        run = Run(name, "-k", kinds, *args, **settings)
        n = len(run.ops_seen)
        check(n + run.results["dropped"] == len(run.ops) and run.results["dropped"] > 0,
              "%d records, %d dropped, %d operations" % (n, run.results["dropped"], len(run.ops)))
        check(len({key_of_op(r) for r in run.ops_seen}) == n, "no record twice")
        if name == "limit":
            check(n == 20, "as many as the limit")
        if name == "buffers too small for a kernel":
            check(not run.of("kernel") and run.of("copy"), "small records fit")


def no_use():
    """A client whose buffers are of no use is asked for them, and told of, but never without end."""
    for name, args in (("never a buffer", ("-n", "1")), ("too small", ("-b", "60")), ("some", ("-b", "2048", "-n", "2"))):
        run = Run("overheads: " + name, "-k", "10,1,2,22,17", *args)
        n = len(run.ops_seen)
        check(n + run.results["dropped"] >= len(run.ops) and (n > 0) == (name == "some"), "%d records, %d dropped" % (
            n, run.results["dropped"]))


def whole():
    """Ways of delivery: nothing is lost, nothing comes twice."""
    kinds = "10,1,2,22,4"
    for name, args, settings in (
            ("small buffers", ("-b", "1000"), {}),
            ("short buffers", (), {"CUPTI_BUFFER_BYTES": 500}),
            ("shuffled", (), {"CUPTI_SHUFFLE": 50}),
            ("worker", ("-b", "4000"), {"CUPTI_WORKER": 1}),
            ("period", ("-b", "4000", "-p", "2"), {}),
            ("empty buffers", ("-b", "3000"), {"CUPTI_EMPTY_BUFFERS": 1})):
        run = Run(name, "-k", kinds, *args, **settings)
        complete(run)
        check(run.results["dropped"] == 0, "nothing is dropped")
        buffers = [r for r in run.lines if "buffer" in r]
        if name in ("small buffers", "short buffers"):
            check(len(buffers) > 10 and all(b["valid"] <= 1000 for b in buffers), "many small buffers")
        if name == "shuffled":
            ends = [r["end"] for r in run.ops_seen]
            check(sum(a > b for a, b in zip(ends, ends[1:])) > 20, "out of order")
        if name == "worker":
            callers = {c["tid"] for c in run.calls.values()}
            check(not callers & {b["tid"] for b in buffers}, "buffers come from a thread of CUPTI's")


def clocks():
    run = Run("clock settings", "-k", "10,1,2,22", CUPTI_CLOCK_OFFSET_US=-5e6, CUPTI_CLOCK_DRIFT_PPM=50000)
    ops = sorted(run.ops, key=lambda o: o["start"])
    seen = {key_of_op(r): r for r in run.ops_seen}
    a, b = ops[0], ops[-1]
    ra, rb = seen[key_of_op(a)], seen[key_of_op(b)]
    slope = (rb["start"] - ra["start"]) / (b["start"] - a["start"])
    check(abs(slope - 1.05) < 1e-6, "drift %g" % slope)
    times(run, lambda t: ra["start"] + round((t - a["start"]) * 1.05))
    c = run.clocks()[0]
    base = Run("clock", "-k", "10,1,2,22")
    moved = (c["clock"] - c["after"]) - (base.clocks()[0]["clock"] - base.clocks()[0]["after"])
    check(abs(moved + 5e9) < 1e9, "offset %d" % moved)

    for version, broken in ((22, False), (24, True), (130001, True), (130100, False)):
        run = Run("the client's clock, %d" % version, "-c", "-k", "10,1,2,22", CUPTI_VERSION=version)
        complete(run)
        truth = {key_of_op(o): o for o in run.ops}
        for r in run.ops_seen:
            want = 10**12 + truth[key_of_op(r)]["start"] * 1.01
            if broken and r["record"] == "kernel":
                check(r["start"] == r["end"] == 0, "kernels without times")
            else:
                check(abs(r["start"] - want) < 5e7, "the client's clock: %d for %d" % (r["start"], want))
    run = Run("the fault, switched off", "-c", "-k", "10", CUPTI_ZERO_TIMES=0)
    check(all(r["start"] for r in run.of("kernel")), "kernels have times")


def forced():
    run = Run("forced flush", "-m", "forced")
    at = next(i for i, r in enumerate(run.lines) if r.get("result") == "forced")
    before = [r for r in run.lines[:at] if r.get("record") == "kernel"]
    after = [r for r in run.lines[at:] if r.get("record") == "kernel"]
    check([r["grid"][0] for r in before] == [1] and before[0]["end"] > 0, "what is complete comes first")
    check([(r["grid"][0], r["end"]) for r in after] == [(2, 0), (3, 0)], "then what is not, once")
    run = Run("forced flush, only complete ones", "-m", "forced", CUPTI_FORCED_INCOMPLETE=0)
    complete(run)
    check(all(r["end"] for r in run.ops_seen), "complete ones only")


def fork():
    check(Run("fork", "-m", "fork").results["fork"] == 0, "a flush in a child fails")
    check(Run("fork, hanging", "-m", "hang", CUPTI_FORK_HANG=1).results["fork"] == -1, "a flush in a child hangs")


def subscribers():
    run = Run("one subscriber", "-m", "subscribe", "-k", "10")
    check((run.results["first"], run.results["second"]) == (0, 39), "the second is refused")
    check(Run("one subscriber, old", "-m", "subscribe", "-k", "10", CUPTI_VERSION=15).results["second"] == 12, "error")
    run = Run("two subscribers", "-m", "subscribe", "-k", "10", CUPTI_SUBSCRIBERS=2)
    check((run.results["first"], run.results["second"]) == (0, 0), "both are taken")
    heard = collections.defaultdict(list)
    for r in run.lines:
        if "callback" in r:
            heard[r["user"], r["n"]].append(r)
    launches = {n for n, c in run.calls.items() if c["fn"] == "cuLaunchKernel"}
    last = max(launches)  # after the first has gone
    check({n for u, n in heard if u == "first"} == launches - {last}, "the first hears of launches")
    begun = min(n for u, n in heard if u == "second")
    check({n for u, n in heard if u == "second"} == {n for n in run.calls if n >= begun}, "the second of all")
    for (_, n), (enter, leave) in ((k, v) for k, v in heard.items() if len(v) == 2):
        check((enter["site"], leave["site"]) == (0, 1) and leave["rc"] == run.calls[n]["rc"], "enter, then exit")
        check(enter["callback"] == run.calls[n]["fn"] and leave["data"] == n + 7, "name and data")
    check(all(len(v) == 2 for v in heard.values()), "each once")


def registration():
    run = Run("the last registration wins", "-o")
    check(run.results["register"] == 0 and {r["buffer"] for r in run.lines if "buffer" in r} == {"other"}, "stolen")
    run = Run("the first registration stays", "-o", CUPTI_LAST_WINS=0)
    check(run.results["register"] == 7 and {r["buffer"] for r in run.lines if "buffer" in r} == {"mine"}, "kept")


def errors():
    run = Run("no privileges", FAIL="cuptiActivityEnable:*:35")
    check([run.results[k] for k in ("10", "1", "2")] == [35] * 3 and not run.records, "each kind is refused")
    run = Run("unknown error", FAIL="cuptiActivityEnable:2:999")
    check([run.results[k] for k in ("10", "1", "2")] == [0, 999, 0] and not run.of("copy"), "one kind is refused")
    run = Run("unknown kind", "-k", "10,99")
    check(run.results["99"] == 21, "unknown kind")


def finalize():
    run = Run("finalize", "-m", "finalize", "-k", "10,1,2,22")
    complete(run, [o for o in run.ops if o.get("grid", [0])[0] != 77])
    check(any(r["grid"][0] == 78 for r in run.of("kernel")), "it can be used again")


def no_driver():
    print("no driver")
    shutil.copy(os.path.join(build, "sim/libcupti.so.13"), tmp)
    code = ("import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); t = ctypes.c_uint64(); f = ctypes.c_uint32(); "
            "s = ctypes.c_char_p(); l.cuptiGetResultString(39, ctypes.byref(s)); "
            "print(l.cuptiGetVersion(ctypes.byref(f)), f.value, l.cuptiActivityEnable(10), l.cuptiActivityFlushAll(0), "
            "l.cuptiGetTimestamp(ctypes.byref(t)), t.value > 10**18, l.cuptiFinalize(), s.value.decode())")
    env = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    out = subprocess.run([sys.executable, "-c", code, os.path.join(tmp, "libcupti.so.13")], env=env,
                         stdout=subprocess.PIPE, text=True, timeout=60).stdout
    check(out.strip() == "0 130001 999 999 0 True 0 CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", out)


everything("libcupti.so.13")
everything("libcupti.so.12")
layouts()
graph_trace()
some_calls()
lost()
no_use()
whole()
clocks()
forced()
fork()
subscribers()
registration()
errors()
finalize()
try:
    if not os.environ.get("TFH_SAN"):  # its runtime must come first in a process
        ctypes.CDLL("libcuda.so.1")
except OSError:
    no_driver()
sys.exit(failed())
