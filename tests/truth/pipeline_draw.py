"""A tf.data pipeline and a training loop drawn from a seed: what jobs/pipes.py builds, and what of it is slow.

A plan is a dict: `source`, `stages` (in order of the data), `loop` (who asks for batches and computes), and of one of them
`ms`, what it takes for a step's elements, with `kind`: how it takes its time. The twin is the plan with that at zero."""
import copy
import random

# Stage types that the report may name for a slow place, without "Parallel" and version; and causes.
SLOW = {
    "generator": ("Generator", ("input.generator",)),
    "tfrecord": ("TFRecord", ("input.read",)),
    "textline": ("TextLine", ("input.read",)),
    "fixed": ("FixedLengthRecord", ("input.read",)),
    "load": ("SnapshotDatasetReader", ("input.read",)),
    "snapshot": ("Snapshot", ("input.read",)),
    "map": ("Map", ("input.map",)),
    "filter": ("Filter", ("input.map",)),
    "flat_map": ("FlatMap", ("input.map",)),
    "scan": ("Scan", ("input.map",)),
    "group": ("GroupByWindow", ("input.map",)),
    "service": ("DataService", ("input.remote",)),
    "inner_map": ("Map", ("input.map",)),
    "side": ("Map", ("input.map",)),
}
BATCH = 16


class Draw:
    def __init__(self, seed):
        self.seed, self.rng = seed, random.Random("pipeline %s" % seed)
        r = self.rng
        self.steps = r.choice([40, 50])
        self.compute = r.uniform(3, 9)
        # Hidden behind the computing, or more than that by so much.
        self.ms = self.compute * r.choice([0.2, 0.5, 1.5, 2, 2.5, 3, 4, 5]) * r.uniform(0.9, 1.1)
        self.tier = r.choice("AAAC")
        self.plan = {"batch": BATCH, "features": r.choice([16, 64, 1024]), "steps": self.steps}
        self.draw()

    def chance(self, p):
        return self.rng.random() < p

    # ---- parts -----------------------------------------------------------------------------------------------------

    def parallel(self):
        """num_parallel_calls: 0 none, -1 AUTOTUNE."""
        return self.rng.choice([0, 0, 0, 2, 4, -1])

    def source(self):
        kind = self.rng.choice(["slices", "range", "tensors", "generator", "tfrecord", "textline", "fixed", "load", "interleave",
                                "interleave", "files"])
        s = {"t": kind}
        if kind in ("interleave", "files"):
            s.update(inner=self.rng.choice(["tfrecord", "map", "generator"] if kind == "interleave" else ["tfrecord"]),
                     cycle=self.rng.choice([2, 4]), block=self.rng.choice([1, 1, 8]),
                     parallel=self.parallel() if kind == "interleave" else 0, deterministic=self.chance(0.6))
        return s

    def middle(self, batched):
        """A stage that leaves elements of the same kind; batched: whole batches."""
        kind = self.rng.choice(["map", "map", "map", "filter", "flat_map", "scan", "shuffle", "cache", "zip", "concatenate", "sample",
                                "prefetch", "window", "take", "skip", "enumerate", "snapshot", "options", "rebatch", "group",
                                "shard", "errors", "apply_repeat"])
        s = {"t": kind}
        if kind == "map":
            s.update(parallel=self.parallel(), deterministic=self.chance(0.7))
        elif kind == "filter":
            s.update(half=self.chance(0.3))
        elif kind == "flat_map":
            s.update(times=1 if batched else self.rng.choice([1, 2, 4]))
        elif kind == "shuffle":
            s.update(size=self.rng.choice([2, 4] if batched else [8, 64]))
        elif kind == "prefetch":
            s.update(size=self.rng.choice([1, 2, 4, -1]))
        elif kind == "snapshot" and batched:
            s["t"] = "prefetch"
            s["size"] = 2
        elif kind in ("zip", "sample"):
            s.update(side=self.rng.choice(["range", "map"]))
        return s

    def draw(self):
        r, plan = self.rng, self.plan
        plan["source"] = self.source()
        stages = [self.middle(False) for _ in range(r.choice([0, 1, 1, 2, 3]))]
        stages.append({"t": r.choice(["batch", "batch", "batch", "padded"]), "parallel": self.parallel()})
        stages += [self.middle(True) for _ in range(r.choice([0, 0, 1, 2]))]
        if self.chance(0.12):
            stages.append({"t": "service"})
        if self.chance(0.6):
            stages.append({"t": "prefetch", "size": r.choice([1, 2, 4, -1])})
        for i, s in enumerate(stages):
            if s["t"] in ("cache", "snapshot") and any(o["t"] in ("cache", "snapshot", "service") for o in stages[:i]):
                s["t"], s["size"] = "prefetch", 2
            if s["t"] == "group" and s.get("parallel"):
                del s["parallel"]
        plan["stages"] = stages
        plan["options"] = {"autotune": self.chance(0.75), "inject": self.chance(0.5), "threads": r.choice([0, 0, 0, 2, 4]),
                           "fuse": self.chance(0.6)}
        plan["loop"] = {"t": r.choice(["next", "next", "for", "function", "graph", "keras", "keras_several"]),
                        "epochs": r.choice([1, 1, 1, 2]), "wait": r.choice(["sync", "sync", "sync", "lag:1"])}
        plan["plan"] = "h2d:1e5:pinned k:%.3f %s" % (self.compute, plan["loop"]["wait"])
        if self.tier == "C" and self.chance(0.5):
            plan["loop"]["device"] = False
            plan["loop"]["ms"] = self.compute
        self.rates()
        self.choose()

    def rates(self):
        """Elements a step that come out of each stage: `rate`; of its source."""
        rate, after = 1, True
        for s in reversed(self.plan["stages"]):
            s["rate"] = rate
            if s["t"] in ("batch", "padded"):
                rate, after = BATCH, False
            elif s["t"] == "filter" and s["half"]:
                rate *= 2
            elif s["t"] == "flat_map":
                rate /= s["times"]
            elif s["t"] == "sample":
                rate /= 2
            s["rate_in"] = rate
        self.plan["source"]["rate"] = rate

    def choose(self):
        """What is slow."""
        places = []
        src = self.plan["source"]
        if src["t"] in ("generator", "tfrecord", "textline", "fixed", "load"):
            places += [("source", src["t"])] * 3
        elif src["t"] in ("interleave", "files"):
            places += [("source", "inner_map" if src["inner"] == "map" else src["inner"])] * 3
        # A cache keeps what is slow before it from being seen after the first epoch: with one epoch it is seen all the time.
        for i, s in enumerate(self.plan["stages"]):
            if s["t"] in ("map", "filter", "flat_map", "scan", "group"):
                places += [(i, s["t"])] * 2
            elif s["t"] in ("zip", "sample") and s["side"] == "map":
                places.append((i, "side"))
        if not places:
            self.plan["stages"].insert(0, {"t": "map", "parallel": self.parallel(), "deterministic": True})
            self.rates()
            places = [(0, "map")]
        at, what = self.rng.choice(places)
        slow = self.plan["source"] if at == "source" else self.plan["stages"][at]
        slow["ms"] = self.ms
        if what in ("tfrecord", "textline", "fixed", "load"):
            slow["kind"] = "read"
        elif what == "generator":
            slow["kind"] = self.rng.choice(["sleep", "busy", "alloc"])
        else:
            slow["kind"] = self.rng.choice(["sleep", "sleep", "py_sleep", "busy", "alloc", "graph", "numpy"])
        self.what, self.at = what, at
        self.name, self.causes = SLOW[what]
        if any(s["t"] == "service" for s in self.plan["stages"]):
            self.plan["loop"]["service"] = True

    # ---- what is true of it ----------------------------------------------------------------------------------------

    def twin(self):
        twin = copy.deepcopy(self.plan)
        for s in [twin["source"]] + twin["stages"]:
            if "ms" in s:
                s["ms"] = 0
        return twin

    def text(self):
        def one(s):
            more = ",".join("%s=%s" % (k, "%.2f" % v if isinstance(v, float) else v) for k, v in s.items() if k not in ("t", "rate", "rate_in"))
            return "%s(%s)" % (s["t"], more)
        p = self.plan
        return " > ".join(one(s) for s in [p["source"]] + p["stages"]) + " | loop %s, options %s, compute %.1f ms, tier %s" % (
            one(p["loop"]), p["options"], self.compute, self.tier)
