"""Makes databases as `nsys export --type sqlite` writes them, from traces of PyTorch's profiler or row by row."""
import gzip
import json
import os
import sqlite3

OP = "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphNodeId INTEGER"
# The columns that queries and importers may meet, in the order of version 2026.2; tests take some away.
TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "CUPTI_ACTIVITY_KIND_KERNEL": OP + ", demangledName INTEGER, shortName INTEGER, mangledName INTEGER, registersPerThread INTEGER, gridX INTEGER, "
                                       "gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, "
                                       "dynamicSharedMemory INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": OP + ", bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": OP + ", value INTEGER, bytes INTEGER, memKind INTEGER",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": OP + ", graphId INTEGER, graphExecId INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, "
                                   "returnValue INTEGER, callchainId INTEGER",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
                                           "globalPid INTEGER, syncType INTEGER, eventId INTEGER",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, eventId INTEGER",
    "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER, priority INTEGER, globalTid INTEGER",
    "TARGET_INFO_GPU": "id INTEGER, name TEXT, smCount INTEGER",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum TEXT, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
}
COPY = {"HtoD": 1, "DtoH": 2, "DtoD": 8, "HtoH": 9, "PtoP": 10}
OLD = {"Runtime": "cuda_runtime", "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Operator": "user_annotation"}  # until 2022
NONE = 0xffffffff


class Database:
    def __init__(self, path, leave_out=(), without=()):
        """`leave_out`: tables; `without`: columns, as versions that do not write them."""
        if os.path.exists(path):
            os.unlink(path)
        self.path, self.db, self.strings = path, sqlite3.connect(path), {}
        for name, columns in TABLES.items():
            kept = [c for c in columns.split(", ") if c.split()[0] not in without]
            if name not in leave_out:
                self.db.execute("CREATE TABLE %s (%s)" % (name, ", ".join(kept)))
        self.leave_out, self.without = leave_out, without

    def put(self, table, **row):
        if table in self.leave_out:
            return
        row = {k: v for k, v in row.items() if k not in self.without}
        self.db.execute("INSERT INTO %s (%s) VALUES (%s)" % (table, ", ".join(row), ", ".join("?" * len(row))), list(row.values()))

    def string(self, text):
        if text not in self.strings:
            self.strings[text] = len(self.strings) + 1
            self.put("StringIds", id=self.strings[text], value=text)
        return self.strings[text]

    def save(self):
        self.db.commit()
        self.db.close()
        return self.path


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        return json.load(f)


def from_kineto(trace, path, suffix="_v7000", domain=None, leave_out=(), without=()):
    """The same events as a trace of PyTorch's profiler has, as far as nsys records them: its ranges come from `emit_nvtx`."""
    db = Database(path, leave_out, without)
    for e in trace["traceEvents"]:
        e["cat"] = OLD.get(e.get("cat"), e.get("cat"))
    host = next(e["pid"] for e in trace["traceEvents"] if e.get("cat") == "cuda_runtime")
    last = max((e for e in trace["traceEvents"] if e.get("cat") == "cuda_runtime"), key=lambda e: e["ts"])
    if last["name"] == "cudaDeviceSynchronize":  # the profiler's own, when it stops
        trace["traceEvents"].remove(last)
    first = min(e["ts"] for e in trace["traceEvents"] if e.get("ph") == "X")
    global_pid = 1 << 48 | host << 24
    ns = lambda us: round((us - first) * 1000)  # noqa: E731
    for k, e in enumerate(e for e in trace["traceEvents"] if e.get("ph") == "X"):
        a, cat = e.get("args", {}), e.get("cat")
        span = dict(start=ns(e["ts"]), end=ns(e["ts"]) + round(e.get("dur", 0) * 1000))
        op = dict(span, deviceId=a.get("device"), contextId=a.get("context", 1), streamId=a.get("stream"), correlationId=a.get("correlation"),
                  globalPid=global_pid)
        if cat == "kernel":
            grid, block = a.get("grid", [1, 1, 1]), a.get("block", [1, 1, 1])
            db.put("CUPTI_ACTIVITY_KIND_KERNEL", demangledName=db.string(e["name"]), shortName=db.string(e["name"].split("<")[0]), gridX=grid[0],
                   gridY=grid[1], gridZ=grid[2], blockX=block[0], blockY=block[1], blockZ=block[2], staticSharedMemory=0,
                   dynamicSharedMemory=int(a.get("shared memory", 0)), **op)
        elif cat == "gpu_memcpy":
            kind = next(v for text, v in COPY.items() if text in e["name"])
            side = 0 if "Pageable" in e["name"] else 1
            db.put("CUPTI_ACTIVITY_KIND_MEMCPY", bytes=a.get("bytes", 0), copyKind=kind, srcKind=side if kind in (1, 9) else 2,
                   dstKind=side if kind in (2, 9) else 2, **op)
        elif cat == "gpu_memset":
            db.put("CUPTI_ACTIVITY_KIND_MEMSET", bytes=a.get("bytes", 0), memKind=2, **op)
        elif cat in ("cuda_runtime", "cuda_driver"):
            db.put("CUPTI_ACTIVITY_KIND_RUNTIME", eventClass=0 if cat == "cuda_runtime" else 1, globalTid=global_pid | int(e["tid"]),
                   correlationId=a.get("correlation"), nameId=db.string(e["name"] + (suffix if cat == "cuda_runtime" else "")), returnValue=0, **span)
        elif cat == "cuda_sync" and a.get("correlation", 0) > 0:
            db.put("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", syncType=0, eventId=a.get("wait_on_cuda_event_id", NONE), **op)
        elif cat in ("user_annotation", "cpu_op") and str(e["tid"]).isdigit():
            text = e["name"] + (", seq = %d, op_id = %d" % (k, k + 1) if cat == "cpu_op" else "")
            row = dict(text=None, textId=db.string(text)) if k % 2 else dict(text=text, textId=None)
            db.put("NVTX_EVENTS", eventType=59, globalTid=global_pid | int(e["tid"]), domainId=0, **row, **span)
    db.put("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node7")
    db.put("TARGET_INFO_GPU", id=0, name="H100", smCount=trace.get("deviceProperties", [{}])[0].get("numSms", 108))
    db.put("TARGET_INFO_SESSION_START_TIME", utcEpochNs=round(first * 1000))
    db.put("PROCESSES", globalPid=global_pid, pid=host, name="python3")
    db.put("PROCESSES", globalPid=1 << 48 | 1 << 24, pid=1, name="systemd")
    return db.save()
