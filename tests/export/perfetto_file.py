#!/usr/bin/env python3
"""`export --to perfetto` writes what Perfetto's own definition of its traces decodes: every number of a name is defined before it is used,
every track described, begins and ends of a track are in order and balanced, calls and ops inside each other as they were, flows lead from a
call to its op. Steps have the times of the report, kernels those of the trace; ranks are processes, also with one pid."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

runs.within(__file__)
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto  # noqa: E402

BEGIN, END, COUNTER = 1, 2, 4


class Decoded:
    """Slices by track, from packets that are checked on the way."""

    def __init__(self, path):
        trace = proto.Trace()
        with open(path, "rb") as f:
            trace.ParseFromString(f.read())
        first = trace.packet[0]
        assert first.sequence_flags == 1 and first.trace_packet_defaults.timestamp_clock_id == 1
        assert first.clock_snapshot.primary_trace_clock == 1 and first.clock_snapshot.clocks[0].clock_id == 1
        self.start = first.clock_snapshot.clocks[0].timestamp
        self.track, self.slice, self.value, self.flow = {}, [], {}, {}
        names, categories, events = {}, {}, []
        for p in trace.packet[1:]:
            assert p.sequence_flags == 2 and p.trusted_packet_sequence_id == 1
            names.update((n.iid, n.name) for n in p.interned_data.event_names)
            categories.update((n.iid, n.name) for n in p.interned_data.event_categories)
            if p.HasField("track_descriptor"):
                d = p.track_descriptor
                assert d.uuid not in self.track and (not d.parent_uuid or d.parent_uuid in self.track)
                self.track[d.uuid] = d
            elif p.HasField("track_event"):
                e = p.track_event
                assert e.track_uuid in self.track
                if e.type == BEGIN:
                    assert e.name_iid in names and e.category_iids[0] in categories
                    events.append((p.timestamp, e, names[e.name_iid], categories[e.category_iids[0]]))
                elif e.type == END:
                    events.append((p.timestamp, e, None, None))
                else:
                    assert e.type == COUNTER
                    self.value.setdefault(self.track[e.track_uuid].name, []).append((p.timestamp, e.double_counter_value))
        self.nest(events)

    def nest(self, events):
        stack = {}
        for t, e, name, category in sorted(events, key=lambda x: x[0]):  # stable, as Perfetto's importer is
            open_ = stack.setdefault(e.track_uuid, [])
            if e.type == BEGIN:
                note = {a.name: a.string_value or a.uint_value or a.double_value for a in e.debug_annotations}
                one = dict(name=name, category=category, t0=t, depth=len(open_), track=self.track[e.track_uuid], note=note,
                           flow=list(e.flow_ids), last=list(e.terminating_flow_ids))
                open_.append(one)
                self.slice.append(one)
            else:
                open_.pop()["t1"] = t
        self.unended = [s for open_ in stack.values() for s in open_]

    def of(self, category):
        return [s for s in self.slice if s["category"] == category]


def check_flows(d):
    begins = {f: s for s in d.slice if s["category"] == "driver" for f in s["flow"]}
    ends = [(f, s) for s in d.of("op") for f in s["last"] + s["flow"]]
    assert ends
    for f, s in ends:
        assert begins[f]["t0"] <= s["t0"] and s["track"].name.startswith("GPU")
    return len(ends)


def check_steps(d, path, only=None):
    want = [s for s in runs.steps(path) if only is None or s["index"] in only]
    got = {s["note"]["index"]: s for s in d.of("step")}
    assert len(got) == len(want) > 0, (len(got), len(want))
    for s in want:
        g = got[s["index"]]
        assert abs((g["t1"] - g["t0"]) / 1e9 - s["dur_s"]) < 5e-9 and abs((g["t0"] - d.start) / 1e9 - s["start_s"]) < 5e-9, (g, s)
        assert g["name"] == "step %d" % s["index"] and g["note"].get("cause") == s["cause"]


# A recording.
run = runs.record()
d = Decoded(runs.export("perfetto", run, runs.TMP + "/run.pftrace"))
check_steps(d, run)
assert not d.unended and len(d.value["step time"]) == len(d.of("step"))
kernels = [s for s in d.of("op") if s["name"] == "spin"]
assert len(kernels) == 300 and all(s["t1"] - s["t0"] >= 690000 for s in kernels), len(kernels)
assert check_flows(d) == len(d.of("op")), "every op has a call"
launches = [s for s in d.of("driver") if s["name"].startswith("cuLaunchKernel")]
assert len(launches) == 300 and all(s["note"]["kernel"] == "spin" for s in launches)
copies = [s for s in d.of("op") if s["name"].startswith("Memcpy HtoD")]
assert len(copies) == 60 and all(s["note"]["bytes"] == 1000000 for s in copies)
d = Decoded(runs.export("perfetto", run, runs.TMP + "/part.pftrace", "--steps", "20-29"))
check_steps(d, run, range(20, 30))
assert 50 <= sum(s["name"] == "spin" for s in d.of("op")) <= 60

# A trace of another profiler: names of all kinds, what begins together, what overlaps.
path = runs.trace("hostile.json", names=runs.HOSTILE)
d = Decoded(runs.export("perfetto", path, runs.TMP + "/hostile.pftrace"))
check_steps(d, path)
outer = [s for s in d.slice if s["name"] == "aten::outer"]
assert len(outer) == 30 and all(s["t1"] - s["t0"] == 900000 for s in outer)
inner = [s for s in d.slice if s["name"].endswith(" op")]
assert len(inner) == 30 and all(s["t1"] - s["t0"] == 400000 for s in inner) and all(s["depth"] == outer[0]["depth"] + 1 for s in inner)
across = [s for s in d.slice if s["name"] == "overlaps"]
assert len(across) == 30 and all(s["t1"] - s["t0"] == 1000000 for s in across) and across[0]["track"].uuid != outer[0]["track"].uuid
assert {runs.HOSTILE[0] + " op", runs.HOSTILE[7] + " op", runs.HOSTILE[10] + " op"} <= {s["name"] for s in inner}
assert check_flows(d) == 180

# Two ranks with one pid, as in two containers.
os.mkdir(runs.TMP + "/two")
for rank in range(2):
    runs.trace("two/%d.json" % rank, rank=rank, world=2, pid=1)
d = Decoded(runs.export("perfetto", runs.TMP + "/two", runs.TMP + "/two.pftrace"))
processes = [t.process for t in d.track.values() if t.HasField("process")]
assert len({p.pid for p in processes}) == 2 and sorted(p.process_name.split(" (")[0] for p in processes) == ["rank 0", "rank 1"]
threads = [t.thread for t in d.track.values() if t.HasField("thread")]
assert len({t.tid for t in threads}) == len(threads) and {t.pid for t in threads} == {p.pid for p in processes}
print("ok")
