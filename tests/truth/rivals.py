"""The rules by which XProf and the TensorBoard plugin of Kineto judge, written anew from what they publish, on the events
that tfhook recorded.

XProf (overview page and input pipeline analysis). Of a step, each moment counts for the most important kind of event in it:
computing, copies to the host, copies on the device, waiting for input, collectives, launching, copies to the device, other
host events. On a GPU only device events are in its steps, which last from the first to the last of them, all devices of the
host in one line; without a device it has the host's events. Shares are of the sum of all steps. "Input" is waiting for input
and copies to the device: at least 5 % is input-bound, 20 % highly; copies to the host likewise (output); launching at least
3 % (15 %), "all others" at least 3 % (15 %: blamed on Python), collectives at least 3 % (15 %).

Kineto's plugin. A step is the host's, its end moved to its last kernel. Each moment counts for the first of: kernel, copy,
set, communication, runtime call, DataLoader, operator on the processor, other. DataLoader above 5 %, communication above
10 % and a device busy for less than 50 % are named; the rest is a picture, of which we take the largest part besides
kernels, if kernels are under 90 %.

Each answer is a statement and the classes that a generous reader may take it for.
"""
import bisect
import collections

KERNEL, COPY, MEMSET, GRAPH = 1, 2, 3, 4
H2D, D2H = 1, 2
CALL = 1
FAMILY = {"consumer": 32, "execute": 35, "session": 36}
RUNTIME = {1, 2, 3, 4, 7, 8, 9, 10, 12, 13, 14, 15, 16}  # families of calls of the driver

Statement = collections.namedtuple("Statement", "text classes")


def flatten(steps, events):
    """Seconds of each kind: the most important event of each moment, clipped to the step it is in. `events`: (t0, t1, kind),
    kinds are whole numbers, the greater one counts."""
    total = collections.Counter()
    points = sorted([(t, 0, 1, k) for t, _, k in events] + [(t, 0, -1, k) for _, t, k in events]
                    + [(a, 1, 1, None) for a, _ in steps] + [(b, 1, -1, None) for _, b in steps], key=lambda p: p[0])
    open_kinds, inside, last = collections.Counter(), 0, None
    for t, is_step, change, kind in points:
        if inside and last is not None and t > last:
            live = [k for k, n in open_kinds.items() if n > 0]
            total[max(live) if live else None] += t - last
        last = t
        if is_step:
            inside += change
        else:
            open_kinds[kind] += change
    return total


def process_of(dump):
    """The process with most events: the job."""
    return max(dump["processes"], key=lambda p: len(p.get("ops", [])) * 1000 + len(p.get("events", [])))


XPROF_KINDS = {"other": 10, "h2d": 80, "launch": 90, "collective": 100, "input": 110, "d2d": 120, "d2h": 130, "compute": 140}


def collective(op):
    return op["communication"] and op["kind"] == KERNEL


def xprof_kind(op):
    if collective(op):
        return "collective"
    if op["kind"] in (KERNEL, GRAPH, MEMSET):
        return "compute"
    return {H2D: "h2d", D2H: "d2h"}.get(op["dir"], "d2d")


def issued(begins, op):
    """Number of the host's step that issued an op; None: none did."""
    i = bisect.bisect_right(begins, op["issue0"] if op["issue0"] > 0 else op["t0"]) - 1
    return i if i >= 0 else None


def share(total, *kinds):
    whole = sum(total.values())
    return sum(total[XPROF_KINDS[k]] for k in kinds) / whole if whole else 0


def xprof(process, begins, end):
    ops, events = process.get("ops", []), process["events"]
    if ops:
        # Steps overlap where the host is ahead; each is flattened by itself.
        total = collections.Counter()
        grouped = collections.defaultdict(list)
        for o in ops:
            n = issued(begins, o)
            if n is not None and o["t0"] < end:
                grouped[n].append(o)
        for group in grouped.values():
            span = [(min(o["t0"] for o in group), max(o["t1"] for o in group))]
            total += flatten(span, [(o["t0"], o["t1"], XPROF_KINDS[xprof_kind(o)]) for o in group])
    else:
        kinds = []
        for e in events:
            if e["family"] == FAMILY["consumer"]:
                kinds.append((e["t0"], e["t1"], XPROF_KINDS["input"]))
            elif e["family"] in (FAMILY["execute"], FAMILY["session"]):
                kinds.append((e["t0"], e["t1"], XPROF_KINDS["other"]))
        total = flatten(list(zip(begins, begins[1:] + [end])), kinds)
    others = total[None] / sum(total.values()) if total else 0
    said = []
    inp, out, launch = share(total, "h2d", "input"), share(total, "d2h"), share(total, "launch")
    coll = share(total, "collective")
    if inp >= 0.05:
        said.append((inp, "%sinput-bound" % ("highly " if inp >= 0.2 else ""), ("input-bound", "transfer-bound")))
    if out >= 0.05:
        said.append((out, "output-bound", ("transfer-bound",)))
    if launch >= 0.03:
        said.append((launch, "kernel-launch-bound", ("host-bound",)))
    if coll >= 0.03:
        said.append((coll, "collectives", ("communication-bound",)))
    if others >= 0.03:
        said.append((others, "all others", ("host-bound",)))
    if not said:
        return Statement("device-bound", ("compute-bound",))
    top = max(said)
    return Statement("%s %.0f %%" % (top[1], 100 * top[0]), top[2])


KINETO_KINDS = {"other": 0, "cpu": 1, "dataloader": 2, "runtime": 3, "communication": 4, "memset": 5, "memcpy": 6, "kernel": 7}
KINETO_CLASS = {"memcpy": "transfer-bound", "memset": "transfer-bound", "communication": "communication-bound",
                "runtime": "host-bound", "dataloader": "input-bound", "cpu": "host-bound", "other": "host-bound"}


def kineto(process, begins, end):
    kinds = []
    for o in process.get("ops", []):
        kind = "communication" if collective(o) else {COPY: "memcpy", MEMSET: "memset"}.get(o["kind"], "kernel")
        kinds.append((o["t0"], o["t1"], KINETO_KINDS[kind]))
    for e in process["events"]:
        if e["kind"] != CALL:
            continue
        if e["family"] == FAMILY["consumer"]:
            kinds.append((e["t0"], e["t1"], KINETO_KINDS["dataloader"]))
        elif e["family"] in RUNTIME:
            kinds.append((e["t0"], e["t1"], KINETO_KINDS["runtime"]))
        elif e["family"] in (FAMILY["execute"], FAMILY["session"]):
            kinds.append((e["t0"], e["t1"], KINETO_KINDS["cpu"]))
    total = flatten(list(zip(begins, begins[1:] + [end])), kinds)
    whole = sum(total.values()) or 1
    part = {name: (total[k] + (total[None] if name == "other" else 0)) / whole for name, k in KINETO_KINDS.items()}
    if part["dataloader"] > 0.05:
        return Statement("DataLoader %.0f %%" % (100 * part["dataloader"]), ("input-bound",))
    if part["communication"] > 0.10:
        return Statement("communication %.0f %%" % (100 * part["communication"]), ("communication-bound",))
    if part["kernel"] >= 0.90 or not process.get("ops") and part["cpu"] >= 0.90:
        return Statement("kernels %.0f %%" % (100 * max(part["kernel"], part["cpu"])), ("compute-bound",))
    name = max((n for n in part if n != "kernel"), key=part.get)
    return Statement("%s %.0f %%" % (name, 100 * part[name]), (KINETO_CLASS[name],))


def judge(dump, begins, end):
    """What both say of a run whose steps begin there and end there, in the dump's clock; the job's own marks, so to speak."""
    process = process_of(dump)
    return {"XProf": xprof(process, begins, end), "Kineto": kineto(process, begins, end)} if begins else {}
