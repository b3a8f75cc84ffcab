"""A whole job drawn from a seed: a plan for libtrain.c, settings of the simulated driver, and the same job without each thing
that could hold it back.

A word of the plan is (text, kind): `kind` is what the word's time belongs to, input, transfer, launch, host, alloc,
communication or nothing. The twin without a kind is the plan with `zero` in place of its words, which does the same in no
time: so its own clock tells what that kind costs."""
import collections
import random

Word = collections.namedtuple("Word", "text kind zero cause")
INPUT, TRANSFER, LAUNCH, HOST = "input", "transfer", "launch", "host"
KINDS = (INPUT, TRANSFER, LAUNCH, HOST)
OWN = ("host.callback", "host.python", "host.unknown", "host.code", "host.sleep", "host.lock")
LOADER = ("input.unknown", "input.generator")


def word(text, kind=None, zero=None, cause=()):
    return Word(text, kind, text if zero is None else zero, cause)


class Job:
    def __init__(self, seed):
        self.seed = seed
        self.rng = random.Random("job %s" % seed)
        self.env, self.words = {}, []
        self.compute = self.rng.uniform(3, 10)  # ms of a step
        self.steps = self.rng.choice([40, 50, 70])
        self.causes = self.rng.sample(["input", "h2d", "d2h", "callback", "launches", "loader", "alloc", "d2d", "fallback", "small",
                                       "function", "waits", "feeder", "value", "values", "naps", "batch"],
                                      self.rng.choice([0, 1, 1, 1, 2, 2]))
        self.size = {c: self.compute * self.rng.choice([0.15, 0.3, 0.6, 1, 1.5, 2.5]) * self.rng.uniform(0.8, 1.2)
                     for c in self.causes}
        self.small = {}  # what is there without weighing anything
        self.draw()

    def ms(self, cause, most_otherwise):
        """Size of a cause, or something too small to matter."""
        return self.size[cause] if cause in self.size else self.rng.uniform(0, most_otherwise)

    def chance(self, p):
        return self.rng.random() < p

    def add(self, *given, **more):
        self.words.append(word(*given, **more))

    # ---- parts of a step -------------------------------------------------------------------------------------------

    def batch(self):
        depth = self.rng.choice([0, 0, 1, 2, 4, 8])
        if "loader" in self.size or not self.visible and self.chance(0.5):
            t = self.ms("loader", 0.05)
            self.add("load:%.3f:%d" % (t, depth), HOST, "load:0:%d" % depth, OWN)
        if "feeder" in self.size:
            self.add("feed:%.3f:%d" % (self.size["feeder"] + self.compute, depth), INPUT, "feed:0:%d" % depth, LOADER)
        elif self.visible:
            t = self.ms("input", 0.05)
            up = ":%d" % self.rng.choice([1e4, 1e5, 1e6]) if depth and self.chance(0.2) else ""
            self.add("get:%.3f:%d%s" % (t, depth, up), INPUT, "get:0:%d%s" % (depth, up), LOADER)

    def copy_bytes(self, ms, memory, way):
        rate = 4e6 if memory == "pinned" else 1.6e6  # bytes a ms
        return int(max(64, ms * rate)) if way else 64

    def upload(self):
        memory = self.rng.choice(["pinned", "pageable"])
        mode = self.rng.choice(["async", "async", "sync"])
        ms = self.ms("h2d", 0.03)
        n = self.copy_bytes(ms, memory, True)
        zero = "h2d:64:%s:%s" % (memory, mode)
        self.add("h2d:%d:%s:%s" % (n, memory, mode), TRANSFER, zero, ("transfer.h2d-" + memory,))
        if "value" in self.size:
            self.add("value:%.3f" % self.size["value"], HOST, "value:0", OWN)
        if "batch" in self.size:  # the legacy stream takes no batches
            self.add("on:3"), self.add("batch:%d:%d" % (self.rng.randint(64, 4096), max(100, int(self.size["batch"] / 0.007))), TRANSFER, "batch:64:1",
                     ("transfer.small-copies",))
            self.add("note:7"), self.add("on:%d" % (2 if self.ahead else self.main)), self.add("after:7")
        if "small" in self.size:
            copies = max(1, int(self.size["small"] / 0.009))
            self.add("h2d:%d:pinned:async:%d" % (self.rng.randint(64, 4096), copies), TRANSFER, "h2d:64:pinned:async:1",
                     ("transfer.small-copies",))

    def computing(self):
        form = self.rng.choice(["few", "few", "some", "graph", "worker", "streams"])
        n = self.rng.randint(1, 8)
        if form == "graph":
            n = self.rng.choice([4, 40, 400])
            self.add("graph:%.4f:%d" % (self.compute / n, n))
        elif form == "streams":
            self.add("k:%.3f:1:spin_gemm" % (self.compute / 2))
            self.add("note:5"), self.add("on:2"), self.add("after:5"), self.add("k:%.3f:1:spin_conv" % (self.compute / 2))
            self.add("note:6"), self.add("on:%d" % self.main), self.add("after:6")
        else:
            if form == "worker":
                self.add("hand")
                self.add("on:%d" % self.main)
            part = self.rng.random() * self.compute
            self.add("k:%.4f:%d:spin_gemm" % (part / n, n))
            self.middle()
            self.add("k:%.4f:%d:spin_conv" % ((self.compute - part) / n, n))
            if form == "worker":
                self.add("back")
                self.add("on:%d" % self.main)
        if "launches" in self.size:
            n = int(self.size["launches"] / 0.010) + 1
            self.env["SIM_LAUNCH_COST"] = "12us"
            self.add("k:0.002:%d" % n, LAUNCH, "k:%.4f:1" % (0.002 * n), ("host.launch",))
        if "waits" in self.size:
            n = min(30, int(self.size["waits"] / 0.06) + 1)
            for i in range(n):
                self.add("k:0.05", LAUNCH, "k:%.3f" % (0.05 * n) if not i else "", ("host.sync", "host.launch"))
                self.add("sync", LAUNCH, "sync" if i == n - 1 else "", ("host.sync", "host.launch"))

        if "values" in self.size:
            n = min(30, int(self.size["values"] / 0.06) + 1)
            for i in range(n):
                self.add("k:0.05", LAUNCH, "k:%.3f" % (0.05 * n) if not i else "", ("host.sync", "host.launch"))
                self.add("d2h:4:pageable:sync", LAUNCH, "d2h:4:pageable:sync" if i == n - 1 else "", ("host.sync", "host.launch"))

    def middle(self):
        if "d2d" in self.size:
            self.env["SIM_D2D_GBPS"] = "2"
            self.add("d2d:%d" % (self.size["d2d"] * 2e6), TRANSFER, "d2d:64", ("transfer.d2d",))
        if "fallback" in self.size:
            t = self.size["fallback"]
            n = max(8192, int(t * 0.4 * 1.6e6))
            self.add("d2h:%d:pageable:sync" % n, TRANSFER, "d2h:64:pageable:sync", ("transfer.fallback", "transfer.d2h"))
            self.add("busy:%.3f" % (t * 0.2), TRANSFER, "", ("transfer.fallback",))
            self.add("h2d:%d:pageable:sync" % n, TRANSFER, "h2d:64:pageable:sync", ("transfer.fallback", "transfer.h2d-pageable"))
        if "function" in self.size:
            self.add("fn:%.3f" % self.size["function"], HOST, "fn:0", OWN + ("host.sync",))

    def ending(self):
        if "alloc" in self.size:
            self.env["SIM_ALLOC_COST"] = "200us"
            self.add("alloc:1000000:%d" % max(1, int(self.size["alloc"] / 0.21)), HOST, "", ("host.alloc",))
        way = self.rng.choice(["sync", "sync", "ctx", "poll", "lag:1", "lag:2", "lag:4", "loss", "sync@"])
        if "d2h" in self.size:
            memory = self.rng.choice(["pinned", "pageable"])
            n = self.copy_bytes(self.size["d2h"], memory, True)
            mode = self.rng.choice(["sync", "async"])
            self.add("d2h:%d:%s:%s" % (n, memory, mode), TRANSFER, "d2h:64:%s:%s" % (memory, mode), ("transfer.d2h",))
        if "naps" in self.size:
            # a nap may leave half of itself, and one that is the only one may be anything
            self.add("poll:%.3f" % min(2 * self.size["naps"], 0.45 * self.compute), LAUNCH, "poll", ("host.sync",))
        elif way == "loss":
            self.add("d2h:4:pageable:sync")
        elif way == "sync@":
            self.add("sync@%d" % self.rng.choice([2, 3, 5]))
        else:
            self.add(way)
        if "callback" in self.size:
            t = self.size["callback"]
            self.add("%s:%.3f" % (self.rng.choice(["sleep", "sleep", "busy"]), t), HOST, "", OWN)
        elif self.chance(0.3):
            self.add("busy:%.3f" % self.rng.uniform(0.01, 0.1))

    # ---- the step --------------------------------------------------------------------------------------------------

    def draw(self):
        self.visible = "input" in self.size or "feeder" in self.size or "loader" not in self.size and self.chance(0.5)
        self.marks = self.chance(0.2)
        self.main = self.rng.choice([0, 0, 1])
        self.ahead = self.chance(0.15)       # copies for the next step run beside this one's computing
        self.batch_last = self.chance(0.15)  # the next batch is asked for at the end of a step
        self.env["TRAIN_JITTER"] = "%.2f" % self.rng.choice([0, 0, 0.05, 0.2, 0.4])
        if self.chance(0.2):
            self.env["SIM_CONCURRENT_KERNELS"] = "4"
        if self.marks:
            self.add("mark")
        if not self.batch_last:
            self.batch()
        if self.ahead:
            self.add("on:1"), self.add("after:0")
            self.main = 1
            self.computing()
            self.add("note:1"), self.add("on:2"), self.upload(), self.add("note:0"), self.add("on:1")
        else:
            self.add("on:%d" % self.main)
            self.upload()
            self.computing()
        self.ending()
        if self.batch_last:
            self.batch()

    # ---- what it is made of ----------------------------------------------------------------------------------------

    def plan(self, without=()):
        return " ".join(w.zero if w.kind in without else w.text for w in self.words if w.zero or w.kind not in without)

    def kinds(self):
        """Kinds that the job has, even in little."""
        return [k for k in KINDS if any(w.kind == k for w in self.words)]
