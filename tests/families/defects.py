"""The defects that a drawn job can have: the lines that are slow, where they stand, and what a report should call them.

A defect's lines run once in each step, before the batch is sent ("before") or behind the update ("after"). They may use `i` (number of the
step), `FOLDER` (the job's own) and what `setup` makes. `ms` in them is a number drawn by draw.py; how long they really take is measured by the
job itself. A line that may lead the verdict ends with "# here".
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Defect:
    where: str           # "before", "after", "beside" (another thread or process)
    classes: tuple       # any of them is right
    causes: tuple        # patterns
    lines: str           # {ms} and numbers made of it: see scaled()
    setup: str = ""
    imports: str = ""
    batch: str = ""      # what the lines make the batch of, an expression; "" - they make none
    each: int = 1        # runs in each so many steps
    frameworks: tuple = ()  # () - all


# What one of these takes, in ms, on the machine that this was written on. Sizes need not be exact: jobs measure themselves.
def scaled(ms):
    return {"ms": ms, "s": ms / 1e3, "loops": max(1, int(ms * 16000)), "inflated": max(1, int(ms * 2.2)), "rows": max(1, int(ms * 80)),
            "kilobytes": max(64, int(ms * 1500)), "syncs": max(1, int(ms * 2)), "launches": max(20, int(ms * 30)),
            "copies": max(20, int(ms * 30)), "words": max(50, int(ms * 900))}


HOST_INPUT = ("host", "input")
MAKING = ("host.python", "input.*")  # code of the step's own thread that makes the batch: both names are right

DEFECTS = {
    "none": Defect("after", ("compute",), ("compute.*",), ""),

    # Making the batch.
    "python-batch": Defect("before", HOST_INPUT, MAKING, """
total = 0
for k in range({loops}):  # here
    total += k * k % 7  # here
""", batch="total % 100"),
    "inflate": Defect("before", HOST_INPUT, MAKING + ("host.code",), """
for k in range({inflated}):  # here
    raw = zlib.decompress(PACKED)  # here
""", setup='PACKED = zlib.compress(random.Random(7).randbytes(1 << 13) * 32)', imports="import random\nimport zlib", batch="len(raw) % 100"),
    "parse-json": Defect("before", HOST_INPUT, MAKING + ("host.code",), """
rows = [json.loads(text) for text in TEXTS[:{rows}]]  # here
""", setup='TEXTS = [json.dumps({"id": n, "values": [n * 0.5 + k for k in range(24)], "label": "c%d" % (n % 7)}) for n in range({rows})]',
                         batch="len(rows) % 100"),
    "read-file": Defect("before", HOST_INPUT, ("input.*",), """
with open(SHARDS[i % 4], "rb") as f:  # here
    raw = f.read()  # here
""", setup="""SHARDS = [os.path.join(FOLDER, "shard%d" % n) for n in range(4)]
for name in SHARDS:
    with open(name, "wb") as f:
        f.write(os.urandom(1024) * {kilobytes})""", batch="raw[0]"),
    "fetch-sleep": Defect("before", HOST_INPUT, ("host.sleep", "input.*"), """
time.sleep({s})  # here
""", batch="i"),
    "queue-sleep": Defect("beside", ("input",), ("input.*",), """
time.sleep({s})  # here
""", imports="import queue\nimport threading"),
    "queue-inflate": Defect("beside", ("input",), ("input.*",), """
for k in range({inflated}):  # here
    raw = zlib.decompress(PACKED)  # here
""", setup='PACKED = zlib.compress(random.Random(7).randbytes(1 << 13) * 32)', imports="import queue\nimport random\nimport threading\nimport zlib"),
    "process-python": Defect("beside", ("input",), ("input.*",), """
total = 0
for k in range({loops}):  # here
    total += k * k % 7  # here
""", imports="import multiprocessing"),

    # Behind the step.
    "metrics": Defect("after", ("host",), ("host.python",), """
table = {{}}
for k in range({words}):  # here
    word = "w%d" % (k * 7919 % 1009)  # here
    table[word] = table.get(word, 0) + 1  # here
best = sorted(table.items(), key=lambda item: -item[1])[:10]  # here
"""),
    "log-sync": Defect("after", ("host",), ("host.logging",), """
for k in range({syncs}):  # here
    LOG.write("step %d part %d loss %.4f\\n" % (i, k, 1.0 / (i + 1)))  # here
    LOG.flush()  # here
    os.fsync(LOG.fileno())  # here
""", setup='LOG = open(os.path.join(FOLDER, "train.log"), "w")'),
    "checkpoint": Defect("after", ("host",), ("host.checkpoint",), """
with open(os.path.join(FOLDER, "model.ckpt"), "wb") as f:  # here
    pickle.dump({{"step": i, "weights": WEIGHTS}}, f)  # here
    f.flush()  # here
    os.fsync(f.fileno())  # here
""", setup="WEIGHTS = np.random.default_rng(3).random({kilobytes} * 64).astype('f')", imports="import pickle\n\nimport numpy as np", each=4),
    "throttle": Defect("after", ("host",), ("host.sleep",), """
time.sleep({s})  # here
"""),
    "subprocess": Defect("after", ("host",), ("host.wait", "host.python", "host.unknown", "host.sleep"), """
subprocess.run(["/bin/sleep", "{s}"], check=True)  # here
""", imports="import subprocess"),
    "lock": Defect("after", ("host",), ("host.lock", "host.wait"), """
with LOCK:  # here
    pass
""", setup="""LOCK = threading.Lock()


def hold():
    while True:
        with LOCK:
            time.sleep({s})
        time.sleep(0.0002)


threading.Thread(target=hold, daemon=True).start()""", imports="import threading"),

    # What goes between host and device: frameworks.py has the lines.
    "copy-pageable": Defect("after", ("transfer",), ("transfer.h2d-pageable",), "", frameworks=("numba", "pycuda", "driver")),
    "copies-small": Defect("after", ("transfer", "host"), ("transfer.small-copies", "host.python"), "", frameworks=("numba", "pycuda")),
    "fetch-large": Defect("after", ("transfer",), ("transfer.d2h",), "", frameworks=("numba", "pycuda", "driver")),
    "launches": Defect("after", ("host",), ("host.launch",), "", frameworks=("numba", "pycuda")),
}
