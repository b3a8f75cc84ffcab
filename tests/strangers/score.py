"""What is right of the reports on jobs whose truth is known, and how often. Not a test."""
import collections
import re

# Per cent of jobs; "high" and "medium": of the verdicts with this confidence, those whose class and cause are right.
BARS = {"class": 98, "cause": 95, "steps": 98, "high": 98, "medium": 85}
UNITS = {"s": 1e3, "ms": 1, "us": 1e-3, "ns": 1e-6}  # in ms
NEAR = 0.10     # a point this near to the twin is right
CLOCKS = 0.03   # how far the ends of an interval may be off: job and twin are measured one after the other, each once
CEILING = 0.50  # a ceiling below this part of the twin's step says nothing
CLOSES = 0.001  # of the run's wall time


def milliseconds(number, unit):
    return float(number) * UNITS[unit]


def run_is_right(words, twin_ms, job_ms, steps):
    """Of a gain that is told of the run alone: a ceiling of what the run takes with the twin's steps."""
    run = re.search(r"^run ([\d.]+) (?:([mun]?s) )?-> at best ([\d.]+) ([mun]?s)", words)
    if not run or not twin_ms or not job_ms:
        return False
    becomes = milliseconds(run[3], run[4])
    twin = milliseconds(run[1], run[2] or run[4]) - (job_ms - twin_ms) * steps
    return CEILING * twin < becomes <= twin * (1 + CLOCKS)


def gain_is_right(words, twin_ms, job_ms=None, steps=0):
    """Of the first screen's gain: an interval that holds the twin, a point near to it, or a ceiling that is one. None: the
    screen says that there is no estimate."""
    if words.startswith("no estimate"):
        return None
    if words.startswith("run "):
        return run_is_right(words, twin_ms, job_ms, steps)
    step = re.search(r"step [\d.]+(?: \w+)? -> ([^;,]*)", words)
    if not step or not twin_ms:
        return False
    between = re.search(r"([\d.]+) (?:([mun]?s) )?to ([\d.]+) ([mun]?s)", step[1])
    if between:
        low, high = milliseconds(between[1], between[2] or between[4]), milliseconds(between[3], between[4])
        if low * (1 - CLOCKS) <= twin_ms <= high * (1 + CLOCKS):
            return True
    # An estimate beside a ceiling, "about 399 us (at best 110 us)", is judged by the ceiling.
    single = re.search(r"(at best )([\d.]+) ([mun]?s)", step[1]) or re.match(r"()([\d.]+) ([mun]?s)(?! to)", step[1])
    if not single:
        return False
    becomes = milliseconds(single[2], single[3])
    if single[1]:
        return CEILING * twin_ms < becomes <= twin_ms * (1 + CLOCKS)
    return abs(becomes / twin_ms - 1) < NEAR


def closes(node, wall):
    """Whether the parts of each node of the run's tree add up to it."""
    parts = node["parts"]
    if not parts:
        return True
    return abs(sum(p["wall_s"] for p in parts) - node["wall_s"]) <= CLOSES * wall and all(closes(p, wall) for p in parts)


class Tally:
    """Counts what is right (`what`: its names) by groups, and by confidence."""

    def __init__(self, what):
        self.what = what
        self.batches = collections.defaultdict(lambda: {w: [0, 0] for w in what})
        self.sure = {c: {"verdicts": 0, "class": 0, "cause": 0, "both": 0} for c in ("high", "medium", "low", "-")}
        self.jobs = 0

    def add(self, groups, right, confidence):
        self.jobs += 1
        for group in (*groups, "all"):
            for what in self.what:
                self.batches[group][what][0] += bool(right[what])
                self.batches[group][what][1] += right[what] is not None
        row = self.sure[confidence]
        row["verdicts"] += 1
        row["class"] += right["class"]
        row["cause"] += right["cause"]
        row["both"] += right["class"] and right["cause"]

    def print_batches(self):
        print("\n%-20s" % "right of" + "".join("%-11s" % what for what in self.what))
        for group in sorted(self.batches, key=lambda name: (name[:3] == "all", name == "all", name)):
            print("%-20s" % group + "".join("%-11s" % ("%d of %d" % tuple(self.batches[group][what])) for what in self.what))

    def print_calibration(self):
        print("\n%-12s%-10s%-10s%-10s%s" % ("confidence", "verdicts", "class", "cause", "both right"))
        for confidence, row in self.sure.items():
            if row["verdicts"]:
                print("%-12s%-10d%-10d%-10d%d (%.0f %%)" % (confidence, row["verdicts"], row["class"], row["cause"], row["both"],
                                                            100 * row["both"] / row["verdicts"]))

    def percent(self, bar):
        right, of = self.batches["all"][bar] if bar in self.what else (self.sure[bar]["both"], self.sure[bar]["verdicts"])
        return 100 * right / of if of else None

    def print_bars(self):
        """Whether one is missed."""
        missed = False
        print()
        for bar, least in BARS.items():
            got = self.percent(bar)
            if got is not None:
                print("%s  %s: %.1f %%, bar %d %%" % ("PASS" if got >= least else "FAIL", bar, got, least))
                missed |= got < least
        return missed
