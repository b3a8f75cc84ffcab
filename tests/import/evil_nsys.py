#!/usr/bin/env python3
"""Databases that were damaged or made to do harm: values of the wrong type, of every extreme and of no type, texts of any length and content, tables
that are views, without end, of themselves or with functions that reach outside, triggers, virtual tables, a file that ends early, pages of noise and
lengths that lie. Each is refused in one line with exit code 3 or 5, or read without what is not usable; none takes more than 20 s of a processor or 600 MB, changes
the file, leaves one beside it, or runs what it holds."""
import os
import random
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nsysdb  # noqa: E402

BUILD, TMP = os.environ["TFH_BUILD"], os.environ["TFH_TMP"]
PID = 1 << 48 | 100 << 24
os.mkdir(TMP + "/db")


def report(path, *codes):
    with open(path, "rb") as f:
        before = f.read()
    with open(TMP + "/said", "w+b") as said:
        p = subprocess.Popen([BUILD + "/bin/tfhook", "report", path], stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(p.pid, 0)
        said.seek(0)
        text = said.read()
    code = os.waitstatus_to_exitcode(status)
    assert code in codes, (path, code, text[-300:])
    assert code == 0 or text.count(b"\n") == 1, (path, text)
    spent = used.ru_utime + used.ru_stime
    assert spent < 20 and used.ru_maxrss < 600000, (path, text, spent, used.ru_maxrss)
    with open(path, "rb") as f:
        assert f.read() == before, path
    assert not [n for n in os.listdir(TMP + "/db") if n != os.path.basename(path)], os.listdir(TMP + "/db")
    os.unlink(path)
    return text.decode(errors="replace")


def fill(db, n=50):
    for i in range(n):
        t, c = i * 1000000, 5000 + i
        db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=t, end=t + 9000, globalTid=PID + 100, correlationId=c, nameId=db.string("cudaLaunchKernel_v7000"),
               returnValue=0)
        db.put("CUPTI_ACTIVITY_KIND_KERNEL", start=t + 20000, end=t + 820000, deviceId=0, contextId=1, streamId=7, correlationId=c, globalPid=PID,
               demangledName=db.string("gemm"), gridX=1, gridY=1, gridZ=1, blockX=256, blockY=1, blockZ=1)
        db.put("NVTX_EVENTS", start=t, end=t + 9500, eventType=59, globalTid=PID + 100, text="step %d" % i, domainId=0)
    return db


def database(**how):
    return nsysdb.Database(TMP + "/db/x.sqlite", **how)


# Any value in any column.
rng = random.Random(7)
VALUES = [None, "", "x", "1", -1, 0, 1, 7, 1 << 24, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, -1 << 63, 1.5, float("inf"), -1e308, b"", b"\x00\xff",
          "\U0001f600\u202e\x1b[31m", "a\x00b", "x" * 100000, "%s%n", 5000, PID, PID + 100, 59, 75]
for seed in range(30):
    db = fill(database())
    for name, columns in nsysdb.TABLES.items():
        names = [c.split()[0] for c in columns.split(", ")]
        for _ in range(20):
            row = {c: rng.choice(VALUES) for c in names}
            try:
                db.db.execute("INSERT INTO %s VALUES (%s)" % (name, ", ".join("?" * len(row))), list(row.values()))
            except sqlite3.IntegrityError:
                pass
        if seed % 3 == 0:
            db.db.execute("UPDATE %s SET %s = ? WHERE rowid %% 3 = 0" % (name, names[-1]), [rng.choice(VALUES)])
    report(db.save(), 0, 5)

# Texts: long, many, in UTF-16, raw bytes.
db = fill(database())
for i in range(2000):
    db.put("NVTX_EVENTS", start=i, end=i + 5, eventType=59, globalTid=PID + 100, text="\u4e2d" * 30000 + str(i), domainId=0)
report(db.save(), 0)
db = database(leave_out=nsysdb.TABLES)
db.db.execute("PRAGMA encoding = 'UTF-16be'")
for name, columns in nsysdb.TABLES.items():
    db.db.execute("CREATE TABLE %s (%s)" % (name, columns))
db.leave_out = ()
report(fill(db).save(), 0)
db = fill(database())
db.db.execute("UPDATE StringIds SET value = CAST(x'fffe80ff1b5b33316d' AS TEXT)")
db.db.execute("INSERT INTO StringIds VALUES (99999, CAST(zeroblob(100000000) AS TEXT))")
said = report(db.save(), 3)
assert "too big" in said, said

# Many processes and threads.
db = fill(database())
for i in range(20000):
    db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=i, end=i + 1, globalTid=PID + i, correlationId=i, nameId=1, returnValue=0)
report(db.save(), 0)
for i in range(2):
    db = fill(database())
    for k in range(5000 if i else 1000):
        db.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=k, end=k + 1, globalTid=(1 << 48) + (k << 24), correlationId=k, nameId=1, returnValue=0)
    said = report(db.save(), 3 if i else 0)
    assert not i or "processes" in said, said

# Tables that are views.
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS id, 'x' AS value FROM r"
SORTED = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT DISTINCT n AS id, hex(randomblob(1000)) AS value FROM r ORDER BY 2"
HUGE = "SELECT 1 AS id, printf('%.*c', 2000000000, 'x') AS value"
for sql in (ENDLESS, SORTED, HUGE, "SELECT * FROM StringIds", "SELECT * FROM nowhere", "SELECT 1 AS id, load_extension('/tmp/x.so') AS value",
            "SELECT 1 AS id, writefile('%s/db/written', 'x') AS value" % TMP, "SELECT 1 AS id, zeroblob(1 << 62) AS value",
            "SELECT a.id, a.value FROM other a, other b, other c, other d, other e"):
    db = fill(database())
    db.db.execute("ALTER TABLE StringIds RENAME TO other")
    db.db.execute("CREATE VIEW StringIds AS " + sql)
    said = report(db.save(), 0, 3)
db = fill(database())
db.db.execute("CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN DELETE FROM StringIds; END")
report(db.save(), 0)
db = fill(database(leave_out=("NVTX_EVENTS",)))
db.db.execute("CREATE VIRTUAL TABLE NVTX_EVENTS USING fts5(start, end, eventType, text, globalTid, textId, domainId)")
report(db.save(), 0)
db = fill(database())
db.db.execute("PRAGMA writable_schema = ON")
db.db.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE StringIds (id, value' WHERE name = 'StringIds'")
report(db.save(), 3)

# Damage: an end anywhere, noise anywhere, lengths that lie, a schema of another file.
with open(fill(database(), 400).save(), "rb") as f:
    whole = f.read()
os.unlink(TMP + "/db/x.sqlite")


def damaged(data):
    with open(TMP + "/db/x.sqlite", "wb") as f:
        f.write(data)
    report(TMP + "/db/x.sqlite", 0, 3, 5)


for seed in range(90):
    data = bytearray(whole)
    if seed % 3 == 0:
        data = data[:rng.randrange(20, len(data))]
    for _ in range(rng.choice([1, 10, 1000])):
        at = rng.randrange(16 if seed % 2 else 100, len(data)) if len(data) > 101 else 16
        data[min(at, len(data) - 1)] = rng.randrange(256)
    damaged(bytes(data))
for at in range(4096, len(whole), 4096):  # a page that is its own child
    damaged(whole[:at] + b"\x05" + whole[at + 1:at + 8] + (at // 4096 + 1).to_bytes(4, "big") + whole[at + 12:])
damaged(b"SQLite format 3\0")
damaged(b"SQLite format 3\0" + bytes(4080))
print("ok")
