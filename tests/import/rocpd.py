#!/usr/bin/env python3
"""rocprofv3's database (rocpd) says the same of steps and of what the device did as PyTorch's profiler of the same events. Its rows are views over tables
with the run's number in their names; calls and ops are joined by the stack_id of their events. Without rows of copies, calls tell their direction and
size. The first call starts the runtime, the first launch loads the kernels: neither is part of a step. `tfhook import` keeps it.
So does an .rpd file of rocmProfileData, where a table joins calls with their ops and "UserMarker" is a range that its arguments name."""
import gzip
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../export")
from runs import TMP, report, tfhook  # noqa: E402
import device_trace  # noqa: E402
from device_trace import check_same  # noqa: E402

TABLES = {
    "string": "id, guid, string", "info_process": "id, pid", "info_thread": "id, pid, tid", "info_agent": "id, type, type_index",
    "info_kernel_symbol": "id, kernel_name, display_name", "event": "id, stack_id", "arg": "event_id, name, value",
    "region": 'pid, tid, start, "end", name_id, event_id',
    "kernel_dispatch": 'pid, tid, agent_id, kernel_id, queue_id, stream_id, start, "end", workgroup_size_x, workgroup_size_y, workgroup_size_z, '
                       "grid_size_x, grid_size_y, grid_size_z, group_segment_size, event_id",
    "memory_copy": 'pid, tid, start, "end", name_id, dst_agent_id, src_agent_id, size, queue_id, stream_id, event_id'}
COPIES = {"HtoD": ("MEMORY_COPY_HOST_TO_DEVICE", "HostToDevice"), "DtoH": ("MEMORY_COPY_DEVICE_TO_HOST", "DeviceToHost")}


class Database:
    def __init__(self, name):
        self.path, self.texts, self.events = os.path.join(TMP, name), {}, 0
        self.db = sqlite3.connect(self.path)
        for table, columns in TABLES.items():
            self.db.execute("CREATE TABLE rocpd_%s_0f72 (%s)" % (table, columns))
            self.db.execute("CREATE VIEW rocpd_%s AS SELECT * FROM rocpd_%s_0f72" % (table, table))
        self.put("info_process", 1, 4711)
        self.put("info_thread", 1, 1, 4711)
        for i, kind in enumerate(("CPU", "GPU")):
            self.put("info_agent", i, kind, 0)

    def put(self, table, *values):
        self.db.execute("INSERT INTO rocpd_%s_0f72 VALUES (%s)" % (table, ", ".join("?" * len(values))), values)

    def text(self, text, table="string"):
        if (table, text) not in self.texts:
            self.texts[table, text] = len(self.texts) + 1
            self.put(table, len(self.texts), "" if table == "string" else text + ".kd", text)
        return self.texts[table, text]

    def event(self, stack):
        self.events += 1
        self.put("event", self.events, stack)
        return self.events

    def call(self, name, start, dur, stack=0, **args):
        event = self.event(stack)
        self.put("region", 1, 1, round(start * 1000), round((start + dur) * 1000), self.text(name), event)
        for k, v in args.items():
            self.put("arg", event, k, v)

    def kernel(self, name, start, dur, stack, stream):
        self.put("kernel_dispatch", 1, 1, 1, self.text(name, "info_kernel_symbol"), 1, stream, round(start * 1000), round((start + dur) * 1000),
                 128, 1, 1, 2048, 2, 1, 0, self.event(stack))

    def save(self):
        self.db.commit()
        self.db.close()
        return self.path


def rocpd(trace, name):
    """As rocprofv3 writes the events of a trace of PyTorch's profiler."""
    db = Database(name)
    for e in trace["traceEvents"]:
        cat, a = e["cat"], e.get("args", {})
        if cat == "cuda_runtime":
            db.call(e["name"].replace("cuda", "hip"), e["ts"], e["dur"], a["correlation"])
            db.call("hsa_signal_wait_scacquire", e["ts"], e["dur"])
        elif cat == "kernel":
            db.kernel(e["name"], e["ts"], e["dur"], a["correlation"], a["stream"])
        elif cat == "gpu_memcpy":
            what = next(v[0] for k, v in COPIES.items() if k in e["name"])
            db.put("memory_copy", 1, 1, round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), db.text(what), 1, 1, 4096, 1, a["stream"],
                   db.event(a["correlation"]))
        else:
            db.call(e["name"], e["ts"], e["dur"])
    return db.save()


trace, want = device_trace.trace()
path = rocpd(trace, "1234_results.db")
got = report(path)
check_same(got, want, "compute", "input", "host", "communication", "transfer")
said = tfhook("info", path).stdout.decode()
assert "by rocprof" in said and "0 of them without the call" in said and "4711" in said, said
tfhook("import", path, "-o", TMP + "/r.tft")
again = report(TMP + "/r.tft")
assert again["verdict"] == got["verdict"] and again["run"]["source"] == "rocprof"


def rpd(trace, name):
    """As rocmProfileData writes them; its ids begin at 2^32."""
    path, texts, n = os.path.join(TMP, name), {}, 1 << 32
    db = sqlite3.connect(path)
    for table, columns in {"string": "id, string", "api": 'id, pid, tid, start, "end", apiName_id, args_id', "api_ops": "api_id, op_id",
                           "op": 'id, gpuId, queueId, start, "end", description_id, opType_id', "copyapi": "api_ptr_id, size, kind"}.items():
        db.execute("CREATE TABLE rocpd_%s (%s)" % (table, columns))

    def put(table, *values):
        db.execute("INSERT INTO rocpd_%s VALUES (%s)" % (table, ", ".join("?" * len(values))), values)

    def text(of):
        if of not in texts:
            texts[of] = len(texts) + 1
            put("string", texts[of], of)
        return texts[of]

    for e in sorted(trace["traceEvents"], key=lambda e: e["cat"] != "cuda_runtime"):
        n += 1
        a, span = e.get("args", {}), (round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000))
        if e["cat"] == "cuda_runtime":
            put("api", (1 << 40) + a["correlation"], 4711, 4711, *span, text(e["name"].replace("cuda", "hip")), text(""))
        elif e["cat"] in ("kernel", "gpu_memcpy"):
            copy = next((v[1] for k, v in COPIES.items() if k in e["name"]), None) if e["cat"] == "gpu_memcpy" else None
            put("op", n, 1, a["stream"], *span, text("" if copy else e["name"]), text("Copy" + copy if copy else "KernelExecution"))
            put("api_ops", (1 << 40) + a["correlation"], n)
            if copy:
                put("copyapi", (1 << 40) + a["correlation"], 4096, 1 if copy == "HostToDevice" else 2)
        else:
            put("api", n, 4711, 4711, *span, text("UserMarker"), text(e["name"]))
    db.commit()
    db.close()
    return path


path = rpd(trace, "trace.rpd")
check_same(report(path), want, "compute", "input", "host", "communication", "transfer")
said = tfhook("info", path).stdout.decode()
assert "0 of them without the call" in said and "4711" in said, said
with open(path, "rb") as f, gzip.open(path + ".gz", "wb") as packed:
    packed.write(f.read())
said = tfhook("report", path + ".gz", status=3).stderr.decode()
assert "unpack it first" in said and said.count("\n") == 1, said

# A program whose copies were not recorded; the runtime starts in 600 ms, the first launch loads kernels for 500.
db = Database("once_results.db")
db.call("hipMalloc", 0, 600000)
db.call("hipLaunchKernel", 700000, 500000, 1)
db.kernel("warm", 1200010, 20, 1, 0)
db.call("hipMemcpy", 1201000, 50000, kind="HostToDevice", sizeBytes="16777216")
db.call("hipLaunchKernel", 1252000, 5, 2)
db.kernel("work", 1252020, 9000, 2, 0)
db.call("hipMemcpy", 1252100, 30000, kind="DeviceToHost", sizeBytes="4194304")
r = report(db.save())
assert r["verdict"]["cause"] == "transfer.h2d-pageable" and 1.19 < r["startup"]["steady_s"] < 1.21, (r["verdict"], r["startup"])
assert [(t["direction"], t["bytes_per_step"]) for t in r["transfers"]][:1] == [("h2d", 16777216)], r["transfers"]

db = Database("idle_results.db")
db.call("hipGetDeviceCount", 0, 10)
said = tfhook("report", db.save(), status=5).stderr.decode()
assert "--runtime-trace" in said and said.count("\n") == 1, said
print("ok")
