"""Draws jobs: a framework, a defect, its size, where its lines stand, the shape of the loop, names.

A family is a framework with a defect. Half of the families confirm: no rule of the judge is changed for one of their jobs. The
halves do not depend on the seed.
"""
import dataclasses
import random
import zlib

from defects import DEFECTS
from frameworks import FRAMEWORKS

SHAPES = ("flat", "flat", "epochs", "evaluated", "trainer", "accumulated", "while")
PLACES = ("inline", "function", "method", "module", "deep", "wrapped")
WAITS = ("each", "each", "loss")
NAMES = ("harbor", "maple", "quartz", "ember", "willow", "comet", "pixel", "lantern", "orchid", "falcon", "marble", "cedar")
VERBS = ("prepare", "collect", "refresh", "observe", "publish", "assemble", "tidy", "inspect")


@dataclasses.dataclass(frozen=True)
class Drawn:
    number: int
    framework: str
    defect: str
    size: str       # "none", "small" (about a tenth of a step, so that computing still leads), "large" (over half)
    place: str
    shape: str
    wait: str
    loader: bool    # the batch comes by the framework's own loader, which runs the lines
    compute_ms: float
    defect_ms: float
    noun: str
    verb: str
    steps: int

    @property
    def family(self):
        return self.framework + "/" + self.defect

    @property
    def name(self):
        return "%03d-%s-%s-%s%s" % (self.number, self.framework, self.defect, self.shape, "-small" if self.size == "small" else "")

    @property
    def split(self):
        return split_of(self.family)


def split_of(family):
    return "confirm" if zlib.crc32(family.encode()) & 1 else "develop"


def families():
    return [(f, d) for f in FRAMEWORKS for d, row in DEFECTS.items() if not row.frameworks or f in row.frameworks]


def one(number, rng, framework, defect):
    row = DEFECTS[defect]
    compute = rng.uniform(1.5, 8)
    size = "none" if defect == "none" else "small" if rng.random() < 0.15 and row.where != "beside" else "large"
    part = {"none": 0, "small": rng.uniform(0.05, 0.12), "large": rng.uniform(1.2, 4)}[size]
    if row.where == "beside":
        part = rng.uniform(2, 4)
    takes = compute * part * row.each
    loader = bool(row.batch) and framework in ("torch", "tensorflow") and rng.random() < 0.6
    shape = rng.choice([s for s in SHAPES if not (s == "accumulated" and framework == "tensorflow") and not (loader and s in ("accumulated", "while"))])
    places = [p for p in PLACES if p != "module" or row.lines]  # calls of the framework stay in the file that has it
    return Drawn(number, framework, defect, size, rng.choice(places), shape, rng.choice(WAITS), loader, round(compute, 2),
                 round(takes, 3), rng.choice(NAMES), rng.choice(VERBS), rng.choice((60, 72, 80, 96)))


def draw(seed, count):
    """`count` jobs: all families once in an order of the seed's, and so on."""
    rng = random.Random(seed)
    order = []
    while len(order) < count:
        turn = families()
        rng.shuffle(turn)
        order += turn
    return [one(n, rng, *family) for n, family in enumerate(order[:count])]
